"""Tables of counters: stages as rows in ladder order, columns without any data left out."""
import functools
from typing import NamedTuple
from collections.abc import Callable

from common.show import counters
from common.show.counters import LEVELS, LOADS, STORES, Figure
from common.show.counters import sum_of as metric
from common.show.formats import markdown, milliseconds, percent, ratio, scaled, significant, size

SOURCES = {"ncu": "Nsight Compute", "simulator": "the counting simulator",
           "cuda_runtime": "the CUDA runtime, before the run"}


class Column(NamedTuple):
    heading: str
    figure: Callable  # name of a stage -> Figure or None
    text: Callable    # the Figure's value -> str


def source_of(profile):
    return SOURCES.get(profile.source, profile.source)


def cell(figure, text):
    return "" if figure is None else text(figure.value) + (" *" if figure.partial else "")


def summed(of_kernel):
    return lambda profile, stage: counters.of_stage(profile.stages[stage], of_kernel)


def of_main_kernel(of_kernel):
    def figure(profile, stage):
        kernel = counters.main_kernel(profile.stages[stage])
        value = of_kernel(kernel) if kernel else None
        return None if value is None else Figure(value)
    return figure


def intensity(level):
    def figure(profile, stage):
        value = counters.flop_per_byte(profile.stages[stage], profile.flop, level)
        return None if value is None else Figure(value)
    return figure


def per_request(what):
    """Sectors per request of the stage's loads or stores; what: LOADS or STORES."""
    units = [metric(f"l1tex__t_{unit}_pipe_lsu{what}") for unit in ("sectors", "requests")]

    def figure(profile, stage):
        sectors, asked = (counters.of_stage(profile.stages[stage], unit) for unit in units)
        if not sectors or not asked or asked.value == 0:
            return None
        return Figure(sectors.value / asked.value, sectors.partial)
    return figure


def least_time(profile, stage):
    floor = counters.floor(profile.stages[stage])
    return None if floor is None else Figure(floor[0])


# Heading, how the figure comes from Profile and stage, and how its value is written.
FLOOR = "at least [ms]"
OF_FLOOR = [(FLOOR, least_time, milliseconds)]
OF_LEVELS = [(level.name, summed(level.of_kernel), size) for level in LEVELS]
OF_WARPS = [  # what they ask for: sums over the stage's kernels
    ("requests", summed(counters.requests), scaled),
    ("sectors / load", per_request(LOADS), significant),
    ("sectors / store", per_request(STORES), significant),
    ("shared wavefronts", summed(counters.shared_wavefronts), scaled),
    ("bank conflicts", summed(counters.bank_conflicts), scaled),
    *((f"FLOP / {level.name} byte", intensity(level), significant)
      for level in LEVELS if level.name in ("DRAM", "touched")),
    ("FFMA", summed(metric("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum")), scaled),
    ("instructions", summed(metric("smsp__inst_executed.sum")), scaled),
    ("profiled [ms]", summed(counters.profiled_ms), milliseconds),
]
# What does not add up over kernels: of the main kernel of each stage.
OF_MAIN_KERNEL = [(heading, of_main_kernel(of_kernel), text) for heading, of_kernel, text in [
    ("registers", metric("launch__registers_per_thread"), scaled),
    ("shared / block", counters.shared_per_block, size),
    ("occupancy, at most", metric("sm__maximum_warps_per_active_cycle_pct"), percent),
    ("occupancy", metric("sm__warps_active.avg.pct_of_peak_sustained_active"), percent),
    ("SM throughput", metric("sm__throughput.avg.pct_of_peak_sustained_elapsed"), percent),
    ("issue slots", metric("smsp__issue_active.avg.pct_of_peak_sustained_active"), percent),
    ("L1's data pipe",
     metric("l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed"), percent),
    ("L1 hits", metric("l1tex__t_sector_hit_rate.pct"), percent),
    ("L2 hits", metric("lts__t_sector_hit_rate.pct"), percent),
    ("cycles / instruction",
     metric("smsp__average_warp_latency_per_inst_issued.ratio"), significant),
    # Cycles that a warp waits for this, on average, per instruction that it issues.
    *((f"stalled: {what}",
       metric(f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"), significant)
      for what, reason in (("global", "long_scoreboard"), ("global queue", "lg_throttle"),
                           ("shared", "short_scoreboard"), ("shared queue", "mio_throttle"),
                           ("barrier", "barrier"))),
]]


def columns_of(table, profile):
    return [Column(heading, functools.partial(figure, profile), text)
            for heading, figure, text in table]


floor_columns = functools.partial(columns_of, OF_FLOOR)
level_columns = functools.partial(columns_of, OF_LEVELS)
warp_columns = functools.partial(columns_of, OF_WARPS)
kernel_columns = functools.partial(columns_of, OF_MAIN_KERNEL)


def traffic_table(profile):
    """Bytes at each level, each by the least possible and by the stage before."""
    least, stages = Figure(profile.least_bytes), list(profile.stages)
    header, columns = ["stage"], []
    for column in level_columns(profile):
        figures = [column.figure(stage) for stage in stages]
        header += [column.heading, "÷ least", "÷ before"]
        columns.append([cell(figure, column.text) for figure in figures])
        columns.append([ratio(counters.quotient(figure, least)) for figure in figures])
        columns.append([ratio(counters.quotient(now, before))
                        for before, now in zip([None] + figures, figures)])
    return markdown(header, [list(row) for row in zip(stages, *columns)])


def floor_table(profile):
    """What each stage takes at the least, by its counts, and its share of the time under the profiler.
    Empty without."""
    rows = []
    for stage, kernels in profile.stages.items():
        floor = counters.floor(kernels)
        if floor is None:
            rows.append([stage, "", "", "", ""])
            continue
        took = counters.of_stage(kernels, counters.profiled_ms)
        rows.append([stage, milliseconds(floor[0]), floor[1], cell(took, milliseconds),
                     ratio(counters.quotient(Figure(floor[0]), took))])
    if not any(row[1] for row in rows):
        return ""
    return markdown(["stage", FLOOR, "limited by", "profiled [ms]", "share of it"], rows)


def stage_table(profile, columns, names=None):
    """Empty where the source has nothing for any column. `names`: {stage: its longest kernel}."""
    rows = [[stage, names[stage] if names else "",
             *(cell(column.figure(stage), column.text) for column in columns)]
            for stage in profile.stages]
    if not any(any(row[2:]) for row in rows):
        return ""
    return markdown(["stage", "longest kernel", *(column.heading for column in columns)], rows)


def kernel_table(profile):
    names = {stage: getattr(counters.main_kernel(kernels), "name", "")
             for stage, kernels in profile.stages.items()}
    return stage_table(profile, kernel_columns(profile), names)


def step_rows(profile, before, now):
    """{counter: its row} of two neighbouring stages: before, now, and now ÷ before. Either may be
    missing from the profile; empty where both are."""
    rows = {}
    for column in level_columns(profile) + warp_columns(profile) + kernel_columns(profile):
        figures = [column.figure(stage) if stage in profile.stages else None
                   for stage in (before, now)]
        if any(figures):
            rows[column.heading] = [column.heading, *(cell(figure, column.text) for figure in figures),
                                    ratio(counters.quotient(figures[1], figures[0]))]
    return rows


def step_table(profile, before, now):
    rows = list(step_rows(profile, before, now).values())
    return markdown(["counted", before or "", now, "÷ before"], rows) if rows else ""


def last_table(profile, last):
    """What each figure is of that of the last time: `last` are Profiles of single stages."""
    columns, rows = level_columns(profile) + warp_columns(profile), []
    for before in last:
        stage = next(iter(before.stages))
        then = level_columns(before) + warp_columns(before)
        rows.append([stage, *(ratio(counters.quotient(now.figure(stage), old.figure(stage)))
                              for now, old in zip(columns, then))])
    return markdown(["÷ last time", *(column.heading for column in columns)], rows)
