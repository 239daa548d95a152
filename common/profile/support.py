"""What the scripts here share: the repository, its stages, and files written whole."""
import errno
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
REPORT = os.path.join(ROOT, "build", "report")


def stage_names():
    """The stages' names in the ladder's order: their folders."""
    return sorted(name for name in os.listdir(ROOT)
                  if name[:2].isdigit() and os.path.exists(os.path.join(ROOT, name,
                                                                        "CMakeLists.txt")))


def run_main(main):
    """Ends the program with what main(words) returns; with 130 when it is interrupted, and with 1
    when what it printed could not be written."""
    try:
        if sys.stdout is None:
            fail("standard output is closed")
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
    """Of a list, each record on a line. Writes beside `path` first: the file appears whole or not at
    all. A link stays a link."""
    text = json.dumps(value, indent=1)
    if isinstance(value, list):
        text = "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"
    path = os.path.realpath(path)
    part = f"{path}.{os.getpid()}.part"
    try:
        with open(part, "w", encoding="utf-8") as file:
            file.write(text + "\n")
        os.replace(part, path)
    except OSError as error:
        fail(f"{path}: {error.strerror}")
    finally:
        if os.path.exists(part):
            os.remove(part)


def shortened(path):
    """The path as seen from here, if it lies below the current folder."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative
