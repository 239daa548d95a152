"""Tables of times: stages as rows in ladder order, columns without any data left out."""
from statistics import geometric_mean
from typing import NamedTuple

from common.show.formats import markdown, milliseconds, percent, ratio, significant

COMPETITORS = {"cudnn": "cuDNN", "cudnn_any": "cuDNN, any plan,", "pytorch": "PyTorch"}


class TimeCells(NamedTuple):
    """Of one stage or competitor, as text; where there is no time, `cold` is the status."""
    cold: str
    quartiles: str = ""
    warm: str = ""
    tflops: str = ""
    ceiling: str = ""  # share of the FP32 ceiling


HEADINGS = TimeCells("cold [ms]", "quartiles [ms]", "warm [ms]", "TFLOP/s", "of FP32 ceiling")


def tflops(timing, flop):
    return flop / timing.cold.median * 1e-9


def time_ratio(above, below):
    """The quotient of two Timings' cold medians; None without one of them."""
    if not above or not below or not above.cold or not below.cold:
        return None
    return above.cold.median / below.cold.median


def competitor_title(competitor):
    """The precision is part of the name: FP32 and TF32 never stand in one column."""
    layout = " NHWC" if competitor.layout == "nhwc" else ""
    name = COMPETITORS.get(competitor.name, competitor.name)
    return f"{name} {competitor.precision.upper()}{layout}"


def ladder_of_competitors(problem):
    """FP32 before TF32, cuDNN before PyTorch, NCHW before NHWC."""
    return sorted(problem.competitors, key=lambda c: (c.precision, c.name, c.layout))


def time_cells(timing, flop, bench, precision="fp32"):
    if not timing or not timing.cold:
        return TimeCells(timing.status if timing else "")
    cold, rate = timing.cold, tflops(timing, flop)
    return TimeCells(
        cold=milliseconds(cold.median),
        quartiles=f"{milliseconds(cold.lower_quartile)}–{milliseconds(cold.upper_quartile)}",
        warm=milliseconds(timing.warm.median) if timing.warm else "",
        tflops=significant(rate),
        ceiling=percent(100 * rate / bench.fma_tflops) if precision == "fp32" else "")


def times_table(problem, bench):
    """Of a BenchProblem. A stage that failed has its status and no time."""
    rivals = ladder_of_competitors(problem)
    header = ["stage", *HEADINGS, "cold ÷ before",
              *("× " + competitor_title(rival) for rival in rivals)]
    rows, before = [], None
    for name, timing in problem.stages.items():
        rows.append([name, *time_cells(timing, problem.flop, bench),
                     ratio(time_ratio(timing, before)),
                     *(ratio(time_ratio(rival, timing)) for rival in rivals)])
        before = timing
    return markdown(header, rows)


def competitors_table(problem, bench):
    """The libraries that ran in the same rounds; empty without any."""
    if not problem.competitors:
        return ""
    header = ["competitor", *HEADINGS, "max error / allowed", "algorithm", "library", "message"]
    rows = [[competitor_title(rival),
             *time_cells(rival, problem.flop, bench, rival.precision),
             ratio(rival.max_error_ratio), rival.algorithm, rival.library,
             rival.message] for rival in ladder_of_competitors(problem)]
    return markdown(header, rows)


def layers_table(bench):
    """One row per problem, one column per stage: the cold median, and its share of the ceiling."""
    stages = sorted({name for problem in bench.problems for name in problem.stages})
    rows = []
    for problem in bench.problems:
        cells = [time_cells(problem.stages.get(name), problem.flop, bench) for name in stages]
        rows.append([problem.name, *(f"{cell.cold} ({cell.ceiling})" if cell.ceiling else cell.cold
                                     for cell in cells)])
    return markdown(["problem", *stages], rows)


def standings_table(bench):
    """Of each stage beside each competitor, over the problems on which both have passed: the geometric
    mean of how many times as fast the stage is, and on how many it is faster. Where a library may use
    TF32 and has not, it is no competitor in TF32."""
    quotients = {}  # {stage: {competitor: [of each such problem]}}
    for problem in bench.problems:
        for stage, timing in problem.stages.items():
            for rival in problem.competitors:
                found = quotients.setdefault(stage, {}).setdefault(competitor_title(rival), [])
                quotient = time_ratio(rival, timing) if rival.tf32_used else None
                found += [quotient] if quotient else []
    competitors = list(dict.fromkeys(name for found in quotients.values() for name in found))
    rows = []
    for stage, found in sorted(quotients.items()):
        cells = [f"{ratio(geometric_mean(each))} ({sum(quotient > 1 for quotient in each)} of {len(each)})"
                 if each else "" for each in map(found.get, competitors)]
        rows.append([stage, *cells])
    return markdown(["stage", *("× " + name for name in competitors)], rows)


def step_cells(problem, bench, before, now):
    """Of two neighbouring stages on one problem: TimeCells, and the quotient of cold medians."""
    old, new = (problem.stages.get(stage) for stage in (before, now))
    return [*(time_cells(timing, problem.flop, bench) for timing in (old, new)),
            ratio(time_ratio(new, old))]


def step_times_table(bench, before, now):
    """One row per problem: the cold median of two neighbouring stages; before may be None."""
    rows = []
    for problem in bench.problems:
        old, new, factor = step_cells(problem, bench, before, now)
        rows.append([problem.name, old.cold, new.cold, factor, new.tflops, new.ceiling])
    return markdown(["problem", f"{before} [ms]", f"{now} [ms]", "÷ before", HEADINGS.tflops,
                     HEADINGS.ceiling], rows)


def runs_table(runs):
    """What run and check found: right or wrong, and on a GPU the time with warm caches."""
    rows = [[run.stage, run.problem, run.backend, run.status,
             ratio(run.max_error_ratio), "" if run.time_ms is None else milliseconds(run.time_ms),
             ratio(run.tflops), run.message] for run in runs]
    return markdown(["stage", "problem", "backend", "check", "max error / allowed", HEADINGS.warm,
                     HEADINGS.tflops, "message"], rows)
