#!/usr/bin/env python3
"""Reads Nsight Compute's memory counters on a GPU, for the counting simulator to be held against.

  common/profile/read_ncu.py stages [--bin build/gpu/bin] [--out common/tests/data/ncu_stages.csv]
      every stage on every problem of common/tests/data/counted_problems.csv; --stage NAME reads
      this one anew and keeps the other stages' rows of the file
  common/profile/read_ncu.py patterns [--bin build/gpu/bin] [--out common/tests/data/ncu_patterns.csv]
      every way of addressing memory in common/profile/bank_patterns.cu
  common/profile/read_ncu.py global [--bin build/gpu/bin] [--out common/tests/data/ncu_global.csv]
      what reads and writes of global memory take of L1's data pipe, by themselves

Needs ncu in the PATH, and its permission to read counters (./ladder doctor).
"""
import argparse
import os
import subprocess

import ncu
from support import ROOT, fail, records_of, run_main, stage_names  # makes the next importable

import files

EXTENTS = ["n", "c", "h", "w", "k", "r", "s", "stride_h", "stride_w", "pad_h", "pad_w", "dil_h",
           "dil_w", "groups"]


def number(value):
    return "" if value is None else f"{value:.10g}"


def write_csv(path, header, rows, command):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    version = subprocess.run(["ncu", "--version"], capture_output=True, text=True).stdout
    gpu = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                         capture_output=True, text=True).stdout.splitlines()
    files.write_rows(path, [header, *rows], f"# made by: {command}\n"
                     f"# GPU: {gpu[0] if gpu else '?'}; ncu: {version.strip().splitlines()[-1]}\n")
    print(f"wrote {path}: {len(rows)} rows")


LIBRARY = ["02_im2col_gemm"]  # stages with kernels of a library, whose number nobody knows beforehand
STAGE_METRICS = (ncu.GLOBAL + ncu.REQUESTED + ncu.COPIES + ncu.SHARED + ncu.SASS_SHARED + ncu.PIPE +
                 ["smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"])


def problems():
    return files.read_rows(os.path.join(ROOT, "common/tests/data/counted_problems.csv"))


def options_of(problem):
    words = ["--bias", problem["bias"]]
    for extent in EXTENTS:
        words += ["--" + extent, problem[extent]]
    return words


def own_launches(binaries, stages, problem):
    """{stage: {kernel: launches}} of the stages' own kernels, whose results are right."""
    launches = {}
    for record in records_of(os.path.join(binaries, "convladder"), "profile", *named(stages),
                             *options_of(problem)):
        launches.setdefault(record["stage"], {})[record["kernel"]] = record["launches"]
    return launches


def named(stages):
    return [word for stage in stages for word in ("--stage", stage)]


def launches_of(binaries, stages, problem, own, metrics):
    """{stage: its launches, as ncu.run() has them}. Starting ncu takes longer than these kernels: it
    sees all these stages at once, one after the other."""
    program = [os.path.join(binaries, "convladder"), "run", "--once"] + options_of(problem)
    seen = ncu.run(metrics, program + named(stages))[0]
    if len(stages) == 1:
        return {stages[0]: seen}
    counts = {stage: sum(own[stage].values()) for stage in stages}
    if len(seen) != sum(counts.values()):
        raise ncu.NcuError(f"{problem['name']}: {sum(counts.values())} launches were expected, ncu saw "
                           f"{len(seen)}")
    found = {}
    for stage in stages:
        found[stage], seen = seen[:counts[stage]], seen[counts[stage]:]
        if {kernel for kernel, _ in found[stage]} != set(own[stage]):
            raise ncu.NcuError(f"{problem['name']}, {stage}: ncu saw other kernels than it has")
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
            adds_up = not metric.endswith(".ratio")
            known = None not in values and (adds_up or len(values) == 1)
            row.append(number(sum(values) if known else None))
        rows.append(row)
    return rows


def read_stages(binaries, stages, path):
    """After each problem the header and the rows: what was read, and the earlier file's others."""
    rows, read = [], set()
    header = ["problem", "stage", "kernel", "launches"] + STAGE_METRICS
    metrics = list(STAGE_METRICS)  # run() takes out what this GPU doesn't have
    groups = [[stage] for stage in stages if stage in LIBRARY]
    groups.append([stage for stage in stages if stage not in LIBRARY])
    for problem in problems():
        own = own_launches(binaries, stages, problem)
        for group in filter(None, groups):
            for stage, launches in launches_of(binaries, group, problem, own, metrics).items():
                rows += rows_of_stage(problem, stage, launches)
                read.add((problem["name"], stage))
        print(f"{problem['name']}: {len(own)} stages", flush=True)
        yield header, kept_rows(path, header, read) + rows


def kept_rows(path, header, read):
    """The rows of an earlier file, but for those that have been read anew; what it has no column for is
    empty."""
    if not os.path.exists(path):
        return []
    return [[row.get(column) or "" for column in header] for row in files.read_rows(path)
            if (row["problem"], row["stage"]) not in read]


def read_patterns(binaries, what):
    """The header and the rows, once."""
    plain = ncu.GLOBAL + ncu.SHARED + ncu.SASS_SHARED + ncu.PIPE
    copies = [metric for metric in ncu.GLOBAL if "op_ld.sum" in metric] + ncu.COPIES
    reads = {"patterns": [(plain, []), (copies, ["copies"])],
             "global": [(ncu.GLOBAL + ncu.REQUESTED + ncu.PIPE, ["global"])]}[what]
    metrics, rows = list(dict.fromkeys(metric for asked, _ in reads for metric in asked)), []
    for asked, words in reads:
        launches, output = ncu.run(asked, [os.path.join(binaries, "bank_patterns"), *words])
        names = [line.split(" ", 1)[1].split(",") for line in output if line.startswith("launched ")]
        if len(names) != len(launches):
            raise ncu.NcuError(f"bank_patterns launched {len(names)} kernels, ncu saw "
                               f"{len(launches)}")
        rows += [name + [number(values.get(metric)) for metric in metrics]
                 for name, (_, values) in zip(names, launches)]
    yield ["kind", "bytes", "pattern"] + metrics, rows


def main(words):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["stages", "patterns", "global"])
    parser.add_argument("--bin", default=os.path.join(ROOT, "build/gpu/bin"))
    parser.add_argument("--out")
    parser.add_argument("--stage", action="append", choices=stage_names(),
                        help="only this one (of stages); may be repeated")
    arguments = parser.parse_args(words)
    out = arguments.out or os.path.join(ROOT, f"common/tests/data/ncu_{arguments.what}.csv")
    parts = (read_stages(arguments.bin, arguments.stage or stage_names(), out)
             if arguments.what == "stages" else read_patterns(arguments.bin, arguments.what))
    try:
        for header, rows in parts:  # written each time: a run that is cut off keeps these
            write_csv(out, header, rows, f"common/profile/read_ncu.py {arguments.what}")
    except ncu.NcuError as error:
        fail(str(error))


if __name__ == "__main__":
    run_main(main)
