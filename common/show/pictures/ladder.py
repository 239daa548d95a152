"""The picture of the front page: what the stages ask of memory, as the simulator counts it."""

import pathlib
import sys

from common.show.pictures.svg import BLACK, BLUE, GREEN, GREY, ORANGE, Picture

ROOT = pathlib.Path(__file__).resolve().parents[3]
from common.show import counters, results

RECORDS = ROOT / "docs/results/profile_sim.json"
IDEAS = {"01_naive": "one thread, one output", "02_im2col_gemm": "a library's matrix product",
         "03_shared_tiling": "tiles in shared memory", "04_register_blocking": "tiles in registers",
         "05_fused_bias": "the bias inside", "06_async_copies": "copies nobody waits for",
         "07_packed_filters": "filters in order of use", "08_ordered_stores": "neighbours stored together",
         "09_tile_sizes": "tiles that the filters fill",
         "10_sliding_rows": "taps that slide over rows", "11_split_k": "sums cut in parts",
         "12_tensor_cores": "three products for one"}
LANES = 32


def rates(profile, stage):
    """Requests and wavefronts per multiply-add of a warp, and megabytes; None where a library's
    kernels are not counted."""
    multiply_adds = profile.flop / 2 / LANES
    figures = [(counters.of_stage(profile.stages[stage], of_kernel), unit) for of_kernel, unit in (
        (counters.requests, multiply_adds), (counters.shared_wavefronts, multiply_adds),
        (counters.touched_bytes, 1e6))]
    return [None if figure.partial else figure.value / unit for figure, unit in figures]


def draw_ladder():
    """A row per stage, three bars each."""
    profiles = results.read_profiles(RECORDS)
    if len(profiles) != 1 or profiles[0].stages.keys() != IDEAS.keys():
        raise SystemExit(f"draw.py: {RECORDS.name} must have all stages on one problem")
    stages = {stage: rates(profiles[0], stage) for stage in IDEAS}
    picture = Picture("What each stage asks of memory",
                      170 + 48 * len(stages))
    panels = (("global memory", "requests / multiply-add", ORANGE),
              ("shared memory", "wavefronts / multiply-add", BLUE),
              ("DRAM", "least MB / image", GREEN))
    left, width, top, step = 270, 190, 78, 48
    bottom = top + len(stages) * step
    picture.text(15, 26, "AlexNet's first layer", 15, bold=True)
    picture.lines(15, 48, ("multiply-add: of a warp,", "32 threads at once"), 18)
    for i, (name, unit, colour) in enumerate(panels):
        x = left + i * width
        picture.text(x, 26, name, 15, bold=True)
        picture.text(x, 48, unit, 13)
        most = max(figures[i] for figures in stages.values() if figures[i] is not None)
        for row, figures in enumerate(stages.values()):
            y, value = top + row * step, figures[i]
            if value is None:
                picture.text(x, y + 21, "not counted", 13, fill=GREY)
                continue
            length = value / most * 115
            if value:
                picture.rect(x, y, length, 30, colour, colour)
            picture.text(x + length + 7, y + 21, f"{value:#.3g}" if value else "none", 14)
    for row, stage in enumerate(stages):
        picture.text(15, top + 12 + row * step, stage, 14, bold=True)
        picture.text(15, top + 31 + row * step, IDEAS[stage], 14)
    picture.line(15, bottom + 1, 815, bottom + 1, BLACK, 0.5)
    notes = ("Shorter is better. Counted by the simulator, one image, without what 02's library does "
             "inside.",
             "A multiprocessor gives one wavefront per cycle, and could do four such multiply-adds "
             "in that time.",
             "All loads, stores and copies of a stage, per multiply-add that the layer needs. "
             "(The lessons divide",
             "the reads of a stage's inner loop by the multiply-adds made there.)")
    picture.lines(15, bottom + 24, notes)
    return picture
