"""Small changes of the stages' kernels, tried: what they change, or what catches them.

  ./ladder variant                       lists all experiments, and how many bugs each stage has
  ./ladder variant NAME...               tries them: an experiment is compiled, checked and counted (on a
                                         GPU timed), before and after; a planted bug must be caught
  ./ladder variant --kind bug [--stage NAME]   all planted bugs, and what catches each
  ./ladder variant --kind experiment --json FILE   keeps the records, beside those that are there

NAME is an experiment's name, a bug's (STAGE.BUG), or the beginning of one; EXERCISE.MISTAKE is tried by
the exercises' own test. What a variant is: common/variants/variants.py.
"""
import argparse
import concurrent.futures
import contextlib
import hashlib
import json
import os
import re
import signal
import sys
import tempfile
import xml.etree.ElementTree

from common.show import counter_tables, files, formats, records
from common.show.files import ROOT
from common.show.support import fail, run_main
from common.variants import variants
from common.variants.build import Build, BuildError, run_limited

RECORDS = os.path.join(ROOT, "docs/results/experiments_h200.json")
FORMAT = "convladder experiments"
# Small problems, every extent another, and cut down: a check of a few seconds.
CHECK = ("check", "--max-gmac", "0.003", "--shapes",
         os.path.join(ROOT, "common/tests/data/counted_problems.csv"))
ROUNDING = os.path.join(variants.FOLDER, "rounding.h")  # for bugs of less precision
NEAR = 0.02  # a change by less than this is only named
TEST_SECONDS = 60  # of one test
ENOUGH = 3  # problems that must see a bug for which there is no test or report of its own
CANARIES = 2  # bugs of each stage that every run of the tests tries
PROBLEMS = "*StageOnProblem.GivesTheReference/nasty*"  # the small ones
OBSERVED = "*StageCounts.*/{0}_*:*StageOffAlignment.*/{0}_*"  # in the counting simulator
SOUND = "sound"  # the variant without an edit
FEW = {"sim": "*StageOnProblem.*/nasty_primes*", "sim-count": "*StageCounts.*/{0}_nasty_primes*"}

# How a failing test's output shows what gave the bug away; the first that fits.
REPORTS = {
    "data race": r"data race",
    "out of bounds": r"memory out of bounds",
    "never written": r"that nobody has written",
    "copy under way": r"asynchronous copy is under way",
    "not aligned": r"not aligned to as many|misaligned",
    "barrier not reached": r"waits for ever at __sync",
    "launch refused": r"invalid configuration argument",
    "library refused": r"cublas\w+: ",
    "NaN left in the output": r"is NaN \(never written\?\)",
    "NaN out of place": r"std::isnan",
    "small integers": r"checked outputs are wrong[\s\S]*small integers",
    "wide integers": r"checked outputs are wrong[\s\S]*wide integers",
    "real numbers": r"checked outputs are wrong",
    "guard zone": r"around the (input|filters|bias|output|workspace)",
    "second run differs": r"a second run gave other bits",
}


class Failed(Exception):
    """A command that failed; the message has its last words."""


def run(words):
    """Its output. Raises Failed with the line that says why."""
    done = run_limited(words)
    if done.returncode:
        lines = done.stdout.strip().split("\n")
        reason = next((line for line in lines if re.search(r"error: |: (fail|rejected): ", line)), lines[-1])
        raise Failed(f"{os.path.basename(str(words[0]))} ended with {done.returncode}: {reason}")
    return done.stdout


def make(preset, variant, target, folder, flags=()):
    """folder/program: bin/`target` with the variant's kernel, and what else it changes, in their places."""
    kernel, others = variant.write(folder)
    objects, program = [], os.path.join(folder, "program")
    for source in [kernel] + [path for path in others if not path.endswith(".h")]:
        objects.append(f"{folder}/{len(objects)}.o")
        # The folder first: a changed header is found there.
        done = preset.compile(source, objects[-1], [f"-I{folder}"], flags)
        if not done.returncode:
            continue
        error = re.search(r".*error: .*|.*\Z", done.stdout.strip())[0]
        raise Failed(f"{variant.title} can't be compiled: {error}")
    done = preset.link(target, objects, os.path.basename(kernel), program)
    if done.returncode != 0:
        raise BuildError(f"{variant.title} can't be linked: {done.stdout.strip()}")
    return program


# ---- Bugs ------------------------------------------------------------------------------------------


def run_test(program, test):
    """What gave a bug away in this test, "" where it passed, None where it was skipped."""
    done = run_limited([program, "--gtest_color=no", f"--gtest_filter={test}"], seconds=TEST_SECONDS)
    if done.returncode == -signal.SIGALRM:
        return "no end"
    ended = re.search(r"^\[ +(OK|FAILED|SKIPPED) +\] ", done.stdout, re.MULTILINE)
    if "[ RUN " not in done.stdout or ended and done.returncode not in (0, 1):
        raise Failed(f"{program}: status {done.returncode}, in none of its tests")
    if not ended:
        return f"crash ({signal.Signals(-done.returncode).name})" if done.returncode < 0 else \
            f"exit status {done.returncode}"
    report = next((name for name, pattern in REPORTS.items() if re.search(pattern, done.stdout)), "other")
    return {"OK": "", "SKIPPED": None, "FAILED": report}[ended[1]]


def list_tests(program, chosen):
    """The names of the tests that match GoogleTest's filter."""
    lines = run([program, "--gtest_list_tests", f"--gtest_filter={chosen}"]).splitlines()
    names, suite = [], ""
    for line in lines:
        name = line.split("  #")[0].strip()  # behind it: a parameter's value
        if line.startswith("  "):
            names.append(suite + name)
        elif name.endswith("."):
            suite = name
    if not names:
        raise Failed(f"{program}: no test matches {chosen}")
    return names


def preset_of(bug):
    """The simulator that sees it: what must be reported, the counting one reports."""
    return "sim-count" if bug.expect else "sim"


def target_of(stage, preset):
    return "stage_counts_tests" if preset == "sim-count" else f"test_{stage}"


def is_caught(bug, reports):
    seen = [report for report in reports if report]
    if bug.expect:
        return any(report in bug.expect.split(" or ") for report in seen)
    return len(seen) >= (1 if bug.test else ENOUGH)


def catch(bug, build):
    """(verdict, text): "passed" if the bug is caught, "failed", or "skipped" where this machine can't run
    its own test. One without edits is the stage as it stands, and must pass."""
    with tempfile.TemporaryDirectory(prefix="variant_", dir=build.folder) as folder:
        program = make(build, bug, target_of(bug.stage, build.preset), folder,
                       ("-Og", "-w", "-include", ROUNDING))
        chosen = OBSERVED if bug.expect else f"*.{bug.test}:*/{bug.test}" if bug.test else PROBLEMS
        if not bug.edits:
            chosen = FEW[build.preset]
        tests, reports = list_tests(program, chosen.format(bug.stage)), []
        for test in tests:
            report = run_test(program, test)
            reports += [] if report is None else [report]
            if bug.edits and is_caught(bug, reports):
                break
    words = " and ".join(sorted(filter(None, set(reports)))) or "nothing"
    said = f"{bug.title}: {bug.about}: "
    if not bug.edits:
        return "failed" if words != "nothing" or not reports else "passed", said + f"fails by {words}"
    if bug.test and not reports:
        return "skipped", said + f"{bug.test} is skipped here"
    if is_caught(bug, reports):
        return "passed", said + f"caught: {words}"
    return "failed", said + f"SURVIVES {len(reports)} tests, which saw {words}"


def canaries(of_stage):
    """Of one stage's bugs the first that must be reported, the first that the problems must see, and none."""
    reported = [bug for bug in of_stage if bug.expect]
    plain = [bug for bug in of_stage if not bug.expect and not bug.test]
    return (reported[:1] + plain)[:CANARIES]


def catch_all(bugs, options):
    """The exit status; a line for each bug."""
    preset_for = {id(bug): options.preset or preset_of(bug) for bug in bugs}
    builds = {preset: Build(preset) for preset in sorted(set(preset_for.values()))}
    for preset, build in builds.items():
        build.make(*sorted({target_of(bug.stage, preset) for bug in bugs if preset_for[id(bug)] == preset}))
    verdicts = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for verdict, text in pool.map(lambda bug: _caught(bug, builds[preset_for[id(bug)]]), bugs):
            print(text, flush=True)
            verdicts.append((verdict, text))
    if options.xml:
        _write_xml(options.xml, bugs, verdicts)
    missed = sum(verdict == "failed" for verdict, _ in verdicts)
    print(f"{len(verdicts) - missed} of {len(verdicts)} as they should be")
    return 1 if missed else 0


def _caught(bug, build):
    try:
        return catch(bug, build)
    except (Failed, BuildError, variants.BadVariant) as error:
        return "failed", f"{bug.title}: {error}"


def _write_xml(path, bugs, verdicts):
    """A report like GoogleTest's, for `./ladder test` to count."""
    element = xml.etree.ElementTree
    report = element.Element("testsuites")
    for bug, (verdict, text) in zip(bugs, verdicts):
        case = element.SubElement(report, "testcase", name=bug.title, status="run")
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
        self.build.make("convladder")
        self.own = os.path.join(self.build.folder, "bin/convladder")
        self._before = {}

    def measure(self, program, experiment):
        """The records of `profile`; on a GPU those of `bench`."""
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            words = ["--stage", experiment.stage, "--shape", experiment.on, "--json", file.name]
            if self.build.on_gpu:
                run([program, "bench", *words, "--competitors", "none", "--repeats", str(self.repeats)])
                timed = records.read_bench(file.name)
                return {"counted": [], "cold_ms": timed.problems[0].stages[experiment.stage].cold.median,
                        "machine": timed.machine["gpu"]}
            run([program, "profile", *words, "--batch", experiment.batch])
            counted = [{name: value for name, value in record.items() if not name.endswith("work")}
                       for record in json.loads(files.read(file.name))]
            return {"counted": counted, "cold_ms": None, "machine": ""}

    def attempt(self, experiment):
        """The experiment's record. What the change breaks is a result as well."""
        what = (experiment.stage, experiment.on, experiment.batch)
        if what not in self._before:
            self._before[what] = self.measure(self.own, experiment)
        record = {"name": experiment.name, "problem": experiment.on, "kernels": digest(experiment),
                  "before": self._before[what], "after": None, "failure": ""}
        with tempfile.TemporaryDirectory(prefix="variant_", dir=self.build.folder) as folder:
            program = make(self.build, experiment, "convladder", folder)
            checked = os.path.join(folder, "checked.json")
            try:
                run([program, *CHECK, "--stage", experiment.stage, "--json", checked])
                record["after"] = self.measure(program, experiment)  # a race shows now and then: checks again
            except Failed as failed:
                wrong = [row["message"] for row in json.loads(files.read_existing(checked) or "[]")
                         if row["status"] == "fail"] + re.findall(r"\w+: fail: .*", str(failed))
                if not wrong:
                    raise  # the machine's fault, not the change's
                record["failure"] = wrong[0].replace(f"{os.path.relpath(folder, ROOT)}/", "")
        return record


def digest(experiment):
    """Of all kernels as they stand, and of the change: a record that has it need not be made again."""
    kernels = run(["cmake", "-D", f"ROOT={ROOT}", "-P", "common/command/cmake/KernelsDigest.cmake"]).strip()
    edits = json.dumps([dataclass.__dict__ for dataclass in experiment.edits]).encode()
    return f"{kernels} {hashlib.sha256(edits).hexdigest()[:12]}"


def read_records(path):
    """{name: record} of a file that this module has written; nothing without it."""
    if not os.path.exists(path):
        return {}
    value = records.read_json(path)
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise records.BadInput(f"{path}: not made by ./ladder variant")
    return {record["name"]: record for record in value["experiments"]}


def keep(path, record):
    """Puts the record into the file, beside those of others."""
    records = read_records(path) | {record["name"]: record}
    lines = ",\n".join(json.dumps(records[name]) for name in sorted(records))
    files.write(path, f'{{"format": "{FORMAT}", "experiments": [\n{lines}\n]}}\n')


def table_of(record):
    """What changed, as text for a terminal: the time, and the counters, before and after."""
    before, after = record["before"], record["after"]
    if record["failure"]:
        where = " on an " + before["machine"] if before["machine"] else ""
        return f"the check fails{where}: {record['failure']}\n"
    rows, near, same = [], [], []
    if before["cold_ms"] and after["cold_ms"]:
        old, new = before["cold_ms"], after["cold_ms"]
        rows.append([f"time on an {after['machine']}, cold [ms]", formats.milliseconds(old),
                     formats.milliseconds(new), formats.ratio(new / old)])
    if before["counted"] and after["counted"]:
        for name, old, new, text in _figures(before["counted"], after["counted"]):
            if old.value == new.value:
                same.append(name)
            elif old.value and abs(new.value / old.value - 1) < NEAR:
                near.append(name)
            else:
                rows.append([name, *(counter_tables.cell(figure, text) for figure in (old, new)),
                             formats.ratio(new.value / old.value if old.value else None)])
    parts = [formats.aligned(formats.markdown(["", "before", "after", "÷ before"], rows))] if rows else []
    parts += [f"changed by less than {NEAR * 100:.0f} %: {', '.join(near)}\n"] if near else []
    parts += [f"unchanged: {', '.join(same)}\n"] if same else []
    return "".join(parts)


def _figures(before, after):
    """(name, before, after, text of a value) of what both have, where one is not 0."""
    both = [{**kernel, "stage": when} for when, kernels in (("before", before), ("after", after))
            for kernel in kernels]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(both, file)
        file.flush()
        profile, = records.read_profiles(file.name)
    for column in counter_tables.COLUMNS:
        old, new = column.figure(profile, "before"), column.figure(profile, "after")
        if old and new and (old.value or new.value):
            yield column.heading, old, new, column.text


def try_experiments(chosen, options):
    """The exit status; tables on the way."""
    if options.stale:
        known = read_records(options.json)
        chosen = [each for each in chosen if known.get(each.name, {}).get("kernels") != digest(each)]
    measured = Measured(options.backend, options.repeats)
    recorded = read_records(RECORDS)
    for experiment in chosen:
        record = measured.attempt(experiment)
        print(f"\n{experiment.name}: {experiment.about}\n")
        for edit in experiment.edits:
            print("\n".join([f"  - {line}" for line in edit.old] + [f"  + {line}" for line in edit.new]))
        batch = "" if measured.build.on_gpu else f", batch {experiment.batch}"
        print(f"\n{experiment.on}{batch}:\n\n{table_of(record)}", end="", flush=True)
        if not measured.build.on_gpu and experiment.name in recorded:
            print(f"measured once, with the whole batch:\n\n{table_of(recorded[experiment.name])}", end="")
        if options.json:
            keep(options.json, record)
    return 0


# ---- The command -----------------------------------------------------------------------------------


def select(options):
    """The variants that the words choose."""
    every = variants.of_stages()
    if options.canaries:
        of_stage = {}
        for bug in every:
            if bug.kind == "bug":
                of_stage.setdefault(bug.stage, []).append(bug)
        sound = [variants.Variant("", "bug", stage, SOUND, "the stage as it stands") for stage in of_stage]
        return [each for none, bugs in zip(sound, of_stage.values()) for each in [none, *canaries(bugs)]
                if not each.edits or preset_of(each) == options.preset]
    if options.stage and options.stage not in {each.stage for each in every}:
        fail(f"variant: there are none of a stage '{options.stage}'", 2)
    chosen = [each for each in every
              if options.kind in (None, each.kind) and options.stage in (None, each.stage)
              and options.preset in (None, preset_of(each))]
    if options.names:
        for name in options.names:
            if not any(each.title.startswith(name) for each in chosen):
                fail(f"variant: nothing is called '{name}'; ./ladder variant lists the experiments", 2)
        exact = [each for each in chosen if each.title in options.names]
        chosen = exact or [each for each in chosen if each.title.startswith(tuple(options.names))]
    return chosen


def list_all():
    every = variants.of_stages()
    for stage in dict.fromkeys(each.stage for each in every):
        own = [each for each in every if each.stage == stage]
        print(f"{stage}: {sum(each.kind == 'bug' for each in own)} bugs, and these experiments")
        for each in own:
            if each.kind == "experiment":
                print(f"  {each.name:24} {each.about}")
    print("\n./ladder variant NAME tries one; --kind bug tries the bugs")


def main(words):
    parser = argparse.ArgumentParser(prog="./ladder variant", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--kind", choices=("experiment", "bug"))
    parser.add_argument("--stage", help="of this stage alone")
    parser.add_argument("--backend", choices=("gpu", "sim"), default="sim")
    parser.add_argument("--repeats", type=int, default=7, help="of a time on a GPU")
    parser.add_argument("--json", metavar="FILE", help="keep the experiments' records there")
    parser.add_argument("--stale", action="store_true", help="only those whose record is of other kernels")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--canaries", action="store_true", help=argparse.SUPPRESS)  # these for the tests
    parser.add_argument("--preset", help=argparse.SUPPRESS)
    parser.add_argument("--xml", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if not (options.names or options.kind or options.stage or options.canaries):
        list_all()
        return 0
    if options.stale and not options.json:
        parser.error("--stale needs --json")
    try:
        chosen = select(options)
        bugs = [each for each in chosen if each.kind == "bug"]
        experiments = [each for each in chosen if each.kind == "experiment"]
        status = catch_all(bugs, options) if bugs else 0
        if experiments:
            status = try_experiments(experiments, options) or status
        return status
    except (Failed, BuildError, variants.BadVariant, records.BadInput) as error:
        fail(str(error))


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        run_main(main)
    sys.exit(0)
