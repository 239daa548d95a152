"""What the scripts of common/ share."""
import codecs
import io
import json
import os
import re
import shutil
import signal
import sys
import textwrap

from common.show import files
from common.show.files import ROOT
from common.show.records import BadInput

REPORT = os.path.join(ROOT, "build", "report")


def as_it_was(error):
    """A byte of a name that is no text is written as it was; half a character, which no byte is, by its
    number: neither is a reason to stop."""
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeError:
        return codecs.lookup_error("backslashreplace")(error)


codecs.register_error("as_it_was", as_it_was)


class Lossy(io.FileIO):
    """What can't be written, to a full disk, is lost, and nothing else with it."""

    def write(self, data):
        try:
            return super().write(data)
        except OSError:
            return len(data)


def run_main(main):
    """Ends the program with what main(words) returns; with 130 when it is interrupted, and with 1
    when a file is no good, or can't be written or read, or nobody reads what it prints."""
    if sys.stdout is None:
        fail("standard output is closed")
    if os.environ.get("TMPDIR"):  # compilers may run in other folders
        os.environ["TMPDIR"] = os.path.abspath(os.environ["TMPDIR"])
    sys.stdout.reconfigure(errors="as_it_was")
    if sys.stderr:
        sys.stderr = io.TextIOWrapper(io.BufferedWriter(Lossy(sys.stderr.fileno(), "w", closefd=False)),
                                      sys.stderr.encoding, "as_it_was", line_buffering=True)
    try:
        if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            status = main(sys.argv[1:])
        finally:  # also where argparse has ended it
            sys.stdout.flush()
        sys.exit(status)
    except KeyboardInterrupt:
        sys.exit(130)
    except BadInput as error:
        fail(str(error))
    except OSError as error:
        sys.stdout = None  # nothing is flushed at the end, which would fail again
        if isinstance(error, BrokenPipeError):
            sys.exit(1)
        fail(f"{error.filename or 'standard output'}: {error.strerror}")


def fail(message, status=1):
    """Ends the program with one line on stderr; status 2 for a usage error."""
    print(f"ladder: error: {printable(message)}", file=sys.stderr)
    sys.exit(status)


def printable(text):
    """What a terminal shows and doesn't obey; lines stay lines."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text)


def stage_called(word):
    """The stage that a name, or its beginning, means. A stage's other precisions and layouts, such as
    15_copy_engine_tf32, are the program's to know."""
    names, word = files.stage_names(), word.removesuffix("/")  # as a shell completes it
    found = [word] if any(f"{word}_".startswith(f"{name}_") for name in names) else \
        [name for name in names if word and name.startswith(word)]
    if not found:
        fail(f"stage '{word}' is unknown; there are {', '.join(names)}", 2)
    if len(found) > 1:
        fail(f"stage '{word}' can be {' or '.join(found)}", 2)
    return found[0]


def columns(most=sys.maxsize):
    """How wide lines may be: as the terminal, or `most`."""
    return max(20, min(most, shutil.get_terminal_size((most, 0)).columns))


def tell(text):
    """Prints lines; on a terminal that is too narrow for one, folded, each with what goes on below it."""
    if max(map(len, text.splitlines()), default=0) > columns():
        text = "\n".join(textwrap.fill(line, columns(), break_long_words=False, break_on_hyphens=False,
                                       subsequent_indent=" " * min(11, columns() // 4))
                         for line in re.sub(r"\n {9,}", " ", text).splitlines())
    print(text, flush=True)


def progress(text):
    """Says what is going on, where someone is watching; an empty text takes the line away."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def require_folder(path):
    """Fails unless a file can be made at `path`: better before measuring than after."""
    folder = os.path.dirname(os.path.abspath(path))
    if not path or os.path.exists(path) and not os.path.isfile(path):
        fail(f"'{path}' can't be written: it is no regular file")
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        fail(f"'{path}' can't be written: there is no folder {folder} to write to")
    if len(os.fsencode(os.path.basename(path))) > 255:
        fail(f"'{path}' can't be written: its name is too long")


def write_json(path, value):
    """Writes the file as files.write() does; a list has each record on a line."""
    text = json.dumps(value, indent=1)
    if isinstance(value, list):
        text = "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"
    files.write(path, text + "\n")


def shortened(path):
    """The path as seen from here, if it lies below the current folder."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative
