#!/usr/bin/env python3
"""Reads Nsight Compute's memory counters on a GPU, for the counting simulator to be held against.

  common/profile/read_ncu.py stages [--bin build/gpu/bin] [--out docs/results/ncu_stages.csv]
      every stage on every problem of common/tests/data/counted_problems.csv; --stage NAME reads
      one anew and keeps the other stages' rows of the file
  common/profile/read_ncu.py patterns [--bin build/gpu/bin] [--out docs/results/ncu_patterns.csv]
      every way of addressing memory in common/profile/bank_patterns.cu

Needs ncu in the PATH, and its permission to read counters (./ladder doctor).
"""
import argparse
import csv
import os
import subprocess
import sys

import ncu
from support import ROOT, stage_names

EXTENTS = ["n", "c", "h", "w", "k", "r", "s", "stride_h", "stride_w", "pad_h", "pad_w", "dil_h",
           "dil_w"]


def number(value):
    return "" if value is None else f"{value:.10g}"


def write_csv(path, header, rows, command):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    version = subprocess.run(["ncu", "--version"], capture_output=True, text=True).stdout
    gpu = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                         capture_output=True, text=True).stdout.splitlines()
    with open(path + ".part", "w", newline="") as file:
        file.write(f"# made by: {command}\n")
        file.write(f"# GPU: {gpu[0] if gpu else '?'}; ncu: {version.strip().splitlines()[-1]}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
    os.replace(path + ".part", path)
    print(f"wrote {path}: {len(rows)} rows")


def read_stages(binaries, stages):
    metrics = ncu.GLOBAL + ncu.COPIES + ncu.SHARED
    rows = []
    with open(os.path.join(ROOT, "common/tests/data/counted_problems.csv")) as file:
        problems = list(csv.DictReader(line for line in file if not line.startswith("#")))
    for problem in problems:
        for stage in stages:
            command = [os.path.join(binaries, "convladder"), "run", "--once", "--stage", stage,
                       "--bias", problem["bias"]]
            for extent in EXTENTS:
                command += ["--" + extent, problem[extent]]
            kernels = {}  # launches of one kernel are added up, as the simulator does
            for kernel, values in ncu.run(metrics, command)[0]:
                kernels.setdefault(kernel, []).append(values)
            for kernel, launches in kernels.items():
                row = [problem["name"], stage, kernel, len(launches)]
                for metric in metrics:
                    values = [launch.get(metric) for launch in launches]
                    if None in values:
                        row.append("")
                    elif metric.endswith(".ratio"):  # does not add up
                        row.append(number(values[0]) if len(values) == 1 else "")
                    else:
                        row.append(number(sum(values)))
                rows.append(row)
            print(f"{problem['name']} {stage}: {', '.join(kernels)}", flush=True)
    return ["problem", "stage", "kernel", "launches"] + metrics, rows


def kept_rows(path, header, stage):
    """The rows of an earlier file with the same columns, but for the stage's own."""
    with open(path) as file:
        old = list(csv.reader(line for line in file if not line.startswith("#")))
    if old[0] != header:
        sys.exit(f"{path}: has other columns: read all stages anew")
    return [row for row in old[1:] if row[1] != stage]


def read_patterns(binaries):
    program = os.path.join(binaries, "bank_patterns")
    plain = ncu.GLOBAL + ncu.SHARED
    copies = [metric for metric in ncu.GLOBAL if "op_ld.sum" in metric] + ncu.COPIES
    metrics = plain + ncu.COPIES
    rows = rows_of_patterns(metrics, *ncu.run(plain, [program]))
    rows += rows_of_patterns(metrics, *ncu.run(copies, [program, "copies"]))
    return ["kind", "bytes", "pattern"] + metrics, rows


def rows_of_patterns(metrics, launches, output):
    names = [line.split(" ", 1)[1].split(",") for line in output if line.startswith("launched ")]
    if len(names) != len(launches):
        sys.exit(f"bank_patterns launched {len(names)} kernels, ncu saw {len(launches)}")
    return [name + [number(values.get(metric)) for metric in metrics]
            for name, (_, values) in zip(names, launches)]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["stages", "patterns"])
    parser.add_argument("--bin", default=os.path.join(ROOT, "build/gpu/bin"))
    parser.add_argument("--out")
    parser.add_argument("--stage", choices=stage_names(), help="only this one (of stages)")
    arguments = parser.parse_args()
    out = arguments.out or os.path.join(ROOT, f"docs/results/ncu_{arguments.what}.csv")
    try:
        if arguments.what == "patterns":
            header, rows = read_patterns(arguments.bin)
        else:
            stages = [arguments.stage] if arguments.stage else stage_names()
            header, rows = read_stages(arguments.bin, stages)
            if arguments.stage:
                rows = kept_rows(out, header, arguments.stage) + rows
    except ncu.NcuError as error:
        sys.exit(f"read_ncu.py: error: {error}")
    write_csv(out, header, rows, f"common/profile/read_ncu.py {arguments.what}")


if __name__ == "__main__":
    main()
