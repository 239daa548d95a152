"""The simulator's counts against Nsight Compute's readings of the same kernels on the same problems."""
import csv
from typing import NamedTuple

import formats
import results

KEY = ["problem", "stage", "kernel"]
# What instructions say of shared memory knows no contention between warps, and has names of its own.
ALSO = {f"smsp__sass_l1tex_data_{what}_mem_shared_op_{op}.sum": f"l1tex__data_{what}_mem_shared_op_{op}.sum"
        for what in ("pipe_lsu_wavefronts", "bank_conflicts_pipe_lsu") for op in ("ld", "st")}
WORST = 12  # rows of the table of what differs


class Figure(NamedTuple):
    """One counter of one kernel on one problem."""
    problem: str
    stage: str
    kernel: str
    metric: str
    counted: float
    read: float

    @property
    def deviation(self):
        """Of the count from the reading, as a share of it."""
        return (self.counted - self.read) / self.read if self.read else float(self.counted != 0)


def read_table(path):
    """{(problem, stage, kernel): {column: value}} of a CSV; empty cells are left out. Raises BadInput."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        if rows.fieldnames is None or not set(KEY) <= set(rows.fieldnames):
            raise results.BadInput(f"{path}: has no columns {', '.join(KEY)}")
        return {tuple(row[name] for name in KEY):
                {name: float(value) for name, value in row.items()
                 if name not in KEY and value and not name.endswith(".ratio")} for row in rows}


def figures(counts, readings):
    """All that both have, but where both are 0: nothing was asked of that counter."""
    found = []
    for key, read in readings.items():
        own = counts.get(key, {})
        for metric, value in read.items():
            count = own.get(ALSO.get(metric, metric))
            if count is not None and (count or value):
                found.append(Figure(*key, metric, count, value))
    return found


def report(counts, readings):
    """docs/results/counting.md: what is equal, by stage, and what differs most."""
    stages = sorted({stage for _, stage, _ in counts})
    all_figures = figures(counts, readings)
    rows = []
    for stage in stages:
        own = [figure for figure in all_figures if figure.stage == stage]
        if not own:
            rows.append([stage, "not read yet", "", "", ""])
            continue
        worst = max(abs(figure.deviation) for figure in own)
        rows.append([stage, str(len({figure.problem for figure in own})), str(len(own)),
                     str(sum(figure.counted == figure.read for figure in own)),
                     formats.percent(100 * worst)])
    equal = sum(figure.counted == figure.read for figure in all_figures)
    problems = len({problem for problem, _, _ in counts})
    parts = [f"{equal} of {len(all_figures)} figures are equal. Counted on {problems} problems:\n",
             formats.markdown(["stage", "problems read", "figures", "equal", "widest deviation"], rows)]
    apart = sorted((figure for figure in all_figures if figure.counted != figure.read),
                   key=lambda figure: -abs(figure.deviation))
    if apart:
        parts += ["What differs most:\n", formats.markdown(
            ["stage", "kernel", "problem", "counter", "counted", "read", "deviation"],
            [[f.stage, f.kernel, f.problem, f"`{f.metric}`", f"{f.counted:.0f}", f"{f.read:.0f}",
              f"{100 * f.deviation:+.2f} %"] for f in apart[:WORST]])]
    return "\n".join(parts)
