#!/usr/bin/env python3
"""The simulator's counts of every stage, to stand beside what read_ncu.py reads on a GPU.

  common/profile/count_stages.py [--program build/sim-count/bin/convladder]
                                 [--out docs/results/counts.csv]

On every problem of common/tests/data/counted_problems.csv; the columns are Nsight Compute's names.
"""
import argparse
import csv
import json
import os
import subprocess
import tempfile

import read_ncu
from support import ROOT, fail, progress, run_main


def count(program, problem):
    """The records of all stages."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "profile.json")
        command = [program, "profile", "--max-gmac", "1000", "--json", path]
        done = subprocess.run(command + read_ncu.options_of(problem), stdout=subprocess.PIPE, text=True,
                              check=False)
        if done.returncode != 0:
            fail(f"{problem['name']}: {done.stdout.strip()}")
        with open(path, encoding="utf-8") as file:
            return [record for record in json.load(file) if not record["library"]]


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/sim-count/bin/convladder"))
    parser.add_argument("--out", default=os.path.join(ROOT, "docs/results/counts.csv"))
    options = parser.parse_args(arguments)
    problems, counted = read_ncu.problems(), []
    for number, problem in enumerate(problems, 1):
        progress(f"[{number}/{len(problems)}] {problem['name']}")
        counted += [(problem["name"], record) for record in count(options.program, problem)]
    progress("")
    metrics = [metric for metric in read_ncu.STAGE_METRICS + ["pipe_wavefronts_at_least.sum"]
               if metric in counted[0][1]]
    with open(options.out + ".part", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["problem", "stage", "kernel", "launches"] + metrics)
        for name, record in counted:
            writer.writerow([name, record["stage"], record["kernel"], record["launches"]] +
                            [read_ncu.number(record.get(metric)) for metric in metrics])
    os.replace(options.out + ".part", options.out)
    print(f"wrote {options.out}: {len(counted)} rows")
    return 0


if __name__ == "__main__":
    run_main(main)
