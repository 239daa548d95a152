"""Files of this repository: its stages, and texts read and written whole."""
import csv
import errno
import glob
import hashlib
import io
import os
import re
import shutil

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def stage_names():
    """The stages' names in the ladder's order: their folders."""
    return sorted(os.path.dirname(path) for path in glob.glob("[0-9][0-9]_*/CMakeLists.txt", root_dir=ROOT))


def registered_stages():
    """The same with their forms, 14_warpgroups_tf32 and so on: the names that the kernels register."""
    return [name for stage in stage_names()
            for name in re.findall(r'REGISTER_STAGE\(\s*\{"([^"]+)"', kernel(stage))]


def lessons():
    """The stages that the pages are about: 90 to 99 are a reader's own."""
    return [stage for stage in stage_names() if stage < "90"]


def kernel_file(stage):
    """The path of its kernel. Raises OSError unless the stage has one .cu file."""
    folder = os.path.join(ROOT, stage)
    found = glob.glob(os.path.join(glob.escape(folder), "*.cu"))
    if len(found) != 1:
        raise OSError(errno.EINVAL, f"a stage has one .cu file, and this folder has {len(found)}", folder)
    return found[0]


def kernel(stage):
    """Its kernel's text, to look at: bytes that are no UTF-8 are replaced."""
    return read(kernel_file(stage), "replace")


def is_side_rung(stage):
    """Whether it takes some problems alone, and not the running example: its registration names `wants`."""
    return bool(re.search(r"REGISTER_STAGE\(\{[^}]*\bwants\}", kernel(stage)))


def capability_of(stage):
    """The compute capability that the stage registers: "9.0"; empty where any GPU runs it."""
    found = re.search(r"REGISTER_STAGE\(\{[^}]*, (\d)(\d)(?:, \w+)*\}", kernel(stage))
    return f"{found[1]}.{found[2]}" if found else ""


def limit_of(stage):
    """What the stage's lesson names in bold, first thing under its heading on what limits it."""
    lesson = read_existing(os.path.join(ROOT, stage, "README.md"))
    found = re.search(r"^## What limits now\n\n\*\*([^*]+?)[.:]?\*\*", lesson, re.MULTILINE)
    return found[1] if found else ""


def kernels_digest():
    """Which kernels these are: 12 digits of a SHA-256 of the stages and common/core, without comments and
    white space, and what is there to name functions and lines: these make no other kernel."""
    code = hashlib.sha256()
    for path in sorted(path for own in ("[0-9][0-9]_*/*.cu", "common/core/*")
                       for path in glob.glob(own, root_dir=ROOT)):
        if path.startswith(("common/core/platform.", "common/core/program.")):
            continue
        text = read(os.path.join(ROOT, path), "replace")
        bare = re.sub(r"//[^\n]*|/\*.*?\*/|\s+", "", text, flags=re.DOTALL)
        code.update(f"{path}\n{bare}\n".encode())
    return code.hexdigest()[:12]


def existing(path):
    """The path; None where nothing is there."""
    return path if os.path.exists(path) else None


def read_bytes(path):
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe, or a device without an end
        raise OSError(errno.EINVAL, "Not a regular file", path)
    with open(path, "rb") as file:
        return file.read()


def read(path, errors="strict"):
    """The file's text."""
    return read_bytes(path).decode(errors=errors).replace("\r\n", "\n")


def read_existing(path, errors="strict"):
    """The file's text; nothing without it."""
    return read(path, errors) if os.path.exists(path) else ""


def read_rows(path):
    """The rows of a CSV file, as {column: text}; lines that begin with # are comments."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(line for line in file if line.strip() and line[0] != "#"))


def write(path, content):
    """Text or bytes. Writes beside `path` first: the file appears whole or not at all. A link
    stays a link. Raises OSError."""
    path = os.path.realpath(path)
    if os.path.exists(path) and not os.path.isfile(path):  # a device would be replaced
        raise OSError(errno.EINVAL, "Not a regular file", path)
    part = os.path.join(os.path.dirname(path), f"{os.path.basename(path)[:50]}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            file.write(content.encode(errors="replace") if isinstance(content, str) else content)
        if os.path.exists(path):
            shutil.copymode(path, part)
        os.replace(part, path)
    except OSError as error:
        error.filename = path  # a write that fails names none
        raise
    finally:
        if os.path.exists(part):
            os.remove(part)


def write_rows(path, rows, comments=""):
    """A CSV file: of the rows the first is its header."""
    text = io.StringIO()
    text.write(comments)
    csv.writer(text, lineterminator="\n").writerows(rows)
    write(path, text.getvalue())
