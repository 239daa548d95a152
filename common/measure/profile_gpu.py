#!/usr/bin/env python3
"""Memory traffic of the stages on a GPU, read by Nsight Compute: what `./ladder profile` runs.

  common/measure/profile_gpu.py [--bin build/gpu/bin] [--json FILE] [--ui] [OPTION...]

  --json FILE   where the records go (default build/report/profile.json)
  --machine FILE  the GPU's rates, for the least time of each kernel (default: those of
                common/machines/ that have its name; ./ladder bench --machine FILE writes one)
  --ui          no table: a report per stage for Nsight Compute's window, in build/report

The other options are those of `convladder profile`: --stage, --shape, --n, --batch and so on.
A stage whose results are wrong is not counted, and the exit status is 1.
Where the counters can't be read, the simulator counts instead. docs/profiling.md explains all.
"""
import argparse
import dataclasses
import os
import re
import shlex
import subprocess
import sys
import tempfile

from common.measure import ncu
from common.show.support import (
    REPORT, ROOT, fail, progress, require_folder, run_main, shortened, write_json)

from common.show import counter_tables, floors, formats, results

LADDER = os.path.join(ROOT, "ladder")
LAST = os.path.join(REPORT, "last", "ncu")
LONGEST_NAME = 30  # of a library's kernel in a table


# --- reading -------------------------------------------------------------------------------------


def describe(program, options):
    """The kernels of the stages whose results are right, as records with what the CUDA runtime
    knows of them; the table that the program prints of them; and its status: 1 where there were
    others. Prints what it says of each stage's results, as it comes. Ends with that status where no
    stage is right, or the program fails."""
    if not os.path.exists(program):
        fail(f"{program}: not there; cmake --preset gpu and cmake --build --preset gpu make it")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernels.json")
        table_begins = 2  # the empty line ahead of it: one follows the heading, one the stages
        with subprocess.Popen([program, "profile", "--json", path] + options, text=True,
                              stdout=subprocess.PIPE) as process:
            for line in process.stdout:
                print(line, end="", flush=True)
                table_begins -= line == "\n"
                if table_begins == 0:
                    break
            described = process.stdout.read()
        if not os.path.exists(path):
            sys.exit(process.returncode or 1)
        return results.read_json(path), described, process.returncode


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
             "library": kernel not in expected, "flop": own[0]["flop"], "machine": own[0]["machine"],
             **ncu.merge(launches)} for kernel, launches in kernels.items()]


def add_floors(records, rates):
    """The least time of each kernel, by its counters."""
    for record in records:
        counted = {name: value for name, value in record.items() if "__" in name}
        floor = floors.of_counters(counted, rates)
        if floor:
            record["floor_ms"], record["floor_limit"] = floor


def rates_of(path, gpu):
    """Those of the file, else of the GPU with that name; None, and a remark, where nobody knows them."""
    try:
        rates = floors.read_machine(path)[1] if path else floors.machine_of(gpu)
    except results.BadInput as error:
        fail(str(error))
    if rates is None:
        print(f"no least times: common/machines has no {gpu}; ./ladder bench --machine "
              "common/machines/NAME.json measures it")
    return rates


def last_path(kernels, options):
    """Where the records of a stage (`kernels`) are kept for the next time."""
    first = kernels[0]
    name = " ".join([first["stage"], first["shape"]] + ["bias"] * first["bias"] +
                    ["relu"] * ("--relu" in options))
    return os.path.join(LAST, re.sub(r"[^0-9A-Za-z]", "_", name) + ".json")


def last_records(path):
    """The Profiles that were kept there; none where they are missing, or of another version."""
    try:
        return results.read_profiles(path)
    except results.BadInput:
        return []


def keep(stages, options):
    try:
        os.makedirs(LAST, exist_ok=True)
    except OSError as error:
        print(f"not kept for the next time: {LAST}: {error.strerror}")
        return
    for kernels in stages.values():
        write_json(last_path(kernels, options), kernels)


def by_stage(records):
    stages = {}
    for record in records:
        stages.setdefault(record["stage"], []).append(record)
    return stages


# --- tables --------------------------------------------------------------------------------------


def by_kernel(profile):
    """The same with each kernel as a stage of its own."""
    def name_of(stage, kernel):
        name = kernel.name
        if kernel.library:
            name = (name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME - 3] + "...") + " *"
        return f"{stage}: {name}"

    return dataclasses.replace(profile, stages={
        name_of(stage, kernel): [kernel] for stage, kernels in profile.stages.items()
        for kernel in kernels})


def print_tables(records, path, last):
    """Those of the report, of stages and of their kernels. `last`: the paths of what was read of the
    same stages the last time."""
    write_json(path, records)
    profile, = results.read_profiles(path)
    kernels = by_kernel(profile)
    before = [kernel for stage in last for kernel in last_records(stage)]
    tables = [counter_tables.stage_table(kernels, counter_tables.level_columns(kernels) +
                                         counter_tables.warp_columns(kernels)),
              counter_tables.floor_table(kernels),
              counter_tables.stage_table(kernels, counter_tables.kernel_columns(kernels)),
              counter_tables.traffic_table(profile)]
    if before:
        tables.append(counter_tables.last_table(profile, before))
    print("\n".join(formats.aligned(text) for text in tables if text))
    print("Read by Nsight Compute: caches flushed before each kernel, clocks not locked. What the "
          "columns\nmean: docs/results/README.md#how-to-read-this.")
    if any(record["library"] for record in records):
        print("* a library's kernel")


# --- commands ------------------------------------------------------------------------------------


def read_all(program, own, options):
    """The records of all stages; and 1 where one of them could not be read, with the reason said."""
    metrics, records, reasons = list(ncu.ALL), [], set()
    stages = by_stage(own)
    for number, (stage, kernels) in enumerate(stages.items(), 1):
        progress(f"[{number}/{len(stages)}] {stage}: Nsight Compute")
        said = "counted"
        try:
            records += read_stage(once(program, stage, options), metrics, kernels)
        except ncu.CountersUnavailable:
            raise
        except ncu.NcuError as error:
            if str(error) not in reasons:
                print(f"ladder: error: {error}", file=sys.stderr)
            reasons.add(str(error))
            said = "not counted"
        progress("")
        print(f"{stage}: {said}", flush=True)
    print()
    return records, 1 if reasons else 0


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
    write_json(path, own + results.read_json(path))


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
    parser.add_argument("--machine")
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
    path = own_options.json
    if own_options.machine:
        rates_of(own_options.machine, None)  # a bad file is said before anything is measured
    if path is None:
        path = os.path.join(REPORT, "profile.json")
        os.makedirs(REPORT, exist_ok=True)
    require_folder(path)
    chosen = [word for stage in own_options.stage for word in ("--stage", stage)]
    own, described, status = describe(program, chosen + options)
    if own_options.ui:
        write_ui_reports(program, own, options)
        return status
    try:
        records, failed = read_all(program, own, options)
    except ncu.CountersUnavailable as error:
        fall_back(error, own, described, chosen + options, path)
        return status
    if not records:
        return 1
    rates = rates_of(own_options.machine, records[0]["machine"])
    if rates:
        add_floors(records, rates)
    stages = by_stage(records)
    try:
        print_tables(records, path, [last_path(kernels, options) for kernels in stages.values()])
    except results.BadInput as error:
        fail(str(error))
    print(f"wrote {shortened(path)}")
    keep(stages, options)
    return status or failed


if __name__ == "__main__":
    run_main(main)
