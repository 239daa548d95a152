#!/usr/bin/env python3
"""Runs the commands of all pages as a new user would: in a fresh clone, in order, as they stand.
A page that relies on what the commands of another have built is an error, and nothing is run.

A page's commands are the lines of its blocks that begin with ```sh. Words behind that say what a
block needs: `gpu` (a GPU and nvcc), `slow` (takes minutes), `manual` (changes the machine, or needs
what no script can supply). Commands that can only work on a GPU, such as ncu, are known as such.
Output of commands and programs' output stands in blocks without `sh`.
"""

import argparse
import array
import dataclasses
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEEDS = ("gpu", "slow", "manual")
GPU_ONLY = re.compile(r"^(ncu|nsys|compute-sanitizer)\b|^\./ladder (bench|sanitize)\b"
                      r"|\bbuild[ /]gpu\b|--preset[ =]gpu\b|--backend[ =]gpu\b")
# What takes minutes, and what stands in for it unless --slow is given: the build that later commands
# rely on, the same check on smaller problems, fewer problems, what has run already, one image instead
# of many, what the tests have done already, one problem, one stage under one tool.
STAND_INS = (
    (r"\./ladder test", "./ladder build sim all"),
    (r"\./ladder test --stage (?!99_)(\w+)", r"./ladder build sim \1"),  # 99_: of no other test
    (r"(\./ladder check --stage \w+(?: --offset \d)?)", r"\1 --max-gmac 0.001"),
    (r"(\./ladder check --fuzz) \d+(.*)", r"\1 10\2"),
    (r"\./ladder profile --backend sim|\./ladder --backend sim profile", "./ladder profile"),
    (r"(\./ladder profile .*--batch) \d+", r"\1 1"),
    (r"ctest --preset sim -R '\^lint'", "ctest --preset sim -N -R '^lint'"),
    (r"\./ladder bench", "./ladder bench --shape resnet50_3x3_64_b64"),
    (r"\./ladder sanitize.*", "./ladder sanitize --tool memcheck --stage 01_naive"),
)
TIME_LIMIT = 900  # seconds for one command
SHOWN_LINES = 15  # of the output of a command that failed


@dataclasses.dataclass
class Command:
    page: str  # relative to the repository
    line: int
    text: str
    needs: set

    def where(self):
        return f"{self.page}:{self.line}"


def stand_in(text):
    """What does for a command that takes minutes; None where nothing is known to."""
    for pattern, replacement in STAND_INS:
        found = re.fullmatch(pattern, without_comment(text))
        if found:
            return found.expand(replacement)
    return None


def needs_of(text, words):
    needs = set(words)
    if GPU_ONLY.search(without_comment(text)):
        needs.add("gpu")
    if stand_in(text):
        needs.add("slow")
    return needs


def without_comment(text):
    return re.sub(r"(^|\s+)#.*$", "", text)


def extract(page, text):
    """The commands of one page. Raises ValueError for a block that can't be understood."""
    commands, words, fence, pending = [], None, None, None
    for number, line in enumerate(text.split("\n"), 1):
        mark = re.match(r"^ {0,3}(```+)\s*(.*)$", line)
        if mark and fence is None:
            fence = mark[1]
            language, *rest = mark[2].split() or [""]
            words = rest if language == "sh" else None
            for word in words or []:
                if word not in NEEDS:
                    raise ValueError(f"{page}:{number}: '{word}' is none of {', '.join(NEEDS)}")
        elif mark and mark[1].startswith(fence) and not mark[2]:
            if pending:
                raise ValueError(f"{page}:{number}: the block ends within a command")
            fence = words = None
        elif words is not None and (pending or without_comment(line).strip()):
            first, start = pending or (number, "")
            pending = None
            if line.endswith("\\"):
                pending = (first, start + line[:-1])
            else:
                full = (start + line).strip()
                commands.append(Command(page, first, full, needs_of(full, words)))
    if fence:
        raise ValueError(f"{page}: a block isn't closed")
    return commands


def pages(root):
    """The pages in reading order: the front page, the stages, docs/."""
    found = [root / "README.md", *sorted(root.glob("[0-9][0-9]_*/README.md")),
             *sorted((root / "docs").glob("*.md")), *sorted((root / "docs").glob("*/*.md")),
             *sorted((root / "common").glob("*/README.md"))]
    return [page for page in found if page.is_file()]


def all_commands(root):
    commands = []
    for page in pages(root):
        commands += extract(str(page.relative_to(root)), page.read_text(encoding="utf-8"))
    return commands


def unprepared(commands):
    """What a page uses but hasn't had made: someone who begins with that page has only what
    ./ladder, which also installs, has made for it. A message for each."""
    errors, made = [], set()
    for command in commands:
        text = without_comment(command.text)
        if "manual" in command.needs:
            continue
        built = re.match(r"\./ladder build ([\w-]+) (.*)", text)
        if built:
            made |= {(command.page, built[1], target) for target in ("", *built[2].split())}
        wanted = re.findall(r"\bbuild/([\w-]+)/bin/(\w+)", text)
        wanted += [(preset, "") for preset in re.findall(
            r"\bctest .*?(?:--preset[ =]|build/)([\w-]+)", text)]
        for preset, target in wanted:
            if (command.page, preset, target) not in made:
                errors.append(f"{command.where()}: this page has no "
                              f"'./ladder build {preset} {target or 'TARGET'}' before it")
        if re.search(r"\bcmake\b", text):
            errors.append(f"{command.where()}: cmake installs nothing; use ./ladder build")
    return errors


# ---- What the pages take for granted ---------------------------------------------------------------


# The files that README.md says a reader has, and their shapes. What else its commands write, and
# the stage of docs/adding-a-stage.md.
SUPPLIES = {"x.npy": (1, 3, 224, 224), "w.npy": (96, 3, 11, 11)}
MADE_FILES = (*SUPPLIES, "y.npy", "records.json")
MADE_FOLDER = "99_my_idea"


def write_npy(path, shape):
    """A .npy file of that shape, values between -1 and 1."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    values = array.array("f", ((i * 7919 % 2001 - 1000) / 1000 for i in range(math.prod(shape))))
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() +
                     values.tobytes())


def supply(folder):
    for name, shape in SUPPLIES.items():
        write_npy(folder / name, shape)


def remove_supplies(folder):
    """Undoes the above, in a checkout that had nothing of that name."""
    for name in MADE_FILES:
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / MADE_FOLDER, ignore_errors=True)


# ---- Running ---------------------------------------------------------------------------------------


def have_gpu():
    """Whether GPU commands can work here: a GPU, and nvcc where ./ladder would find it."""
    if not shutil.which("nvidia-smi"):
        return False
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    return "GPU 0:" in listed.stdout and bool(
        shutil.which("nvcc") or pathlib.Path("/usr/local/cuda/bin/nvcc").is_file())


def to_run(command, gpu, slow):
    """The text to run, or None; and a remark."""
    if "manual" in command.needs:
        return None, "left out: manual"
    if "gpu" in command.needs and not gpu:
        return None, "left out: needs a GPU"
    if "slow" in command.needs and not slow:
        instead = stand_in(command.text)
        return instead, f"instead: {instead}" if instead else "left out: slow"
    return command.text, ""


def run(text, folder):
    """Runs a command by bash. Gives the exit status and its output. All that it has started ends with it."""
    with subprocess.Popen(["bash", "-c", "set -e\n" + text], cwd=folder, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          start_new_session=True) as process:
        try:
            output, _ = process.communicate(timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return 124, f"{process.communicate()[0]}\nended after {TIME_LIMIT} s"
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    # ctest ends with 0 when it has found no test.
    if process.returncode == 0 and "No tests were found" in output:
        return 1, output
    return process.returncode, output


def run_all(commands, folder, gpu, slow):
    """Runs the commands in `folder`; gives the number of failures.

    Without `slow`, what has run once already, with the same words, isn't run again.
    """
    failures, ran = 0, {}
    supply(folder)
    for command in commands:
        text, remark = to_run(command, gpu, slow)
        if text and not slow and without_comment(text) in ran:
            text, remark = None, f"as at {ran[without_comment(text)]}"
        if text is None:
            print(f"  --        {command.where()}: {command.text}  ({remark})", flush=True)
            continue
        ran[without_comment(text)] = command.where()
        begin = time.monotonic()
        status, output = run(text, folder)
        seconds = time.monotonic() - begin
        verdict = "ok  " if status == 0 else "FAIL"
        remark = f"  ({remark})" if remark else ""
        print(f"  {verdict}{seconds:5.0f} s  {command.where()}: {command.text}{remark}", flush=True)
        if status != 0:
            failures += 1
            print(f"    exit status {status}; its last lines:")
            for line in output.strip().split("\n")[-SHOWN_LINES:]:
                print(f"    | {line}")
    return failures


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="show the commands, run none")
    parser.add_argument("--slow", action="store_true", help="run what takes minutes, too")
    parser.add_argument("--page", action="append", metavar="PAGE",
                        help="only this page's commands (may be repeated): docs/memory.md")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER",
                        help="clone there, and leave it (default: a temporary folder)")
    parser.add_argument("--here", action="store_true",
                        help="run in this checkout and its build/, not in a clone: quicker")
    arguments = parser.parse_args()
    if arguments.keep and arguments.here:
        parser.error("--keep and --here exclude each other")
    if arguments.keep and arguments.keep.exists():
        parser.error(f"--keep {arguments.keep}: is there already")
    known = [str(page.relative_to(ROOT)) for page in pages(ROOT)]
    for page in arguments.page or []:
        if page not in known:
            parser.error(f"--page {page}: no such page; there are {', '.join(known)}")
    return arguments


def run_in_clone(commands, arguments):
    with tempfile.TemporaryDirectory(prefix="convladder_") as folder:
        clone = arguments.keep or pathlib.Path(folder) / "ConvLadder"
        # What is committed, not what lies about: a new user has nothing else.
        git = subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=False)
        if git.returncode != 0:
            print("not to be cloned, as git says: copied instead", flush=True)
            shutil.rmtree(clone, ignore_errors=True)
            shutil.copytree(ROOT, clone, ignore=shutil.ignore_patterns(".git", "build"))
        return run_all(commands, clone, have_gpu(), arguments.slow)


def run_here(commands, arguments):
    for name in (*MADE_FILES, MADE_FOLDER):
        if (ROOT / name).exists():
            sys.exit(f"commands.py: error: --here would overwrite {ROOT / name}: move it away")
    try:
        return run_all(commands, ROOT, have_gpu(), arguments.slow)
    finally:
        remove_supplies(ROOT)


def main():
    arguments = parse_arguments()
    try:
        commands = all_commands(ROOT)
    except ValueError as error:
        sys.exit(f"commands.py: error: {error}")
    for error in unprepared(commands):
        sys.exit(f"commands.py: error: {error}")
    if arguments.page:
        commands = [command for command in commands if command.page in arguments.page]
    if arguments.list:
        for command in commands:
            print(f"{command.where()}\t{','.join(sorted(command.needs)) or '-'}\t{command.text}")
        return 0
    print(f"{len(commands)} commands")
    failures = (run_here if arguments.here else run_in_clone)(commands, arguments)
    print(f"{failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
