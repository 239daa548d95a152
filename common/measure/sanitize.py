"""The stages under NVIDIA's compute-sanitizer, on a GPU: what `./ladder sanitize` runs.

Every stage computes every problem of common/problems.csv, large ones cut down, under each tool:
  memcheck   accesses out of bounds or misaligned, calls that fail
  racecheck  threads of a block that touch the same shared memory with no barrier between
  initcheck  reads of global memory that nobody has written
  synccheck  barriers that not all threads reach
Tensors lie bare in their allocations, without our guard zones and NaN, so that the tools see every
stray access. Results are checked as well. Status 1 on any report.
"""
import argparse
import concurrent.futures
import os
import re
import shlex
import subprocess
import time

from common.show import formats
from common.show.files import read, registered_stages
from common.show.support import REPORT, ROOT, fail, progress, run_main, shortened

TOOLS = ["racecheck", "memcheck", "initcheck", "synccheck"]  # the one that takes longest first
FOLDER = os.path.join(REPORT, "sanitizer")


def summary(tool, log):
    """(reports by the tool's own summary, None where the log has none; whether all checks passed)."""
    pattern = r"RACECHECK SUMMARY: (\d+) hazard" if tool == "racecheck" else r"ERROR SUMMARY: (\d+) errors?$"
    counts = re.findall("^=+ " + pattern, log, re.MULTILINE)
    passed = re.search(r"^[1-9]\d* passed, 0 failed, ", log, re.MULTILINE)
    return sum(map(int, counts)) if counts else None, bool(passed)


def sanitize(tool, stage, options):
    """Runs one stage under one tool: a row of the table. Only a status of 0, a summary of 0 reports, and
    results that are all right make a pass."""
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "86",
               os.path.join(ROOT, "build/gpu/bin/convladder"), "check", "--no-guards", "--stage", stage,
               "--max-gmac", str(options.max_gmac)]
    begin, path = time.monotonic(), os.path.join(FOLDER, f"{tool}-{stage}.log")
    with open(path, "w", encoding="utf-8") as log:
        print(shlex.join(command), file=log, flush=True)
        status = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False).returncode
    reports, passed = summary(tool, read(path))
    return [tool, stage, "?" if reports is None else str(reports), f"{time.monotonic() - begin:.0f}",
            "pass" if (status, reports, passed) == (0, 0, True) else f"fail: see {tool}-{stage}.log"]


def main(words):
    parser = argparse.ArgumentParser(
        prog="./ladder sanitize", description=__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", action="append", choices=TOOLS, help="only this one; may be repeated")
    parser.add_argument("--stage", action="append", choices=registered_stages(), metavar="NAME",
                        help="only this one; may be repeated")
    parser.add_argument("--max-gmac", default=0.001, type=float, metavar="X",
                        help="cut problems down to X billion multiply-adds (default 0.001)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at a time (default 1)")
    parser.error = lambda message: fail(message, 2)
    options = parser.parse_args(words)
    if options.jobs < 1 or not options.max_gmac >= 1e-6:
        fail("--jobs must be at least 1, --max-gmac at least 0.000001", 2)
    os.makedirs(FOLDER, exist_ok=True)
    runs = [(tool, stage) for tool in TOOLS if tool in (options.tool or TOOLS)
            for stage in options.stage or registered_stages()]
    rows = []
    # The tools spend their time on the host: several runs at a time share the GPU well.
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        try:
            for row in pool.map(lambda run: sanitize(*run, options), runs):
                rows.append(row)
                progress(f"{len(rows)} of {len(runs)} runs")
        except FileNotFoundError:
            fail("there is no compute-sanitizer in the PATH: it is part of the CUDA Toolkit")
    progress("")
    print(formats.aligned(formats.markdown(["tool", "stage", "reports", "seconds", "result"], rows)))
    failed = sum(row[-1] != "pass" for row in rows)
    print(f"the logs are in {shortened(FOLDER)}; problems were cut down to {options.max_gmac:g} billion "
          "multiply-adds (--max-gmac)")
    print(f"{len(runs)} runs, {sum(int(row[2]) for row in rows if row[2] != '?')} reports, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    run_main(main)
