"""Which plots there are to draw. Known without matplotlib, so that texts can name them."""
import re
from typing import NamedTuple

from common.show import counters, time_tables

PROBLEMS_A_FIGURE = 8


class Plot(NamedTuple):
    file: str         # without .svg or .png
    alt: str          # what it shows, in a sentence
    kind: str         # "time", "traffic" or "roofline"
    about: object     # the Problem; None: all of them
    arguments: tuple  # of the function in plots.py


def planned_plots(bench, problems):
    """All that the data allow, in the order of the text."""
    plots = time_plots(bench) if bench else []
    for problem in problems:
        for profile in problem.profiles:
            if traffic_levels(profile):
                plots.append(Plot(file_name("traffic", profile),
                                  f"Bytes at each level of memory, by stage: {problem.name}",
                                  "traffic", problem, (profile,)))
            if problem.bench and roofline_points(problem, profile):
                plots.append(Plot(file_name("roofline", profile),
                                  f"TFLOP/s over FLOP per byte, by stage: {problem.name}",
                                  "roofline", problem, (problem, profile, bench)))
    return numbered(plots)


def time_plots(bench):
    timed = [p for p in bench.problems if any(t.cold for t in p.stages.values())]
    groups = [timed[i:i + PROBLEMS_A_FIGURE] for i in range(0, len(timed), PROBLEMS_A_FIGURE)]
    return [Plot("time", "Time of every stage, by problem", "time", None, (group,))
            for group in groups]


def numbered(plots):
    """Of plots with one name, the second and later ones get a number."""
    seen, renamed = {}, []
    for plot in plots:
        seen[plot.file] = count = seen.get(plot.file, 0) + 1
        renamed.append(plot if count == 1 else plot._replace(file=f"{plot.file}_{count}"))
    return renamed


def file_name(kind, profile):
    name = f"{kind} {profile.name} {profile.shape.split()[0]} {profile.source}"
    return re.sub(r"\W+", "_", name)


def traffic_levels(profile):
    """The levels at which this source has counted something."""
    return [level for level in counters.LEVELS
            if any(counters.of_stage(kernels, level.of_kernel)
                   for kernels in profile.stages.values())]


def roofline_points(problem, profile):
    """{level: [(stage, FLOP per byte, TFLOP/s)]} of the stages that were timed and counted."""
    points = {}
    for level in counters.LEVELS:
        for stage, timing in problem.bench.stages.items():
            kernels = profile.stages.get(stage)
            if level.name == "requested" or not timing.cold or not kernels:
                continue
            intensity = counters.flop_per_byte(kernels, profile.flop, level)
            if intensity is not None:
                rate = time_tables.tflops(timing, profile.flop)
                points.setdefault(level.name, []).append((stage, intensity, rate))
    return points
