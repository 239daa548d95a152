"""Kernels to write, judged by what is right, by races and stray accesses, and by exact counters."""
import argparse
import copy
import datetime
import fcntl
import json
import math
import os
import random
import re
import sys
import tempfile
import textwrap
import time

from common.command.machine import foreground, python
from common.show import files
from common.show.files import ROOT
from common.show.support import (columns, fail, printable, require_folder, run_main, tell,
                                 write_json)
from common.variants import grade, judge
from common.variants import task as tasks
from common.variants.build import Build, BuildError, Failed, sandbox
from common.variants.judge import shown
from common.variants.task import number

MINE = os.path.join(ROOT, "exercises.mine")
NOTES = os.path.join(MINE, "notes.json")
FRESH = {"done": False, "checks": 0, "hints": 0, "predicted": {}}  # what is remembered of an exercise
TIMES = os.path.join(ROOT, "docs", "results", "exercises_{}.json")  # of a GPU: --measure
WIDTH = 100
THOUGHTS = {  # of a kind of failure, and of what its message says
    judge.COMPILE: "The compiler names the line. Lines outside of your part are as they must be.",
    judge.REFUSED: "What a kernel does must be counted, and a GPU must be able to do it. Do without this.",
    **dict.fromkeys((f"{judge.CRASH}: divides", f"{judge.CRASH}: touches memory"),
                    "Which index or divisor on that line can be what you didn't expect?"),
    f"{judge.CRASH}: prints": "One thread's lines are enough: if (blockIdx.x == 0 && threadIdx.x == 0) "
                              "printf(...).",
    judge.UNLAUNCHED: "A block has 1 to 1,024 threads and 48 KB of shared memory, a grid at least one block.",
    f"{judge.WRONG}: output[": "Work out the first wrong output by hand: what does yours take otherwise, "
                               "or leave out?",
    judge.RACE: "Two threads, one word, and no __syncthreads() between that both come to. Who writes it, "
                "and who needs it?",
    **dict.fromkeys((f"{judge.STRAY}: not aligned", f"{judge.STRAY}: misaligned"),
                    "An access of 8 or 16 bytes begins at a multiple of as many, a tensor at any float."),
    **dict.fromkeys((f"{judge.STRAY}: out of", f"{judge.STRAY}: illegal", f"{judge.STRAY}: around"),
                    "For which thread does that index leave the array? The last block is rarely full."),
    judge.UNWRITTEN: "Who should have written that, and does it happen before the read, for all threads?",
    judge.BARRIER: "__syncthreads() is for all threads of a block: none may have left, none may skip it.",
    judge.ENDLESS: "What makes the condition of that loop false, and does it change in every turn? If it "
                   "ends, it is right but slow here: what does it do far more often than it must?",
    judge.COUNTERS: "Goals are judged where Nsight Compute may read counters (docs/profiling.md), and in the "
                    "simulator."}


def set_aside(path):
    """Nothing is lost: what lies there gets a number, and is named."""
    stem, ending = os.path.splitext(path)
    count = 1
    while os.path.lexists(kept := f"{stem}.{count}{ending}"):
        count += 1
    os.rename(path, kept)
    return f"kept as {shown(kept)}"


class Notes:
    """What is remembered of a learner: {exercise: {...}}; begins anew if the file holds nothing like that."""

    def __init__(self):
        self.all = self.read()

    @staticmethod
    def read():
        try:
            found = json.loads(files.read_existing(NOTES) or "{}")
            for note in found.values():
                if any(type(note[key]) is not type(fresh) for key, fresh in FRESH.items()) or \
                        note["hints"] < 0 or \
                        any(said != parse_number(str(said)) for said in note["predicted"].values()):
                    raise ValueError
            return found
        except (AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError):
            print(f"{shown(NOTES)}: no notes that can be read; {set_aside(NOTES)}", file=sys.stderr)
            return {}

    def of(self, name):
        return self.all.setdefault(name, copy.deepcopy(FRESH))

    def save(self, name):
        """What this process knows of the exercise; another one may have saved what it knows of others."""
        os.makedirs(MINE, exist_ok=True)
        folder = os.open(MINE, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            mine_alone = {name: self.all[name]} if name in self.all else {}
            self.all = {key: note for key, note in self.read().items() if key != name} | mine_alone
            write_json(NOTES, self.all)
        finally:
            os.close(folder)


def mine(task):
    return os.path.join(MINE, task.name + ".cu")


def make_mine(task):
    """Whether the learner's file had to be made."""
    if os.path.lexists(mine(task)):
        return False
    os.makedirs(MINE, exist_ok=True)
    files.write(mine(task), task.start())
    return True


# --- judging -------------------------------------------------------------------------------------


def seed_for(source, salt=""):
    """Of the sizes that are drawn: another one every day, and for every text. With salt, for each student's
    file, its folder and name, another one, and always the same: who knows the salt can work it out."""
    student = "/".join(os.path.abspath(source).split("/")[-2:])
    words = f"{salt} {student}" if salt else f"{datetime.date.today()} {files.read_existing(source)}"
    return random.Random(words.encode(errors="surrogateescape")).getrandbits(32)


def judge_task(task, source, builds, salt=""):
    """The Verdict on the kernel in `source`, by the simulator; by a GPU where that is the only build, and
    where both are there afterwards, as the verdict's `gpu`."""
    own = os.path.dirname(source) == MINE  # may be a link
    if why := judge.unreadable(os.path.realpath(source) if own else source):
        return judge.Verdict(judge.UNREADABLE, f"{shown(source)}: {why}")
    rows = task.counted() | task.varied(seed_for(source, salt))
    verdict = None
    for preset in sorted(builds, reverse=True):  # sim-count first
        build, asked = builds[preset], {"check": task.checked(), "count": rows}
        if build.on_gpu:
            asked["time"] = task.timed()
        found = judge.judge(build, source, asked, task.start(), task.seconds, task.kept)
        if not found.kind and found.note:
            found.fail(judge.COUNTERS, found.note)
        elif not found.kind:
            found.results = task.results(found.counted, rows, build.on_gpu)
            missed = [result.text for result in found.results if result.met is False]
            if "score" not in task.goal and (others := task.strangers(found.counted)):
                found.fail(judge.REFUSED, f"{shown(source)}: {others[0]} runs as well, which no goal counts")
            if "score" in task.goal and task.score(found.counted) is None:
                missed.append("no kernel has run that could be counted, or the score divides by zero")
            if missed:
                found.fail(judge.COUNTERS, missed[0])
        if verdict is None:
            verdict = found
        else:
            verdict.gpu = found
            if found.kind not in ("", judge.COUNTERS):
                verdict.kind, verdict.message = found.kind, "on the GPU: " + found.message
        if verdict.kind not in ("", judge.COUNTERS):
            break
    return verdict


def or_null(value):
    """JSON has no NaN, which a ratio is whose kernel has none of the denominator."""
    return None if value is not None and not math.isfinite(value) else value


def record_of(task, source, verdict):
    """For --json."""
    gpu = verdict if verdict.on_gpu else verdict.gpu
    record = {"exercise": task.name, "file": shown(source),
              "status": "fail" if verdict.kind else "pass", "kind": verdict.kind,
              "message": verdict.message, "problem": verdict.problem,
              "goals": [{"name": r.name, "problem": r.problem, "counted": or_null(r.value),
                         "relation": r.relation, "bound": r.bound, "met": r.met} for r in verdict.results],
              "gpu": gpu and {
                  "counted": {r.name: or_null(r.value) for r in gpu.results if r.problem in task.counted()},
                  "note": gpu.note,
                  "milliseconds": {problem: timed["milliseconds"] for problem, timed in gpu.timed.items()}}}
    if "score" in task.goal:
        record["score"] = None if verdict.kind else task.score(verdict.counted)
    return record


def paragraph(label, text, screen=None):
    """A label in a column of its own, the text folded beside it."""
    width = (WIDTH if screen else columns(WIDTH)) - 9
    lines = [line for part in printable(text).split("\n")
             for line in textwrap.wrap(part, width, break_long_words=False) or [""]]
    for i, line in enumerate(lines):
        print(f"{label if i == 0 else '':7}  {line}".rstrip(), file=screen)


def show_counts(task, verdict, predicted, screen):
    counted = task.counted()
    by_ncu = {(r.name, r.problem): number(r.value) for r in verdict.gpu.results} if verdict.gpu else {}
    for problem in dict.fromkeys(result.problem for result in verdict.results):
        own = [result for result in verdict.results if result.problem == problem]
        if problem not in counted:
            if any(result.met is False for result in verdict.results if result.problem in counted):
                continue  # there is enough to do
            if not any(result.met is False for result in own):
                paragraph("", f"met as well with sizes drawn for you: {problem}", screen)
                continue
        e = tasks.extents(verdict.rows[problem])
        paragraph("counted", f"{problem}: {e['N']} image(s) {e['C']}x{e['H']}x{e['W']}, {e['K']} "
                  f"filters {e['R']}x{e['S']}, output {e['P']}x{e['Q']}", screen)
        cells = [["", "counted", *["ncu"] * bool(by_ncu), "goal", ""]]
        for result in own:
            ncu = [by_ncu.get((result.name, problem), "-")] if by_ncu else []
            cells.append([result.name, number(result.value), *ncu, result.goal, result.state])
        widths = [max(map(len, column)) for column in zip(*cells)]
        for name, *figures, state in cells:
            print(" " * 8, name.ljust(widths[0]), "", "  ".join(
                [cell.rjust(width) for cell, width in zip(figures, widths[1:])] + [state]).rstrip(),
                file=screen)
    if predicted and verdict.kind:
        paragraph("", "what you predicted is compared when the goals are met", screen)
        return
    for key, value in task.predictable(verdict.counted).items():
        if key in predicted:
            said = predicted[key]
            off = f", {said / value:,.2f} times what was counted" if value and said != value else ""
            off = ", just so" if said == value else off
            paragraph("", f"{key} = {number(value)}; you predicted {number(said)}{off}", screen)


def show_costly_line(task, verdict, source, screen):
    """The line that costs most of what the exercise is about."""
    shared = task.goal.get("watch") == "shared"
    lines = [line for problem in task.counted() for line in verdict.lines.get(problem, [])
             if line.shared == shared]
    if not lines:
        return
    unit = "wavefronts" if shared else "sectors"
    total, line = sum(line.cost for line in lines), max(lines, key=lambda line: line.cost)
    paragraph("costs", f"{line.where}: {line.cost:,} of {total:,} {unit}, "
              f"{line.cost / line.requests:.3g} per request", screen)
    text = files.read(source).split("\n")[int(line.where.rpartition(":")[2]) - 1]
    paragraph("", "  " + text.strip(), screen)


def show_printed(lines, most, screen):
    shown_lines = [printable(line.expandtabs()) for line in lines[:most]]
    shown_lines = [line if len(line) < WIDTH - 9 else line[:WIDTH - 13] + "..." for line in shown_lines]
    more = [f"... {len(lines) - most:,} more lines"] if len(lines) > most else []
    paragraph("prints", "\n".join(shown_lines + more), screen)


def thought(task, verdict):
    """One next thing to think about; empty where the message says all."""
    if not verdict.kind:
        return task.goal["next"]
    missed = [result.think for result in verdict.results if result.met is False]
    if missed:
        return missed[0]
    said = f"{verdict.message} on {verdict.problem}"
    for key, think in [*task.goal.get("think", {}).items(), *THOUGHTS.items()]:
        kind, _, words = key.partition(": ")
        if kind == verdict.kind and words in said:
            return think
    return ""


def show(task, source, verdict, predicted, screen=None):
    paragraph("task", f"{task.goal['idea']}  ({shown(task.path('README.md'))})", screen)
    kind = verdict.kind
    if kind == judge.UNREADABLE:
        paragraph("file", verdict.message, screen)
        return
    if kind in (judge.COMPILE, judge.REFUSED):
        paragraph("builds", "no: " + verdict.message, screen)
    elif kind in (judge.CRASH, judge.UNLAUNCHED, judge.ENDLESS, judge.BARRIER):
        paragraph("runs", f"no: {verdict.message}", screen)
    elif kind == judge.WRONG:
        paragraph("right", f"no: {verdict.message}", screen)
    else:
        if verdict.checked:
            paragraph("right", f"{verdict.checked} problem{'s' * (verdict.checked > 1)} of awkward sizes",
                      screen)
        sound = "races, unwritten reads: needs the simulator" if verdict.on_gpu else \
            "no race, no stray access, nothing read before it is written"
        paragraph("memory", f"{kind}: {verdict.message}" if kind in judge.MEMORY_KINDS else sound, screen)
    if verdict.problem:
        paragraph("", f"on {verdict.problem}", screen)
    if verdict.printed:
        show_printed(verdict.printed, 4 if verdict.results else 10, screen)
    if verdict.results:
        show_counts(task, verdict, predicted, screen)
        show_costly_line(task, verdict, source, screen)
    if "score" in task.goal and not kind:
        paragraph("score", f"{task.score(verdict.counted):,}: {task.goal['score']}, over "
                  f"{len(verdict.counted)} layers", screen)
    gpu = verdict if verdict.on_gpu else verdict.gpu
    for problem, timed in gpu.timed.items() if gpu else ():
        paragraph("gpu", f"{timed['device']}: {timed['milliseconds']:.4g} ms on {problem} (median of "
                  f"{timed['runs']}, caches warm)", screen)
    if gpu and gpu.note:
        paragraph("gpu", gpu.note, screen)
    if think := thought(task, verdict):
        paragraph("think", think, screen)


def parse_number(text):
    """'6.6e6', '6,600,000' or '6.6M': no counter is below 0. Raises ValueError."""
    text = text.strip().replace(" ", "")
    if re.fullmatch(r"[^,]*(,\d{3})+(\D.*)?", text):  # not 2,5
        text = text.replace(",", "")
    factor = {"k": 1e3, "M": 1e6, "G": 1e9}.get(text[-1:], 1)
    value = float(text[:-1] if factor > 1 else text) * factor
    if not 0 <= value < math.inf:
        raise ValueError(text)
    return value


def check(task, builds, notes):
    """Judges the learner's kernel and prints what was found. The record."""
    note, source, begun = notes.of(task.name), mine(task), time.monotonic()
    verdict = judge_task(task, source, builds)
    show(task, source, verdict, note["predicted"])
    note["checks"] += 1
    note["done"] = note["done"] or not verdict.kind
    notes.save(task.name)
    seconds = time.monotonic() - begun
    if verdict.kind:
        left = len(task.hints()) - note["hints"]
        more = f"; {left} of {len(task.hints())} hints left: --hint" if left > 0 else ""
        print(f"\n{shown(source)}: not yet ({seconds:.1f} s){more}")
    else:
        ours = "" if "score" in task.goal else f" Ours: ./ladder exercise {task.name} --solution"
        print(f"\n{shown(source)}: passed ({seconds:.1f} s).{ours}")
    return record_of(task, source, verdict)


def watch(task, builds, notes):
    """Until interrupted."""
    seen = None
    while True:
        try:
            status = os.stat(mine(task))
            now = (status.st_mtime_ns, status.st_size)
        except OSError:
            now = seen  # an editor is just replacing it
        if now != seen:
            seen = now
            if sys.stdout.isatty():
                print("\033[2J\033[H", end="")
            check(task, builds, notes)
            print(f"waiting for {shown(mine(task))} to change; Ctrl-C ends", flush=True)
        time.sleep(0.2)


# --- other commands ------------------------------------------------------------------------------


def show_list(all_tasks, notes):
    stage, following, longest = "", None, max(len(task.name) for task in all_tasks)
    for task in all_tasks:
        if task.stage != stage:
            stage = task.stage
            print(stage)
        note = notes.all.get(task.name, {})
        if not note.get("done") and following is None:
            following = task
        mark = "done" if note.get("done") else "next" if following is task else \
            "begun" if note.get("checks") else ""
        tell(f"  {mark:5}  {task.name:{longest}}  {printable(task.goal['idea'])}")
    done = sum(notes.all.get(task.name, {}).get("done", False) for task in all_tasks)
    print(f"\n{done} of {len(all_tasks)} done")
    following = following or tasks.golf()  # it has no end
    tell(f"./ladder exercise {following.name}   judges {shown(mine(following))}; the task: "
          f"{shown(following.path('README.md'))}")


def hint(task, notes):
    note, texts = notes.of(task.name), task.hints()
    if not texts:
        fail(f"{task.name} has no hints")
    given = min(note["hints"], len(texts) - 1)
    if note["hints"] == len(texts):
        print("That was the last one; again:")
    tell(f"hint {given + 1} of {len(texts)}\n\n{texts[given]}")
    note["hints"] = given + 1
    notes.save(task.name)


def predict(task, notes, words):
    note = notes.of(task.name)
    keys, said = {known.replace(" ", "_"): known for known in task.goal["predict"]}, set()
    for word in words:
        key, _, value = word.partition("=")
        if key not in keys:
            fail(f"--predict {word}: {task.name} takes {', '.join(keys) or 'none'}", 2)
        if key in said:
            fail(f"--predict {word}: {key} is given twice", 2)
        said.add(key)
        try:
            note["predicted"][keys[key]] = parse_number(value)
        except ValueError:
            fail(f"--predict {word}: '{value}' is no number, or below 0", 2)
    notes.save(task.name)


def reset(task, notes):
    if os.path.lexists(mine(task)):
        print(set_aside(mine(task)))
    make_mine(task)
    notes.all.pop(task.name, None)
    notes.save(task.name)
    print(f"{shown(mine(task))} is as in the beginning")


def judge_all(by_name, builds, folder, salt="", may_be_none=False):
    """Every NAME.cu below the folder. The records."""
    records = []
    if not os.path.isdir(folder):
        fail(f"{folder}: there is no such folder")
    def bare(name):
        return re.sub(r"[\W\d_]", "", name.lower())

    meant = {bare(name): name for name in by_name}

    def unread(error):
        fail(f"{error.filename}: {error.strerror}; nobody is left out silently")

    seen = {os.path.realpath(folder)}
    for parent, folders, names in os.walk(folder, onerror=unread, followlinks=True):
        real = {name: os.path.realpath(os.path.join(parent, name)) for name in sorted(folders)}
        folders[:] = [name for name, path in real.items() if path not in seen]  # links may go round
        seen.update(real.values())
        for name, source in sorted((os.path.splitext(file)[0], os.path.join(parent, file))
                                   for file in [*folders, *names] if file.lower().endswith(".cu")):
            if name not in by_name or not source.endswith(".cu"):
                if bare(name) in meant and not re.search(r"\.\d+$", name):  # not what --reset has kept
                    print(f"{shown(source)}: not judged; {meant[bare(name)]}.cu would be")
                continue
            verdict = judge_task(by_name[name], source, builds, salt)
            records.append(record_of(by_name[name], source, verdict))
            first = verdict.message.split("\n")[0]
            print(f"{shown(source)}: " + (f"{verdict.kind}: {first}" if verdict.kind else "passed"),
                  flush=True)
    if not records and not may_be_none:
        fail(f"{folder}: holds no file called like an exercise")
    passed = sum(record["status"] == "pass" for record in records)
    print(f"{passed} of {len(records)} passed")
    return records


def measure(build, path):
    """Times every start that is right, and every solution, and saves exercise by exercise: the exit status.
    What can't be timed keeps the record that it has; ./ladder report --docs puts them into the pages."""
    status = 0
    for task in filter(tasks.Task.timed, tasks.read_all()):
        record = {"exercise": task.name, "before": {}, "after": {}}
        timed = task.goal["start"] == judge.COUNTERS or task.goal.get("timed_start", False)
        for when, text in [("before", task.start())] * timed + [("after", task.solved())]:
            with tempfile.NamedTemporaryFile("w", suffix=".cu", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                verdict = judge.judge(build, file.name, {"check": task.checked(), "time": task.timed()})
            record[when] = verdict.timed
            if verdict.kind or verdict.note:
                print(f"{task.name}: not timed: {verdict.message or verdict.note}", file=sys.stderr)
                status = 1
                break
        else:
            device = next(iter(record["after"].values()))["device"]
            path = path or TIMES.format(re.sub(r"\W+", "_", device.replace("NVIDIA ", "").lower()))
            known = json.loads(files.read_existing(path) or "[]")
            write_json(path, [each for each in known if each["exercise"] != task.name] + [record])
            print(f"{task.name}: " + ", ".join(f"{each['milliseconds']:.4g} ms {when}"
                                               for when in ("before", "after")
                                               for each in record[when].values()), flush=True)
    return status


def show_page(task, build):
    """Profiles the kernel on the first problem that is counted, and shows the page with it: the status
    of show.py."""
    make_mine(task)
    if why := judge.unreadable(os.path.realpath(mine(task))):
        fail(f"{shown(mine(task))}: {why}")
    registered = re.search(r'CONVLADDER_REGISTER_STAGE\(\{"([^"]+)"', files.read(mine(task)))
    if not registered:
        fail(f"{shown(mine(task))}: registers no stage")
    problem = next(iter(task.counted().values()))
    with tempfile.TemporaryDirectory() as folder:
        program = judge.compile_kernel(build, mine(task), folder, "01_naive", task.start())
        extents = [f"--{column}={value}" for column, value in problem.items()]
        return foreground(*python("common.measure.profile", "--program", program, "--stage", registered[1],
                                  *extents, "--show"))


# --- the command ---------------------------------------------------------------------------------


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="./ladder exercise", allow_abbrev=False, description=__doc__,
        epilog="Without NAME: what there is, what is done, and what comes next. Status 0 if all that was "
        "judged has passed, 1 if not, 2 for a usage error.")
    parser.error = lambda message: fail(f"exercise: {message}; ./ladder exercise --help", 2)
    parser.add_argument("name", nargs="?", metavar="NAME", help="judges exercises.mine/NAME.cu; makes that "
                        "file the first time. golf: any kernel, with as little traffic as you can")
    action = parser.add_mutually_exclusive_group()
    for option, text in (
            ("watch", "judges NAME again with every save"),
            ("show", "NAME's addresses, warp by warp and line by line, in a page"),
            ("hint", "the next of three hints"), ("solution", "ours, after yours has passed, or with --yes"),
            ("reset", "begins again; what you have written is kept beside it"),
            ("all", "judges every file of exercises.mine, or of --folder"),
            ("measure", "on a GPU: what each exercise gains in time, for the pages")):
        action.add_argument("--" + option, action="store_const", const=option, dest="action", help=text)
    parser.add_argument("--predict", nargs="+", action="extend", metavar="KEY=NUMBER", default=[],
                        help="what you expect of your kernel; kept, and compared when the goals are met")
    parser.add_argument("--folder", help="with --all: files to be judged, NAME.cu at any depth")
    parser.add_argument("--json", metavar="FILE", help="what was found, for other programs")
    parser.add_argument("--grade", metavar="FILE",
                        help="with --all: marks, in Gradescope's format; of a FILE.xml in JUnit's")
    parser.add_argument("--tasks", metavar="DIR", help="a teacher's exercises, folders with a goal.json; "
                        "with --grade all of them must be handed in")
    parser.add_argument("--seed", metavar="TEXT", default="", help="with --all: decides which sizes are "
                        "drawn, for each student's file others; without it they change every day")
    parser.add_argument("--yes", action="store_true", help="with --solution: although yours has not passed")
    parser.add_argument("--builds", default="sim-count", help=argparse.SUPPRESS)  # of ./ladder
    options = parser.parse_args(arguments)
    for option, action in (("folder", "all"), ("grade", "all"), ("seed", "all"), ("yes", "solution")):
        if getattr(options, option) and options.action != action:
            parser.error(f"--{option} goes with --{action}")
    if options.json and options.grade and os.path.realpath(options.json) == os.path.realpath(options.grade):
        parser.error("--json and --grade are the same file")
    for path in filter(None, (options.json, options.grade)):
        require_folder(path)
        if os.path.realpath(path).endswith((".cu", "/notes.json", "/goal.json")):
            parser.error(f"'{path}' would be overwritten")
    if options.action not in (None, "all", "measure") and not options.name:
        parser.error(f"--{options.action} needs the name of one: ./ladder exercise lists them")
    if options.predict and not (options.name and options.action in (None, "watch")):
        parser.error("--predict goes behind the NAME of what is judged")
    if options.name and options.action in ("all", "measure"):
        parser.error(f"--{options.action} takes no name")
    if options.json and (options.action not in (None, "all", "measure") or
                         not (options.name or options.action)):
        parser.error("--json is for what is judged: a name, or --all")
    return options


def run_one(task, options, builds, notes):
    """(status, records)."""
    if options.action in ("hint", "solution") and "score" in task.goal:
        fail(f"{task.name} has neither hints nor a solution", 2)
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
        return show_page(task, builds["sim-count"]), None
    else:
        predict(task, notes, options.predict)
        if make_mine(task):
            print(f"made {shown(mine(task))}: write your part of it, and call this again. The task: "
                  f"{shown(task.path('README.md'))}\nAs it stands:\n")
        if options.action == "watch":
            watch(task, builds, notes)
        record = check(task, builds, notes)
        return (0 if record["status"] == "pass" else 1), [record]
    return 0, None


def main(arguments):
    options = parse(arguments)
    notes, builds = Notes(), {preset: Build(preset) for preset in options.builds.split(",")}
    chosen = tasks.read_folder(options.tasks) if options.tasks else [*tasks.read_all(), tasks.golf()]
    if not chosen:
        fail(f"{options.tasks}: " + ("holds no folder with a goal.json" if os.path.isdir(options.tasks) else
                                     "there is no such folder"))
    by_name = {task.name: task for task in chosen}
    status, records, begun = 0, None, time.monotonic()
    if options.action == "measure":
        return measure(builds["gpu"], options.json)
    if options.action == "all":
        # Who has handed in nothing gets marks, too: none.
        records = judge_all(by_name, builds, options.folder or MINE, options.seed,
                            bool(options.tasks and options.grade))
        status = 0 if records and all(record["status"] == "pass" for record in records) else 1
        if options.grade:
            walls = "without network and files (bubblewrap)" if sandbox() else (
                "with limits of time and memory alone: bubblewrap isn't here, or may not make namespaces")
            wanted = chosen if options.tasks else [by_name[record["exercise"]] for record in records]
            grade.write(options.grade, wanted, records, time.monotonic() - begun, f"Kernels ran {walls}.")
    elif not options.name:
        show_list([task for task in chosen if task != tasks.golf()], notes)
    elif options.name in by_name:
        status, records = run_one(by_name[options.name], options, builds, notes)
    elif options.name.removesuffix(".cu") in by_name:
        fail(f"exercise '{options.name}': say the name without .cu", 2)
    else:
        fail(f"exercise '{options.name}' is unknown; there are {', '.join(by_name)}", 2)
    if options.json:
        write_json(options.json, records)
    return status


if __name__ == "__main__":
    try:
        run_main(main)
    except (BuildError, Failed, tasks.BadTask) as error:
        fail(str(error))
    except BrokenPipeError:  # who read along has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
