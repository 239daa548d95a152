"""What the scripts of common/ share."""
import errno
import json
import os
import sys

from common.show import files
from common.show.files import ROOT

REPORT = os.path.join(ROOT, "build", "report")


def run_main(main):
    """Ends the program with what main(words) returns; with 130 when it is interrupted, and with 1
    when what it printed could not be written."""
    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()
        sys.exit(status)
    except KeyboardInterrupt:
        print("\nladder: interrupted", file=sys.stderr)
        sys.exit(130)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        sys.stdout = None  # nothing is flushed at the end, which would fail again
        fail("standard output can't be written: " + error.strerror)


def fail(message, status=1):
    """Ends the program with one line on stderr; status 2 for a usage error."""
    print(f"ladder: error: {message}", file=sys.stderr)
    sys.exit(status)


def stage_called(word):
    """The stage that a name, or its beginning, means."""
    names = files.stage_names()
    found = [word] if word in names else [name for name in names if word and name.startswith(word)]
    if not found:
        fail(f"stage '{word}' is unknown; there are {', '.join(names)}", 2)
    if len(found) > 1:
        fail(f"stage '{word}' can be {' or '.join(found)}", 2)
    return found[0]


def progress(text):
    """Says what is going on, where someone is watching; an empty text takes the line away."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def require_folder(path):
    """Fails unless a file can be made at `path`: better before measuring than after."""
    if not path:
        fail("--json needs a value: --json FILE", 2)
    if os.path.isdir(path):
        fail(f"{path}: is a folder")
    folder = os.path.dirname(os.path.abspath(path))
    if not os.access(folder, os.W_OK):
        fail(f"{path}: {'can not be written to' if os.path.isdir(folder) else 'there is no'} "
             f"folder {folder}")


def write_json(path, value):
    """Of a list, each record on a line; as files.write() does."""
    text = json.dumps(value, indent=1)
    if isinstance(value, list):
        text = "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"
    try:
        files.write(path, text + "\n")
    except OSError as error:
        fail(f"{path}: {error.strerror}")


def shortened(path):
    """The path as seen from here, if it lies below the current folder."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative
