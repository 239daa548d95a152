"""The plots, drawn with matplotlib as SVG and PNG, 830 pixels wide as a README shows them.

Colours are Okabe and Ito's (https://jfly.uni-koeln.de/color/), which the colour-blind can tell
apart; no meaning hangs on colour alone.
"""
import io
import math
import re

import matplotlib

from common.show import counters, counter_tables, formats, time_tables
from common.show.plan import roofline_points, traffic_levels

matplotlib.use("Agg")
from matplotlib import pyplot

ORANGE, SKY, GREEN = "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
GREY, BLACK = "#777777", "#000000"
LEVEL_STYLES = {"requested": (GREY, "v"), "L1": (SKY, "o"), "L2": (ORANGE, "s"),
                "DRAM": (GREEN, "D"), "touched": (PURPLE, "^")}
COMPETITOR_COLOURS = {"cudnn": GREEN, "pytorch": VERMILION}
WHITE_BOX = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}  # behind text on a line
WIDTH = 8.3  # inches: 830 pixels at 100 per inch

matplotlib.rcParams.update({
    "font.size": 9.5, "axes.titlesize": 10, "axes.titlelocation": "left", "axes.axisbelow": True,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "grid.color": "#DDDDDD", "grid.linewidth": 0.6, "figure.constrained_layout.use": True,
    "savefig.facecolor": "white",
    "font.sans-serif": ["DejaVu Sans", "Verdana"],  # of the same widths
    "svg.fonttype": "none",  # text as text: a tenth of the size of outlines
    "svg.hashsalt": "convladder",  # the same data give the same file
})


def counted_title(profile):
    return f"{formats.title_of(profile)}\ncounted by {counter_tables.source_of(profile)}"


def render(figure, kind, description=""):
    """The figure as the bytes of a file of that kind, "svg" or "png"."""
    file = io.BytesIO()
    metadata = {"Date": None, "Description": description} if kind == "svg" else None
    figure.savefig(file, format=kind, dpi=160, metadata=metadata)
    return shortened(file.getvalue()) if kind == "svg" else file.getvalue()


def shortened(svg):
    """The same picture in a tenth of the lines: one for each element, hundredths of a pixel, and no groups
    that have nothing but a name."""
    def short(tag):
        return re.sub(rb"(\d\.\d\d)\d+", rb"\1", b" ".join(tag[0].split()))

    lines, nameless = [], []  # of the groups around: is it left out?
    for line in re.sub(rb"\s*\n\s*", b"\n", re.sub(rb"<[^>]*>", short, svg)).splitlines(True):
        if re.match(rb"<g\b[^>]*(?<!/)>$", line):
            nameless.append(re.match(rb'<g(?: id="[^"]*")?>$', line))
            left_out = nameless[-1]
        else:
            left_out = line == b"</g>\n" and nameless.pop()
        if not left_out:
            lines.append(line)
    return re.sub(rb"(<(g|defs)\b.*>)\n(.*/>)\n(</\2>)", rb"\1\3\4", b"".join(lines))


def close(figure):
    pyplot.close(figure)


def figure_with_legend(height, lines=1):
    """A figure of that height in inches, the upper part of it for axes, and a strip below for a
    legend of so many lines."""
    figure = pyplot.figure(figsize=(WIDTH, height))
    strip = 0.25 * lines
    upper, lower = figure.subfigures(2, 1, height_ratios=[height - strip, strip])
    return figure, upper, lower


def plain_ticks(axis):
    """A logarithmic axis labelled 0.5, 1, 2, 5, 10 rather than in powers of ten."""
    axis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(matplotlib.ticker.NullLocator())


def draw(plot):
    """A Plot of plan.py as a figure; close() it after use."""
    return {"time": time_figure, "traffic": traffic_figure,
            "roofline": roofline_figure}[plot.kind](*plot.arguments)


# --- times ---------------------------------------------------------------------------------------

def time_rows(problem):
    """(title, Timing, colour, filled) of the stages, then of the competitors; TF32 is hollow."""
    rows = [(name, timing, BLUE, True) for name, timing in problem.stages.items()]
    return rows + [(time_tables.competitor_title(rival), rival.timing,
                    COMPETITOR_COLOURS.get(rival.name, PURPLE), rival.precision == "fp32")
                   for rival in time_tables.ladder_of_competitors(problem)]


def draw_times(axes, problem, titles):
    """One row per stage and competitor; `titles` are all rows, so that panels line up."""
    rows = {title: rest for title, *rest in time_rows(problem)}
    drawn = [problem.floor_ms]
    for y, title in enumerate(titles):
        timing, colour, filled = rows.get(title, (None, None, None))
        if timing and timing.cold:
            draw_time(axes, y, timing.cold, colour, filled)
            drawn.append(timing.cold.median)
        else:
            axes.annotate(timing.status if timing else "not measured", (0.02, y),
                          xycoords=("axes fraction", "data"), va="center_baseline", color=GREY,
                          bbox=WHITE_BOX)
    axes.axvline(problem.floor_ms, color=BLACK, linestyle="--", linewidth=1)
    axes.set(title=problem.name, xscale="log", xlabel="time [ms], cold L2: median, quartiles",
             xlim=(min(drawn) * 0.8, max(drawn) * 3),  # room for a label
             ylim=(len(titles) - 0.5, -0.5))
    plain_ticks(axes.xaxis)
    axes.set_yticks(range(len(titles)), titles)
    axes.grid(axis="y", visible=False)


def draw_time(axes, y, times, colour, filled):
    axes.errorbar(times.median, y, color=colour, fmt="o", markersize=6, capsize=2,
                  markerfacecolor=colour if filled else "white",
                  xerr=[[times.median - times.lower_quartile],
                        [times.upper_quartile - times.median]])
    axes.annotate(formats.milliseconds(times.median), (times.upper_quartile, y), xytext=(7, 0),
                  textcoords="offset points", va="center_baseline", fontsize=9, bbox=WHITE_BOX)


def time_figure(problems):
    """Times of BenchProblems, one panel each, stages and competitors as rows."""
    titles = list(dict.fromkeys(row[0] for problem in problems for row in time_rows(problem)))
    columns = 1 if len(problems) == 1 else 2
    rows = math.ceil(len(problems) / columns)
    note = floor_note(problems)
    lines = 3 if note else 2
    figure, upper, lower = figure_with_legend(
        rows * (0.9 + 0.2 * len(titles)) + 0.25 * lines, lines)
    figure.get_layout_engine().set(h_pad=0.08, w_pad=0.08)
    panels = list(upper.subplots(rows, columns, squeeze=False, sharey=True).flat)
    for axes, problem in zip(panels, problems):
        draw_times(axes, problem, titles)
    for axes in panels[len(problems):]:
        axes.set_visible(False)
    lower.legend(handles=time_legend(problems), loc="upper center", ncols=2, frameon=False)
    lower.text(0.5, 0.03, note, ha="center", va="bottom", fontsize=9)
    return figure


def floor_note(problems):
    """What the legend says where a library in FP32 is left of the floor; "" where none is."""
    beaten = any(rival.precision == "fp32" and rival.timing.cold and
                 rival.timing.cold.median < problem.floor_ms
                 for problem in problems for rival in problem.competitors)
    return ("FP32 left of the floor: an algorithm (FFT, Winograd) with fewer multiplications than "
            "direct convolution, which the floor counts") if beaten else ""


def time_legend(problems):
    marker = matplotlib.lines.Line2D
    rivals = {rival.precision for problem in problems for rival in problem.competitors}
    kinds = [("stage, FP32", BLUE, BLUE, True), ("library, FP32", GREY, GREY, "fp32" in rivals),
             ("library, TF32", GREY, "white", "tf32" in rivals)]
    return [*(marker([], [], color=colour, marker="o", linestyle="", markerfacecolor=face,
                     label=label) for label, colour, face, there in kinds if there),
            marker([], [], color=BLACK, linestyle="--", linewidth=1,
                   label="floor in FP32: FLOP at peak, or bytes at copy rate")]


# --- traffic -------------------------------------------------------------------------------------

def traffic_figure(profile):
    """Bytes of each stage on their way from the threads to DRAM, and the least that must move."""
    levels, stages = traffic_levels(profile), list(profile.stages)
    step = len(levels) + 0.8  # rows of a stage, and a gap
    figure, upper, lower = figure_with_legend(1.1 + 0.19 * step * len(stages))
    axes = upper.subplots()
    drawn = [profile.least_bytes]
    for i, stage in enumerate(stages):
        for j, level in enumerate(levels):
            crossed = counters.of_stage(profile.stages[stage], level.of_kernel)
            if crossed and crossed.value > 0:  # 0 has no place on a logarithmic axis
                draw_bar(axes, i * step + j, crossed, level)
                drawn.append(crossed.value)
    axes.axvline(profile.least_bytes, color=BLACK, linestyle="--", linewidth=1,
                 label=f"least possible: {formats.size(profile.least_bytes)}")
    axes.set(xscale="log", xlim=(min(drawn) / 2, max(drawn) * 6),
             ylim=(step * len(stages) - 0.8, -0.8), xlabel="bytes",
             title=counted_title(profile))
    axes.xaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(tick_size))
    axes.set_yticks([i * step + (len(levels) - 1) / 2 for i in range(len(stages))], stages)
    axes.grid(axis="y", visible=False)
    lower.legend(*axes.get_legend_handles_labels(), loc="center", frameon=False)
    return figure


def tick_size(value, _):
    """1 GB where the tables write 1.00 GB."""
    number, unit = formats.size(value).split()
    return f"{float(number):g} {unit}"


def draw_bar(axes, y, crossed, level):
    colour, _ = LEVEL_STYLES[level.name]
    axes.barh(y, crossed.value, height=0.86, color="white" if crossed.partial else colour,
              edgecolor=colour, hatch="////" if crossed.partial else None)
    note = " without the library's kernels" if crossed.partial else ""
    axes.annotate(f"{level.name} {formats.size(crossed.value)}{note}", (crossed.value, y),
                  xytext=(4, 0), textcoords="offset points", va="center", fontsize=8.5)


# --- roofline ------------------------------------------------------------------------------------

def roofline_figure(problem, profile, bench):
    """Each stage at the intensity of every level, joined by arrows in the ladder's order, below
    the roofs that were measured in the run that gave the times."""
    points = roofline_points(problem, profile)
    lines = 2 if len(bench.tb_per_s) > 1 else 1
    figure, upper, lower = figure_with_legend(5 + 0.2 * lines, lines)
    axes = upper.subplots()
    xs, ys = ([point[i] for climbed in points.values() for point in climbed] for i in (1, 2))
    axes.set(xscale="log", yscale="log", xlabel="FLOP per byte that crosses the level",
             ylabel="TFLOP/s, cold L2", title=counted_title(profile),
             xlim=(min(xs) / 3, max(xs) * 3), ylim=(min(ys) / 2, bench.fma_tflops * 2))
    for level in dict.fromkeys([*points, "DRAM"]):
        draw_slope(axes, level, bench)
        if level in points:
            draw_climb(axes, level, points[level])
    axes.axhline(bench.fma_tflops, color=BLACK, linewidth=1.2,
                 label=f"loop of FMAs: {formats.significant(bench.fma_tflops)} TFLOP/s")
    name_stages(axes, points)
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    handles, labels = axes.get_legend_handles_labels()
    lower.legend(handles, labels, loc="center", ncols=math.ceil(len(handles) / lines),
                 frameon=False, fontsize=9, columnspacing=1.2, handletextpad=0.5)
    return figure


def draw_slope(axes, level, bench):
    """From the left up to the flat roof, in the level's colour, where its rate was measured."""
    rate = bench.tb_per_s.get(level)
    if not rate:
        return
    name = "DRAM copy" if level == "DRAM" else f"{level}, reads only"
    ends = axes.get_xlim()[0], bench.fma_tflops / rate
    axes.plot(ends, [x * rate for x in ends], color=LEVEL_STYLES[level][0], linewidth=1.4,
              linestyle="--", scalex=False, scaley=False,
              label=f"{name}: {formats.significant(rate)} TB/s")


def draw_climb(axes, level, climbed):
    colour, marker = LEVEL_STYLES[level]
    xs, ys = [x for _, x, _ in climbed], [y for _, _, y in climbed]
    axes.plot(xs, ys, linestyle="", color=colour, marker=marker, markersize=8, label=level,
              markeredgecolor="white", zorder=3)
    for begin, end in zip(zip(xs, ys), zip(xs[1:], ys[1:])):
        axes.annotate("", end, begin, arrowprops={"arrowstyle": "-|>", "color": colour,
                                                  "shrinkA": 5, "shrinkB": 5, "linewidth": 1.4})


def name_stages(axes, points):
    """A faint line at each stage's TFLOP/s, with its name at the right end. Names that would
    overlap are moved apart."""
    rates = {stage: rate for climbed in points.values() for stage, _, rate in climbed}
    low, high = (math.log10(limit) for limit in axes.get_ylim())
    free = 0.0  # the lowest height, as a fraction of the axes, at which no name stands yet
    for stage, rate in sorted(rates.items(), key=lambda item: item[1]):
        axes.axhline(rate, color=GREY, linewidth=0.6, linestyle=":", zorder=1)
        height = max((math.log10(rate) - low) / (high - low), free)
        axes.annotate(stage, (1.0, rate), xycoords=("axes fraction", "data"),
                      xytext=(1.025, height), textcoords="axes fraction", va="center", fontsize=9,
                      arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.6,
                                  "relpos": (0, 0.5), "shrinkA": 2, "shrinkB": 0})
        free = height + 0.045
