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
import contextlib
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

from common.command import machine

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
    where: str  # page:line, from the repository
    text: str
    needs: set

    def __post_init__(self):
        self.page = self.where.split(":")[0]
        self.bare = re.sub(r"(^|\s+)#.*$", "", self.text)  # without its comment
        if GPU_ONLY.search(self.bare):
            self.needs.add("gpu")
        if self.stand_in():
            self.needs.add("slow")

    def stand_in(self):
        """What does for a command that takes minutes; None where nothing is known to."""
        found = (re.fullmatch(pattern, self.bare) for pattern, _ in STAND_INS)
        return next((match.expand(instead) for match, (_, instead) in zip(found, STAND_INS) if match), None)

    def to_run(self, gpu, slow):
        """The text to run, or None; and a remark."""
        if "manual" in self.needs:
            return None, "left out: manual"
        if "gpu" in self.needs and not gpu:
            return None, "left out: needs a GPU"
        if "slow" in self.needs and not slow:
            instead = self.stand_in()
            return instead, f"instead: {instead}" if instead else "left out: slow"
        return self.text, ""


def extract(page, text):
    """The commands of one page. Raises ValueError for a block that can't be understood."""
    commands, words, fence, begun = [], None, None, None
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
            if begun:
                raise ValueError(f"{page}:{number}: the block ends within a command")
            fence = words = None
        elif words is not None and (begun or re.match(r"\s*[^\s#]", line)):
            first, start = begun or (number, "")
            begun = (first, start + line[:-1]) if line.endswith("\\") else None
            if not begun:
                commands.append(Command(f"{page}:{first}", (start + line).strip(), set(words)))
    if fence:
        raise ValueError(f"{page}: a block isn't closed")
    return commands


def all_commands():
    """Those of all pages, in reading order: the front page, the stages, docs/."""
    found = [ROOT / "README.md", *sorted(ROOT.glob("[0-9][0-9]_*/README.md")),
             *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs").glob("*/*.md")),
             *sorted((ROOT / "common").glob("*/README.md"))]
    return [command for page in found
            for command in extract(str(page.relative_to(ROOT)), page.read_text(encoding="utf-8"))]


def unprepared(commands):
    """What a page uses but hasn't had made: someone who begins with that page has only what
    ./ladder, which also installs, has made for it. A message for each."""
    errors, made = [], set()
    for command in commands:
        if "manual" in command.needs:
            continue
        built = re.match(r"\./ladder build ([\w-]+) (.*)", command.bare)
        if built:
            made |= {(command.page, built[1], target) for target in ("", *built[2].split())}
        wanted = re.findall(r"\bbuild/([\w-]+)/bin/(\w+)", command.bare)
        wanted += [(preset, "") for preset in re.findall(
            r"\bctest .*?(?:--preset[ =]|build/)([\w-]+)", command.bare)]
        errors += [f"{command.where}: this page has no './ladder build {preset} {target or 'TARGET'}' before"
                   for preset, target in wanted if (command.page, preset, target) not in made]
        if re.search(r"\bcmake\b", command.bare):
            errors.append(f"{command.where}: cmake installs nothing; use ./ladder build")
    return errors


# ---- Running ---------------------------------------------------------------------------------------


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


def remove_made(folder):
    """What the pages' commands have made, in a checkout that had nothing of that name."""
    for name in MADE_FILES:
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / MADE_FOLDER, ignore_errors=True)


def run(text, folder):
    """Runs a command by bash: (exit status, output). All that it has started ends with it."""
    with subprocess.Popen(["bash", "-c", "set -e\n" + text], cwd=folder, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          start_new_session=True) as process:
        try:
            output, _ = process.communicate(timeout=TIME_LIMIT)
        except BaseException as reason:
            os.killpg(process.pid, signal.SIGKILL)
            if not isinstance(reason, subprocess.TimeoutExpired):
                raise
            return 124, f"{process.communicate()[0]}\nended after {TIME_LIMIT} s"
    # ctest ends with 0 when it has found no test.
    return process.returncode or int("No tests were found" in output), output


def run_all(commands, folder, gpu, slow):
    """Runs the commands in `folder`; gives the number of failures. Without `slow`, what has run once
    already, with the same words, isn't run again."""
    failures, ran = 0, {}
    for name, shape in SUPPLIES.items():
        write_npy(folder / name, shape)
    for command in commands:
        text, remark = command.to_run(gpu, slow)
        if text and not slow and command.bare in ran:
            text, remark = None, f"as at {ran[command.bare]}"
        if text is None:
            print(f"  --        {command.where}: {command.text}  ({remark})", flush=True)
            continue
        ran[command.bare] = command.where
        begin = time.monotonic()
        status, output = run(text, folder)
        seconds = time.monotonic() - begin
        verdict = "ok  " if status == 0 else "FAIL"
        remark = f"  ({remark})" if remark else ""
        print(f"  {verdict}{seconds:5.0f} s  {command.where}: {command.text}{remark}", flush=True)
        if status != 0:
            failures += 1
            print(f"    exit status {status}; its last lines:")
            for line in output.strip().split("\n")[-SHOWN_LINES:]:
                print(f"    | {line}")
    return failures


@contextlib.contextmanager
def fresh_clone():
    """What is committed, not what lies about: a new user has nothing else."""
    with tempfile.TemporaryDirectory(prefix="convladder_") as folder:
        clone = pathlib.Path(folder) / "ConvLadder"
        if subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=False).returncode != 0:
            print("not to be cloned, as git says: copied instead", flush=True)
            shutil.copytree(ROOT, clone, ignore=shutil.ignore_patterns(".git", "build"))
        yield clone


@contextlib.contextmanager
def this_checkout():
    for name in (*MADE_FILES, MADE_FOLDER):
        if (ROOT / name).exists():
            sys.exit(f"commands.py: error: --here would overwrite {ROOT / name}: move it away")
    try:
        yield ROOT
    finally:
        remove_made(ROOT)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="show the commands, run none")
    parser.add_argument("--slow", action="store_true", help="run what takes minutes as well")
    parser.add_argument("--page", action="append", metavar="PAGE",
                        help="only this page's commands (may be repeated): docs/memory.md")
    parser.add_argument("--here", action="store_true",
                        help="run in this checkout and its build/, not in a clone: quicker")
    arguments = parser.parse_args()
    try:
        commands = all_commands()
    except ValueError as error:
        sys.exit(f"commands.py: error: {error}")
    for error in unprepared(commands):
        sys.exit(f"commands.py: error: {error}")
    for page in arguments.page or []:
        if page not in {command.page for command in commands}:
            parser.error(f"--page {page}: no such page, or it has no commands")
    commands = [command for command in commands if command.page in (arguments.page or [command.page])]
    if arguments.list:
        for command in commands:
            print(f"{command.where}\t{','.join(sorted(command.needs)) or '-'}\t{command.text}")
        return 0
    print(f"{len(commands)} commands")
    gpu = bool(machine.gpus() and machine.nvcc())
    with this_checkout() if arguments.here else fresh_clone() as folder:
        failures = run_all(commands, folder, gpu, arguments.slow)
    print(f"{failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
