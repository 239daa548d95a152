"""The picture of the front page: what the stages ask of memory, as the simulator counts it. An SVG, 830
pixels wide as a README shows it, in Okabe and Ito's colours, which people with any colour vision can tell
apart. The other pictures of docs/pictures are drawn by hand.
"""
from xml.sax.saxutils import escape

from common.show import counters, records

WIDTH, LANES = 830, 32
BLACK, GREY, WHITE, ORANGE, GREEN, BLUE = "#000000", "#767676", "#ffffff", "#e69f00", "#009e73", "#0072b2"
PANELS = (("global memory", "requests / multiply-add", ORANGE),
          ("shared memory", "wavefronts / multiply-add", BLUE),
          ("DRAM", "least MB / image", GREEN))
NOTES = ("Shorter is better. Counted by the simulator, one image, without what 02's library does inside.",
         "A multiprocessor gives one wavefront per cycle, and could do four such multiply-adds in that time.",
         "All loads, stores and copies of a stage, per multiply-add that the layer needs. (The lessons",
         "divide the reads of a stage's inner loop by the multiply-adds made there.)")


def text(x, y, words, size=14, bold=False, fill=BLACK):
    weight = ' font-weight="bold"' if bold else ""
    return (f'<text x="{x:g}" y="{y:g}" font-family="DejaVu Sans, Arial, sans-serif" font-size="{size}"'
            f'{weight} fill="{fill}">{escape(words)}</text>')


def bars(profile, stage):
    """Requests and wavefronts per multiply-add of a warp, and megabytes; None where a library's
    kernels are not counted."""
    multiply_adds = profile.flop / 2 / LANES
    figures = [(counters.of_stage(profile.stages[stage], of_kernel), unit) for of_kernel, unit in (
        (counters.requests, multiply_adds), (counters.shared_wavefronts, multiply_adds),
        (counters.touched_bytes, 1e6))]
    return [None if figure.partial else figure.value / unit for figure, unit in figures]


def draw(path, ideas):
    """The picture's text: a row for each stage of the records, three bars each. `ideas`: {stage: words}."""
    profile, = records.read_profiles(path)
    stages = {stage: bars(profile, stage) for stage in profile.stages}
    left, width, top, step = 270, 190, 78, 48
    bottom = top + len(stages) * step
    parts = [text(15, 26, "AlexNet's first layer", 15, bold=True),
             text(15, 48, "multiply-add: of a warp,"), text(15, 66, "32 threads at once")]
    for i, (name, unit, colour) in enumerate(PANELS):
        x = left + i * width
        parts += [text(x, 26, name, 15, bold=True), text(x, 48, unit, 13)]
        most = max(figures[i] for figures in stages.values() if figures[i] is not None)
        for row, figures in enumerate(stages.values()):
            y, value = top + row * step, figures[i]
            length = (value or 0) / most * 115
            if length:
                parts.append(f'<path d="M{x:g} {y:g}h{length:g}v30h{-length:g}z" fill="{colour}"/>')
            said = "not counted" if value is None else f"{value:#.3g}" if value else "none"
            parts.append(text(x + (length + 7 if value is not None else 0), y + 21, said,
                              fill=GREY if value is None else BLACK))
    for row, stage in enumerate(stages):
        parts += [text(15, top + 12 + row * step, stage, bold=True),
                  text(15, top + 31 + row * step, ideas[stage])]
    parts.append(f'<path d="M15 {bottom + 1}h800" stroke="{BLACK}" stroke-width="0.5"/>')
    parts += [text(15, bottom + 24 + 20 * i, note) for i, note in enumerate(NOTES)]
    height = 170 + step * len(stages)
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" role="img">', "<title>What each stage asks of memory</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="{WHITE}"/>', *parts, "</svg>", ""])
