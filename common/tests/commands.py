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
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

from common.command import machine

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEEDS = {"gpu", "slow", "manual"}
BLOCK = re.compile(r"^ {0,3}(```+) *(.*)\n((?:.*\n)*?) {0,3}\1`* *$", re.MULTILINE)  # fence, words, lines
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
    (r"(\./ladder check --shapes? \S+)(.*)", r"\1 --max-gmac 0.001\2"),
    (r"\./ladder profile --backend sim|\./ladder --backend sim profile", "./ladder profile"),
    (r"(\./ladder profile .*--batch) \d+", r"\1 1"),
    (r"ctest --preset sim -R '\^lint'", "ctest --preset sim -N -R '^lint'"),
    (r"\./ladder bench", "./ladder bench --shape resnet50_3x3_64_b64"),
    (r"\./ladder sanitize.*", "./ladder sanitize --tool memcheck --stage 01_naive"),
)
# The files that README.md says a reader has, and their shapes; and all that commands make outside of build/.
SUPPLIES = {"x.npy": (1, 3, 224, 224), "w.npy": (96, 3, 11, 11)}
MADE = (*SUPPLIES, "y.npy", "records.json", "99_my_idea")
SECONDS = 900  # for one command


class Command(NamedTuple):
    where: str  # page:line, from the repository
    text: str
    needs: set
    bare: str  # without its comment
    stand_in: str | None


def command(where, text, words):
    bare = re.sub(r"(^|\s+)#.*$", "", text)
    found = ((re.fullmatch(pattern, bare), instead) for pattern, instead in STAND_INS)
    stand_in = next((match.expand(instead) for match, instead in found if match), None)
    needs = {*words, *(["gpu"] if GPU_ONLY.search(bare) else []), *(["slow"] if stand_in else [])}
    return Command(where, text, needs, bare, stand_in)


def extract(page, text):
    """The commands of one page. Raises ValueError for a block that can't be understood."""
    commands = []
    if re.search("^ {0,3}```", BLOCK.sub("", text), re.MULTILINE):
        raise ValueError(f"{page}: a block isn't closed")
    for block in BLOCK.finditer(text):
        language, *words = block[2].split() or [""]
        if language != "sh":
            continue
        number = text[:block.start(3)].count("\n") + 1
        if set(words) - NEEDS:
            raise ValueError(f"{page}:{number - 1}: '{block[2]}': words are {', '.join(sorted(NEEDS))}")
        if block[3].endswith("\\\n"):
            raise ValueError(f"{page}:{number}: the block ends within a command")
        for line in re.finditer(r"^((?:.*\\\n)*.*)\n", block[3], re.MULTILINE):  # a backslash joins lines
            if re.match(r"\s*[^\s#]", line[1]):
                commands.append(command(f"{page}:{number + block[3][:line.start()].count(chr(10))}",
                                        line[1].replace("\\\n", "").strip(), words))
    return commands


def all_commands():
    """The commands of all pages, in reading order: the front page, the stages, docs/."""
    found = [ROOT / "README.md", *sorted(ROOT.glob("[0-9][0-9]_*/*.md")),
             *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs").glob("*/*.md")),
             *sorted((ROOT / "common").glob("*/README.md"))]
    return [command for page in found
            for command in extract(str(page.relative_to(ROOT)), page.read_text(encoding="utf-8"))]


def unprepared(commands):
    """What a page uses but hasn't had made: someone who begins with that page has only what
    ./ladder, which also installs, has made for it. A message for each."""
    errors, made = [], set()
    for own in commands:
        if "manual" in own.needs:
            continue
        page = own.where.split(":")[0]
        built = re.match(r"\./ladder build ([\w-]+) (.*)", own.bare)
        if built:
            made |= {(page, built[1], target) for target in ("", *built[2].split())}
        wanted = re.findall(r"\bbuild/([\w-]+)/bin/(\w+)", own.bare)
        wanted += [(preset, "") for preset in re.findall(
            r"\bctest .*?(?:--preset[ =]|build/)([\w-]+)", own.bare)]
        errors += [f"{own.where}: this page has no './ladder build {preset} {target or 'TARGET'}' before"
                   for preset, target in wanted if (page, preset, target) not in made]
        if re.search(r"\bcmake\b", own.bare):
            errors.append(f"{own.where}: cmake installs nothing; use ./ladder build")
    return errors


# ---- Running ---------------------------------------------------------------------------------------


def write_npy(path, shape):
    """A .npy file of that shape, values between -1 and 1."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    values = array.array("f", ((i * 7919 % 2001 - 1000) / 1000 for i in range(math.prod(shape))))
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() +
                     values.tobytes())


def run(text, folder):
    """Runs a command by bash: (exit status, output). What takes too long ends with all that it started."""
    done = subprocess.run(["timeout", "--kill-after=5", str(SECONDS), "bash", "-c", "set -e\n" + text],
                          cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    # ctest ends with 0 when it has found no test.
    return done.returncode or int("No tests were found" in done.stdout), done.stdout


def run_all(commands, folder, gpu, slow):
    """Runs the commands in `folder`; gives the number of failures. Without `slow`, what has run once
    already, with the same words, isn't run again."""
    failures, ran = 0, {}
    for name, shape in SUPPLIES.items():
        write_npy(folder / name, shape)
    for own in commands:
        text, remark = own.text, ""
        if "manual" in own.needs or "gpu" in own.needs and not gpu:
            text, remark = None, f"  (left out: {'manual' if 'manual' in own.needs else 'needs a GPU'})"
        elif "slow" in own.needs and not slow:
            text = own.stand_in
            remark = f"  (instead: {text})" if text else "  (left out: slow)"
        if text and not slow and own.bare in ran:
            text, remark = None, f"  (as at {ran[own.bare]})"
        begin, (status, output) = time.monotonic(), run(text, folder) if text else (None, "")
        ran.update({own.bare: own.where} if text else {})
        verdict = {None: "--  ", 0: "ok  "}.get(status, "FAIL")
        print(f"  {verdict}{time.monotonic() - begin:5.0f} s  {own.where}: {own.text}{remark}", flush=True)
        if status:
            failures += 1
            print(f"    exit status {status}; its last lines:")
            print("\n".join("    | " + line for line in output.strip().split("\n")[-15:]), flush=True)
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
    for name in MADE:
        if (ROOT / name).exists():
            sys.exit(f"commands.py: error: --here would overwrite {ROOT / name}: move it away")
    try:
        yield ROOT
    finally:
        subprocess.run(["rm", "-rf", *MADE], cwd=ROOT, check=True)


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
    commands = all_commands()
    for error in unprepared(commands):
        sys.exit(f"commands.py: error: {error}")
    if arguments.page:
        commands = [own for own in commands if own.where.split(":")[0] in arguments.page]
    if not commands:
        parser.error("--page: no such page, or it has no commands")
    if arguments.list:
        for own in commands:
            print(f"{own.where}\t{','.join(sorted(own.needs)) or '-'}\t{own.text}")
        return 0
    print(f"{len(commands)} commands")
    with this_checkout() if arguments.here else fresh_clone() as folder:
        failures = run_all(commands, folder, bool(machine.gpus() and machine.nvcc()), arguments.slow)
    print(f"{failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
