#!/usr/bin/env python3
"""Reads Nsight Compute's memory counters on a GPU, for the counting simulator to be held against.

  common/measure/read_ncu.py stages [--bin build/gpu/bin] [--out common/tests/data/ncu_stages.csv]
      every stage on every problem of common/tests/data/counted_problems.csv; --stage NAME reads
      this one anew and keeps the other stages' rows of the file
  common/measure/read_ncu.py patterns [--bin build/gpu/bin] [--out common/tests/data/ncu_patterns.csv]
      every way of addressing memory in common/measure/bank_patterns.cu

Needs ncu in the PATH, and its permission to read counters (./ladder doctor).
"""
import argparse
import collections
import hashlib
import os
import re
import subprocess

from common.measure import ncu
from common.show.files import stage_names
from common.show.support import ROOT, fail, run_main

from common.show import files, metrics

EXTENTS = ["n", "c", "h", "w", "k", "r", "s", "stride_h", "stride_w", "pad_h", "pad_w", "dil_h",
           "dil_w", "groups"]


def number(value):
    return "" if value is None else f"{value:.10g}"


def write_csv(path, header, rows, made_by):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    version = subprocess.run(["ncu", "--version"], capture_output=True, text=True).stdout
    gpu = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                         capture_output=True, text=True).stdout.splitlines()
    files.write_rows(path, [header, *rows], f"# made by: {made_by}\n"
                     f"# GPU: {gpu[0] if gpu else '?'}; ncu: {version.strip().splitlines()[-1]}\n")
    print(f"wrote {path}: {len(rows)} rows")


LIBRARY = "02_im2col_gemm"  # it has kernels of a library, whose number nobody knows beforehand
STAGE_METRICS = metrics.read_by("stages")


def problems():
    return files.read_rows(os.path.join(ROOT, "common/tests/data/counted_problems.csv"))


def options_of(problem):
    words = ["--bias", problem["bias"]]
    for extent in EXTENTS:
        words += ["--" + extent, problem[extent]]
    return words


def named(stages):
    return [word for stage in stages for word in ("--stage", stage)]


def launches_of(binaries, stages, problem, wanted):
    """{stage: its launches, as ncu.run() has them}. Starting ncu takes longer than these kernels: it
    sees all stages at once, one after the other."""
    seen, said = ncu.run(wanted, [os.path.join(binaries, "convladder"), "run", "--once"] +
                         options_of(problem) + named(stages))
    own = {stage: {kernel: int(count) for kernel, count in re.findall(r"(\w+)\*(\d+)", kernels)}
           for stage, kernels in (line.split(": launched once, ") for line in said
                                  if ": launched once, " in line)}
    counts = {stage: sum(kernels.values()) for stage, kernels in own.items()}
    if LIBRARY in counts:
        counts[LIBRARY] += len(seen) - sum(counts.values())
    found = {}
    for stage, kernels in own.items():
        found[stage], seen = seen[:counts[stage]], seen[counts[stage]:]
        launches = collections.Counter(kernel for kernel, _ in found[stage])
        if stage == LIBRARY:
            launches = {kernel: count for kernel, count in launches.items() if kernel in kernels}
        if launches != kernels:
            raise ncu.NcuError(f"{problem['name']}, {stage} launches {kernels}, ncu saw {dict(launches)}")
    if seen or sorted(own) != sorted(stages):
        raise ncu.NcuError(f"{problem['name']}: launched were {', '.join(own)} of {', '.join(stages)}, and "
                           f"{len(seen)} kernels more")
    return found


def rows_of_stage(problem, stage, launches):
    """Launches of one kernel are added up, as the simulator does."""
    kernels, rows = {}, []
    for kernel, values in launches:
        kernels.setdefault(kernel, []).append(values)
    for kernel, own in kernels.items():
        row = [problem["name"], stage, kernel, str(len(own))]
        for metric in STAGE_METRICS:
            values = [launch.get(metric) for launch in own]
            row.append(number(None if None in values else sum(values)))
        rows.append(row)
    return rows


def read_stages(binaries, stages, path):
    """After each problem the header and the rows: what was read, and what the earlier file has of the other
    problems and stages that there are; what it has no column for is empty."""
    header = ["problem", "stage", "kernel", "launches"] + STAGE_METRICS
    rows = {}  # of each problem and stage
    for row in files.read_rows(path) if os.path.exists(path) else []:
        rows.setdefault((row["problem"], row["stage"]), []).append(
            [row.get(column) or "" for column in header])
    wanted = list(STAGE_METRICS)  # run() takes out what this GPU doesn't have
    for problem in problems():
        for stage, launches in launches_of(binaries, stages, problem, wanted).items():
            rows[problem["name"], stage] = rows_of_stage(problem, stage, launches)
        print(f"{problem['name']}: {len(stages)} stages", flush=True)
        yield header, [row for known in problems() for stage in stage_names()
                       for row in rows.get((known["name"], stage), [])]


PATTERN_METRICS = {accesses: metrics.read_by(accesses) for accesses in ("shared", "copies", "global")}


def read_patterns(binaries):
    """The header and the rows, once."""
    columns = list(dict.fromkeys(metric for asked in PATTERN_METRICS.values() for metric in asked))
    rows = []
    for accesses, asked in PATTERN_METRICS.items():
        launches, output = ncu.run(asked, [os.path.join(binaries, "bank_patterns"), accesses])
        names = [line.split(" ", 1)[1].split(",") for line in output if line.startswith("launched ")]
        if len(names) != len(launches):
            raise ncu.NcuError(f"bank_patterns launched {len(names)} kernels, ncu saw "
                               f"{len(launches)}")
        rows += [name + [number(values.get(metric)) for metric in columns]
                 for name, (_, values) in zip(names, launches)]
    yield ["kind", "bytes", "pattern"] + columns, rows


def main(words):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["stages", "patterns"])
    parser.add_argument("--bin", default=os.path.join(ROOT, "build/gpu/bin"))
    parser.add_argument("--out")
    parser.add_argument("--stage", action="append", choices=stage_names(),
                        help="only this one (of stages); may be repeated")
    arguments = parser.parse_args(words)
    out = arguments.out or os.path.join(ROOT, f"common/tests/data/ncu_{arguments.what}.csv")
    parts = (read_stages(arguments.bin, arguments.stage or stage_names(), out)
             if arguments.what == "stages" else read_patterns(arguments.bin))
    made_by = f"common/measure/read_ncu.py {arguments.what}"
    if arguments.what == "patterns":  # while their text is the same, so is what is read (renew.sh)
        with open(os.path.join(ROOT, "common/measure/bank_patterns.cu"), "rb") as file:
            made_by += f" of {hashlib.sha256(file.read()).hexdigest()}"
    try:
        for header, rows in parts:  # written each time: a run that is cut off keeps these
            write_csv(out, header, rows, made_by)
    except ncu.NcuError as error:
        fail(str(error))


if __name__ == "__main__":
    run_main(main)
