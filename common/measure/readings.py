"""The memory counters of every stage, and of single accesses, by Nsight Compute and by the simulator, to be
held against each other (common/show/counted.py).

  python3 -m common.measure.readings stages [--stage NAME]... [--problem NAME]...
      Nsight Compute's of every stage on every problem of common/tests/data/counted_problems.csv:
      common/tests/data/ncu_stages.csv; --stage and --problem read these and keep the file's other rows
  python3 -m common.measure.readings patterns
      Nsight Compute's of every way of addressing memory in bank_patterns.cu: .../ncu_patterns.csv
  python3 -m common.measure.readings device
      Nsight Compute's of atomic operations, constants, hints and matrices in device_patterns.cu:
      .../ncu_device.csv
  python3 -m common.measure.readings counts
      the simulator's of the stages on the same problems: docs/results/counts.csv
  python3 -m common.measure.readings programs TABLE...
      Nsight Compute's of each kernel of the programs in tables such as programs.py has:
      .../ncu_programs.csv
  python3 -m common.measure.readings program_counts TABLE...
      the simulator's of the same: docs/results/program_counts.csv

What reads a GPU needs ncu in the PATH, and its permission to read counters (./ladder doctor). The programs
are those of build/gpu and build/sim-count.
"""
import argparse
import hashlib
import os
import shlex
import subprocess
import tempfile

from common.measure import ncu, profile, programs
from common.show import counted, files, metrics
from common.show.files import ROOT, stage_names
from common.show.support import fail, progress, run_main

FILES = {"stages": "common/tests/data/ncu_stages.csv", "patterns": "common/tests/data/ncu_patterns.csv",
         "device": "common/tests/data/ncu_device.csv", "counts": "docs/results/counts.csv",
         "programs": "common/tests/data/ncu_programs.csv",
         "program_counts": "docs/results/program_counts.csv"}
OF_THE_SIMULATOR = ["counts", "program_counts"]
PATTERNS = os.path.join(ROOT, "common/measure/bank_patterns.cu")
KEY = ["problem", "stage", "kernel", "launches"]
STAGE_METRICS = metrics.read_by("stages")
PATTERN_METRICS = {accesses: metrics.read_by(accesses) for accesses in ("shared", "copies", "global")}
DEVICE_METRICS = {group: metrics.read_by(group) for group in ("atomics", "constants", "hints", "matrices")}


def number(value):
    return "" if value is None else f"{value:.10g}"


def problems():
    return files.read_rows(os.path.join(ROOT, "common/tests/data/counted_problems.csv"))


def options_of(problem):
    return [word for name, value in problem.items() if name != "name" for word in ("--" + name, value)]


def count(program, problem, *options):
    """The simulator's records of the stages' own kernels on a row of counted_problems.csv."""
    options = ["--max-gmac", "1000", *options_of(problem), *options]
    found, _ = profile.records_of(program, options, shown=False)
    return [record for record in found if not record["library"]]


# --- each of them yields the file's header and rows, as often as there is something to be kept -----

def of_the_simulator(*_):
    found = []
    for place, problem in enumerate(problems(), 1):
        progress(f"[{place}] {problem['name']}")
        found += [(problem["name"], record)
                  for record in count(os.path.join(ROOT, "build/sim-count/bin/convladder"), problem)]
    progress("")
    columns = [metric for metric in STAGE_METRICS + [counted.AT_LEAST]
               if any(metric in record for _, record in found)]
    yield KEY + columns, [[name, record["stage"], record["kernel"], record["launches"],
                           *(number(record.get(metric)) for metric in columns)] for name, record in found]


def of_stages(_, stages, names, path):
    """After each problem, with what the earlier file has of the other problems and stages that there are."""
    header, wanted, rows = KEY + STAGE_METRICS, list(STAGE_METRICS), {}
    for row in files.read_rows(path) if os.path.exists(path) else []:
        rows.setdefault((row["problem"], row["stage"]), []).append([row.get(name) or "" for name in header])
    program = os.path.join(ROOT, "build/gpu/bin/convladder")
    for problem in problems():
        if names and problem["name"] not in names:
            continue
        read = ncu.launches_of(program, stages, options_of(problem), wanted)
        for stage, (launches, _) in read.items():
            rows[problem["name"], stage] = [
                [problem["name"], stage, kernel, str(len(every)), *totals(every)]
                for kernel, every in ncu.by_kernel(launches).items()]
        print(f"{problem['name']}: {len(stages)} stages", flush=True)
        yield header, [row for known in problems() for stage in stage_names()
                       for row in rows.get((known["name"], stage), [])]


def of_programs(tables, *_):
    """Compiled as the simulator compiles them: -O3, the options of their rows."""
    found = []
    for row, folder in programs.rows_of(tables):
        with tempfile.TemporaryDirectory() as own:
            program = os.path.join(own, row["name"])
            subprocess.run(["nvcc", "-O3", "-std=c++17", "-arch=native", "-w", *shlex.split(row["options"]),
                            *row["files"].split(), "-o", program, "-lcublas", "-lcublasLt"], cwd=folder,
                           check=True)
            os.chdir(folder)
            wanted = list(STAGE_METRICS)
            launches, _ = ncu.run(wanted, [program, *shlex.split(row["arguments"])])
        found += [[row["name"], row["name"], kernel, str(len(every)), *totals(every)]
                  for kernel, every in ncu.by_kernel(launches).items()]
        print(f"{row['name']}: {len(launches)} launches", flush=True)
        yield KEY + STAGE_METRICS, found


def of_programs_in_the_simulator(tables, *_):
    found = []
    for row, folder in programs.rows_of(tables):
        printed, told = programs.run(row, folder, 1800, "--count")
        if not told or "ended" in told:
            fail(f"{row['name']}: {printed.splitlines()[-1]}")
        found += [[row["name"], row["name"], kernel["kernel"], kernel["launches"],
                   *(number(kernel.get(metric)) for metric in STAGE_METRICS + [counted.AT_LEAST])]
                  for kernel in told["kernels"]]
        print(f"{row['name']}: {len(told['kernels'])} kernels", flush=True)
    yield KEY + STAGE_METRICS + [counted.AT_LEAST], found


def totals(launches):
    for metric in STAGE_METRICS:
        values = [launch.get(metric) for launch in launches]
        yield number(None if None in values else sum(values))


def of_patterns(*_):
    yield of_launches("bank_patterns", "bytes", PATTERN_METRICS)


def of_device(*_):
    yield of_launches("device_patterns", "type", DEVICE_METRICS)


def of_launches(program, kind, groups):
    columns = list(dict.fromkeys(metric for asked in groups.values() for metric in asked))
    rows = []
    for accesses, asked in groups.items():
        launches, output = ncu.run(asked, [os.path.join(ROOT, "build/gpu/bin", program), accesses])
        names = [line.split(" ", 1)[1].split(",") for line in output if line.startswith("launched ")]
        if len(names) != len(launches):
            raise ncu.NcuError(f"{program} launched {len(names)} kernels, ncu saw {len(launches)}")
        rows += [name + [number(values.get(metric)) for metric in columns]
                 for name, (_, values) in zip(names, launches)]
    return ["kind", kind, "pattern"] + columns, rows


def origin(what):
    """Comments for the head of a file that a GPU has been read for."""
    made_by = f"common/measure/readings.py {what}"
    if what == "patterns":  # while their text is the same, so is what is read (renew.py)
        with open(PATTERNS, "rb") as file:
            made_by += f" of {hashlib.sha256(file.read()).hexdigest()}"
    version = subprocess.run(["ncu", "--version"], capture_output=True, text=True).stdout
    gpu = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                         capture_output=True, text=True).stdout.splitlines()
    return f"# made by: {made_by}\n# GPU: {gpu[0]}; ncu: {version.strip().splitlines()[-1]}\n"


def main(words):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=list(FILES))
    parser.add_argument("--stage", action="append", choices=stage_names(), help="may be repeated")
    parser.add_argument("--problem", action="append", metavar="NAME", help="may be repeated",
                        choices=[row["name"] for row in problems()])
    parser.add_argument("tables", nargs="*", help="of programs")
    options = parser.parse_args(words)
    path = os.path.join(ROOT, FILES[options.what])
    read = {"stages": of_stages, "patterns": of_patterns, "device": of_device,
            "counts": of_the_simulator, "programs": of_programs,
            "program_counts": of_programs_in_the_simulator}[options.what]
    try:
        # A run that is cut off keeps what it has.
        for header, rows in read(options.tables, options.stage or stage_names(), options.problem, path):
            files.write_rows(path, [header, *rows],
                             "" if options.what in OF_THE_SIMULATOR else origin(options.what))
            print(f"wrote {FILES[options.what]}: {len(rows)} rows")
    except ncu.NcuError as error:
        fail(str(error))


if __name__ == "__main__":
    run_main(main)
