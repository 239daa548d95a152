"""The picture of the front page: what the stages ask of memory, as the simulator counts it with 16
images, with which stages 04 and 05 choose the tiles of the lessons.
"""

import json
import pathlib

from svg import BLACK, BLUE, GREEN, GREY, ORANGE, Picture

RECORDS = pathlib.Path(__file__).resolve().parents[1] / "results/ladder_sim.json"
IDEAS = {"01_naive": "one thread, one output", "02_im2col_gemm": "a library's matrix product",
         "03_shared_tiling": "tiles in shared memory", "04_register_blocking": "tiles in registers",
         "05_fused_bias": "rows, and the bias inside"}
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


def images_of(kernel):
    return int(kernel["shape"].split()[0].lstrip("n"))


def rates(kernels):
    """Requests and wavefronts per multiply-add of a warp, and megabytes per image."""
    multiply_adds = kernels[0]["flop"] / 2 / LANES
    requests, wavefronts = (total(kernels, metrics) for metrics in (REQUESTS, WAVEFRONTS))
    return (None if requests is None else requests / multiply_adds,
            None if wavefronts is None else wavefronts / multiply_adds,
            total(kernels, TOUCHED) * SECTOR_BYTES / images_of(kernels[0]) / 1e6)


def draw_ladder():
    """Five rows, three bars each."""
    records = kernels_by_stage()
    stages = {stage: rates(kernels) for stage, kernels in records.items()}
    picture = Picture("What each stage asks of memory", 372)
    panels = (("global memory", "requests / multiply-add", ORANGE),
              ("shared memory", "wavefronts / multiply-add", BLUE),
              ("DRAM", "least MB / image", GREEN))
    left, width, top, step = 270, 190, 78, 48
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
                picture.text(x, y + 21, "a library's", 13, fill=GREY)
                continue
            length = value / most * 115
            if value:
                picture.rect(x, y, length, 30, colour, colour)
            picture.text(x + length + 7, y + 21, f"{value:#.3g}" if value else "none", 14)
    for row, stage in enumerate(stages):
        picture.text(15, top + 12 + row * step, stage, 14, bold=True)
        picture.text(15, top + 31 + row * step, IDEAS[stage], 14)
    picture.line(15, top + 5 * step + 1, 815, top + 5 * step + 1, BLACK, 0.5)
    picture.text(15, top + 5 * step + 24, "Counted by the simulator with "
                 f"{images_of(records['01_naive'][0])} images. A multiprocessor gives one wavefront "
                 "per cycle,", 14)
    picture.text(15, top + 5 * step + 44, "and could do four such multiply-adds in that time.", 14)
    return picture
