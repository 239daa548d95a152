#!/usr/bin/env python3
"""Draws the pictures of docs/. `draw.py` rewrites them; `draw.py --check` says which would change.

The addresses in sectors.svg, banks.svg and stage_*.svg are the simulator's: `profile --trace` of
the preset sim-count gives them. ladder.svg and hierarchy.svg show what docs/results hold.
"""

import argparse
import json
import pathlib
import sys

from common.show.pictures import ladder, stages, traces
from common.show.pictures.svg import (
    BLACK, GREEN, GREY, ORANGE, PALE, PURPLE, RED, SKY, WHITE, YELLOW, Picture)

ROOT = pathlib.Path(__file__).resolve().parents[3]
PICTURES = ROOT / "docs/pictures"
PROGRAM = ROOT / "build/sim-count/bin/convladder"
TIMES = ROOT / "docs/results/bench_h200.json"


# ---- The convolution ------------------------------------------------------------------------------


def draw_window():
    """One window on a small padded input, and the output pixel that it gives."""
    H, W, R, S, stride, pad = 6, 8, 3, 3, 2, 1
    P, Q = (H + 2 * pad - R) // stride + 1, (W + 2 * pad - S) // stride + 1
    p, q, cell, left, top = 1, 2, 40, 20, 66
    picture = Picture("A window of the input gives one output pixel", 448)
    picture.text(left, 24, "input, one channel: H = 6, W = 8, pad = 1", bold=True)
    picture.text(left, 46, "blue: the input; grey: the zeros that padding stands for", 14)
    used_h, used_w = (P - 1) * stride + R, (Q - 1) * stride + S
    for row in range(H + 2 * pad):
        for column in range(W + 2 * pad):
            inside = pad <= row < H + pad and pad <= column < W + pad
            picture.rect(left + column * cell, top + row * cell, cell, cell,
                         SKY if inside else PALE, GREY)
            if row >= used_h or column >= used_w:  # the stride jumps over them
                x, y = left + column * cell + cell / 2, top + row * cell + cell / 2
                picture.line(x - 9, y - 9, x + 9, y + 9, BLACK, 1.5)
                picture.line(x - 9, y + 9, x + 9, y - 9, BLACK, 1.5)
    x, y = left + q * stride * cell, top + p * stride * cell
    picture.rect(x, y, S * cell, R * cell, "none", RED, 5)

    right = 560
    picture.text(right, 24, f"output: P = {P}, Q = {Q}", bold=True)
    picture.text(right, 46, "stride = 2, filter 3 × 3", 14)
    for row in range(P):
        for column in range(Q):
            chosen = (row, column) == (p, q)
            picture.rect(right + column * cell, top + row * cell, cell, cell,
                         ORANGE if chosen else WHITE, GREY)
    picture.line(x + S * cell + 4, y + cell * 1.5, right + q * cell - 4, top + (p + 0.5) * cell,
                 RED, 2.5, arrow=True)
    picture.lines(right, top + P * cell + 34, (
        "output pixel (p, q) = (1, 2)", "reads rows h = 1 … 3", "and columns w = 3 … 5"), 24,
        size=15)
    picture.lines(right, top + P * cell + 116, ("crossed out: no window", "ends there (the floor)"))
    picture.lines(left, 420, ("P = floor((6 + 2·1 − 3) / 2) + 1 = floor(2.5) + 1 = 3",
                              "Q = floor((8 + 2·1 − 3) / 2) + 1 = floor(3.5) + 1 = 4"), 22,
                  size=15, mono=True)
    return picture


def draw_gemm_view():
    """AlexNet's first layer, batch 2, as a matrix product."""
    picture = Picture("The convolution as a matrix product", 452)
    top, height = 78, 150

    def matrix(x, width, y, rows, name, fill, above, beside):
        picture.rect(x, y, width, rows, fill)
        picture.text(x + width / 2, y + rows / 2 + 6, name, 16, "middle", bold=True)
        picture.text(x + width / 2, y - 10, above, 14, "middle")
        picture.text(x - 8, y + rows / 2 + 5, beside, 14, "end")

    picture.text(10, 24, "AlexNet's first layer: K = 96, C·R·S = 363, P·Q = 3025", bold=True)
    matrix(60, 110, top + 60, 66, "filters", YELLOW, "GEMM_K = 363", "96")
    picture.text(186, top + 100, "×", 24)
    matrix(250, 200, top, height, "", SKY, "GEMM_N = N·P·Q columns", "363")
    picture.text(478, top + 100, "=", 24)
    matrix(560, 200, top + 60, 66, "", ORANGE, "GEMM_N = N·P·Q columns", "96")
    for x, y, rows in ((250, top, height), (560, top + 60, 66)):
        picture.line(x + 100, y, x + 100, y + rows, BLACK, 2)
        picture.text(x + 50, y + rows / 2 + 6, "image 0", 15, "middle")
        picture.text(x + 150, y + rows / 2 + 6, "image 1", 15, "middle")
    picture.lines(350, top + height + 22, ("im2col: under each output pixel", "its 363 inputs"), 18,
                  anchor="middle")
    picture.text(660, top + height + 22, "the output, but …", 14, "middle")

    def strip(y, label, pieces):
        picture.text(10, y + 20, label, 14)
        for i, piece in enumerate(pieces):
            picture.box(232 + i * 84, y, 84, 30, piece,
                        {"n0": GREEN, "n1": PURPLE}.get(piece[:2], WHITE))

    picture.text(10, 316, "… how it lies in memory (each box: one plane of P·Q floats)", bold=True)
    strip(334, "NKPQ: one product per image", ["n0 k0", "n0 k1", "…", "n1 k0", "n1 k1", "…"])
    strip(378, "one product for the batch", ["n0 k0", "n1 k0", "n0 k1", "n1 k1", "n0 k2", "…"])
    picture.text(10, 438, "The second is [K, N, P, Q]. A view as [N, K, P, Q] moves nothing and is wrong.",
                 14)
    return picture


# ---- The memory -----------------------------------------------------------------------------------


def draw_hierarchy():
    """What lies between a thread and DRAM, and the counters at each step."""
    picture = Picture("The memory hierarchy of an H200 and the counters that watch it", 560)
    copy_rate = json.loads(TIMES.read_text(encoding="utf-8"))["machine"]["copy_tb_per_s"]
    for x, y, width, name, detail, fill in (
            (20, 20, 790, "registers",
             "256 KiB per multiprocessor, 255 at most per thread", YELLOW),
            (20, 308, 790, "L2 cache", "60 MiB for all 132 multiprocessors", ORANGE),
            (20, 446, 790, "DRAM (HBM3e)",
             f"141 GB; 4.8 TB/s by the data sheet, {copy_rate:.2f} measured by a copy", PALE),
            (20, 170, 385, "L1 cache", "what shared memory leaves of 256 KiB", SKY),
            (425, 170, 385, "shared memory", "up to 228 KiB, 128 bytes per cycle", SKY)):
        picture.rect(x, y, width, 56, fill)
        picture.text(x + 16, y + 25, name, 17, bold=True)
        picture.text(x + 16, y + 46, detail, 14)

    def step(x, top, bottom, lines):
        picture.line(x, top + 2, x, bottom - 3, BLACK, 2.5, arrow=True)
        picture.line(x, bottom - 2, x, top + 3, BLACK, 2.5, arrow=True)
        for i, text in enumerate(lines):
            picture.text(x + 14, top + 22 + 20 * i, text, 13, mono=not text.startswith("·"))

    step(36, 76, 170, ["l1tex__t_requests_…_mem_global", "l1tex__t_sectors_…_mem_global",
                       "l1tex__data_pipe_lsu_wavefronts  (of both)", "· requests, 32-byte sectors, passes"])
    step(441, 76, 170, ["l1tex__data_pipe_lsu_wavefronts_", "  mem_shared, …_bank_conflicts_…",
                        "· passes through the 32 banks"])
    step(36, 226, 308, ["lts__t_sectors_srcunit_tex_op_read, …_op_write",
                        "l1tex__t_sector_hit_rate  (what L1 kept from L2)",
                        "· 32-byte sectors that L1 asks of L2"])
    step(36, 364, 446, ["dram__bytes_read, dram__bytes_write",
                        "lts__t_sector_hit_rate  (what L2 kept from DRAM)",
                        "· bytes"])
    picture.lines(20, 528, (
        "Names are shortened, see memory.md. The simulator counts requests, sectors and the passes "
        "of shared", "memory. Of what lies below it knows the least that can move."))
    return picture


def draw_sectors(program):
    """Three instructions of a warp of stage 01, as the sectors that they touch."""
    accesses = traces.trace_stage(program, "01_naive")

    def first(memory, operation):
        return traces.find(accesses, memory, operation)

    panels = (("load of the input: neighbouring outputs, 4 floats apart", first("input", "load")),
              ("load of the filter: one value for all", first("filters", "load")),
              ("store of the output: neighbours", first("output", "store")))
    picture = Picture("What a warp's 32 addresses are as sectors", 34 + 116 * len(panels))
    picture.text(15, 26, "Stage 01, AlexNet's first layer, warp 0: one box = a sector of 32 bytes, "
                 "one cell = 4 bytes", 15, bold=True)
    for i, (title, access) in enumerate(panels):
        y = 62 + 116 * i
        picture.text(15, y, title)
        sectors, words = traces.draw_sectors(picture, 15, y + 12, access)
        picture.text(15, y + 68, f"1 request, {sectors} sector{'s' * (sectors > 1)}: "
                     f"{sectors * traces.SECTOR} bytes for {words * traces.WORD} different ones "
                     "asked for", 14)
    return picture


def draw_banks(program):
    """Three reads of a 32 x 32 tile, as the banks that they load."""
    accesses = [access for access in traces.trace_tile_reads(program)
                if access["space"] == "shared" and access["operation"] == "load"]
    titles = {"read_row": "a row, tile[2][lane]: 32 banks",
              "read_column": "a column, tile[lane][2]: one bank has all 32 words",
              "read_padded_column": "the same column of tile[32][33]: 32 banks again"}
    picture = Picture("Three reads of a tile as the banks they load", 430)
    picture.text(15, 26, "A warp reads 32 floats of a tile. One row: one wavefront through the 32 banks",
                 15, bold=True)
    y = 62
    for access in accesses:
        count = access["wavefronts"]
        picture.text(15, y, titles[access["kernel"]] + " – " +
                     f"{count} wavefront{'s' * (count > 1)}")
        y = traces.draw_banks(picture, 15, y + 16, access) + 32
    picture.height = y - 24
    return picture


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 on a difference")
    parser.add_argument("--program", type=pathlib.Path, default=PROGRAM)
    arguments = parser.parse_args()
    if not arguments.program.is_file():
        parser.error(f"{arguments.program} isn't there: "
                     "./ladder build sim-count convladder tile_reads")
    pictures = {
        "ladder": ladder.draw_ladder(),
        "window": draw_window(),
        "gemm_view": draw_gemm_view(),
        "hierarchy": draw_hierarchy(),
        "sectors": draw_sectors(arguments.program),
        "banks": draw_banks(arguments.program),
        **stages.draw_all(arguments.program),
    }
    status = 0
    for name, picture in pictures.items():
        path = PICTURES / f"{name}.svg"
        if path.is_file() and path.read_text(encoding="utf-8") == picture.svg():
            continue
        if arguments.check:
            print(f"draw.py: {path.name} isn't what would be drawn today: run common/show/pictures/draw.py",
                  file=sys.stderr)
            status = 1
        else:
            path.write_text(picture.svg(), encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    return status


if __name__ == "__main__":
    sys.exit(main())
