#!/usr/bin/env python3
"""Programs that nobody here wrote, unchanged, in the simulator: renews docs/results/programs.csv, and
docs/results/known_bugs.csv from a table of programs with a bug that was reported.

  common/measure/programs.py TABLE... [--only NAME] [--results FOLDER] [--seconds N]

The programs lie beside the checkout, and so do the tables: name, repository (OWNER/NAME; a folder NAME or
NAME@COMMIT beside the table holds it), commit, folder in it, files, options and arguments of ./ladder sim.

Of a program that checks itself, `says` is what it prints when its check has passed (a regular expression;
empty where the exit status says it), and it prints no FAIL. `faulty`, where it has one, is FILE:LINE... of
faults of the program that NVIDIA's compute-sanitizer names as well, or CUDA's manual. right: the check
passed; found: it passed, or the simulator names such a fault, and races, unwritten values or stray accesses
are named; refused: not compiled, and a line says what is not simulated; long: it takes longer than
--seconds, and a line says how long it would; wrong: all else.

Of a known bug, `fault` is where the report sees it (FILE:LINE...), `reported` where that stands.
found: the simulator names one of these lines; missed: it does not.
"""
import argparse
import csv
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from common.show import files  # noqa: E402  pylint: disable=wrong-import-position
from common.show.files import ROOT  # noqa: E402  pylint: disable=wrong-import-position

PROGRAMS = ["set", "name", "repository", "commit", "file", "result", "detail"]
BUGS = ["set", "name", "repository", "commit", "file", "fault", "reported", "result", "detail"]
REFUSED = re.compile(r"^(\S+:\d+): error: (.* (?:is|are) not simulated)$|"
                     r"^(\S+:\d+):\d+: fatal error: (\S+: No such file or directory)$", re.MULTILINE)


def folder_of(row, beside):
    name = os.path.basename(row["repository"])
    at_commit = os.path.join(beside, f"{name}@{row['commit']}")
    repository = at_commit if os.path.isdir(at_commit) else os.path.join(beside, name)
    return os.path.join(repository, row["folder"])


def rows_of(tables, only=()):
    """Each row of the tables whose folder is there, and the folder."""
    for path in tables:
        for row in files.read_rows(path):
            folder = folder_of(row, os.path.dirname(os.path.abspath(path)))
            if only and row["name"] not in only:
                continue
            if os.path.isdir(folder):
                yield row, folder
            else:
                print(f"{row['name']:32} its folder is not there: its result stays", flush=True)


def run(row, folder, seconds, *more):
    """What a program printed, and the simulator's report (None where there is none)."""
    with tempfile.TemporaryDirectory() as own:
        report = os.path.join(own, "report.json")
        command = [os.path.join(ROOT, "ladder"), "sim", *row["files"].split(), *shlex.split(row["options"]),
                   *more, "--seconds", str(seconds), "--json", report, "--", *shlex.split(row["arguments"])]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, check=False)
        printed = done.stdout + done.stderr
        if not os.path.exists(report):
            return printed, None
        with open(report, encoding="utf-8") as file:
            return printed, json.load(file)


def judge_program(row, printed, told):
    """(result, detail) of a program that checks itself."""
    if not told:
        if refused := REFUSED.search(printed):
            place, what = (word for word in refused.groups() if word)
            return "refused", f"{os.path.basename(place)}: {what}"
        errors = re.findall(r"^.*(?:error:|undefined reference|SIG[A-Z]+).*$", printed, re.MULTILINE)
        return "wrong", (errors or printed.splitlines()[-1:] or ["it has left no report"])[0]
    found = [finding["what"] for finding in told["findings"]]
    if "ended" in told:
        return "long", "ended " + told["ended"]
    if known := named(row.get("faulty"), found):
        return "found", known
    passed = re.search(row["says"], printed) if row["says"] else told["status"] == 0
    passed = passed and not re.search(r"\bFAIL(ED)?\b", printed)
    if not passed:
        return "wrong", found[0] if found else f"its check failed, status {told['status']}"
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return ("found", found[0] + more) if found else ("right", "")


def named(places, found):
    """What names one of the places, or None."""
    at_fault = re.compile("|".join(rf"\b{re.escape(place)}\b" for place in (places or "").split()) or "$^")
    return next(filter(at_fault.search, found), None)


def judge_bug(row, told):
    """(result, detail) of a program with a known bug."""
    found = [finding["what"] for finding in told["findings"]] if told else []
    if known := named(row["fault"], found):
        return "found", known
    ended = [f"ended {told['ended']}"] if told and "ended" in told else []
    return "missed", (ended + found + ["nothing found" if told else "not compiled"])[0]


def keep(path, columns, row, table):
    """Puts the row into a file of results, in the order of its table; others of it that the table no longer
    has are left out."""
    rows = files.read_rows(path) if os.path.exists(path) else []
    of_table = {kept["name"]: kept for kept in rows if kept["set"] == row["set"]} | {row["name"]: row}
    rows = ([kept for kept in rows if kept["set"] != row["set"]]
            + [of_table[known["name"]] for known in table if known["name"] in of_table])
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tables", nargs="+")
    parser.add_argument("--only", action="append", help="these programs alone; the other results stay")
    parser.add_argument("--results", default=os.path.join(ROOT, "docs", "results"))
    parser.add_argument("--seconds", type=int, default=300, help="of a processor, for each program")
    options = parser.parse_args()
    for path in options.tables:
        for row, folder in rows_of([path], options.only):
            printed, told = run(row, folder, options.seconds)
            bug = "fault" in row
            row["result"], row["detail"] = (judge_bug(row, told) if bug
                                            else judge_program(row, printed, told))
            row["set"] = os.path.splitext(os.path.basename(path))[0]
            row["file"] = os.path.normpath(os.path.join(row["folder"], row["files"].split()[0]))
            print(f"{row['name']:32} {row['result']:8} {row['detail']}", flush=True)
            name = "known_bugs.csv" if bug else "programs.csv"
            keep(os.path.join(options.results, name), BUGS if bug else PROGRAMS, row,
                 files.read_rows(path))
    return 0


if __name__ == "__main__":
    sys.exit(main())
