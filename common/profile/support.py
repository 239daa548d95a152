"""What the scripts here share: the repository, its stages, tables, and files written whole."""
import glob
import hashlib
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
REPORT = os.path.join(ROOT, "build", "report")
DIGEST_DIGITS = 12


def stage_names():
    """The stages' names in the ladder's order: their folders."""
    return sorted(name for name in os.listdir(ROOT)
                  if name[:2].isdigit() and os.path.exists(os.path.join(ROOT, name,
                                                                        "CMakeLists.txt")))


def kernels_digest(root=ROOT):
    """Says which kernels a result is of: as many digits of `sha256sum 0*/*.cu common/core/* |
    sha256sum`. The same as that of common/cmake/KernelsDigest.cmake."""
    paths = [path for pattern in ("0*/*.cu", "common/core/*")
             for path in glob.glob(pattern, root_dir=root)]
    lines = ""
    for path in sorted(paths):
        with open(os.path.join(root, path), "rb") as file:
            lines += f"{hashlib.sha256(file.read()).hexdigest()}  {path}\n"
    return hashlib.sha256(lines.encode()).hexdigest()[:DIGEST_DIGITS]


def run_main(main):
    """Ends the program with what main(words) returns; with 130 when it is interrupted."""
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("\nladder: interrupted", file=sys.stderr)
        sys.exit(130)


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
    folder = os.path.dirname(os.path.abspath(path))
    if not os.access(folder, os.W_OK):
        fail(f"{path}: {'can not be written to' if os.path.isdir(folder) else 'there is no'} "
             f"folder {folder}")


def write_json(path, value):
    """Writes beside `path` first: the file appears whole or not at all."""
    part = f"{path}.{os.getpid()}.part"
    try:
        with open(part, "w", encoding="utf-8") as file:
            json.dump(value, file, indent=1)
            file.write("\n")
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


def table(header, rows, left=2):
    """Plain text: the first `left` columns to the left, the others to the right, a rule between."""
    widths = [max(len(row[i]) for row in [header] + rows) for i in range(len(header))]

    def line(cells):
        return "  ".join(cell.ljust(width) if i < left else cell.rjust(width)
                         for i, (cell, width) in enumerate(zip(cells, widths))).rstrip()

    return "\n".join(map(line, [header, ["-" * width for width in widths]] + rows)) + "\n"


def count_of(value):
    """6912345 -> '6.91 M'; '-' for None."""
    if value is None:
        return "-"
    for limit, divisor, digits, unit in ((1e9, 1e9, 2, " G"), (1e6, 1e6, 2, " M"),
                                         (1e4, 1e3, 1, " k")):
        if value >= limit:
            return f"{value / divisor:.{digits}f}{unit}"
    return f"{value:.0f}  "
