"""The simulator's counts against Nsight Compute's readings of the same kernels on the same problems."""
import os
import re
from typing import NamedTuple

from common.show import files, formats, records

KEY = ["problem", "stage", "kernel"]
NO_FIGURE = [*KEY, "launches"]
# Instructions don't know that warps wait for each other at shared memory; what they say has other names.
ALSO = {f"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum":
        f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum" for op in ("ld", "st")}
DEVIATIONS = os.path.join(files.ROOT, "common/tests/data/deviations.csv")
# Depend on when warps come to shared memory, and on the compiler's arithmetic: not on what is accessed.
WAITING = re.compile(r"l1tex__data_(bank_conflicts|pipe_lsu_wavefronts)_\w*mem_shared_op_(ld|st)\.sum")
ARITHMETIC = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
AT_LEAST, PIPE = "pipe_wavefronts_at_least.sum", "l1tex__data_pipe_lsu_wavefronts.sum"


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
        """How far the count is from the reading, as a share of it."""
        return (self.counted - self.read) / self.read if self.read else float(self.counted != 0)


def read_table(path):
    """{(problem, stage, kernel): {column: value}} of a CSV; empty cells are left out. Raises BadInput."""
    rows = files.read_rows(path)
    if not rows or not set(KEY) <= set(rows[0]):
        raise records.BadInput(f"{path}: has no columns {', '.join(KEY)}")
    return {tuple(row[name] for name in KEY):
            {name: float(value) for name, value in row.items() if name not in NO_FIGURE and value}
            for row in rows}


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


def deviations():
    """The rows of deviations.csv: which metric of which stages (none: any) differs, how far and why."""
    return files.read_rows(DEVIATIONS)


def too_far(figure, known):
    """Whether the count is farther from the reading than the first row of `known` that fits allows: not at
    all without one."""
    row = next((row for row in known if row["metric"] == figure.metric and
                (not row["stages"] or figure.stage in row["stages"].split())), None)
    lowest, highest = (float(row["lowest"]), float(row["highest"])) if row else (0, 0)
    return not lowest * figure.read <= figure.counted - figure.read <= highest * figure.read


def pipe_figures(counts, readings):
    """L1's data pipe, of which a count is a part: it must not exceed the reading."""
    return [Figure(*key, PIPE, counts[key][AT_LEAST], read[PIPE]) for key, read in readings.items()
            if read.get(PIPE) and counts.get(key, {}).get(AT_LEAST)]


def pipe_share(counts, readings, stage):
    """What share of the pipe's wavefronts the counts of a stage's kernels explain: "23.0 to 99.1 %"."""
    shares = [100 * figure.counted / figure.read for figure in pipe_figures(counts, readings)
              if figure.stage == stage]
    return f"{min(shares):.1f} to {max(shares):.1f} %" if shares else ""


def report(counts, readings):
    """docs/results/counting.md: of each stage how many figures are equal, and where they differ most."""
    all_figures = figures(counts, readings)
    rows = []
    for stage in sorted({stage for _, stage, _ in counts}):
        own = [figure for figure in all_figures if figure.stage == stage]
        if not own:
            rows.append([stage, "not read yet", "", "", "", "", ""])
            continue
        worst = max(own, key=lambda figure: abs(figure.deviation))
        differs = worst.deviation != 0
        rows.append([stage, str(len({figure.problem for figure in own})), str(len(own)),
                     str(sum(figure.counted == figure.read for figure in own)),
                     f"{100 * worst.deviation:+.1f} %" if differs else "",
                     f"`{worst.metric}`, {worst.problem}: {worst.counted:.0f} for {worst.read:.0f}"
                     if differs else "", pipe_share(counts, readings, stage)])
    equal = sum(figure.counted == figure.read for figure in all_figures)
    problems = len({problem for problem, _, _ in counts})
    return (f"{equal} of {len(all_figures)} figures are equal. Counted on {problems} problems. L1's data "
            "pipe: what share of its wavefronts the counts explain, which must not exceed them.\n\n" +
            formats.markdown(["stage", "problems read", "figures", "equal", "widest deviation", "where",
                              "of L1's data pipe"], rows))


def program_report(counts, readings):
    """docs/results/counting.md: the same of programs of public repositories, and which figures differ."""
    of_memory = [figure for figure in figures(counts, readings) if figure.metric != ARITHMETIC]
    of_accesses = [figure for figure in of_memory if not WAITING.fullmatch(figure.metric)]
    said = [f"{sum(figure.counted == figure.read for figure in found)} of {len(found)}"
            for found in (of_memory, of_accesses)]
    rows = [[figure.problem, figure.kernel, f"`{figure.metric}`", f"{figure.counted:.0f}",
             f"{figure.read:.0f}", f"{100 * figure.deviation:+.1f} %"]
            for figure in of_memory if figure.counted != figure.read]
    return (f"{said[0]} figures of memory are equal; without those of warps that wait for each other, "
            f"{said[1]}.\nThese differ:\n\n" +
            formats.markdown(["program", "kernel", "counter", "counted", "read", ""], rows))
