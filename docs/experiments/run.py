#!/usr/bin/env python3
"""The experiments of the lessons ("Try it"), each a patch beside this script.

  run.py                  tries all: compiles the kernel with each patch, checks, and counts with the
                          simulator before and after
  run.py --backend gpu    the same on a GPU: times with ./ladder bench, counters with Nsight Compute
  run.py --docs           writes what docs/results/experiments_*.json hold into the lessons
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
from common.show import counter_tables, files, formats
from common.variants import judge
from common.show import results

HERE = ROOT / "docs/experiments"
RECORDS = ROOT / "docs/results"
PROBLEM = "alexnet_conv1"
# Small problems, every extent another, and cut down: a check of a few seconds.
CHECK = ("check", "--shapes", "common/tests/data/counted_problems.csv", "--max-gmac", "0.003")
FORMAT = "convladder experiments"
PROGRAM = ("common/command", "convladder")  # where it is linked, and what it is called
CUDA_TOOLS = "/usr/local/cuda/bin"
PRESETS = {"sim": "sim-count", "gpu": "gpu"}
NOT_SHOWN = ("profiled [ms]",)  # the time of a single run, under the profiler
WRONG = re.compile(r"\w+: fail: .*")  # in what bench says
REASON = re.compile(r": (fail|impossible|rejected): |error: ")  # in the output of what fails
NEAR = 0.02  # a change by less than this is only named
BLOCK = re.compile(r"(<!-- experiment: (\S+) -->\n)(.*?)(<!-- end of experiment -->)", re.DOTALL)


class Failed(Exception):
    """A command that failed; the message has its last words."""


class Experiment:
    """A patch. Its text begins with the title; "Counted at batch N." may follow, and "Measured on
    PROBLEM." where AlexNet's layer doesn't show it."""

    def __init__(self, path):
        self.path, self.name = path, path.stem
        text = path.read_text(encoding="utf-8")
        self.title = text.split("\n", 1)[0]
        files = re.findall(r"^\+\+\+ b/(\S+)$", text, re.MULTILINE)
        if len(files) != 1:
            raise ValueError(f"{path.name}: changes {len(files)} files, not one")
        self.file = files[0]
        self.stage = self.file.split("/")[0]
        batch = re.search(r"^Counted at batch (\d+)\.$", text, re.MULTILINE)
        self.batch = int(batch[1]) if batch else 1
        problem = re.search(r"^Measured on (\w+)\.$", text, re.MULTILINE)
        self.problem = problem[1] if problem else PROBLEM

    def digest(self):
        """Of all kernels as they stand, and of the change."""
        kernels = run(["cmake", "-D", f"ROOT={ROOT}", "-P", "common/command/cmake/KernelsDigest.cmake"], ROOT)
        return f"{kernels.strip()} {hashlib.sha256(self.path.read_bytes()).hexdigest()[:12]}"

    def apply(self, tree, reverse=False):
        """Changes the file in `tree`, a folder that has it at its path; raises Failed if it doesn't fit."""
        back = ["--reverse"] if reverse else []
        command = ["git", "apply", "--whitespace=nowarn", *back, self.path]
        if not shutil.which("git"):
            command = ["patch", "--strip=1", "--silent", *back, f"--input={self.path}"]
        # In a repository, git would leave out what lies outside of it without a word.
        run(command, tree, {"GIT_CEILING_DIRECTORIES": str(pathlib.Path(tree).resolve().parent)})


def all_experiments():
    return [Experiment(path) for path in sorted(HERE.glob("[0-9][0-9]_*.patch"))]


# ---- Running ---------------------------------------------------------------------------------------


def run(command, folder, environment=None):
    done = subprocess.run([str(word) for word in command], cwd=folder, text=True, check=False,
                          env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        lines = done.stdout.strip().split("\n")
        reason = next(filter(REASON.search, lines), lines[-1])
        raise Failed(f"'{' '.join(map(str, command))}' ended with {done.returncode}: {reason}")
    return done.stdout


def patched(experiment, folder):
    """The path of a copy of the experiment's kernel in `folder`, changed."""
    source = pathlib.Path(folder) / experiment.file
    source.parent.mkdir(parents=True)
    shutil.copy(ROOT / experiment.file, source)
    experiment.apply(folder)
    return source


class Bench:
    """Measures stages as they are, and changed: programs linked as the build's own, but for one kernel."""

    def __init__(self, backend, repeats, times_only):
        self.backend, self.repeats, self.times_only = backend, repeats, times_only
        preset = PRESETS[backend]
        run(["cmake", "--preset", preset], ROOT)
        run(["cmake", "--build", "--preset", preset, "--parallel", os.cpu_count() or 1, "--target",
             "convladder"], ROOT)
        self.build = judge.Build(preset, seconds=None)
        self.own = pathlib.Path(self.build.folder) / "bin"
        self.baseline = {}  # (stage, problem, batch): measured unchanged

    def compile(self, experiment, folder):
        """Makes folder/convladder with the changed kernel."""
        try:
            source = patched(experiment, folder)
            self.build.compile(source, folder, PROGRAM, pathlib.Path(experiment.file).name)
        except judge.Failed as failure:
            raise Failed(f"{experiment.name}: {failure}") from None

    def measure(self, folder, stage, problem, batch):
        """Records of profile by folder/convladder; on a GPU also the median time with a cold L2, and the
        GPU's name."""
        with tempfile.NamedTemporaryFile(suffix=".json") as records:
            program, json_file = folder / "convladder", pathlib.Path(records.name)
            profile = [sys.executable, "-m", "common.measure.profile", "--program", program, "--stage", stage,
                       "--shape", problem, "--json", json_file]
            if self.backend == "sim":
                run([*profile, "--batch", batch], ROOT)
                return {"counted": json.loads(json_file.read_text()), "cold_ms": None, "machine": ""}
            run([program, "bench", "--stage", stage, "--shape", problem, "--competitors", "none",
                 "--repeats", self.repeats, "--json", json_file], ROOT)
            timed, counted = results.read_bench(json_file), []
            if not self.times_only:
                run(profile, ROOT)
                counted = [record for record in json.loads(json_file.read_text())
                           if record["source"] == "ncu"]  # not what the simulator says in its place
        return {"counted": counted, "cold_ms": timed.problems[0].stages[stage].cold.median,
                "machine": timed.machine["gpu"]}

    def unchanged(self, *key):
        if key not in self.baseline:
            self.baseline[key] = self.measure(self.own, *key)
        return self.baseline[key]

    def attempt(self, experiment, folder):
        """The experiment's record, by folder/convladder. What the change breaks is a result, too."""
        what = (experiment.stage, experiment.problem,
                experiment.batch if self.backend == "sim" else None)
        record = {"name": experiment.name, "problem": experiment.problem,
                  "kernels": experiment.digest(), "before": self.unchanged(*what), "after": None,
                  "failure": ""}
        checked = folder / "checked.json"
        try:
            run([folder / "convladder", *CHECK, "--stage", experiment.stage, "--json", checked], ROOT)
            record["after"] = self.measure(folder, *what)  # which checks, too: a race shows now and then
        except Failed as failed:
            wrong = [each["message"] for each in json.loads(checked.read_text())
                     if each["status"] == "fail"] if checked.exists() else []
            wrong += WRONG.findall(str(failed))
            if not wrong:
                raise  # the machine's fault, not the change's
            record["failure"] = wrong[0].replace(f"{folder.relative_to(ROOT)}/", "")
        return record


def without_current(chosen, path):
    """Those that the file has no record of, or one of other kernels or of another change."""
    records = read_records(path)["experiments"] if path.is_file() else []
    known = {record["name"]: record.get("kernels") for record in records}
    return [experiment for experiment in chosen
            if known.get(experiment.name) != experiment.digest()]


def try_all(chosen, arguments):
    """Runs them, and puts their records into the file, beside those of others. All are compiled first:
    nothing else runs beside what is timed."""
    os.environ["PATH"] += f":{CUDA_TOOLS}"  # where nvcc and ncu are if nobody has said otherwise
    print(f"building {PRESETS[arguments.backend]}, and {len(chosen)} changed kernels", flush=True)
    bench = Bench(arguments.backend, arguments.repeats, arguments.times_only)
    with tempfile.TemporaryDirectory(prefix="experiments_", dir=bench.build.folder) as name:
        folders = [pathlib.Path(name) / experiment.name for experiment in chosen]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            try:
                list(pool.map(bench.compile, chosen, folders))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        for experiment, folder in zip(chosen, folders):
            record = bench.attempt(experiment, folder)
            print(f"\n## {experiment.name}: {experiment.title}\n\n{table_of(record)}", flush=True)
            keep(arguments.json, arguments.backend, record)
    print(f"wrote {arguments.json}")


def keep(path, backend, record):
    records = {}
    if path.is_file():
        records = {old["name"]: old for old in read_records(path)["experiments"]}
    records[record["name"]] = record
    lines = ",\n".join(json.dumps(records[name]) for name in sorted(records))
    files.write(path, f'{{"format": "{FORMAT}", "backend": "{backend}", "experiments": [\n{lines}\n]}}\n')


def read_records(path):
    value = results.read_json(path)
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise results.BadInput(f"{path}: not made by docs/experiments/run.py")
    return value


# ---- Tables ----------------------------------------------------------------------------------------


def table_of(record):
    """What changed, as Markdown: the time and the counters, before and after."""
    before, after, problem = record["before"], record["after"], record.get("problem", PROBLEM)
    if record["failure"]:
        where = f"on an {before['machine']}" if before["machine"] else "in the counting simulator"
        return f"The check fails {where}:\n\n```\n{record['failure']}\n```\n"
    rows, near, same = time_row(before["cold_ms"], after["cold_ms"]), [], []
    how = f"`{problem}` on an {after['machine']}"
    if before["counted"] and after["counted"]:
        profile = as_profile(record)
        how = (f"`{problem}`, batch {profile.shape.split()[0].lstrip('n')}, counted by "
               f"{counter_tables.source_of(profile)}" +
               (f" on an {after['machine']}" if after["machine"] else ""))
        for name, old, new, column in figures(profile):
            if old.value == new.value:
                same.append(name)
            elif old.value and abs(new.value / old.value - 1) < NEAR:
                near.append(name)
            else:
                rows.append([name, *(counter_tables.cell(f, column.text) for f in (old, new)),
                             formats.ratio(new.value / old.value if old.value else None)])
    parts = [f"{how}:\n"]
    if rows:
        parts.append(formats.markdown(["", "before", "after", "÷ before"], rows))
    if near:
        parts.append(f"Changed by less than {NEAR * 100:.0f} %: {', '.join(near)}.\n")
    if same:
        parts.append(f"Unchanged: {', '.join(same)}.\n")
    return "\n".join(parts)


def time_row(before, after):
    if before is None or after is None:
        return []
    return [["time, cold [ms]", formats.milliseconds(before), formats.milliseconds(after),
             formats.ratio(after / before)]]


def as_profile(record):
    """Before and after as two stages of one Profile, for the report's own tables."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "both.json"
        path.write_text(json.dumps([{**kernel, "stage": when} for when in ("before", "after")
                                    for kernel in record[when]["counted"]]), encoding="utf-8")
        return results.read_profiles(path)[0]


def figures(profile):
    """What both have and is not 0 in both: name, before, after, and the report's column."""
    columns = (counter_tables.level_columns(profile) + counter_tables.warp_columns(profile) +
               counter_tables.kernel_columns(profile))
    for column in columns:
        before, after = column.figure("before"), column.figure("after")
        if before and after and (before.value or after.value) and column.heading not in NOT_SHOWN:
            yield column.heading, before, after, column


def lesson_block(name, all_records):
    if name not in [experiment.name for experiment in all_experiments()]:
        raise Failed(f"a lesson shows {name}, which is no experiment")
    texts = []
    for value in all_records:
        record = next((r for r in value["experiments"] if r["name"] == name), None)
        if record:
            texts.append(table_of(record))
    return "\n" + "\n".join(texts) + "\n"


def renewed(page, all_records):
    return BLOCK.sub(lambda match: match[1] + lesson_block(match[2], all_records) + match[4],
                     page.read_text(encoding="utf-8"))


def write_docs(check):
    """Fills the blocks of the lessons; with `check` only says which are not up to date."""
    all_records = [read_records(path) for path in sorted(RECORDS.glob("experiments_*.json"),
                                                         reverse=True)]  # the simulator's first
    status = 0
    for page in sorted(ROOT.glob("[0-9][0-9]_*/README.md")):
        text = renewed(page, all_records)
        if text == page.read_text(encoding="utf-8"):
            continue
        if check:
            print(f"{page.relative_to(ROOT)}: an experiment's block is out of date: run "
                  "docs/experiments/run.py --docs", file=sys.stderr)
            status = 1
        else:
            files.write(page, text)
            print(f"wrote {page.relative_to(ROOT)}")
    return status


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=sorted(PRESETS), default="sim")
    parser.add_argument("--only", action="append", metavar="PREFIX", default=[],
                        help="experiments whose names begin so; may be repeated: 03, 01_two")
    parser.add_argument("--repeats", type=int, default=9, metavar="N",
                        help="timed rounds on a GPU (default 9)")
    parser.add_argument("--times-only", action="store_true",
                        help="on a GPU: leave Nsight Compute's counters out")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE",
                        help="records go there, beside those that it has (default "
                             "build/experiments_BACKEND.json)")
    parser.add_argument("--stale", action="store_true",
                        help="those alone that FILE doesn't have of these kernels")
    parser.add_argument("--docs", action="store_true", help="fill the lessons' blocks, run nothing")
    parser.add_argument("--check", action="store_true", help="with --docs: only compare")
    arguments = parser.parse_args()
    if arguments.check and not arguments.docs:
        parser.error("--check goes with --docs")
    try:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # cleans up, as after Ctrl-C
        if arguments.docs:
            return write_docs(arguments.check)
        chosen = [e for e in all_experiments()
                  if not arguments.only or e.name.startswith(tuple(arguments.only))]
        if not chosen:
            parser.error(f"--only {' '.join(arguments.only)}: no experiment is called so")
        if not arguments.json:
            arguments.json = ROOT / f"build/experiments_{arguments.backend}.json"
            arguments.json.parent.mkdir(exist_ok=True)
        if arguments.stale:
            chosen = without_current(chosen, arguments.json)
        if chosen:
            try_all(chosen, arguments)
    except (Failed, judge.CannotJudge, results.BadInput) as error:
        sys.exit(f"run.py: error: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
