"""Small changes of kernels, tried: what they change, or what catches them.

  ./ladder variant                       lists all experiments, and how many bugs each stage has
  ./ladder variant NAME...               tries them: an experiment is compiled, checked and counted (on a
                                         GPU timed), before and after; a planted bug, and a mistake made in
                                         an exercise, must be caught
  ./ladder variant --kind bug [--stage NAME]   all planted bugs, and what catches each
  ./ladder variant --kind experiment --json FILE   keeps the records, and makes none anew that is of these
                                         kernels

NAME is an experiment's name, a bug's (STAGE.BUG), a mistake's (EXERCISE.MISTAKE), or the beginning of one.
What a variant is: common/variants/variants.py.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import glob
import hashlib
import io
import json
import os
import re
import signal
import sys
import tempfile
import xml.etree.ElementTree

from common.measure import ncu
from common.show import counter_tables, files, formats, records
from common.show.files import ROOT
from common.show.support import fail, require_folder, run_main, stage_called
from common.variants import exercise, handin, variants
from common.variants import task as tasks
from common.variants.build import Build, BuildError, Failed, run_limited

RECORDS = os.path.join(ROOT, "docs/results/experiments_*.json")  # one of each GPU
FORMAT = "convladder experiments"
# What a record from a GPU has of the stage's longest kernel, of all multiprocessors together.
PIPE = {"wavefronts": "l1tex__data_pipe_lsu_wavefronts.sum", "cycles": "sm__cycles_elapsed.sum"}
# Small problems, every extent another, and cut down: a check of a few seconds.
CHECK = ("check", "--max-gmac", "0.003", "--shapes",
         os.path.join(ROOT, "common/tests/data/counted_problems.csv"))
ROUNDING = os.path.join(variants.FOLDER, "rounding.h")  # for bugs of less precision
TEST_SECONDS = 60  # of one test
SCREEN = 23  # lines, with what comes after
ENOUGH = 3  # problems that must see a bug for which there is no test or report of its own
SAMPLE = ("tail", "race", "atomics")  # exercises that every run of the tests tries
PROBLEMS = "*StageOnProblem.GivesTheReference/nasty*"  # the small ones
OBSERVED = "*StageCounts.*/{0}_*:*StageOffAlignment.*/{0}_*"  # in the counting simulator
FEW = {"sim": "*StageOnProblem.*/nasty_primes*", "sim-count": "*StageCounts.*/{0}_nasty_primes*"}

# How a failing test's output shows what gave the bug away; the first that fits.
REPORTS = {
    "data race": r"data race",
    "out of bounds": r"memory out of bounds",
    "never written": r"that nobody has written",
    "copy under way": r"asynchronous copy is under way",
    "read by a product": r"which the product begun at",
    "no wgmma.fence": r"wgmma\.fence is missing",
    "not aligned": r"not aligned to as many|misaligned",
    "barrier not reached": r"waits for ever at __sync",
    "launch refused": r"invalid configuration argument|bytes of __shared__ variables",
    "host memory": r"a variable of the host|which is the host's",
    "device memory on the host": r"its enqueue touches device memory",
    "not put on the stream":
        r"its enqueue (waits|allocates|ends|is ended|has come to no end|uses another stream)",
    "apart": r"waits at __syncthreads.*, but thread",
    "nobody's memory": r"memory that is nobody's",
    "assertion": r"assertion `",
    "no stage's business": r"a stage that ",
    "library refused": r"cublas\w+: ",
    "NaN left in the output": r"is NaN \(never written\?\)",
    "NaN out of place": r"std::isnan",
    "small integers": r"checked outputs are wrong[\s\S]*small integers",
    "wide integers": r"checked outputs are wrong[\s\S]*wide integers",
    "real numbers": r"checked outputs are wrong",
    "guard zone": r"around the (input|filters|bias|output|workspace)",
    "second run differs": r"a second run gave other bits",
}


def run(words):
    """Its output. Raises Failed with the line that says why."""
    done = run_limited(words)
    if done.returncode:
        lines = done.stdout.strip().split("\n")
        reason = next((line for line in lines if re.search(r"error: |: (fail|rejected): ", line)), lines[-1])
        raise Failed(f"{os.path.basename(str(words[0]))} ended with {done.returncode}: {reason}")
    return done.stdout


@contextlib.contextmanager
def made(build, variant, target, flags=()):
    """The path of bin/`target` with the variant's kernel, and what else it changes, in their places."""
    with tempfile.TemporaryDirectory(prefix="variant_", dir=build.folder) as folder:
        kernel, others = variant.write(folder)
        objects, program = [], os.path.join(folder, "program")
        for source in [kernel] + [path for path in others if not path.endswith(".h")]:
            objects.append(f"{folder}/{len(objects)}.o")
            # The folder first: a changed header is found there.
            done = build.compile(source, objects[-1], [f"-I{folder}"], flags)
            if done.returncode:
                error = re.search(r".*error: .*|.*\Z", done.stdout.strip())[0]
                raise Failed(f"{variant.title} can't be compiled: {error}")
        done = build.link(target, objects, os.path.basename(kernel), program)
        if done.returncode:
            raise BuildError(f"{variant.title} can't be linked: {done.stdout.strip()}")
        yield program


# ---- What must be caught ---------------------------------------------------------------------------


def run_test(program, test):
    """What gave a bug away in this test, "" where it passed, None where it was skipped."""
    done = run_limited([program, "--gtest_color=no", f"--gtest_filter={test}"], seconds=TEST_SECONDS)
    if done.returncode == -signal.SIGALRM:
        return "no end"
    ended = re.search(r"^\[ +(OK|FAILED|SKIPPED) +\] ", done.stdout, re.MULTILINE)
    report = next((name for name, pattern in REPORTS.items() if re.search(pattern, done.stdout)), "")
    if "[ RUN " not in done.stdout or ended and done.returncode not in (0, 1):
        raise Failed(f"{program}: status {done.returncode}, in none of its tests")
    if not ended:
        return report or (f"crash ({signal.Signals(-done.returncode).name})" if done.returncode < 0 else
                          f"exit status {done.returncode}")
    return {"OK": "", "SKIPPED": None, "FAILED": report or "other"}[ended[1]]


def list_tests(program, chosen):
    """The names of the tests that match GoogleTest's filter."""
    names, suite = [], ""
    for line in run([program, "--gtest_list_tests", f"--gtest_filter={chosen}"]).splitlines():
        name = line.split("  #")[0].strip()  # behind it: a parameter's value
        if line.startswith("  "):
            names.append(suite + name)
        elif name.endswith("."):
            suite = name
    if not names:
        raise Failed(f"{program}: no test matches {chosen}")
    return names


def preset_of(variant):
    """The simulator that sees it: what must be reported, the counting one reports."""
    return "sim-count" if variant.expect or variant.kind != "bug" else "sim"


def target_of(variant, preset):
    if variant.kind != "bug":
        return "exercise_judge"
    return "stage_counts_tests" if preset == "sim-count" else f"test_{variant.stage}"


def is_caught(bug, reports):
    seen = [report for report in reports if report]
    if bug.expect:
        return any(report in bug.expect.split(" or ") for report in seen)
    return len(seen) >= (1 if bug.test else ENOUGH)


def catch_bug(bug, build):
    """(verdict, text): "passed" if the bug is caught, "failed", or "skipped" where this machine can't run
    its own test. One without edits is the stage as it stands, and must pass."""
    with made(build, bug, target_of(bug, build.preset), ("-Og", "-w", "-include", ROUNDING)) as program:
        chosen = OBSERVED if bug.expect else f"*.{bug.test}:*/{bug.test}" if bug.test else PROBLEMS
        if not bug.edits:
            chosen = FEW[build.preset]
        asked = handin.asked_by_stage(os.path.join(os.path.dirname(program), "0.o"))
        reports = ["no stage's business"] if asked else []
        caught = bug.edits and is_caught(bug, reports)
        for test in [] if caught else list_tests(program, chosen.format(bug.stage)):
            report = run_test(program, test)
            reports += [] if report is None else [report]
            if bug.edits and is_caught(bug, reports):
                break
    words = " and ".join(sorted(filter(None, set(reports)))) or "nothing"
    if not bug.edits:
        return "failed" if words != "nothing" or not reports else "passed", f"fails by {words}"
    if bug.test and not reports:
        return "skipped", f"{bug.test} is skipped here"
    if is_caught(bug, reports):
        return "passed", f"caught: {words}"
    return "failed", f"SURVIVES {len(reports)} tests, which saw {words}"


def judge_kernel(kernel, build):
    """(verdict, text) of an exercise's kernel: its solution must pass, its start fail for its reason, and the
    judge must tell of a mistake in the words that its file promises, on one screen."""
    task, screen = tasks.called(kernel.stage), io.StringIO()
    with tempfile.TemporaryDirectory(prefix="variant_", dir=build.folder) as folder:
        source = os.path.join(folder, task.name + ".cu")
        files.write(source, task.start() if kernel.name == "start" else kernel.apply(task.solved()))
        verdict = exercise.judge_task(task, source, {build.preset: build})
        exercise.show(task, source, verdict, {}, screen)
    text = screen.getvalue()
    said = " ".join(f"{verdict.kind}: {text}".split()) if kernel.edits else verdict.kind
    right = kernel.expect in said if kernel.edits and verdict.kind else said == kernel.expect
    return ("passed", f"judged: {verdict.kind or 'right'}") if right and text.count("\n") <= SCREEN else \
        ("failed", f"'{kernel.expect}' was expected, on one screen:\n{verdict.kind}\n{text}")


def catch(variant, build):
    try:
        verdict, text = (catch_bug if variant.kind == "bug" else judge_kernel)(variant, build)
    except (Failed, BuildError, variants.BadVariant) as error:
        verdict, text = "failed", str(error)
    return verdict, f"{variant.title}: {variant.about}: {text}"


def catch_all(chosen, options):
    """The exit status; a line for each."""
    needed = collections.defaultdict(set)
    for each in chosen:
        needed[preset := options.preset or preset_of(each)].add(target_of(each, preset))
    builds = {preset: Build(preset) for preset in needed}
    for preset, build in builds.items():
        build.make(*sorted(needed[preset]))
    verdicts = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for verdict, text in pool.map(
                lambda each: catch(each, builds[options.preset or preset_of(each)]), chosen):
            print(text, flush=True)
            verdicts.append((verdict, text))
    if options.xml:
        _write_xml(options.xml, chosen, verdicts)
    missed = sum(verdict == "failed" for verdict, _ in verdicts)
    print(f"{len(verdicts) - missed} of {len(verdicts)} as they should be")
    return 1 if missed else 0


def _write_xml(path, chosen, verdicts):
    """A report like GoogleTest's, for `./ladder test` to count."""
    element = xml.etree.ElementTree
    report = element.Element("testsuites")
    for each, (verdict, text) in zip(chosen, verdicts):
        case = element.SubElement(report, "testcase", name=each.title, status="run")
        if verdict != "passed":
            element.SubElement(case, {"failed": "failure"}.get(verdict, verdict), message=text)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    element.ElementTree(report).write(path, encoding="utf-8")


# ---- Experiments -----------------------------------------------------------------------------------


class Measured:
    """Stages as they are and changed, each by a program that differs in one kernel. What is unchanged is
    measured once."""

    def __init__(self, backend, repeats):
        self.build, self.repeats = Build("gpu" if backend == "gpu" else "sim-count"), repeats
        self._before = {}

    def measure(self, program, experiment, *more):
        """The records of `profile`; on a GPU those of `bench`, with `more` options."""
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            words = ["--stage", experiment.stage, "--shape", experiment.on, "--json", file.name]
            if self.build.on_gpu:
                ended = run_limited([program, "bench", *words, "--competitors", "none",
                                     "--repeats", str(self.repeats), *more])
                timed = records.read_bench(file.name)
                stage = timed.problems[0].stages[experiment.stage]
                if ended.returncode and not (more and stage.cold_ms):
                    raise Failed(f"{experiment.stage}: {stage.status}: {stage.message}")
                return {"counted": [], "cold_ms": stage.cold_ms.median, "machine": timed.machine["gpu"],
                        **self.read(program, experiment)}
            run([program, "profile", *words, "--batch", experiment.batch])
            counted = [{name: value for name, value in record.items() if not name.endswith("work")}
                       for record in json.loads(files.read(file.name))]
            return {"counted": counted, "cold_ms": None, "machine": ""}

    def read(self, program, experiment):
        """Of the longest kernel what Nsight Compute says of L1's data pipe; nothing where it can't."""
        with contextlib.suppress(ncu.CountersUnavailable):
            of, shape = experiment.stage, ["--shape", experiment.on]
            launches, _ = ncu.launches_of(program, [of], shape, list(PIPE.values()))[of]
            main = max((values for _, values in launches), key=lambda values: values[PIPE["cycles"]])
            return {name: main[metric] for name, metric in PIPE.items()}
        return {}

    def attempt(self, experiment, program):
        """The record of the experiment in `program`. What the change breaks is a result as well."""
        what = (experiment.stage, experiment.on, experiment.batch)
        if what not in self._before:
            self._before[what] = self.measure(self.build.path(experiment.stage), experiment)
        record = {"name": experiment.name, "about": experiment.about, "problem": experiment.on,
                  "kernels": digest(experiment), "before": self._before[what], "after": None, "failure": ""}
        checked = os.path.join(os.path.dirname(program), "checked.json")
        try:
            run([program, *CHECK, "--stage", experiment.stage, "--json", checked])
            record["after"] = self.measure(program, experiment)  # checks again: races show now and then
        except (Failed, ncu.NcuError) as failed:
            wrong = [row["message"] for row in json.loads(files.read_existing(checked) or "[]")
                     if row["status"] == "fail"] + re.findall(r"\w+: fail: .*", str(failed))
            if not wrong:
                raise  # the machine's fault, not the change's
            folder = os.path.relpath(os.path.dirname(program), ROOT)
            record["failure"] = wrong[0].replace(f"{folder}/", "")
            if experiment.wrong and self.build.on_gpu:
                record["after"] = self.measure(program, experiment, "--wrong-too")
        return record


def digest(experiment):
    """Names all kernels as they stand, and the change: a record that has it need not be made again."""
    edits = json.dumps([dataclass.__dict__ for dataclass in experiment.edits]).encode()
    return f"{files.kernels_digest()} {hashlib.sha256(edits).hexdigest()[:12]}"


def read_records(path):
    """{name: record} of a file that this module has written; nothing without it."""
    if not os.path.exists(path):
        return {}
    value = records.read_json(path)
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise records.BadInput(f"{path}: not made by ./ladder variant")
    return {record["name"]: record for record in value["experiments"]}


def keep(path, record):
    """Puts the record into the file, beside those of other experiments that there are."""
    names = {each.name for each in variants.of_stages()}
    known = {name: each for name, each in read_records(path).items() if name in names} | \
        {record["name"]: record}
    lines = ",\n".join(json.dumps(known[name]) for name in sorted(known))
    files.write(path, f'{{"format": "{FORMAT}", "experiments": [\n{lines}\n]}}\n')


def table_of(record):
    """What changed, as text for a terminal: the time, and the counters, before and after."""
    before, after = record["before"], record["after"]
    where = " on an " + before["machine"] if before["machine"] else ""
    failure = f"the check fails{where}: {record['failure']}\n" if record["failure"] else ""
    if not after:
        return failure
    rows = []
    if before["cold_ms"] and after["cold_ms"]:
        old, new = before["cold_ms"], after["cold_ms"]
        rows.append([f"time on an {after['machine']}, cold [ms]", formats.milliseconds(old),
                     formats.milliseconds(new), formats.ratio(new / old)])
    if "wavefronts" in before and "wavefronts" in after:
        rows.append(["wavefronts of L1's data pipe", *(formats.scaled(each["wavefronts"]) for each in
                                                       (before, after)),
                     formats.ratio(after["wavefronts"] / before["wavefronts"])])
    if before["counted"] and after["counted"]:
        profile, = records.profiles_of([{**kernel, "stage": when} for when in ("before", "after")
                                        for kernel in record[when]["counted"]], "the counts")
        rows += counter_tables.step_rows(profile, "before", "after").values()
    same = ", ".join(name for name, old, new, _ in rows if old == new != "0")
    changed = [row for row in rows if row[1] != row[2]]
    header = ["", "before", "after", "÷ before"]
    table = formats.aligned(formats.markdown(header, changed)) if changed else ""
    return failure + table + (f"unchanged: {same}\n" if same else "")


def try_experiments(chosen, options):
    """The exit status; tables on the way."""
    recorded = {}
    for path in sorted(glob.glob(RECORDS)):
        recorded |= read_records(path)
    if options.json:
        known = read_records(options.json)
        chosen = [each for each in chosen if known.get(each.name, {}).get("kernels") != digest(each)]
    measured, failures = Measured(options.backend, options.repeats), 0
    measured.build.make(*sorted({each.stage for each in chosen}))
    with contextlib.ExitStack() as compiled, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        programs = [pool.submit(lambda each=each: compiled.enter_context(
            made(measured.build, each, each.stage))) for each in chosen]
        if measured.build.on_gpu:
            concurrent.futures.wait(programs)  # the compilers would disturb the times
        for experiment, program in zip(chosen, programs):
            try:
                record = measured.attempt(experiment, program.result())
            except (Failed, ncu.NcuError) as failed:
                failures += 1
                print(f"\n{failed}", flush=True)
                continue
            print(f"\n{experiment.name}: {experiment.about}\n")
            for edit in experiment.edits:
                print("\n".join([f"  - {line}" for line in edit.old] + [f"  + {line}" for line in edit.new]))
            batch = "" if measured.build.on_gpu else f", batch {experiment.batch}"
            print(f"\n{experiment.on}{batch}:\n\n{table_of(record)}", end="", flush=True)
            if not measured.build.on_gpu and experiment.name in recorded:
                print("measured once, whole batch:\n\n" + table_of(recorded[experiment.name]), end="")
            if options.json:
                keep(options.json, record)
    if failures:
        print(f"\n{failures} of {len(chosen)} can't be tried")
    return 1 if failures else 0


# ---- The command -----------------------------------------------------------------------------------


def everything():
    """The variants that can be tried, in all files."""
    return variants.of_stages() + [each for task in tasks.read_all() for each in task.variants()]


def sound(every):
    """The stages without a bug, which must pass."""
    return [variants.Variant("", "bug", stage, "sound", "the stage as it stands")
            for stage in dict.fromkeys(each.stage for each in every if each.kind == "bug")]


def canaries(every):
    """Of every second stage the first bug that must be reported, of the others the first that the problems
    must see; the first in a file that is no kernel's; a sample of the stages without one, and of the
    exercises."""
    bugs = [each for each in every if each.kind == "bug"]
    yield from sound(every)[::5]
    for place, stage in enumerate(dict.fromkeys(bug.stage for bug in bugs)):
        own = [bug for bug in bugs if bug.stage == stage and (bug.expect or not bug.test)]
        # The first of these, if there is one.
        yield max(own, key=lambda bug, odd=place % 2: bool(bug.expect) == odd)
    yield next(bug for bug in bugs if any((edit.file or "").endswith(".cpp") for edit in bug.edits))
    yield from (each for each in every if each.stage in SAMPLE)


def select(options):
    """The variants that the words choose."""
    every = everything()
    if options.canaries:
        return [each for each in canaries(every)
                if options.preset == preset_of(each) or each.name == "sound"]
    known = {each.stage for each in every}
    if options.stage and options.stage not in known:
        options.stage = stage_called(options.stage)
        if options.stage not in known:
            fail(f"variant: there are none of stage '{options.stage}'", 2)
    chosen = [each for each in every
              if options.kind in (None, each.kind) and options.stage in (None, each.stage)
              and options.preset in (None, preset_of(each))]
    if not chosen and not options.preset:
        fail(f"variant: there are none of this kind and stage ({options.kind}, '{options.stage}')", 2)
    if options.preset and options.kind == "bug":
        chosen = [each for each in sound(every) if options.stage in (None, each.stage)] + chosen
    named = []
    for name in options.names:
        found = [each for each in chosen if each.title == name] or \
            [each for each in chosen if each.title.startswith(name)]
        if not found:
            fail(f"variant: nothing is called '{name}'; ./ladder variant lists the experiments", 2)
        named += found
    return named or chosen


def list_all():
    every = variants.of_stages()
    for stage in dict.fromkeys(each.stage for each in every):
        own = [each for each in every if each.stage == stage]
        print(f"{stage}: {sum(each.kind == 'bug' for each in own)} bugs, and these experiments")
        for each in own:
            if each.kind == "experiment":
                print(f"  {each.name:24} {each.about}")
    print("\n./ladder variant NAME tries one; --kind bug the bugs, --kind mistake those of the exercises")


def main(words):
    os.environ.pop("CONVLADDER_IN_TURNS", None)  # what must be caught is tried with all tests
    parser = argparse.ArgumentParser(prog="./ladder variant", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.error = lambda message: fail(f"variant: {message}; ./ladder variant --help", 2)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--kind", choices=("experiment", "bug", "mistake"))
    parser.add_argument("--stage", help="of this stage alone, or this exercise")
    parser.add_argument("--backend", choices=("gpu", "sim"), default="sim")
    parser.add_argument("--repeats", type=int, default=7, help="of a time on a GPU")
    parser.add_argument("--json", metavar="FILE", help="keep the experiments' records there")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--canaries", action="store_true", help=argparse.SUPPRESS)  # these for the tests
    parser.add_argument("--preset", help=argparse.SUPPRESS)
    parser.add_argument("--xml", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if min(options.jobs, options.repeats) < 1:
        parser.error("--jobs and --repeats are at least 1")
    if options.json:
        require_folder(options.json)
    if not (options.names or options.kind or options.stage or options.canaries):
        list_all()
        return 0
    try:
        chosen = select(options)
        experiments = [each for each in chosen if each.kind == "experiment"]
        others = [each for each in chosen if each.kind != "experiment"]
        status = catch_all(others, options) if others else 0
        return (try_experiments(experiments, options) if experiments else 0) or status
    except (Failed, BuildError, variants.BadVariant, tasks.BadTask, records.BadInput) as error:
        fail(str(error))


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        run_main(main)
    sys.exit(0)
