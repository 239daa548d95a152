"""Tables of counters: stages as rows in ladder order, columns without any data left out."""
import functools
from typing import NamedTuple
from collections.abc import Callable

from common.show import counters, floors, metrics
from common.show.counters import LEVELS, Figure, sum_of, total
from common.show.formats import markdown, milliseconds, percent, ratio, scaled, significant, size

SOURCES = {"ncu": "Nsight Compute", "simulator": "the counting simulator",
           "cuda_runtime": "the CUDA runtime, before the run"}
LONGEST_NAME = 30  # of a library's kernel in a table


class Column(NamedTuple):
    heading: str
    figure: Callable  # name of a stage -> Figure or None
    text: Callable    # the Figure's value -> str


def source_of(profile):
    return SOURCES.get(profile.source, profile.source)


def cell(figure, text):
    return "" if figure is None else text(figure.value) + (" *" if figure.partial else "")


# --- columns -------------------------------------------------------------------------------------
# A row of these lists: heading, how the figure comes from Profile and stage, how its value is written.

TEXTS = {"count": scaled, "sectors": scaled, "bytes": size, "percent": percent, "ratio": significant,
         "ns": lambda nanoseconds: milliseconds(1e-6 * nanoseconds)}


def summed(of_kernel):
    return lambda profile, stage: counters.of_stage(profile.stages[stage], of_kernel)


def of_main_kernel(of_kernel):
    def figure(profile, stage):
        kernel = counters.main_kernel(profile.stages[stage])
        value = of_kernel(kernel) if kernel else None
        return None if value is None else Figure(value)
    return figure


def per(above, below):
    """What a request of the stage's loads, or stores, costs."""
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


def columns_by(table, how):
    """Those of metrics.csv that this table has."""
    return [(metric.heading, how(sum_of(metric.metric)), TEXTS[metric.unit])
            for metric in metrics.columns(table)]


FLOOR = "at least [ms]"
OF_FLOOR = [(FLOOR, least_time, milliseconds)]
OF_LEVELS = [(level.name, summed(level.of_kernel), size) for level in LEVELS]
SECTORS_PER = [("sectors / load", per("load_sectors", "loads"), significant),
               ("sectors / store", per("store_sectors", "stores"), significant)]
OF_WARPS = [  # what they ask for: sums over the stage's kernels
    ("requests", summed(counters.requests), scaled), *SECTORS_PER,
    ("shared wavefronts", summed(counters.shared_wavefronts), scaled),
    ("bank conflicts", summed(counters.bank_conflicts), scaled),
    *((f"FLOP / {level.name} byte", intensity(level), significant)
      for level in LEVELS if level.name in ("DRAM", "touched")),
    *columns_by("work", summed)]
# What does not add up over kernels: of the main kernel of each stage.
OF_MAIN_KERNEL = columns_by("kernel", of_main_kernel)
OF_MAIN_KERNEL.insert(1, ("shared / block", of_main_kernel(counters.shared_per_block), size))


def columns_of(table, profile):
    return [Column(heading, functools.partial(figure, profile), text)
            for heading, figure, text in table]


floor_columns = functools.partial(columns_of, OF_FLOOR)
level_columns = functools.partial(columns_of, OF_LEVELS)
warp_columns = functools.partial(columns_of, OF_WARPS)
kernel_columns = functools.partial(columns_of, OF_MAIN_KERNEL)


# --- tables of stages ----------------------------------------------------------------------------

def compared_table(profile, columns, last=None, least=None):
    """Each figure by that of the stage before and, if `last` has the stage's Profile of the last time, by
    what it was then. `least`: what the figures are at the least, as a column beside each."""
    stages, header, cells = list(profile.stages), ["stage"], []
    then = {stage: columns_of_last(columns, stage, last or {}) for stage in stages}
    for i, column in enumerate(columns):
        figures = [column.figure(stage) for stage in stages]
        parts = {column.heading: [cell(figure, column.text) for figure in figures]}
        if column.text is not significant:  # of a ratio another is hard to read
            parts |= {"÷ least": [ratio(counters.quotient(figure, least)) for figure in figures],
                      "÷ before": [ratio(counters.quotient(now, before))
                                   for before, now in zip([None] + figures, figures)],
                      "÷ last time": [ratio(counters.quotient(now, then[stage][i]))
                                      for stage, now in zip(stages, figures)]}
        header += parts
        cells += parts.values()
    return markdown(header, [list(row) for row in zip(stages, *cells)])


def columns_of_last(columns, stage, last):
    """The figures that these columns had the last time; None for what there was not."""
    if stage not in last:
        return [None] * len(columns)
    known = {column.heading: column for table in (OF_LEVELS, OF_WARPS)
             for column in columns_of(table, last[stage])}
    return [known[column.heading].figure(stage) for column in columns]


def traffic_table(profile, last=None):
    """Bytes at each level, each by the least possible, by the stage before, and by the last time."""
    return compared_table(profile, level_columns(profile), last, Figure(profile.least_bytes))


def warp_table(profile, last=None):
    """What warps ask for, by the stage before and by the last time."""
    return compared_table(profile, warp_columns(profile), last)


def floor_table(profile, rates=None):
    """What each stage takes at the least, by its counts, and its share of the time under the profiler. With
    the GPU's rates, how much of its FMA ceiling that leaves possible. Where a problem was cut down, the
    same of the whole. Empty without least times."""
    rows, ceiling = [], "FMA ceiling, at most"
    heading = f"at least on {with_article(profile.machine)} [ms]" if rates and profile.machine else FLOOR
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


def with_article(gpu):
    """"an H200" of "NVIDIA H200"."""
    name = gpu.removeprefix("NVIDIA ")
    return ("an " if name[0] in "AEFHILMNORSX8" else "a ") + name


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


# --- tables of kernels ---------------------------------------------------------------------------

def table_of_kernels(profile, columns):
    """A row for each kernel of each stage that asks for any of it. columns: [(heading, Kernel -> value or
    None, how it is written)]; those that are 0 throughout are left out."""
    rows = [(stage, kernel, [of_kernel(kernel) for _, of_kernel, _ in columns])
            for stage, kernels in profile.stages.items() for kernel in kernels]
    kept = [i for i in range(len(columns)) if any(values[i] for _, _, values in rows)]
    cells = [[stage, name_of(kernel), *("" if values[i] is None else columns[i][2](values[i])
                                        for i in kept)]
             for stage, kernel, values in rows if any(values[i] for i in kept)]
    return markdown(["stage", "kernel", *(columns[i][0] for i in kept)], cells) if cells else ""


def name_of(kernel):
    name = kernel.name if len(kernel.name) <= LONGEST_NAME else kernel.name[:LONGEST_NAME - 3] + "..."
    return f"{name} *" if kernel.library else name


def metric_columns(table):
    return columns_by(table, lambda of_kernel: of_kernel)


def kernel_tables(profile):
    """[(what it is of, table)] of the profile's kernels; those without data are left out."""
    bytes_columns = [(level.name, level.of_kernel, size) for level in LEVELS if level.name != "L1"]
    own = [(FLOOR, lambda kernel: kernel.floor and kernel.floor[0], milliseconds),
           *metric_columns("work"), ("shared / block", counters.shared_per_block, size),
           *metric_columns("kernel")]
    tables = [("Global memory: instructions, warp by warp, and the 32-byte sectors that they touch; copies\n"
               "are asynchronous, from global to shared memory, and are among the loads.",
               metric_columns("global") + bytes_columns),
              ("Shared memory: instructions, warp by warp, the wavefronts that they take, and those of\n"
               "them due to bank conflicts.", metric_columns("shared")),
              ("Kernels:", own)]
    return [(about, table) for about, columns in tables
            if (table := table_of_kernels(profile, columns))]
