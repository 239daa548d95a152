#!/usr/bin/env python3
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

from common.show import formats, records
from common.show.files import stage_names
from common.show.support import REPORT, ROOT, fail, progress, run_main, shortened

TOOLS = ["racecheck", "memcheck", "initcheck", "synccheck"]  # the one that takes longest first
REPORTS_FOUND = 86  # compute-sanitizer's status then; no status of the program itself
SUMMARY = {tool: r"=+ ERROR SUMMARY: (\d+) errors?" for tool in TOOLS}
SUMMARY["racecheck"] = r"=+ RACECHECK SUMMARY: (\d+) hazards? displayed.*"


def count_reports(tool, log):
    """The number of reports by the tool's own summary; None where the log has none."""
    found = [re.fullmatch(SUMMARY[tool], line.strip()) for line in log.splitlines()]
    counts = [int(match[1]) for match in found if match]
    return sum(counts) if counts else None


def verdict(status, reports, checks, log):
    """What a run came to, as (pass or fail, why). Only a summary of 0 reports, a status of 0 and
    results that are all right make a pass."""
    wrong = [f"{check['problem']}: {check['status']}: {check['message']}" for check in checks
             if check["status"] != "pass"]
    end = log.strip()[-200:]
    reasons = [(reports is None, f"no summary in the log, which ends with: {end} (status {status})"),
               (reports, f"{reports} reports"), (wrong, "".join(wrong[:1])),
               (status != 0, f"status {status} without a report"),
               (not checks, "no problem was checked")]
    return next((("fail", reason) for applies, reason in reasons if applies), ("pass", ""))


def sanitize(tool, stage, arguments, folder):
    """Runs one stage under one tool; returns the row of the table, why it failed, and what was checked."""
    path = os.path.join(folder, f"{tool}-{stage}")
    if os.path.exists(path + ".json"):
        os.remove(path + ".json")  # of an earlier run
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", str(REPORTS_FOUND),
               os.path.join(arguments.bin, "convladder"), "check", "--no-guards", "--stage", stage,
               "--max-gmac", str(arguments.max_gmac), "--json", path + ".json"]
    begin = time.monotonic()
    with open(path + ".log", "w+", encoding="utf-8", errors="replace") as log:
        print(shlex.join(command), file=log, flush=True)
        try:
            status = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False).returncode
        except FileNotFoundError:
            fail("there is no compute-sanitizer in the PATH: it is part of the CUDA Toolkit")
        log.seek(0)
        text = log.read()
    try:
        checks = records.read_json(path + ".json")
    except records.BadInput:
        checks = []  # the program did not get that far
    reports = count_reports(tool, text)
    passed, reason = verdict(status, reports, checks, text)
    return [tool, stage, str(len(checks)), "?" if reports is None else str(reports),
            f"{time.monotonic() - begin:.0f}", passed], reason, checks


def parse(words):
    parser = argparse.ArgumentParser(
        prog="./ladder sanitize", description=__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", action="append", choices=TOOLS,
                        help="only this one; may be repeated")
    parser.add_argument("--stage", action="append", choices=stage_names(), metavar="NAME",
                        help="only this one; may be repeated")
    parser.add_argument("--max-gmac", default=0.001, type=float, metavar="X",
                        help="cut problems down to X billion multiply-adds (default 0.001)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N",
                        help="runs at a time (default 1)")
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "gpu", "bin"), metavar="DIR",
                        help="the programs (default build/gpu/bin)")
    parser.error = lambda message: fail(message, 2)
    arguments = parser.parse_args(words)
    if arguments.jobs < 1 or not arguments.max_gmac >= 1e-6:
        fail("--jobs must be at least 1, --max-gmac at least 0.000001", 2)
    return arguments


def main(words):
    arguments = parse(words)
    folder = os.path.join(REPORT, "sanitizer")
    os.makedirs(folder, exist_ok=True)
    runs = [(tool, stage) for tool in TOOLS if tool in (arguments.tool or TOOLS)
            for stage in stage_names() if stage in (arguments.stage or stage_names())]
    rows, reasons, cut = [], [], {}
    # The tools spend their time on the host: several runs at a time share the GPU well.
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        done = pool.map(lambda run: sanitize(*run, arguments, folder), runs)
        for number, (tool, stage) in enumerate(runs, 1):
            progress(f"[{number}/{len(runs)}] {tool}: {stage}")
            row, reason, checks = next(done)
            rows.append(row)
            reasons += [f"{tool} {stage}: {reason}; see {tool}-{stage}.log"] * bool(reason)
            cut |= {check["problem"]: "cut down to" in check["message"] for check in checks}
    progress("")
    print(formats.aligned(formats.markdown(
        ["tool", "stage", "checks", "reports", "seconds", "result"], rows)))
    print("\n".join(reasons + [
        f"{sum(cut.values())} of the {len(cut)} problems were cut down to {arguments.max_gmac:g} billion "
        "multiply-adds (--max-gmac).", f"the logs are in {shortened(folder)}"]))
    print(f"{len(runs)} runs, {sum(int(row[3]) for row in rows if row[3] != '?')} reports, "
          f"{len(reasons)} failed")
    return 1 if reasons else 0


if __name__ == "__main__":
    run_main(main)
