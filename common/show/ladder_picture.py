"""The picture of the front page: what the stages take on a GPU, and what they ask of memory there. An SVG,
830 pixels wide as a README shows it, in Okabe and Ito's colours, which people with any colour vision can
tell apart. The other pictures of docs/pictures are drawn by hand.
"""
from xml.sax.saxutils import escape

from common.show import counters

WIDTH, LANES = 830, 32
BLACK, WHITE, ORANGE, GREEN, BLUE, PINK = "#000000", "#ffffff", "#e69f00", "#009e73", "#0072b2", "#cc79a7"
PANELS = (("time", "ms", PINK), ("global memory", "requests", ORANGE), ("shared memory", "wavefronts", BLUE),
          ("DRAM", "GB", GREEN))
NOTES = ("Shorter is better. Requests (loads, stores and copies) and wavefronts are those of a warp, "
         "32 threads,",
         "per multiply-add that the layer needs. A multiprocessor gives one wavefront per cycle, and could",
         "do four such multiply-adds in that time. Measured on an {gpu}.")


def text(x, y, words, size=14, bold=False, fill=BLACK):
    weight = ' font-weight="bold"' if bold else ""
    return (f'<text x="{x:g}" y="{y:g}" font-family="DejaVu Sans, Arial, sans-serif" font-size="{size}"'
            f'{weight} fill="{fill}">{escape(words)}</text>')


def bars(problem, stage):
    """The stage's value in each panel; None where it has none."""
    profile, timing = problem.profiles[0], problem.bench.stages.get(stage)
    multiply_adds = profile.flop / 2 / LANES
    figures = [(counters.of_stage(profile.stages[stage], of_kernel), unit) for of_kernel, unit in (
        (counters.requests, multiply_adds), (counters.shared_wavefronts, multiply_adds),
        (counters.dram_bytes, 1e9))]
    return [timing.cold.median if timing and timing.cold else None,
            *(figure.value / unit if figure else None for figure, unit in figures)]


def draw(problem, gpu, ideas):
    """The picture's text, of a problem that was timed and counted: a row for each stage that has an idea, a
    bar in each panel. `ideas`: {stage: words}."""
    stages = {stage: bars(problem, stage) for stage in problem.profiles[0].stages if stage in ideas}
    left, width, top, step = 262, 143, 74, 48
    bottom = top + len(stages) * step
    parts = [text(15, 26, "AlexNet's first layer", 15, bold=True),
             text(15, 48, "256 images", 13)]
    for i, (name, unit, colour) in enumerate(PANELS):
        x = left + i * width
        parts += [text(x, 26, name, 15, bold=True), text(x, 48, unit, 13)]
        most = max(figures[i] or 0 for figures in stages.values()) or 1
        for row, figures in enumerate(stages.values()):
            y, value = top + row * step, figures[i]
            length = (value or 0) / most * 75
            if length:
                parts.append(f'<path d="M{x:g} {y:g}h{length:g}v30h{-length:g}z" fill="{colour}"/>')
            said = "" if value is None else f"{value:#.3g}" if value else "none"
            parts.append(text(x + length + 7, y + 21, said))
    for row, stage in enumerate(stages):
        parts += [text(15, top + 12 + row * step, stage, bold=True),
                  text(15, top + 31 + row * step, ideas[stage], 12)]
    parts.append(f'<path d="M15 {bottom + 1}h800" stroke="{BLACK}" stroke-width="0.5"/>')
    parts += [text(15, bottom + 24 + 20 * i, note.format(gpu=gpu)) for i, note in enumerate(NOTES)]
    height = bottom + 24 + 20 * len(NOTES)
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" role="img">', "<title>What each stage takes, and what it asks of memory</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="{WHITE}"/>', *parts, "</svg>", ""])
