"""Markdown tables: stages as rows in ladder order, columns without any data left out."""
import math
from typing import Callable, NamedTuple

import counters
from counters import LEVELS, LOADS, STORES, Figure

SOURCES = {"ncu": "Nsight Compute", "simulator": "the counting simulator",
           "cuda_runtime": "the CUDA runtime, before the run"}
COMPETITORS = {"cudnn": "cuDNN", "pytorch": "PyTorch"}


class Column(NamedTuple):
    heading: str
    figure: Callable  # name of a stage -> Figure or None
    text: Callable    # the Figure's value -> str


def source_of(profile):
    return SOURCES.get(profile.source, profile.source)


def title_of(problem):
    """Of anything with a name, a shape and a bias."""
    return f"{problem.name}: {problem.shape}{', bias' if problem.bias else ''}"


# --- numbers as text -----------------------------------------------------------------------------

def significant(value, digits=3):
    """The value with so many digits, never in powers of ten: 0.0437, 4.37, 437, 43700."""
    if value == 0:
        return "0"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{value:.{max(0, decimals)}f}"


def scaled(value, unit=""):
    """A count: 6.57 M, or 96."""
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{significant(value / factor)} {prefix}{unit}"
    return f"{value:.0f} {unit}".strip()


def size(value):
    return scaled(value, "B")


def percent(value):
    return significant(value) + " %"


def milliseconds(value):
    return significant(value, 4)


# --- Markdown ------------------------------------------------------------------------------------

def markdown(header, rows):
    """Columns with numbers are aligned to the right; those whose cells are all empty go."""
    kept = [i for i in range(len(header)) if i == 0 or any(row[i] for row in rows)]
    lines = [[header[i] for i in kept],
             ["--:" if i > 0 and any(row[i][:1].isdigit() for row in rows) else "---"
              for i in kept]]
    lines += [[row[i].replace("|", "\\|") for i in kept] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def cell(figure, text):
    return "" if figure is None else text(figure.value) + (" *" if figure.partial else "")


def ratio_cell(value):
    return "" if value is None else significant(value)


# --- times ---------------------------------------------------------------------------------------

def median(timing):
    return timing.cold.median if timing.cold else None


def tflops(timing, flop):
    return flop / timing.cold.median * 1e-9


def time_ratio(above, below):
    """The quotient of two Timings' cold medians; "" without one of them."""
    if not median(above) or not median(below):
        return ""
    return significant(median(above) / median(below))


def competitor_title(competitor):
    """The precision is part of the name: FP32 and TF32 never stand in one column."""
    layout = " NHWC" if competitor.layout == "nhwc" else ""
    name = COMPETITORS.get(competitor.name, competitor.name)
    return f"{name} {competitor.precision.upper()}{layout}"


def ladder_of_competitors(problem):
    """FP32 before TF32, cuDNN before PyTorch, NCHW before NHWC."""
    return sorted(problem.competitors, key=lambda c: (c.precision, c.name, c.layout))


def time_cells(timing, flop, bench, precision="fp32"):
    """Cold median, quartiles, warm median, TFLOP/s, share of the FP32 ceiling."""
    if not timing.cold:
        return [timing.status, "", "", "", ""]
    cold, rate = timing.cold, tflops(timing, flop)
    return [milliseconds(cold.median),
            f"{milliseconds(cold.lower_quartile)}–{milliseconds(cold.upper_quartile)}",
            milliseconds(timing.warm.median) if timing.warm else "", significant(rate),
            percent(100 * rate / bench.fma_tflops) if precision == "fp32" else ""]


TIME_HEADINGS = ["cold [ms]", "quartiles [ms]", "warm [ms]", "TFLOP/s", "of FP32 ceiling"]


def times_table(problem, bench, brief=False):
    """Of a BenchProblem. A stage that failed has its status and no time. Brief: without the
    quartiles and the warm times."""
    rivals = ladder_of_competitors(problem)
    kept = [0, 3, 4] if brief else range(len(TIME_HEADINGS))
    header = (["stage"] + [TIME_HEADINGS[i] for i in kept] + ["cold ÷ before"] +
              ["× " + competitor_title(rival) for rival in rivals])
    rows, before = [], None
    for name, timing in problem.stages.items():
        cells = time_cells(timing, problem.flop, bench)
        rows.append([name] + [cells[i] for i in kept] +
                    [time_ratio(timing, before) if before else ""] +
                    [time_ratio(rival.timing, timing) for rival in rivals])
        before = timing
    return markdown(header, rows)


def competitors_table(problem, bench):
    """The libraries that ran in the same rounds; empty without any."""
    if not problem.competitors:
        return ""
    rows = []
    for rival in ladder_of_competitors(problem):
        error = rival.timing.max_error_ratio
        rows.append([competitor_title(rival)] +
                    time_cells(rival.timing, problem.flop, bench, rival.precision) +
                    ["" if error is None else significant(error), rival.algorithm, rival.library,
                     rival.timing.message])
    return markdown(["competitor"] + TIME_HEADINGS +
                    ["max error / allowed", "algorithm", "library", "message"], rows)


def layers_table(bench):
    """One row per problem, one column per stage: the cold median, and its share of the ceiling."""
    stages = sorted({name for problem in bench.problems for name in problem.stages})
    rows = []
    for problem in bench.problems:
        cells = [time_cells(problem.stages[name], problem.flop, bench) if name in problem.stages
                 else [""] * 5 for name in stages]
        rows.append([problem.name] + [f"{time} ({share})" if share else time
                                      for time, _, _, _, share in cells])
    return markdown(["problem"] + stages, rows)


def step_times_table(bench, before, now):
    """One row per problem: the cold median of two neighbouring stages; before may be None."""
    rows = []
    for problem in bench.problems:
        timings = [problem.stages.get(stage) for stage in (before, now)]
        cells = [time_cells(timing, problem.flop, bench) if timing else [""] * 5
                 for timing in timings]
        ratio = time_ratio(timings[1], timings[0]) if all(timings) else ""
        rows.append([problem.name, cells[0][0], cells[1][0], ratio, cells[1][3], cells[1][4]])
    return markdown(["problem", f"{before} [ms]", f"{now} [ms]", "÷ before", "TFLOP/s",
                     "of FP32 ceiling"], rows)


# --- counters ------------------------------------------------------------------------------------

def level_columns(profile):
    return [Column(level.name, lambda stage, level=level: counters.of_stage(
        profile.stages[stage], level.of_kernel), size) for level in LEVELS]


def traffic_table(profile):
    """Bytes at each level, each by the least possible and by the stage before."""
    least, stages = Figure(profile.least_bytes), list(profile.stages)
    header, columns = ["stage"], []
    for column in level_columns(profile):
        figures = [column.figure(stage) for stage in stages]
        header += [column.heading, "÷ least", "÷ before"]
        columns.append([cell(figure, column.text) for figure in figures])
        columns.append([ratio_cell(counters.quotient(figure, least)) for figure in figures])
        columns.append([ratio_cell(counters.quotient(now, before))
                        for before, now in zip([None] + figures, figures)])
    return markdown(header, [list(row) for row in zip(stages, *columns)])


def summed(profile, of_kernel):
    return lambda stage: counters.of_stage(profile.stages[stage], of_kernel)


def of_main_kernel(profile, *names):
    """The first of the metrics that the stage's main kernel has."""
    def figure(stage):
        kernel = counters.main_kernel(profile.stages[stage])
        values = [kernel.metrics.get(name) for name in names] if kernel else []
        known = counters.first_known(*values)
        return None if known is None else Figure(known)
    return figure


def intensity(profile, level):
    def figure(stage):
        value = counters.flop_per_byte(profile.stages[stage], profile.flop, level)
        return None if value is None else Figure(value)
    return figure


def per_request(profile, what):
    return lambda stage: counters.per_request(profile.stages[stage], what)


def stalled_on(profile, reason):
    """Warps that wait for this, on average, per instruction issued."""
    return of_main_kernel(
        profile, f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio")


def warp_columns(profile):
    """What the stage's warps ask for; sums over its kernels."""
    levels = {level.name: level for level in LEVELS}
    return [
        Column("requests", summed(profile, counters.requests), scaled),
        Column("sectors / load", per_request(profile, LOADS), significant),
        Column("sectors / store", per_request(profile, STORES), significant),
        Column("shared wavefronts", summed(profile, counters.shared_wavefronts), scaled),
        Column("bank conflicts", summed(profile, counters.bank_conflicts), scaled),
        Column("FLOP / DRAM byte", intensity(profile, levels["DRAM"]), significant),
        Column("FLOP / touched byte", intensity(profile, levels["touched"]), significant),
        Column("profiled [ms]", summed(profile, lambda kernel: counters.times(
            1e-6, kernel.metrics.get("gpu__time_duration.sum"))), milliseconds),
    ]


def kernel_columns(profile):
    """What does not add up over kernels: of the main kernel of each stage."""
    return [
        Column("registers", of_main_kernel(profile, "launch__registers_per_thread"), scaled),
        Column("shared / block", of_main_kernel(
            profile, "launch__shared_mem_per_block", "launch__shared_mem_per_block_static"), size),
        Column("occupancy, at most", of_main_kernel(
            profile, "sm__maximum_warps_per_active_cycle_pct"), percent),
        Column("occupancy", of_main_kernel(
            profile, "sm__warps_active.avg.pct_of_peak_sustained_active"), percent),
        Column("SM throughput", of_main_kernel(
            profile, "sm__throughput.avg.pct_of_peak_sustained_elapsed"), percent),
        Column("L1 hits", of_main_kernel(profile, "l1tex__t_sector_hit_rate.pct"), percent),
        Column("L2 hits", of_main_kernel(profile, "lts__t_sector_hit_rate.pct"), percent),
        Column("stalled: global", stalled_on(profile, "long_scoreboard"), significant),
        Column("stalled: shared queue", stalled_on(profile, "mio_throttle"), significant),
        Column("stalled: barrier", stalled_on(profile, "barrier"), significant),
    ]


def stage_table(profile, columns):
    """Empty where the source has nothing for any column."""
    rows = [[stage] + [cell(column.figure(stage), column.text) for column in columns]
            for stage in profile.stages]
    if not any(any(row[1:]) for row in rows):
        return ""
    return markdown(["stage"] + [column.heading for column in columns], rows)


def kernel_table(profile):
    columns = kernel_columns(profile)
    if not stage_table(profile, columns):
        return ""
    names = {stage: counters.main_kernel(kernels) for stage, kernels in profile.stages.items()}
    rows = [[stage, names[stage].name if names[stage] else ""] +
            [cell(column.figure(stage), column.text) for column in columns]
            for stage in profile.stages]
    return markdown(["stage", "longest kernel"] + [column.heading for column in columns], rows)


def step_table(profile, before, now):
    """Counters of two neighbouring stages as rows: before, now, and now ÷ before. Either may be
    missing from the profile; empty where both are."""
    rows = []
    for column in level_columns(profile) + warp_columns(profile) + kernel_columns(profile):
        figures = [column.figure(stage) if stage in profile.stages else None
                   for stage in (before, now)]
        if any(figures):
            rows.append([column.heading] + [cell(figure, column.text) for figure in figures] +
                        [ratio_cell(counters.quotient(figures[1], figures[0]))])
    return markdown(["counted", before or "", now, "÷ before"], rows) if rows else ""


# --- checks --------------------------------------------------------------------------------------

def runs_table(runs):
    """What run and check found: right or wrong, and on a GPU the time with warm caches."""
    rows = [[run.stage, run.problem, run.backend, run.status,
             "" if run.max_error_ratio is None else significant(run.max_error_ratio),
             "" if run.time_ms is None else milliseconds(run.time_ms),
             "" if run.tflops is None else significant(run.tflops), run.message] for run in runs]
    return markdown(["stage", "problem", "backend", "check", "max error / allowed", "warm [ms]",
                     "TFLOP/s", "message"], rows)
