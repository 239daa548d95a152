#!/usr/bin/env python3
"""Profiles stages in the counting simulator, and shows the page with them.

  show.py PROGRAM [OPTION...] --show

Options are those of profile, but for --json and --trace. What build/report/ has of other stages on
the same problem stays, and of these stages what they were before their last change.
"""
import json
import os
import subprocess
import sys
import tempfile

from common.show.support import REPORT, ROOT, fail, run_main

from common.show import files, page, records

BEFORE = ", before"


def same_problem(one, other):
    return all(one.get(member) == other.get(member) for member in ("problem", "shape", "bias"))


def joined_trace(old, new):
    """The new trace with the old one's other stages, and its own as they were before."""
    if not same_problem(old, new):
        return new
    stages = {stage["stage"]: stage for stage in old["stages"]}
    for stage in new["stages"]:
        known = stages.get(stage["stage"])
        if known and known["files"] != stage["files"]:
            stages[stage["stage"] + BEFORE] = {**known, "stage": stage["stage"] + BEFORE}
        stages[stage["stage"]] = stage
    return {**new, "stages": [stages[name] for name in sorted(stages)]}


def joined_counts(old, new):
    """The new records, and the old ones of other stages on the same problem."""
    stages = {record["stage"] for record in new}
    kept = [record for record in old if same_problem(record, new[0]) and
            record.get("source") == new[0]["source"] and record["stage"] not in stages]
    return sorted(kept + new, key=lambda record: record["stage"])


def join(path, new, read, joined):
    """Writes the new value, joined with what the file has, if that can be read."""
    try:
        read(path)  # is it whole, and of this version?
        new = joined(records.read_json(path), new)
    except records.BadInput:
        pass
    files.write(path, json.dumps(new) + "\n")


def main(words):
    program, options = words[0], [word for word in words[1:] if word != "--show"]
    if any(word.split("=")[0] in ("--json", "--trace") for word in options):
        fail("--show writes to build/report: leave out --json and --trace, or --show", 2)
    os.makedirs(REPORT, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        trace, counts = os.path.join(folder, "trace.json"), os.path.join(folder, "profile.json")
        command = [sys.executable, "-m", "common.measure.profile", "--program", program, *options,
                   "--trace", trace, "--json", counts]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as profile:
            for line in profile.stdout:
                if folder not in line:
                    print(line, end="", flush=True)
        if profile.returncode != 0 or not os.path.exists(trace):  # --help has none
            return profile.returncode
        new_trace, new_counts = records.read_json(trace), records.read_json(counts)
    paths = {name: os.path.join(REPORT, name + ".json")
             for name in ("bench", "profile", "run", "trace")}
    join(paths["trace"], new_trace, page.read_trace, joined_trace)
    join(paths["profile"], new_counts, records.read_profiles, joined_counts)
    document = os.path.join(REPORT, "index.html")
    page.write(document, page.Inputs(files.existing(paths["bench"]), [paths["profile"]],
                                     files.existing(paths["run"]) and REPORT, paths["trace"], ROOT,
                                     new_trace["stages"][-1]["stage"]))
    print("wrote " + os.path.relpath(document))
    page.show(document)
    return 0


if __name__ == "__main__":
    run_main(main)
