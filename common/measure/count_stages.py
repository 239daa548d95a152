#!/usr/bin/env python3
"""The simulator's counts of every stage, to stand beside what read_ncu.py reads on a GPU.

  common/measure/count_stages.py [--program build/sim-count/bin/convladder]
                                 [--out docs/results/counts.csv]

On every problem of common/tests/data/counted_problems.csv; the columns are Nsight Compute's names.
"""
import argparse
import os

from common.measure import read_ncu
from common.show.support import ROOT, progress, records_of, run_main

from common.show import files


def count(program, problem, *options):
    """The records of the stages' own kernels on a row of counted_problems.csv."""
    records = records_of(program, "profile", "--max-gmac", "1000", *read_ncu.options_of(problem), *options)
    return [record for record in records if not record["library"]]


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
    header = ["problem", "stage", "kernel", "launches"] + metrics
    files.write_rows(options.out, [header, *(
        [name, record["stage"], record["kernel"], record["launches"]] +
        [read_ncu.number(record.get(metric)) for metric in metrics] for name, record in counted)])
    print(f"wrote {options.out}: {len(counted)} rows")
    return 0


if __name__ == "__main__":
    run_main(main)
