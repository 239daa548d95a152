"""Tables of counters: stages as rows in ladder order, columns without any data left out."""
from typing import NamedTuple
from collections.abc import Callable

import counters
from counters import LEVELS, LOADS, STORES, Figure
from formats import markdown, milliseconds, percent, ratio, scaled, significant, size

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
        columns.append([ratio(counters.quotient(figure, least)) for figure in figures])
        columns.append([ratio(counters.quotient(now, before))
                        for before, now in zip([None] + figures, figures)])
    return markdown(header, [list(row) for row in zip(stages, *columns)])


def summed(profile, of_kernel):
    return lambda stage: counters.of_stage(profile.stages[stage], of_kernel)


def of_main_kernel(profile, of_kernel):
    """`of_kernel`: a metric's name, or a function of the kernel."""
    def figure(stage):
        kernel = counters.main_kernel(profile.stages[stage])
        if kernel is None:
            return None
        value = of_kernel(kernel) if callable(of_kernel) else kernel.metrics.get(of_kernel)
        return None if value is None else Figure(value)
    return figure


def intensity(profile, level):
    def figure(stage):
        value = counters.flop_per_byte(profile.stages[stage], profile.flop, level)
        return None if value is None else Figure(value)
    return figure


def per_request(profile, what):
    return lambda stage: counters.per_request(profile.stages[stage], what)


def stalled_on(profile, reason):
    """Cycles that a warp waits for this, on average, per instruction that it issues."""
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
        Column("FFMA", summed(profile, lambda kernel: kernel.metrics.get(
            "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum")), scaled),
        Column("instructions", summed(profile, lambda kernel: kernel.metrics.get(
            "smsp__inst_executed.sum")), scaled),
        Column("profiled [ms]", summed(profile, lambda kernel: counters.times(
            1e-6, kernel.metrics.get("gpu__time_duration.sum"))), milliseconds),
    ]


FLOOR = "at least [ms]"


def floor_columns(profile):
    def of_kernels(stage):
        floor = counters.floor(profile.stages[stage])
        return None if floor is None else Figure(floor[0])

    return [Column(FLOOR, of_kernels, milliseconds)]


def floor_table(profile):
    """What each stage takes at the least, by its counts, and its share of the time under the profiler.
    Empty without."""
    rows = []
    for stage, kernels in profile.stages.items():
        floor = counters.floor(kernels)
        if floor is None:
            rows.append([stage, "", "", "", ""])
            continue
        took = counters.of_stage(kernels, lambda kernel: counters.times(
            1e-6, kernel.metrics.get("gpu__time_duration.sum")))
        share = counters.quotient(Figure(floor[0]), took)
        rows.append([stage, milliseconds(floor[0]), floor[1],
                     milliseconds(took.value) if took else "", ratio(share)])
    if not any(row[1] for row in rows):
        return ""
    return markdown(["stage", FLOOR, "limited by", "profiled [ms]", "share of it"], rows)


def kernel_columns(profile):
    """What does not add up over kernels: of the main kernel of each stage."""
    return [
        Column("registers", of_main_kernel(profile, "launch__registers_per_thread"), scaled),
        Column("shared / block", of_main_kernel(profile, counters.shared_per_block), size),
        Column("occupancy, at most", of_main_kernel(
            profile, "sm__maximum_warps_per_active_cycle_pct"), percent),
        Column("occupancy", of_main_kernel(
            profile, "sm__warps_active.avg.pct_of_peak_sustained_active"), percent),
        Column("SM throughput", of_main_kernel(
            profile, "sm__throughput.avg.pct_of_peak_sustained_elapsed"), percent),
        Column("issue slots", of_main_kernel(
            profile, "smsp__issue_active.avg.pct_of_peak_sustained_active"), percent),
        Column("L1's data pipe", of_main_kernel(
            profile, "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed"), percent),
        Column("L1 hits", of_main_kernel(profile, "l1tex__t_sector_hit_rate.pct"), percent),
        Column("L2 hits", of_main_kernel(profile, "lts__t_sector_hit_rate.pct"), percent),
        Column("cycles / instruction", of_main_kernel(
            profile, "smsp__average_warp_latency_per_inst_issued.ratio"), significant),
        Column("stalled: global", stalled_on(profile, "long_scoreboard"), significant),
        Column("stalled: global queue", stalled_on(profile, "lg_throttle"), significant),
        Column("stalled: shared", stalled_on(profile, "short_scoreboard"), significant),
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
