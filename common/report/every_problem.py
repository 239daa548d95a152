"""The block of docs/results/README.md on every problem of common/problems.csv: the last stage's time
against the one's before it."""
import math
import os

import formats
import text
from results import read_bench

FILE = "problems_h200.json"  # of docs/results
COMMAND = ("./ladder bench --shapes common/problems.csv --competitors none --repeats 15 "
           "--stage 04_register_blocking --stage 05_fused_bias --json FILE")
MOST = 1.05  # times as long as the stage before, on any problem
SHOWN = 5  # of the problems on which least is gained


def ratios(bench):
    """{problem: cold time of the last stage ÷ that of the stage before it}, where both were timed."""
    found = {}
    for problem in bench.problems:
        timed = [timing.cold for timing in list(problem.stages.values())[-2:]]
        if len(timed) == 2 and all(timed):
            found[problem.name] = timed[1].median / timed[0].median
    return found


def slower(found):
    """The problems on which the last stage takes more than MOST times as long."""
    return [name for name, ratio in found.items() if ratio > MOST]


def block(folder):
    path = os.path.join(folder, FILE)
    if not os.path.exists(path):
        return f"\nNo run of it stands here (`{FILE}`): `{COMMAND}`.\n\n"
    bench = read_bench(path)
    found = ratios(bench)
    if not found:
        return "\nNo problem was timed in both stages.\n\n"
    before, last = next(list(p.stages) for p in bench.problems if p.name in found)[-2:]
    mean = math.exp(sum(map(math.log, found.values())) / len(found))
    least = min(found, key=found.get)
    worst = sorted(found, key=found.get, reverse=True)[:SHOWN]
    return (f"\n{text.machine(bench)}\n"
            f"{len(found)} problems, each with its own batch and bias: {last} takes "
            f"{formats.significant(mean)} of the time of {before} (geometric mean), at the least "
            f"{formats.significant(found[least])} ({least}). It takes longer on "
            f"{sum(ratio > 1 for ratio in found.values())} of them, and more than "
            f"{MOST} times as long on {len(slower(found))}. Those on which least is gained:\n\n"
            + formats.markdown(["problem", f"{last} ÷ {before}"],
                               [[name, f"{found[name]:.3f}"] for name in worst]) + "\n")
