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

from common.show.support import (
    REPORT, ROOT, fail, progress, run_main, shortened, stage_names)

from common.show import formats, results

TOOLS = ["racecheck", "memcheck", "initcheck", "synccheck"]  # the one that takes longest first
REPORTS_FOUND = 86  # compute-sanitizer's status then; no status of the program itself
SUMMARY = {tool: r"=+ ERROR SUMMARY: (\d+) errors?" for tool in TOOLS}
SUMMARY["racecheck"] = r"=+ RACECHECK SUMMARY: (\d+) hazards? displayed.*"


def count_reports(tool, log):
    """The number of reports by the tool's own summary; None where the log has none."""
    found = [re.fullmatch(SUMMARY[tool], line.strip()) for line in log.splitlines()]
    counts = [int(match.group(1)) for match in found if match]
    return sum(counts) if counts else None


def read_checks(path):
    """The records that `convladder check` wrote; none where it did not get that far."""
    try:
        return results.read_json(path)
    except results.BadInput:
        return []


def verdict(status, reports, checks, log):
    """What a run came to, as (pass or fail, why). Only a summary of 0 reports, a status of 0 and
    results that are all right make a pass."""
    wrong = [record for record in checks if record["status"] != "pass"]
    if reports is None:
        lines = log.strip().splitlines()
        return "fail", f"no summary in the log, which ends with: {lines[-1]} (status {status})"
    if reports > 0:
        return "fail", f"{reports} reports"
    if wrong:
        return "fail", f"{wrong[0]['problem']}: {wrong[0]['status']}: {wrong[0]['message']}"
    if status != 0:
        return "fail", f"status {status} without a report"
    if not checks:
        return "fail", "no problem was checked"
    return "pass", ""


def sanitize(tool, stage, arguments, folder):
    """Runs one stage under one tool; returns its record, and whether each problem was cut down."""
    log_path = os.path.join(folder, f"{tool}-{stage}.log")
    checks_path = os.path.join(folder, f"{tool}-{stage}.json")
    if os.path.exists(checks_path):
        os.remove(checks_path)  # of an earlier run
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", str(REPORTS_FOUND),
               os.path.join(arguments.bin, "convladder"), "check", "--no-guards", "--stage", stage,
               "--max-gmac", arguments.max_gmac, "--json", checks_path]
    begin = time.monotonic()
    with open(log_path, "w", encoding="utf-8") as log:
        log.write(shlex.join(command) + "\n")
        log.flush()
        try:
            status = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT,
                                    check=False).returncode
        except FileNotFoundError:
            fail("there is no compute-sanitizer in the PATH: it is part of the CUDA Toolkit")
    seconds = time.monotonic() - begin
    with open(log_path, encoding="utf-8", errors="replace") as log:
        text = log.read()
    reports, checks = count_reports(tool, text), read_checks(checks_path)
    passed, message = verdict(status, reports, checks, text)
    record = {"tool": tool, "stage": stage, "checks": len(checks),
              "problems": len({check["problem"] for check in checks}), "reports": reports,
              "status": passed, "message": message, "seconds": round(seconds, 1),
              "log": os.path.basename(log_path)}
    return record, {check["problem"]: "cut down to" in check["message"] for check in checks}


def print_results(records, cut, arguments):
    rows = [[record["tool"], record["stage"], str(record["checks"]),
             "?" if record["reports"] is None else str(record["reports"]),
             f"{record['seconds']:.0f}", record["status"]] for record in records]
    print(formats.aligned(formats.markdown(
        ["tool", "stage", "checks", "reports", "seconds", "result"], rows)))
    for record in records:
        if record["message"]:
            print(f"{record['tool']} {record['stage']}: {record['message']}; see {record['log']}")
    print(f"{sum(cut.values())} of the {len(cut)} problems were cut down to {arguments.max_gmac} "
          "billion multiply-adds (--max-gmac).")


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="./ladder sanitize", description=__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", action="append", choices=TOOLS,
                        help="only this one; may be repeated")
    parser.add_argument("--stage", action="append", help="only this one; may be repeated")
    parser.add_argument("--max-gmac", default="0.001", metavar="X",
                        help="cut problems down to X billion multiply-adds (default 0.001)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N",
                        help="runs at a time (default 1)")
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "gpu", "bin"), metavar="DIR",
                        help="the programs (default build/gpu/bin)")
    parser.error = lambda message: fail(message, 2)
    parsed = parser.parse_args(arguments)
    for stage in parsed.stage or []:
        if stage not in stage_names():
            fail(f"stage '{stage}' is unknown; there are {', '.join(stage_names())}", 2)
    if parsed.jobs < 1:
        fail(f"--jobs = {parsed.jobs}: must be at least 1", 2)
    try:
        if not float(parsed.max_gmac) >= 1e-6:
            raise ValueError
    except ValueError:
        fail(f"--max-gmac = '{parsed.max_gmac}': must be a number, at least 0.000001", 2)
    return parsed


def main(words):
    arguments = parse(words)
    folder = os.path.join(REPORT, "sanitizer")
    os.makedirs(folder, exist_ok=True)
    tools = [tool for tool in TOOLS if tool in (arguments.tool or TOOLS)]
    stages = [stage for stage in stage_names() if stage in (arguments.stage or stage_names())]
    runs = [(tool, stage) for tool in tools for stage in stages]
    records, cut = [], {}
    # The tools spend their time on the host: several runs at a time share the GPU well.
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        done = pool.map(lambda run: sanitize(*run, arguments, folder), runs)
        for tool, stage in runs:
            progress(f"[{len(records) + 1}/{len(runs)}] {tool}: {stage}")
            record, problems = next(done)
            records.append(record)
            cut.update(problems)
    progress("")
    print_results(records, cut, arguments)
    print(f"the logs are in {shortened(folder)}")
    print(f"{len(records)} runs, {sum(record['reports'] or 0 for record in records)} reports, "
          f"{sum(record['status'] != 'pass' for record in records)} failed")
    return 0 if all(record["status"] == "pass" for record in records) else 1


if __name__ == "__main__":
    run_main(main)
