"""The simulator's counts against Nsight Compute's readings of the same kernels on the same problems."""
import os
from typing import NamedTuple

from common.show import files, formats, results

KEY = ["problem", "stage", "kernel"]
# What instructions say of shared memory knows no contention between warps, and has names of its own.
ALSO = {f"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum":
        f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum" for op in ("ld", "st")}
AT_LEAST, PIPE = "pipe_wavefronts_at_least.sum", "l1tex__data_pipe_lsu_wavefronts.sum"
DEVIATIONS = os.path.join(os.path.dirname(__file__), "../tests/data/deviations.csv")


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
    rows = files.read_rows(path)
    if not rows or not set(KEY) <= set(rows[0]):
        raise results.BadInput(f"{path}: has no columns {', '.join(KEY)}")
    return {tuple(row[name] for name in KEY):
            {name: float(value) for name, value in row.items() if name not in KEY and value} for row in rows}


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


def cause_of(figure, deviations):
    """By the first row that fits; the test NsightComputeOfStage.Agrees holds the figures to it."""
    return next((row["cause"] for row in deviations if row["metric"] == figure.metric and
                 figure.stage in (row["stages"] or figure.stage).split()), "unknown")


def differences(all_figures):
    """Of each stage and counter that is not equal throughout: how many are, and the widest deviation."""
    rows, deviations = [], files.read_rows(DEVIATIONS)
    for stage, metric in sorted({(f.stage, f.metric) for f in all_figures if f.counted != f.read}):
        own = [f for f in all_figures if (f.stage, f.metric) == (stage, metric)]
        worst = max(own, key=lambda f: abs(f.deviation))
        rows.append([stage, f"`{metric}`", f"{sum(f.counted == f.read for f in own)} of {len(own)}",
                     f"{100 * worst.deviation:+.2f} %", worst.problem, f"{worst.counted:.0f}",
                     f"{worst.read:.0f}", cause_of(worst, deviations)])
    return rows


def pipe_shares(counts, readings):
    """By stage and kernel: what share of the pipe's wavefronts the counts explain, least and most."""
    shares = {}
    for (problem, *kernel), read in readings.items():
        count = counts.get((problem, *kernel), {}).get(AT_LEAST)
        if count and read.get(PIPE):
            shares.setdefault(tuple(kernel), []).append((count / read[PIPE], problem))
    return [[stage, kernel] + [f"{100 * share:.1f} %, {problem}" for share, problem in
                               (min(own), max(own))] for (stage, kernel), own in sorted(shares.items())]


def report(counts, readings):
    """docs/results/counting.md: what is equal, by stage and counter, what differs and why."""
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
    metrics = []
    for metric in sorted({figure.metric for figure in all_figures}):
        own = [[f.counted == f.read for f in all_figures if (f.stage, f.metric) == (stage, metric)]
               for stage in stages]
        metrics.append([f"`{metric}`"] + [f"{sum(same)}/{len(same)}" if same else "" for same in own])
    parts = [f"{equal} of {len(all_figures)} figures are equal. Counted on {problems} problems:\n",
             formats.markdown(["stage", "problems read", "figures", "equal", "widest deviation"], rows),
             "How many are equal, by counter and stage:\n",
             formats.markdown(["counter"] + [stage[:2] for stage in stages], metrics)]
    if apart := differences(all_figures):
        parts += ["What differs, most of each at:\n", formats.markdown(
            ["stage", "counter", "equal", "deviation", "problem", "counted", "read", "cause"], apart)]
    if shares := pipe_shares(counts, readings):
        parts += ["What the counts explain of L1's data pipe, whose wavefronts they must not exceed:\n",
                  formats.markdown(["stage", "kernel", "least", "most"], shares)]
    return "\n".join(parts)
