"""Kernels to write, judged by what is right, by races and stray accesses, and by exact counters."""
import argparse
import datetime
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import textwrap
import time

from common.show import files
from common.show.files import ROOT
from common.show.support import fail, run_main, write_json
from common.variants import golf, gpu, judge
from common.variants import task as tasks
from common.variants.build import Build, BuildError
from common.variants.judge import shown
from common.variants.task import number

MINE = os.path.join(ROOT, "exercises.mine")
NOTES = os.path.join(MINE, "notes.json")
PAGE = ["-m", "common.measure.profile", "--program"]
WIDTH = 100
DEFAULT_THOUGHTS = {
    judge.COMPILE: "The compiler names the line. Lines outside of your part are as they must be.",
    judge.REFUSED: "What a kernel does must be counted, and a GPU must be able to do it. Do without this.",
    judge.CRASH: "Which index or divisor on that line can be what you didn't expect?",
    judge.WRONG: "Work out by hand which input the first wrong output should have read.",
    judge.RACE: "Two threads, one word, no __syncthreads() between. Who writes it, and who needs it?",
    judge.STRAY: "For which thread does that index leave the tensor? The last block is rarely full.",
    judge.UNWRITTEN: "Who should have written that, and does it happen before the read, for all threads?",
    judge.BARRIER: "__syncthreads() is for all threads of a block: none may have left, none may skip it.",
    judge.ENDLESS: "What makes the condition of that loop false, and does it change in every turn?"}


class Notes:
    """What is remembered of a learner: {exercise: {...}}; lost if the file is no JSON."""

    def __init__(self):
        self.all = {}
        try:
            self.all = json.loads(files.read_existing(NOTES) or "{}")
        except (OSError, ValueError) as error:
            os.replace(NOTES, NOTES + ".unreadable")
            print(f"{shown(NOTES)}: {error}; kept as {shown(NOTES)}.unreadable", file=sys.stderr)

    def of(self, name):
        return self.all.setdefault(name, {"done": False, "checks": 0, "hints": 0, "predicted": {}})

    def save(self):
        os.makedirs(MINE, exist_ok=True)
        write_json(NOTES, self.all)


def mine(task):
    return os.path.join(MINE, task.name + ".cu")


def make_mine(task, path=None):
    """Whether the learner's file had to be made."""
    path = path or mine(task)
    if os.path.exists(path):
        return False
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    files.write(path, task.start())
    return True


# --- judging -------------------------------------------------------------------------------------


def seed_for(source):
    """Another one every day, and for every text: nobody can tell what it will be."""
    text = files.read(source) if os.path.exists(source) else ""
    return random.Random(f"{datetime.date.today()} {text}").getrandbits(32)


def judge_task(task, source, builds, seed=None):
    """(Verdict, [Result]) of the kernel in `source`; the GPU's counts beside the simulator's where
    there is one: {goal's name: value} as the verdict's `gpu`."""
    seed = seed_for(source) if seed is None else seed
    asked = {"check": task.checked(), "count": task.counted() | task.varied(seed)}
    verdict = judge.judge(builds["sim-count"], source, asked, task.start(), task.seconds, seed)
    results = [] if verdict.kind else task.results(verdict.counted, asked["count"])
    if not verdict.kind and not all(result.met for result in results):
        verdict.kind = judge.COUNTERS
        verdict.message = next(result.text for result in results if not result.met)
    verdict.gpu, verdict.seed = None, seed
    if "gpu" in builds and verdict.kind in ("", judge.COUNTERS):
        verdict.gpu = gpu.judge_task(task, source, builds["gpu"])
        if verdict.gpu.kind:
            verdict.kind, verdict.message = verdict.gpu.kind, "on the GPU: " + verdict.gpu.message
    return verdict, results


def record_of(task, source, verdict, results):
    """For --json."""
    return {"exercise": task.name, "file": shown(source),
            "status": "fail" if verdict.kind else "pass", "kind": verdict.kind,
            "message": verdict.message, "problem": verdict.problem,
            "goals": [{"name": r.name, "problem": r.problem, "counted": r.value, "relation": r.relation,
                       "bound": r.bound, "met": r.met} for r in results],
            "gpu": gpu.as_json(verdict.gpu) if verdict.gpu else None}


def paragraph(label, text):
    """A label in a column of its own, the text folded beside it."""
    lines = [line for part in text.split("\n")
             for line in textwrap.wrap(part, WIDTH - 9, break_long_words=False) or [""]]
    return "\n".join(f"{label if i == 0 else '':7}  {line}".rstrip() for i, line in enumerate(lines))


def show_counts(task, verdict, results, predicted):
    rows = task.counted() | task.varied(verdict.seed)
    for problem in dict.fromkeys(result.problem for result in results):
        own = [result for result in results if result.problem == problem]
        if problem not in task.counted():
            if not all(result.met for result in results if result.problem in task.counted()):
                continue  # there is enough to do
            if all(result.met for result in own):
                print(paragraph("", f"met as well with sizes drawn for you: {problem}"))
                continue
        e = tasks.extents(rows[problem])
        print(paragraph("counted", f"{problem}: {e['N']} image(s) {e['C']}x{e['H']}x{e['W']}, {e['K']} "
                        f"filters {e['R']}x{e['S']}, output {e['P']}x{e['Q']}"))
        cells = [["", "counted"] + (["ncu"] if verdict.gpu else []) + ["goal", ""]]
        for result in own:
            on_gpu = [number(verdict.gpu.values.get(result.name))] if verdict.gpu else []
            cells.append([result.name, number(result.value)] + on_gpu +
                         [result.goal, "met" if result.met else "missed"])
        widths = [max(map(len, column)) for column in zip(*cells)]
        for name, *figures, met in cells:
            print(" " * 8, name.ljust(widths[0]), "", "  ".join(
                [cell.rjust(width) for cell, width in zip(figures, widths[1:])] + [met]).rstrip())
    for key, value in task.predictable(verdict.counted).items():
        if key in predicted:
            said = predicted[key]
            off = f", {said / value:.3g} of what was counted" if value and said != value else ""
            off = ", just so" if said == value else off
            print(paragraph("", f"{key} = {number(value)}; you predicted {number(said)}{off}"))


def show_costly_line(task, verdict, source):
    """The line that costs most of what the exercise is about."""
    shared = task.goal.get("watch") == "shared"
    lines = [line for problem in task.counted() for line in verdict.lines.get(problem, [])
             if line.shared == shared]
    if not lines:
        return
    unit = "wavefronts" if shared else "sectors"
    total, line = sum(line.cost for line in lines), max(lines, key=lambda line: line.cost)
    print(paragraph("costs", f"{line.where}: {line.cost:,} of {total:,} {unit}, "
                    f"{line.cost / line.requests:.3g} per request"))
    text = files.read(source).splitlines()[int(line.where.rpartition(":")[2]) - 1]
    print(paragraph("", "  " + text.strip()))


def thought(task, verdict, results):
    """One next thing to think about."""
    if not verdict.kind:
        return task.goal["next"]
    if verdict.kind == judge.COUNTERS:
        return next(result.think for result in results if not result.met)
    own = task.goal.get("think", {})
    return own.get(verdict.kind, DEFAULT_THOUGHTS[verdict.kind])


def show(task, source, verdict, results, predicted):
    print(paragraph("task", f"{task.goal['idea']}  ({shown(task.path('README.md'))})"))
    kind = verdict.kind
    if kind in (judge.COMPILE, judge.REFUSED):
        print(paragraph("builds", "no: " + verdict.message))
    elif kind in (judge.CRASH, judge.ENDLESS, judge.BARRIER):
        print(paragraph("runs", f"no: {verdict.message}"))
    else:
        if kind == judge.WRONG:
            print(paragraph("right", f"no: {verdict.message}"))
        elif verdict.checked:
            print(paragraph("right", f"{verdict.checked} problems of awkward sizes"))
        if kind != judge.WRONG:
            sound = f"{kind}: {verdict.message}" if kind in judge.MEMORY_KINDS else \
                "no race, no stray access, nothing read before it is written"
            print(paragraph("memory", sound))
    if verdict.problem:
        print(paragraph("", f"on {verdict.problem}"))
    if results:
        show_counts(task, verdict, results, predicted)
        show_costly_line(task, verdict, source)
    if verdict.gpu:
        for line in gpu.lines(verdict.gpu):
            print(paragraph("gpu", line))
    print(paragraph("think", thought(task, verdict, results)))


def ask_for_prediction(task, note):
    """On a terminal, before the first count."""
    if note["checks"] or note["predicted"] or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return
    problem = next(iter(task.counted()))
    print(f"Before the first count: what do you expect on {problem}? (Enter: no idea)")
    for key in task.goal["predict"]:
        try:
            note["predicted"][key] = parse_number(input(f"  {key} = "))
        except (ValueError, EOFError):
            print("  taken as: no idea")


def parse_number(text):
    """'6.6e6', '6,600,000' or '6.6M': no counter is below 0. Raises ValueError."""
    text = text.strip().replace(",", "").replace(" ", "")
    factor = {"k": 1e3, "M": 1e6, "G": 1e9}.get(text[-1:], 1)
    value = float(text[:-1] if factor > 1 else text) * factor
    if not 0 <= value < math.inf:
        raise ValueError(text)
    return value


def check(task, builds, notes, source):
    """Judges a kernel and prints what was found. The record."""
    note = notes.of(task.name)
    ask_for_prediction(task, note)
    begun = time.monotonic()
    verdict, results = judge_task(task, source, builds)
    show(task, source, verdict, results, note["predicted"])
    if results and not note["predicted"] and not note["checks"]:
        key = next(iter(task.goal["predict"]))
        print(paragraph("", "Next time say first what you expect: --predict "
                        f"{key.replace(' ', '_')}=..."))
    note["checks"] += 1
    note["done"] = note["done"] or not verdict.kind
    notes.save()
    seconds = time.monotonic() - begun
    if verdict.kind:
        left = len(task.hints()) - note["hints"]
        more = f"; {left} of {len(task.hints())} hints left: --hint" if left else ""
        print(f"\n{shown(source)}: not yet ({seconds:.1f} s){more}")
    else:
        print(f"\n{shown(source)}: passed ({seconds:.1f} s). Ours: ./ladder exercise {task.name} "
              "--solution")
    return record_of(task, source, verdict, results)


def watch(task, builds, notes, source):
    """Until interrupted."""
    seen = None
    while True:
        try:
            status = os.stat(source)
            now = (status.st_mtime_ns, status.st_size)
        except OSError:
            now = seen  # an editor is just replacing it
        if now != seen:
            seen = now
            if sys.stdout.isatty():
                print("\033[2J\033[H", end="")
            check(task, builds, notes, source)
            print(f"waiting for {shown(source)} to change; Ctrl-C ends", flush=True)
        time.sleep(0.2)


# --- other commands ------------------------------------------------------------------------------


def show_list(all_tasks, notes):
    rung, following, longest = "", None, max(len(task.name) for task in all_tasks)
    for task in all_tasks:
        if task.rung != rung:
            rung = task.rung
            print(rung)
        note = notes.all.get(task.name, {})
        if not note.get("done") and following is None:
            following = task
        mark = "done" if note.get("done") else "next" if following is task else \
            "begun" if note.get("checks") else ""
        print(f"  {mark:5}  {task.name:{longest}}  {task.goal['idea']}")
    done = sum(note["done"] for note in notes.all.values())
    print(f"\n{done} of {len(all_tasks)} done")
    if following:
        print(f"./ladder exercise {following.name}   judges {shown(mine(following))}; the task: "
              f"{shown(following.path('README.md'))}")
    else:
        print("./ladder exercise --golf has no end.")


def hint(task, notes):
    note, texts = notes.of(task.name), task.hints()
    given = min(note["hints"], len(texts) - 1)
    if note["hints"] == len(texts):
        print("That was the last one; again:")
    print(f"hint {given + 1} of {len(texts)}\n\n{texts[given]}")
    note["hints"] = given + 1
    notes.save()


def predict(task, notes, words):
    note = notes.of(task.name)
    for word in words:
        key, _, value = word.partition("=")
        key = next((known for known in task.goal["predict"] if known.replace(" ", "_") == key), key)
        if key not in task.goal["predict"]:
            names = ", ".join(known.replace(" ", "_") for known in task.goal["predict"])
            fail(f"--predict {word}: {task.name} takes {names}", 2)
        try:
            note["predicted"][key] = parse_number(value)
        except ValueError:
            fail(f"--predict {word}: '{value}' is no number, or below 0", 2)
    notes.save()


def reset(task, notes):
    """Nothing is lost: the file gets a number."""
    if os.path.exists(mine(task)):
        count = 1
        while os.path.exists(kept := os.path.join(MINE, f"{task.name}.{count}.cu")):
            count += 1
        os.rename(mine(task), kept)
        print(f"kept as {shown(kept)}")
    make_mine(task)
    notes.all.pop(task.name, None)
    notes.save()
    print(f"{shown(mine(task))} is as in the beginning")


def judge_all(by_name, builds, folder):
    """Every NAME.cu below the folder. The records."""
    records = []
    if not os.path.isdir(folder):
        fail(f"{folder}: there is no such folder")
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name, source in sorted((os.path.splitext(file)[0], os.path.join(parent, file))
                                   for file in names if file.endswith(".cu")):
            if name not in by_name:
                continue
            verdict, results = judge_task(by_name[name], source, builds)
            records.append(record_of(by_name[name], source, verdict, results))
            first = verdict.message.split("\n")[0]
            print(f"{shown(source)}: " + (f"{verdict.kind}: {first}" if verdict.kind else "passed"),
                  flush=True)
    if not records:
        fail(f"{folder}: holds no file called like an exercise")
    passed = sum(record["status"] == "pass" for record in records)
    print(f"{passed} of {len(records)} passed")
    return records


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="./ladder exercise", allow_abbrev=False, description=__doc__,
        epilog="Without NAME: what there is, what is done, and what comes next. Status 0 if all that was "
        "judged has passed, 1 if not, 2 for a usage error.")
    parser.error = lambda message: fail(f"exercise: {message}; ./ladder exercise --help", 2)
    parser.add_argument("name", nargs="?", metavar="NAME", help="judges exercises.mine/NAME.cu; makes that "
                        "file the first time. With --golf: another file")
    action = parser.add_mutually_exclusive_group()
    for option, text in (
            ("watch", "judges NAME again with every save"),
            ("show", "NAME's addresses, warp by warp and line by line, in a page"),
            ("hint", "the next of three hints"), ("solution", "ours, after yours has passed, or with --yes"),
            ("reset", "begins again; what you have written is kept beside it"),
            ("all", "judges every file of exercises.mine, or of --folder"),
            ("golf", "any kernel, as few sectors and wavefronts as you can"),
            ("measure", "on a GPU: what each exercise gains in time, for the pages")):
        action.add_argument("--" + option, action="store_const", const=option, dest="action", help=text)
    parser.add_argument("--predict", nargs="+", metavar="KEY=NUMBER", default=[],
                        help="what you expect to be counted; kept, shown beside it")
    parser.add_argument("--folder", help="with --all: files to be judged, NAME.cu at any depth")
    parser.add_argument("--json", metavar="FILE", help="what was found, for other programs")
    parser.add_argument("--yes", action="store_true", help="with --solution: although yours has not passed")
    parser.add_argument("--builds", default="sim-count", help=argparse.SUPPRESS)  # of ./ladder
    options = parser.parse_args(arguments)
    if options.folder and options.action != "all":
        parser.error("--folder goes with --all")
    if options.action in ("hint", "reset", "solution", "show", "watch") and not options.name:
        parser.error(f"--{options.action} needs the name of one: ./ladder exercise lists them")
    if options.name and options.action in ("all", "measure"):
        parser.error(f"--{options.action} takes no name")
    if options.json and options.action not in (None, "all", "golf", "measure") or \
            options.json and not (options.name or options.action):
        parser.error("--json is for what is judged: a name, --all or --golf")
    return options


def show_page(task, build, source):
    """Profiles the kernel on the first problem that is counted, and shows the page with it: the status
    of show.py."""
    make_mine(task)
    with open(source, encoding="utf-8", errors="replace") as file:
        registered = re.search(r'CONVLADDER_REGISTER_STAGE\(\{"([^"]+)"', file.read())
    if not registered:
        fail(f"{shown(source)}: registers no stage")
    problem = next(iter(task.counted().values()))
    with tempfile.TemporaryDirectory() as folder:
        try:
            program = judge.compile_kernel(build, source, folder, "01_naive")
        except judge.Failed as failure:
            fail(str(failure))
        extents = [f"--{column}={value}" for column, value in problem.items()]
        return subprocess.run([sys.executable, "-B", *PAGE, program, "--stage", registered[1],
                               *extents, "--show"], check=False).returncode


def run_one(task, options, builds, notes):
    """(status, records)."""
    if options.action == "hint":
        hint(task, notes)
    elif options.action == "reset":
        reset(task, notes)
    elif options.action == "solution":
        if not (notes.of(task.name)["done"] or options.yes):
            fail(f"yours has not passed yet; to see ours all the same: ./ladder exercise {task.name} "
                 "--solution --yes")
        print(task.solved(), end="")
    elif options.action == "show":
        return show_page(task, builds["sim-count"], mine(task)), None
    else:
        predict(task, notes, options.predict)
        if make_mine(task):
            print(f"made {shown(mine(task))}: write your part of it, and call this again. The task: "
                  f"{shown(task.path('README.md'))}\nAs it stands:\n")
        if options.action == "watch":
            watch(task, builds, notes, mine(task))
        record = check(task, builds, notes, mine(task))
        return (0 if record["status"] == "pass" else 1), [record]
    return 0, None


def main(arguments):
    options = parse(arguments)
    all_tasks, notes = tasks.read_all(), Notes()
    by_name = {task.name: task for task in all_tasks}
    builds = {preset: Build(preset) for preset in options.builds.split(",")}
    status, records = 0, None
    if options.action == "golf":
        source = options.name or os.path.join(MINE, "golf.cu")
        if not os.path.exists(source) and os.path.basename(source) != "golf.cu":
            fail(f"{source}: there is no such file")
        if make_mine(golf.TASK, source):
            print(f"made {shown(source)}. The task: {shown(golf.TASK.path('README.md'))}")
        verdict, _ = judge_task(golf.TASK, source, builds)
        status, records = golf.score(verdict, record_of(golf.TASK, source, verdict, []))
    elif options.action == "measure":
        return gpu.measure(all_tasks, builds, options.json)
    elif options.action == "all":
        records = judge_all(by_name, builds, options.folder or MINE)
        status = 0 if all(record["status"] == "pass" for record in records) else 1
    elif not options.name:
        show_list(all_tasks, notes)
    elif options.name in by_name:
        status, records = run_one(by_name[options.name], options, builds, notes)
    else:
        fail(f"exercise '{options.name}' is unknown; there are {', '.join(by_name)}", 2)
    if options.json:
        write_json(options.json, records)
    return status


if __name__ == "__main__":
    try:
        run_main(main)
    except (BuildError, tasks.BadTask) as error:
        fail(str(error))
    except BrokenPipeError:  # who read along has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
