#!/usr/bin/env python3
"""Programs that nobody here wrote, unchanged, in the simulator: renews docs/results/programs.csv.

  common/measure/programs.py TABLE.csv [NAME...] [--results FILE] [--seconds N]

The programs lie beside the checkout, and so does the table: name, repository (OWNER/NAME; a folder NAME
beside the table holds it), folder in it, files, options and arguments of ./ladder sim, and what a program
prints when its own check has passed (a regular expression; empty where the exit status says it).

right: the program's check passed; found: the check passed, and the simulator names races, unwritten values
or stray accesses all the same; refused: not compiled, and a line says what is not simulated; wrong: all else.
"""
import argparse
import csv
import json
import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from common.show import files  # noqa: E402  pylint: disable=wrong-import-position
from common.show.files import ROOT  # noqa: E402  pylint: disable=wrong-import-position

COLUMNS = ["name", "repository", "file", "result", "detail"]
REFUSED = re.compile(r"^(\S+:\d+): error: (.* (?:is|are) not simulated)$|"
                     r"^(\S+:\d+):\d+: fatal error: (\S+: No such file or directory)$", re.MULTILINE)


def judge(row, beside, seconds):
    """(result, detail) of a program."""
    folder = os.path.join(beside, os.path.basename(row["repository"]), row["folder"])
    with tempfile.TemporaryDirectory() as own:
        report = os.path.join(own, "report.json")
        command = [os.path.join(ROOT, "ladder"), "sim", *row["files"].split(), *shlex.split(row["options"]),
                   "--json", report, "--", *shlex.split(row["arguments"])]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, check=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU,
                                                                  (seconds, seconds + 5)))
        if "SIGKILL" in done.stderr or "SIGXCPU" in done.stderr:
            return "wrong", f"not done in {seconds} seconds of a processor"
        printed = done.stdout + done.stderr
        if not os.path.exists(report):
            if refused := REFUSED.search(printed):
                place, what = (word for word in refused.groups() if word)
                return "refused", f"{os.path.basename(place)}: {what}"
            errors = re.findall(r"^.*(?:error:|undefined reference|SIG[A-Z]+).*$", printed, re.MULTILINE)
            return "wrong", (errors or printed.splitlines()[-1:] or [f"status {done.returncode}"])[0]
        with open(report, encoding="utf-8") as file:
            told = json.load(file)
    found = [finding["what"] for finding in told["findings"]]
    passed = re.search(row["says"], printed) if row["says"] else told["status"] == 0
    if not passed:
        return "wrong", found[0] if found else f"its check failed, status {told['status']}"
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return ("found", found[0] + more) if found else ("right", "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--results", default=os.path.join(ROOT, "docs", "results", "programs.csv"))
    parser.add_argument("--seconds", type=int, default=120)
    options = parser.parse_args()
    results = []
    for row in files.read_rows(options.table):
        if options.names and row["name"] not in options.names:
            continue
        result, detail = judge(row, os.path.dirname(os.path.abspath(options.table)), options.seconds)
        print(f"{row['name']:32} {result:8} {detail}", flush=True)
        file = os.path.join(row["folder"], row["files"].split()[0])
        values = row["name"], row["repository"], os.path.normpath(file), result, detail
        results.append(dict(zip(COLUMNS, values)))
    if not options.names:
        with open(options.results, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
