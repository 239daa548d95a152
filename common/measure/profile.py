#!/usr/bin/env python3
"""Memory traffic of the stages, and the least time that it takes on a GPU: what `./ladder profile` runs.

  common/measure/profile.py --program build/PRESET/bin/convladder [OPTION...]

  --json FILE   where the records go (default build/report/profile.json)
  --machine FILE  a GPU's rates, for the least time of each kernel (default: those of common/machines/ that
                have the GPU's name, on the simulator an H200's; ./ladder bench --machine FILE writes one)
  --ui          on a GPU: no table, but a report per stage for Nsight Compute's window, in build/report

The other options are those of `convladder profile`: --stage, --shape, --n, --batch and so on.
A stage whose results are wrong is not counted, and the exit status is 1. A program for a GPU is run under
Nsight Compute; where its counters can't be read, the simulator counts instead. docs/profiling.md explains
all.
"""
import argparse
import os
import shlex
import subprocess
import sys
import tempfile

from common.measure import ncu
from common.show import counter_tables, floors, formats, last, text
from common.show.records import BadInput, read_json, read_profiles
from common.show.support import (
    REPORT, ROOT, fail, progress, require_folder, run_main, shortened, write_json)

LADDER = os.path.join(ROOT, "ladder")
H200 = os.path.join(ROOT, "common", "machines", "h200.json")


# --- records -------------------------------------------------------------------------------------

def records_of(program, options):
    """The records that the program writes of the stages whose results are right, and its status: 1 where
    there were others. Passes on what it prints, as it comes. Ends with that status where no stage is
    right, or the program fails."""
    if not os.path.exists(program):
        fail(f"{program}: not there; ./ladder build PRESET convladder makes it")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "profile.json")
        with subprocess.Popen([program, "profile", "--json", path] + options, text=True,
                              stdout=subprocess.PIPE) as process:
            for line in process.stdout:
                if path not in line:
                    print(line, end="", flush=True)
        if not os.path.exists(path):
            sys.exit(process.returncode)
        print()
        return read_json(path), process.returncode


def once(program, stage, options):
    """The command that launches a stage's kernels once, and no others."""
    return [program, "run", "--once", "--stage", stage] + options


def read_stage(command, metrics, own):
    """Records of all kernels of a stage: its own (records of the CUDA runtime), and a library's."""
    kernels = {}
    for kernel, values in ncu.run(metrics, command)[0]:
        kernels.setdefault(kernel, []).append(values)
    expected = {record["kernel"]: record["launches"] for record in own}
    for kernel, launches in expected.items():
        seen = len(kernels.get(kernel, []))
        if seen != launches:
            raise ncu.NcuError(f"{own[0]['stage']} launches {kernel} {launches} times, ncu saw "
                               f"{seen}")
    same = {key: own[0][key] for key in ("version", "stage", "problem", "shape", "bias", "flop",
                                         "least_bytes", "machine")}
    return [{**same, "kernel": kernel, "launches": len(launches), "source": "ncu",
             "library": kernel not in expected, **ncu.merge(launches)}
            for kernel, launches in kernels.items()]


def read_all(program, own, options):
    """The records of all stages; and 1 where one of them could not be read, with the reason said."""
    metrics, records, reasons = list(ncu.ALL), [], set()
    stages = last.by_stage(own)
    for number, (stage, kernels) in enumerate(stages.items(), 1):
        progress(f"[{number}/{len(stages)}] {stage}: Nsight Compute")
        try:
            records += read_stage(once(program, stage, options), metrics, kernels)
        except ncu.CountersUnavailable:
            raise
        except ncu.NcuError as error:
            progress("")
            if str(error) not in reasons:
                print(f"ladder: error: {error}", file=sys.stderr)
            print(f"{stage}: not counted", flush=True)
            reasons.add(str(error))
    progress("")
    return records, 1 if reasons else 0


def add_floors(records, machine):
    """The least times by the rates of the file, else of the GPU that was read; returns the rates. Without
    rates a remark."""
    gpu = records[0].get("machine")
    if machine or not gpu:
        gpu, rates = floors.read_machine(machine or H200)
    else:
        rates = floors.machine_of(gpu)
    if rates:
        floors.add(records, rates, gpu)
    else:
        print(f"no least times: common/machines has no {gpu}; ./ladder bench --machine "
              "common/machines/NAME.json measures it")
    return rates


def fall_back(reason, own, options, path):
    """Without counters: what the runtime knows of the kernels, and the simulator's counts."""
    print(f"ladder: no counters of the GPU: {reason}", file=sys.stderr)
    print("ladder: registers and occupancy come from the CUDA runtime, counts from the simulator",
          file=sys.stderr)
    write_json(path, own)
    for profile in read_profiles(path):
        print_tables(profile)
    command = [LADDER, "--backend", "sim", "profile", "--json", path] + options
    status = subprocess.run(command, check=False).returncode
    if status != 0:
        fail(f"the simulator could not count either: {shlex.join(command)} ended with status "
             f"{status}", status)
    write_json(path, own + read_json(path))


# --- tables --------------------------------------------------------------------------------------

def print_tables(profile, before=None, rates=None):
    """before: {stage: its Profile of the last time}."""
    for about, table in counter_tables.tables(profile, before, rates):
        print(f"{about}\n\n{formats.aligned(table)}")
    if profile.source == "cuda_runtime":
        return
    if profile.source == "ncu":
        print("Read by Nsight Compute: caches flushed before each kernel, clocks not locked.")
    else:
        print("Counted, not modelled. Touched: the different sectors that each kernel touches, as if every "
              "cache\nwere large enough for one kernel.")
    if profile.machine and rates:
        print(f"At least: what the counts take at the rates of the {profile.machine}, were that all that a "
              "stage\ndoes; no time can be below. Other instructions and waiting come on top.")
    if profile.whole_shape:
        print(f"The whole problem: {profile.whole_shape}, whose blocks do what the counted ones do.")
    if any(kernel.library for kernels in profile.stages.values() for kernel in kernels):
        print("* a library's kernel" + ("" if profile.source == "ncu" else
                                        ", which is not counted; of its traffic the table has the least"
                                        " possible: each\n  matrix once"))
    print(text.HOW_TO_READ)


# --- commands ------------------------------------------------------------------------------------

def write_ui_reports(program, own, options):
    """A report per stage with all that ncu can read; prints each command, to be used again."""
    for stage in last.by_stage(own):
        path = os.path.join(REPORT, stage)
        command = ["ncu", "--set", "full", "--clock-control", "none", "--force-overwrite",
                   "--export", path] + once(program, stage, options)
        print(shlex.join(command), flush=True)
        done = ncu.call(command)
        text = done.stdout + done.stderr
        if done.returncode != 0 or "==ERROR==" in text:
            fail(f"ncu: {ncu.reason(text)}")
        print(f"wrote {shortened(path)}.ncu-rep")
    print("Open them with: ncu-ui FILE")


def parse(arguments):
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--program", required=True)
    parser.add_argument("--json", default=os.path.join(REPORT, "profile.json"))
    parser.add_argument("--machine")
    parser.add_argument("--ui", action="store_true")
    parser.add_argument("--help", "-h", action="store_true")
    parser.add_argument("--stage", action="append", default=[])
    parser.error = lambda message: fail(message, 2)
    return parser.parse_known_args(arguments)


def profile(own, options):
    if own.machine:
        floors.read_machine(own.machine)  # a bad file is said before anything is measured
    os.makedirs(REPORT, exist_ok=True)
    require_folder(own.json)
    chosen = [word for stage in own.stage for word in ("--stage", stage)]  # ncu reads one at a time
    records, status = records_of(own.program, chosen + options)
    if own.ui:
        write_ui_reports(own.program, records, options)
        return status
    failed = 0
    if records[0]["source"] == "cuda_runtime":
        try:
            records, failed = read_all(own.program, records, options)
        except ncu.CountersUnavailable as error:
            fall_back(error, records, chosen + options, own.json)
            return status
        if not records:
            return 1
    rates = add_floors(records, own.machine)
    write_json(own.json, records)
    counted, = read_profiles(own.json)
    print_tables(counted, last.read(records, "--relu" in options), rates)
    print(f"wrote {shortened(own.json)}")
    last.keep(records, "--relu" in options)
    return status or failed


def main(arguments):
    own, options = parse(arguments)
    if own.help:
        print(__doc__)
        return subprocess.run([own.program, "profile", "--help"], check=False).returncode
    try:
        return profile(own, options)
    except (BadInput, ncu.NcuError) as error:
        fail(str(error))


if __name__ == "__main__":
    run_main(main)
