"""Tables of counters: stages as rows in ladder order, columns without any data left out."""
from typing import NamedTuple
from collections.abc import Callable

from common.show import counters, floors, metrics, records
from common.show.counters import LEVELS, Figure, sum_of, total
from common.show.formats import markdown, milliseconds, percent, ratio, scaled, significant, size

SOURCES = {"ncu": "Nsight Compute", "simulator": "the counting simulator"}
TEXTS = {"count": scaled, "sectors": scaled, "bytes": size, "percent": percent, "ratio": significant,
         "ns": lambda nanoseconds: milliseconds(1e-6 * nanoseconds)}
LONGEST_NAME = 30  # of a library's kernel in a table


class Column(NamedTuple):
    heading: str
    figure: Callable  # Profile, name of a stage -> Figure or None
    text: Callable    # the Figure's value -> str


def source_of(profile):
    return SOURCES.get(profile.source, profile.source)


def cell(figure, text):
    return "" if figure is None else text(figure.value) + (" *" if figure.partial else "")


# --- columns -------------------------------------------------------------------------------------

def summed(of_kernel):
    return lambda profile, stage: counters.of_stage(profile.stages[stage], of_kernel)


def of_main_kernel(of_kernel):
    def figure(profile, stage):
        kernel = counters.main_kernel(profile.stages[stage])
        value = of_kernel(kernel) if kernel else None
        return None if value is None else Figure(value)
    return figure


def per(above, below):
    """One of these sums by another."""
    def figure(profile, stage):
        amounts = [counters.of_stage(profile.stages[stage], total(name)) for name in (above, below)]
        if not all(amounts) or amounts[1].value == 0:
            return None
        return Figure(amounts[0].value / amounts[1].value, amounts[0].partial)
    return figure


def intensity(level):
    def figure(profile, stage):
        value = counters.flop_per_byte(profile.stages[stage], profile.flop, level)
        return None if value is None else Figure(value)
    return figure


def least_time(profile, stage):
    floor = floors.of_stage(profile.stages[stage])
    return None if floor is None else Figure(floor[0])


def of_metrics(table, how):
    """The columns that metrics.csv has for a table."""
    return [Column(metric.heading, how(sum_of(metric.metric)), TEXTS[metric.unit])
            for metric in metrics.columns(table)]


FLOOR = Column("at least [ms]", least_time, milliseconds)
OF_LEVELS = [Column(level.name, summed(level.of_kernel), size) for level in LEVELS]
OF_WARPS = [  # what they ask for: sums over the stage's kernels
    Column("requests", summed(counters.requests), scaled),
    Column("sectors / load", per("load_sectors", "loads"), significant),
    Column("sectors / store", per("store_sectors", "stores"), significant),
    Column("shared wavefronts", summed(counters.shared_wavefronts), scaled),
    Column("bank conflicts", summed(counters.bank_conflicts), scaled),
    *(Column(f"FLOP / {level.name} byte", intensity(level), significant)
      for level in LEVELS if level.name in ("DRAM", "touched")),
    *of_metrics("work", summed)]
# What does not add up over kernels: of the main kernel of each stage.
SHARED = Column("shared / block", of_main_kernel(counters.shared_per_block), size)
OF_MAIN_KERNEL = of_metrics("kernel", of_main_kernel)
OF_MAIN_KERNEL.insert(3, SHARED)  # behind the registers
COLUMNS = OF_LEVELS + OF_WARPS + OF_MAIN_KERNEL


# --- tables of stages ----------------------------------------------------------------------------

def compared_table(profile, columns, last, least=None):
    """Each figure by that of the stage before and, if `last` has the stage's Profile of the last time, by
    what it was then; by `least`, where that is given. Empty without any."""
    stages, header, cells = list(profile.stages), ["stage"], []
    for column in columns:
        figures = [column.figure(profile, stage) for stage in stages]
        then = [column.figure(last[stage], stage) if stage in last else None for stage in stages]
        header.append(column.heading)
        cells.append([cell(figure, column.text) for figure in figures])
        if column.text is significant:  # of a ratio another is hard to read
            continue
        for heading, others in (("÷ least", [least] * len(stages)), ("÷ before", [None] + figures),
                                ("÷ last time", then)):
            header.append(heading)
            cells.append([ratio(counters.quotient(*pair)) for pair in zip(figures, others)])
    return markdown(header, [list(row) for row in zip(stages, *cells)]) if any(map(any, cells)) else ""


def traffic_table(profile, last=None):
    """Bytes at each level, each by the least possible, by the stage before, and by the last time."""
    return compared_table(profile, OF_LEVELS, last or {}, Figure(profile.least_bytes))


def floor_table(profile, rates=None):
    """What each stage takes at the least, by its counts, and its share of the time under the profiler. With
    the GPU's rates, how much of its FMA ceiling that leaves possible. Where a problem was cut down, the
    same of the whole. Empty without least times."""
    rows, ceiling = [], "FMA ceiling, at most"
    heading = f"at least on {with_article(profile.machine)} [ms]" if profile.machine else FLOOR.heading
    for stage, kernels in profile.stages.items():
        row = [stage]
        for whole, flop in ((False, profile.flop), (True, profile.whole_flop)):
            floor = floors.of_stage(kernels, whole)
            row += ["", "", ""] if not floor or not floor[0] else [
                milliseconds(floor[0]), floor[1],
                percent(min(100, 1e-7 * flop / floor[0] / rates["fma_tflops"])) if rates else ""]
        took = counters.of_stage(kernels, counters.profiled_ms)
        share = counters.quotient(least_time(profile, stage), took)
        rows.append(row + [cell(took, milliseconds), ratio(share)])
    if not any(row[1] or row[4] for row in rows):
        return ""
    return markdown(["stage", heading, "limited by", ceiling, "the whole problem [ms]", "limited by",
                     ceiling, "profiled [ms]", "share of it"], rows)


def brief_table(profile, named=False):
    """What `./ladder run` shows of it: a row for each stage, and what a beginner asks first. Forms of a
    stage, 15_copy_engine_tf32 of 15_copy_engine, have a row if stages are `named`."""
    headings = {"requests": "requests", "shared wavefronts": "shared wavefronts", "touched": "DRAM, at least"}
    columns = [column for name in headings for column in COLUMNS if column.heading == name]
    rows = []
    for stage in profile.stages if named else records.without_forms(profile.stages):
        floor = floors.of_stage(profile.stages[stage]) or (None, "")
        rows.append([stage, *(cell(column.figure(profile, stage), column.text) for column in columns),
                     milliseconds(floor[0]) if floor[0] else "", floor[1] if floor[0] else ""])
    return markdown(["stage", *headings.values(), FLOOR.heading, "set by"], rows)


def with_article(gpu):
    """"an H200" of "NVIDIA H200"."""
    name = gpu.removeprefix("NVIDIA ")
    return ("an " if name[0] in "AEFHILMNORSX8" else "a ") + name


def step_rows(profile, before, now):
    """{counter: its row} of two neighbouring stages: before, now, and now ÷ before. Either may be
    missing from the profile; empty where both are."""
    rows = {}
    for column in COLUMNS:
        figures = [column.figure(profile, stage) if stage in profile.stages else None
                   for stage in (before, now)]
        if any(figures):
            rows[column.heading] = [column.heading, *(cell(figure, column.text) for figure in figures),
                                    ratio(counters.quotient(figures[1], figures[0]))]
    return rows


def step_table(profile, before, now):
    rows = list(step_rows(profile, before, now).values())
    return markdown(["counted", before or "", now, "÷ before"], rows) if rows else ""


# --- why a warp does not issue -------------------------------------------------------------------------

CYCLES = "smsp__average_warp_latency_per_inst_issued.ratio"  # selected, and all that it is stalled for
STALLED = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
WAITS = {"not_selected": "another warp's turn", "wait": "the instruction before",
         "long_scoreboard": "global memory", "lg_throttle": "the queue to global memory",
         "short_scoreboard": "shared memory, or the unit for roots",
         "mio_throttle": "the queue to shared memory",
         "barrier": "a barrier", "gmma": "products of a warpgroup",
         "math_pipe_throttle": "a unit that is busy",
         "dispatch_stall": "chosen, but not sent yet"}
AS_BEFORE = 0.065  # cycles: what moves less has not moved
LEAST_WAIT = 0.05  # of the cycles: what is less in all stages of a table is among the rest


def waits_table(profile, stages):
    """The cycles from one instruction of a warp to its next, in the main kernel of each of these stages, by
    what the warp waits for: the rows add up to the last. A sentence where nothing has moved, and empty where
    a stage has no such counters."""
    found = [counters.main_kernel(profile.stages.get(stage, [])) for stage in stages]
    if not all(kernel and CYCLES in kernel.metrics for kernel in found):
        return ""
    shown = {"it issues (`selected`)": [1.0] * len(found)}
    for name, reason in WAITS.items():
        cycles = [kernel.metrics.get(STALLED.format(name), 0) for kernel in found]
        if max(value / kernel.metrics[CYCLES] for value, kernel in zip(cycles, found)) >= LEAST_WAIT:
            shown[f"{reason} (`{name}`)"] = [round(value, 2) for value in cycles]
    moved = max(max(cycles) - min(cycles) for cycles in shown.values())
    if len(found) > 1 and moved < AS_BEFORE:
        last, now = (kernel.metrics[CYCLES] for kernel in found)
        return (f"A [warp's cycles](../docs/profiling.md#cycles-of-a-warp) are `{stages[0]}`'s, each row "
                f"within {moved:.2f}: together {now:.2f}, where they were {last:.2f}.\n")
    known = [sum(column) for column in zip(*shown.values())]
    rest = [max(0.0, kernel.metrics[CYCLES] - cycles) for kernel, cycles in zip(found, known)]
    shown["the rest"] = [round(value, 2) for value in rest]
    shown["**together**"] = [sum(column) for column in zip(*shown.values())]
    return markdown(["[cycles of a warp](../docs/profiling.md#cycles-of-a-warp)", *stages],
                    [[name, *(f"{value:.2f}" for value in cycles)] for name, cycles in shown.items()])


# --- tables of kernels, and all of them -------------------------------------------------------------

def table_of_kernels(profile, columns):
    """A row for each kernel of each stage that asks for any of it. Columns whose figure is of a Kernel;
    those that are 0 throughout are left out."""
    rows = [(stage, kernel, [column.figure(kernel) for column in columns])
            for stage, kernels in profile.stages.items() for kernel in kernels]
    kept = [i for i in range(len(columns)) if any(values[i] for _, _, values in rows)]
    cells = [[stage, name_of(kernel), *("" if values[i] is None else columns[i].text(values[i])
                                        for i in kept)]
             for stage, kernel, values in rows if any(values[i] for i in kept)]
    return markdown(["stage", "kernel", *(columns[i].heading for i in kept)], cells) if cells else ""


def name_of(kernel):
    name = kernel.name if len(kernel.name) <= LONGEST_NAME else kernel.name[:LONGEST_NAME - 3] + "..."
    return f"{name} *" if kernel.library else name


def tables(profile, last=None, rates=None):
    """All that the profile's source says, as [(what it is of, table)]. `last`: {stage: its Profile of the
    last time}; `rates`: of the GPU whose least times the profile has."""
    def own(table):
        return of_metrics(table, lambda of_kernel: of_kernel)

    bytes_moved = [Column(level.name, level.of_kernel, size) for level in LEVELS if level.name != "L1"]
    time = FLOOR._replace(figure=lambda kernel: kernel.floor_ms)
    shared = SHARED._replace(figure=counters.shared_per_block)
    found = [
        ("Global memory: instructions, warp by warp, the 32-byte sectors that they touch, and bytes. Copies "
         "are\nasynchronous, from global to shared memory, and are among the loads.",
         table_of_kernels(profile, own("global") + bytes_moved)),
        ("Shared memory: instructions, warp by warp, the wavefronts that they take, and those of them due "
         "to\nbank conflicts.", table_of_kernels(profile, own("shared"))),
        ("Kernels:", table_of_kernels(profile, [time, *own("work"), shared, *own("kernel")])),
        ("Stages, by the bytes that the problem must move, by the stage before, and by the last time:",
         traffic_table(profile, last)),
        ("What their warps ask for:", compared_table(profile, OF_WARPS, last or {})),
        ("The least time that they take:", floor_table(profile, rates))]
    return [(about, table) for about, table in found if table]
