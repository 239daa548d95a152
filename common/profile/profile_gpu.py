#!/usr/bin/env python3
"""Memory traffic of the stages on a GPU, read by Nsight Compute: what `./ladder profile` runs.

  common/profile/profile_gpu.py [--bin build/gpu/bin] [--json FILE] [--ui] [OPTION...]

  --json FILE   where the records go (default build/report/profile.json)
  --ui          no table: a report per stage for Nsight Compute's window, in build/report

The other options are those of `convladder profile`: --stage, --shape, --n, --batch and so on.
Where the counters can't be read, the simulator counts instead. docs/profiling.md explains all.
"""
import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile

import ncu
from support import (REPORT, ROOT, count_of, fail, progress, require_folder, run_main, shortened,
                     table, write_json)

LADDER = os.path.join(ROOT, "ladder")
SECTOR_BYTES = 32
LONGEST_NAME = 30  # of a library's kernel in a table

REQUESTS = [f"l1tex__t_requests_pipe_lsu_mem_global_op_{op}.sum" for op in ("ld", "st")]
SECTORS = [f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum" for op in ("ld", "st")]
L2_SECTORS = [f"lts__t_sectors_srcunit_tex_op_{op}.sum" for op in ("read", "write")]
DRAM_BYTES = ["dram__bytes_read.sum", "dram__bytes_write.sum"]
WAVEFRONTS = [f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum" for op in ("ld", "st")]
CONFLICTS = [f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum" for op in ("ld", "st")]
COPY_WAVEFRONTS = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum"
TIME = "gpu__time_duration.sum"
STALLS = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"


# --- reading -------------------------------------------------------------------------------------


def describe(program, options):
    """The stages' own kernels, as records with what the CUDA runtime knows of them, and the table
    that the program prints of them. Ends with the program's status where it fails."""
    if not os.path.exists(program):
        fail(f"{program}: not there; cmake --preset gpu and cmake --build --preset gpu make it")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernels.json")
        done = subprocess.run([program, "profile", "--json", path] + options, text=True,
                              stdout=subprocess.PIPE, check=False)
        if done.returncode != 0:
            sys.exit(done.returncode)
        with open(path, encoding="utf-8") as file:
            return json.load(file), done.stdout


def once(program, stage, options):
    """The command that launches a stage's kernels once, and no others."""
    return [program, "run", "--once", "--stage", stage] + options


def read_stage(command, metrics, own):
    """Records of all kernels of a stage: its own (records of describe()), and a library's."""
    kernels = {}
    for kernel, values in ncu.run(metrics, command)[0]:
        kernels.setdefault(kernel, []).append(values)
    expected = {record["kernel"]: record["launches"] for record in own}
    for kernel, launches in expected.items():
        seen = len(kernels.get(kernel, []))
        if seen != launches:
            raise ncu.NcuError(f"{own[0]['stage']} launches {kernel} {launches} times, ncu saw "
                               f"{seen}")
    same = {key: own[0][key] for key in ("version", "stage", "problem", "shape", "bias")}
    return [{**same, "kernel": kernel, "launches": len(launches), "source": "ncu",
             "library": kernel not in expected, "flop": own[0]["flop"], **ncu.merge(launches)}
            for kernel, launches in kernels.items()]


def by_stage(records):
    stages = {}
    for record in records:
        stages.setdefault(record["stage"], []).append(record)
    return stages


# --- tables --------------------------------------------------------------------------------------


def total(records, metrics):
    """The metrics of all the records added up; None if one of them was not read."""
    values = [record.get(metric) for record in records for metric in metrics]
    return None if None in values or not values else sum(values)


def times(value, factor):
    return None if value is None else value * factor


def ratio(a, b):
    return None if a is None or not b else a / b


def wavefronts(records):
    """Of shared memory, those of asynchronous copies included where the GPU has any."""
    copies = sum(record.get(COPY_WAVEFRONTS) or 0 for record in records)
    both = total(records, WAVEFRONTS)
    return None if both is None else both + copies


def figure(value, digits=1):
    return "-" if value is None else f"{value:.{digits}f}"


def name_of(record):
    name = record["kernel"]
    if record["library"]:
        name = name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME - 3] + "..."
        return name + " *"
    return name


def traffic_table(records):
    rows = []
    for record in records:
        one = [record]
        requests, sectors = total(one, REQUESTS), total(one, SECTORS)
        rows.append([
            record["stage"], name_of(record), count_of(requests), count_of(sectors),
            figure(ratio(sectors, requests)), figure(record.get("l1tex__t_sector_hit_rate.pct"), 0),
            count_of(times(total(one, L2_SECTORS), SECTOR_BYTES)),
            figure(record.get("lts__t_sector_hit_rate.pct"), 0),
            count_of(total(one, DRAM_BYTES)), count_of(wavefronts(one)),
            count_of(total(one, CONFLICTS))])
    return table(["stage", "kernel", "global requests", "L1 sectors", "per request", "L1 hit [%]",
                  "L2 bytes", "L2 hit [%]", "DRAM bytes", "shared wavefronts", "conflicts"], rows)


def execution_table(records):
    rows = []
    for record in records:
        static = record.get("launch__shared_mem_per_block_static")
        dynamic = record.get("launch__shared_mem_per_block_dynamic") or 0
        rows.append([
            record["stage"], name_of(record), str(record["launches"]),
            figure(times(record.get(TIME), 1e-3)),
            figure(record.get("sm__throughput.avg.pct_of_peak_sustained_elapsed"), 0),
            figure(record.get("launch__registers_per_thread"), 0),
            figure(None if static is None else static + dynamic, 0),
            figure(record.get("sm__warps_active.avg.pct_of_peak_sustained_active"), 0),
            figure(record.get("sm__maximum_warps_per_active_cycle_pct"), 0)]
            + [figure(record.get(STALLS.format(why)), 2)
               for why in ("long_scoreboard", "mio_throttle", "barrier")])
    return table(["stage", "kernel", "launches", "time [us]", "SM throughput [%]", "registers",
                  "shared [bytes]", "occupancy [%]", "at most", "waits: memory", "shared queue",
                  "barrier"], rows)


def stage_row(name, records, before):
    figures = [(total(records, [TIME]), lambda ns: f"{ns / 1e6:.3f}"),
               (total(records, REQUESTS), count_of), (total(records, SECTORS), count_of),
               (wavefronts(records), count_of),
               (times(total(records, L2_SECTORS), SECTOR_BYTES), count_of),
               (total(records, DRAM_BYTES), count_of)]
    row = [name]
    for i, (value, text) in enumerate(figures):
        past = before[i][0] if before else None
        row += ["-" if value is None else text(value),
                "-" if ratio(value, past) is None else f"{value / past:.3g}"]
    return row + [figure(ratio(records[0]["flop"], figures[-1][0]))], figures


def stage_table(records):
    """A row per stage, all its kernels added up, and the share of a library's below it."""
    rows, before = [], None
    for stage, kernels in by_stage(records).items():
        row, before = stage_row(stage, kernels, before)
        rows.append(row)
        library = [record for record in kernels if record["library"]]
        if library:
            part, _ = stage_row("  of it the library", library, None)
            rows.append(part[:-1] + ["-"])  # the FLOP are the stage's
    header = ["stage"]
    for heading in ("time [ms]", "global requests", "L1 sectors", "shared wavefronts", "L2 bytes",
                    "DRAM bytes"):
        header += [heading, "/ before"]
    return table(header + ["FLOP per DRAM byte"], rows, left=1)


def print_tables(records):
    print(traffic_table(records))
    print(execution_table(records))
    print(stage_table(records))
    print("Read by Nsight Compute: caches flushed before each kernel, clocks not locked. Waits: "
          "warps\nthat wait for that reason, on average, whenever an instruction is issued.")
    if any(record["library"] for record in records):
        print("* a library's kernel")


# --- commands ------------------------------------------------------------------------------------


def read_all(program, own, options):
    metrics, records = list(ncu.ALL), []
    stages = by_stage(own)
    for number, (stage, kernels) in enumerate(stages.items(), 1):
        progress(f"[{number}/{len(stages)}] {stage}: Nsight Compute")
        records += read_stage(once(program, stage, options), metrics, kernels)
    progress("")
    return records


def fall_back(reason, own, described, options, path):
    """Without counters: what the runtime knows of the kernels, and the simulator's counts."""
    print(f"ladder: no counters of the GPU: {reason}", file=sys.stderr)
    print("ladder: registers and occupancy come from the CUDA runtime, counts from the simulator",
          file=sys.stderr)
    print(described, flush=True)
    command = [LADDER, "--backend", "sim", "profile", "--json", path] + options
    status = subprocess.run(command, check=False).returncode
    if status != 0:
        fail(f"the simulator could not count either: {shlex.join(command)} ended with status "
             f"{status}", status)
    with open(path, encoding="utf-8") as file:
        counted = json.load(file)
    write_json(path, own + counted)


def write_ui_reports(program, own, options):
    """A report per stage with all that ncu can read; prints each command, to be used again."""
    for stage in by_stage(own):
        path = os.path.join(REPORT, stage)
        command = ["ncu", "--set", "full", "--clock-control", "none", "--force-overwrite",
                   "--export", path] + once(program, stage, options)
        print(shlex.join(command), flush=True)
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            fail("there is no ncu in the PATH: it is Nsight Compute, part of the CUDA Toolkit")
        text = done.stdout + done.stderr
        if done.returncode != 0 or "==ERROR==" in text:
            fail(f"ncu: {ncu.reason(text)}")
        print(f"wrote {shortened(path)}.ncu-rep")
    print("Open them with: ncu-ui FILE")


def parse(arguments):
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "gpu", "bin"))
    parser.add_argument("--json")
    parser.add_argument("--ui", action="store_true")
    parser.add_argument("--help", action="store_true")
    parser.add_argument("--stage", action="append", default=[])
    parser.error = lambda message: fail(message, 2)
    return parser.parse_known_args(arguments)


def main(arguments):
    own_options, options = parse(arguments)
    program = os.path.join(own_options.bin, "convladder")
    if own_options.help:
        print(__doc__)
        return subprocess.run([program, "profile", "--help"], check=False).returncode
    path = own_options.json or os.path.join(REPORT, "profile.json")
    if not own_options.json:
        os.makedirs(REPORT, exist_ok=True)
    require_folder(path)
    chosen = [word for stage in own_options.stage for word in ("--stage", stage)]
    own, described = describe(program, chosen + options)
    if own_options.ui:
        write_ui_reports(program, own, options)
        return 0
    try:
        records = read_all(program, own, options)
    except ncu.CountersUnavailable as error:
        fall_back(error, own, described, chosen + options, path)
        return 0
    except ncu.NcuError as error:
        fail(str(error))
    print(described.splitlines()[0] + "\n")
    print_tables(records)
    write_json(path, records)
    print(f"wrote {shortened(path)}")
    return 0


if __name__ == "__main__":
    run_main(main)
