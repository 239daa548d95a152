"""The picture of the front page: what the stages ask of memory, as the simulator counts it."""

import json
import pathlib

from svg import BLACK, BLUE, GREEN, GREY, ORANGE, Picture

RECORDS = pathlib.Path(__file__).resolve().parents[1] / "results/profile_sim.json"
IDEAS = {"01_naive": "one thread, one output", "02_im2col_gemm": "a library's matrix product",
         "03_shared_tiling": "tiles in shared memory", "04_register_blocking": "tiles in registers",
         "05_fused_bias": "the bias inside", "06_async_copies": "copies nobody waits for",
         "07_packed_filters": "filters in order of use", "08_ordered_stores": "neighbours stored together",
         "09_tile_sizes": "tiles that the filters fill",
         "10_sliding_rows": "taps that slide over rows", "11_split_k": "sums cut in parts",
         "12_tensor_cores": "three products for one"}
SECTOR_BYTES, LANES = 32, 32

REQUESTS = [f"l1tex__t_requests_pipe_lsu_mem_global_op_{op}.sum" for op in ("ld", "st")]
WAVEFRONTS = [f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum" for op in ("ld", "st")] + [
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum"]
TOUCHED = [f"sectors_touched_{way}.sum" for way in ("read", "write")]


def kernels_by_stage():
    """The records of profile by stage, all of one problem."""
    stages = {}
    for kernel in json.loads(RECORDS.read_text(encoding="utf-8")):
        stages.setdefault(kernel["stage"], []).append(kernel)
    shapes = {kernel["shape"] for kernels in stages.values() for kernel in kernels}
    if len(shapes) != 1 or stages.keys() != IDEAS.keys():
        raise SystemExit(f"draw.py: {RECORDS.name} must have all stages on one problem, and has "
                         f"{', '.join(stages)} on {len(shapes)}")
    return stages


def total(kernels, metrics):
    """None where a library's kernel has none of them."""
    if any(kernel["library"] and metrics[0] not in kernel for kernel in kernels):
        return None
    return sum(kernel.get(metric) or 0 for kernel in kernels for metric in metrics)


def rates(kernels):
    """Requests and wavefronts per multiply-add of a warp, and megabytes."""
    multiply_adds = kernels[0]["flop"] / 2 / LANES
    requests, wavefronts = (total(kernels, metrics) for metrics in (REQUESTS, WAVEFRONTS))
    return (None if requests is None else requests / multiply_adds,
            None if wavefronts is None else wavefronts / multiply_adds,
            total(kernels, TOUCHED) * SECTOR_BYTES / 1e6)


def draw_ladder():
    """A row per stage, three bars each."""
    records = kernels_by_stage()
    stages = {stage: rates(kernels) for stage, kernels in records.items()}
    picture = Picture("What each stage asks of memory",
                      170 + 48 * len(stages))
    panels = (("global memory", "requests / multiply-add", ORANGE),
              ("shared memory", "wavefronts / multiply-add", BLUE),
              ("DRAM", "least MB / image", GREEN))
    left, width, top, step = 270, 190, 78, 48
    bottom = top + len(stages) * step
    picture.text(15, 26, "AlexNet's first layer", 15, bold=True)
    picture.text(15, 48, "multiply-add: of a warp,", 14)
    picture.text(15, 66, "32 threads at once", 14)
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
    for i, note in enumerate(notes):
        picture.text(15, bottom + 24 + 20 * i, note, 14)
    return picture
