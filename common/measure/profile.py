"""Memory traffic of the stages, and the least time that it takes on a GPU: what `./ladder profile` runs.

  python3 -m common.measure.profile --program build/PRESET/bin/convladder [OPTION...]

  --json FILE   where the records go (default build/report/profile.json)
  --machine GPU   a GPU's rates, for the least time of each kernel: a name of common/machines/ (h200, t4), or
                a FILE, which ./ladder bench --machine FILE writes (default: those of the GPU that is here, on
                the simulator an H200's)
  --brief       one table, as ./ladder run ends with
  --show        in the simulator: shows the page with every warp's addresses, line by line. What build/report
                has of other stages on the same problem stays, and of these stages what they were before
                their last change

The other options are those of `convladder profile`: --stage, --shape, --n, --batch and so on.
A stage whose results are wrong is not counted, and the exit status is 1. A program for a GPU is run under
Nsight Compute; where its counters can't be read, the simulator counts instead. docs/profiling.md explains
all.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

from common.command.machine import child, foreground, status_of
from common.measure import ncu
from common.show import counter_tables, files, floors, formats, last, page, records
from common.show.records import read_json, read_profiles
from common.show.support import (
    REPORT, ROOT, fail, progress, require_folder, run_main, shortened, write_json)

H200 = os.path.join(ROOT, "common", "machines", "h200.json")


# --- records -------------------------------------------------------------------------------------

def records_of(program, options, shown=True, trace=""):
    """The records that the program writes of the stages whose results are right, and its status: 1 where
    there were others; `trace`: a file for --trace. Passes on what it prints, as it comes, if it is to be
    shown. Ends with that status where no stage is right, or the program fails."""
    if not os.path.exists(program):
        fail(f"{program}: not there; ./ladder build PRESET convladder makes it")
    with tempfile.TemporaryDirectory() as folder:
        path, said = os.path.join(folder, "profile.json"), ""
        command = [program, "profile", "--json", path, *(["--trace", trace] if trace else []), *options]
        with child(*command, stdout=subprocess.PIPE) as process:
            for line in process.stdout:
                said += line
                named = line.removeprefix("wrote ").rstrip("\n")  # as a path from here
                if shown and (named == line.rstrip("\n") or
                              os.path.realpath(named) not in map(os.path.realpath, (path, trace))):
                    print(line, end="", flush=True)
        status = status_of(process)
        if os.path.exists(path):
            return read_json(path), status
        if not shown:
            print(said, end="")
        sys.exit(status)


def read_counters(program, own, options):
    """The records with Nsight Compute's counters, of the stages' own kernels and of libraries'; and 1 where a
    stage could not be read, with the reason said."""
    metrics, found, reasons = list(ncu.ALL), [], set()
    stages = last.by_stage(own)
    for number, (stage, kernels) in enumerate(stages.items(), 1):
        progress(f"[{number}/{len(stages)}] {stage}: Nsight Compute")
        first = kernels[0]
        same = {key: first[key] for key in ("version", "stage", "problem", "shape", "bias", "flop",
                                            "least_bytes", "machine")}
        try:
            launches, own_kernels = ncu.launches_of(program, [stage], options, metrics)[stage]
            found += [{**same, "kernel": kernel, "launches": len(every), "source": "ncu",
                       "library": kernel not in own_kernels, **ncu.merge(every)}
                      for kernel, every in ncu.by_kernel(launches).items()]
        except ncu.CountersUnavailable:
            raise
        except ncu.NcuError as error:
            progress("")
            if str(error) not in reasons:
                print(f"ladder: error: {error}", file=sys.stderr)
            print(f"{stage}: not counted", flush=True)
            reasons.add(str(error))
    progress("")
    return found, 1 if reasons else 0


def add_floors(found, machine):
    """The least times by the rates of the file, else of the GPU that was read; returns the rates. Without
    rates a remark."""
    gpu = found[0].get("machine")
    if machine or not gpu:
        gpu, rates = floors.read_machine(machine or H200)
    else:
        gpu, rates = floors.machine_of(gpu)
    if rates:
        floors.add(found, rates, gpu)
        for stage, need in floors.cannot_run(gpu, last.by_stage(found)).items():
            print(f"{stage} doesn't run on a {gpu}: it needs compute capability {need}. Its counts are shown "
                  "all the same.")
    else:
        print(f"no least times: common/machines has no {gpu}; ./ladder bench --machine "
              "common/machines/NAME.json measures it")
    return rates


def fall_back(reason, options, path):
    """Without counters the simulator counts; returns its status."""
    print(f"ladder: no counters of the GPU, so the simulator counts: {reason}", file=sys.stderr)
    command = [os.path.join(ROOT, "ladder"), "--backend", "sim", "profile", "--json", path, *options]
    return foreground(*command)


# --- tables and the page -------------------------------------------------------------------------

def print_tables(profile, before=None, rates=None):
    """before: {stage: its Profile of the last time}."""
    for about, table in counter_tables.tables(profile, before, rates):
        print(f"{about}\n\n{formats.aligned(table)}")
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
    print("What the columns mean: docs/results/README.md#how-to-read-this\n")


def print_brief(profile, named):
    """What beginners ask first, and where the rest is; `named`: whether stages were asked for."""
    about = f"at the least on {counter_tables.with_article(profile.machine)}" if profile.machine else "in all"
    print(f"What each stage asks of memory ({counter_tables.source_of(profile)}), and how long that takes "
          f"{about}:")
    print(formats.aligned(counter_tables.brief_table(profile, named)), end="")
    if any(kernel.library for kernels in profile.stages.values() for kernel in kernels):
        print("* without what a library's kernels do. ", end="")
    print("./ladder profile: all counts, explained. ./ladder report: a page of them.")


def same_problem(one, other):
    return all(one.get(member) == other.get(member) for member in ("problem", "shape", "bias", "source"))


def joined_counts(old, new):
    """The new records, and the old ones of other stages on the same problem."""
    stages = {record["stage"] for record in new}
    kept = [record for record in old if same_problem(record, new[0]) and record["stage"] not in stages]
    return sorted(kept + new, key=lambda record: record["stage"])


def joined_trace(old, new):
    """The new trace with the old one's other stages, and its own as they were before."""
    if not same_problem(old, new):
        return new
    stages = {stage["stage"]: stage for stage in old["stages"]}
    for stage in new["stages"]:
        known, before = stages.get(stage["stage"]), stage["stage"] + ", before"
        if known and known["files"] != stage["files"]:
            stages[before] = {**known, "stage": before}
        stages[stage["stage"]] = stage
    return {**new, "stages": [stages[name] for name in sorted(stages)]}


def show_page(trace, counts):
    """Joins them with what build/report has, and shows the page."""
    paths = {name: os.path.join(REPORT, name + ".json") for name in ("bench", "profile", "run", "trace")}
    for name, new, read, joined in (("trace", trace, page.read_trace, joined_trace),
                                    ("profile", counts, read_profiles, joined_counts)):
        try:
            read(paths[name])  # is it whole, and of this version?
            new = joined(read_json(paths[name]), new)
        except records.BadInput:
            pass
        files.write(paths[name], json.dumps(new) + "\n")
    there = {name: path if os.path.exists(path) else None for name, path in paths.items()}
    benches = [there["bench"]] * bool(there["bench"])
    document = os.path.join(REPORT, "index.html")
    page.write(document, page.Inputs(benches, [paths["profile"]], there["run"], paths["trace"], ROOT,
                                     trace["stages"][-1]["stage"]))
    print("wrote " + os.path.relpath(document))
    page.show(document)


# --- the command ---------------------------------------------------------------------------------

def parse(arguments):
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--program", required=True)
    parser.add_argument("--json")
    parser.add_argument("--machine")
    parser.add_argument("--brief", action="store_true")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--help", "-h", action="store_true")
    parser.add_argument("--stage", action="append", default=[])
    parser.error = lambda message: fail(message, 2)
    return parser.parse_known_args(arguments)


def profile(own, options):
    if own.machine:
        floors.read_machine(own.machine)  # a bad file is said before anything is measured
    os.makedirs(REPORT, exist_ok=True)
    path = os.path.join(REPORT, "profile.json") if own.json is None else own.json
    require_folder(path)
    for word in [*options, own.machine or ""]:  # files that are read, or written by --trace
        if os.path.realpath(word.split("=", 1)[-1]) == os.path.realpath(path):
            fail(f"{path}: would be overwritten", 2)
    stages = [word for stage in own.stage for word in ("--stage", stage)]  # Nsight Compute: one at a time
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace.json")
        found, status = records_of(own.program, stages + options, not own.brief, trace if own.show else "")
        trace = read_json(trace) if own.show else None
    if not own.brief:
        print()
    failed = 0
    if found[0]["source"] == "cuda_runtime":
        try:
            found, failed = read_counters(own.program, found, options)
        except ncu.CountersUnavailable as error:
            return fall_back(error, stages + options, path) or status
        if not found:
            return 1
    rates = add_floors(found, own.machine)
    counted, = records.profiles_of(found, path)
    if own.brief:
        print_brief(counted, bool(own.stage))
    else:
        print_tables(counted, last.read(found, "--relu" in options), rates)
    if own.show:
        show_page(trace, found)
    else:
        write_json(path, found)
        if not own.brief:
            print(f"wrote {shortened(path)}")
    last.keep(found, "--relu" in options)
    return status or failed


def main(arguments):
    own, options = parse(arguments)
    if own.help:
        print(__doc__)
        return foreground(own.program, "profile", "--help")
    if own.show and (own.json is not None or any(word.split("=")[0] == "--trace" for word in options)):
        fail("--show writes to build/report: leave out --json and --trace, or --show", 2)
    try:
        return profile(own, options)
    except (records.BadInput, ncu.NcuError) as error:
        fail(str(error))


if __name__ == "__main__":
    run_main(main)
