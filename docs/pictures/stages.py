"""The pictures of the stages' lessons: who owns what, and what a warp's accesses look like.

AlexNet's first layer throughout. Addresses, sectors and wavefronts are those that trace_warp gives.
"""

import traces
from svg import (BLACK, BLUE, GREEN, GREY, ORANGE, PALE, PURPLE, RED, SKY, WHITE, YELLOW, Picture)

LANES = 32
C, H, W, K, R, S, STRIDE, P, Q = 3, 224, 224, 96, 11, 11, 4, 55, 55
CRS, PQ = C * R * S, P * Q
FLOAT = 4  # bytes


def counted(access):
    """'16 sectors' or '1 wavefront'."""
    shared = access["space"] == "shared"
    count, unit = (access["wavefronts"], "wavefront") if shared else (access["sectors"], "sector")
    return f"{count} {unit}{'s' * (count != 1)}"


def cells(picture, x, y, count, size, fill, height=None, stroke=GREY):
    for i in range(count):
        picture.rect(x + i * size, y, size, height or size, fill, stroke, 0.5)


# ---- 01 -------------------------------------------------------------------------------------------


def draw_01(program):
    """32 neighbouring outputs, and what the lanes ask for in one step of the innermost loop."""
    accesses = traces.trace_stage(program, "01_naive")
    image, filters = (traces.find(accesses, name, "load") for name in ("input", "filters"))
    output = traces.find(accesses, "output", "store")
    picture = Picture("Stage 01: a thread owns one output", 470)
    left, size = 15, 14.5
    picture.text(left, 24, "One row of the output, 55 pixels: each is one thread's", bold=True)
    cells(picture, left, 38, LANES, size, ORANGE, 26)
    cells(picture, left + LANES * size, 38, Q - LANES, size, SKY, 26)
    picture.text(left + 50, 84, "warp 0: lanes 0 to 31", 14)
    picture.text(left + LANES * size + 110, 84, "warp 1: lanes 0 to 22", 14)

    picture.text(left + 50, 122, "One tap (c, r, s), all 32 lanes of warp 0 at once:", bold=True)
    picture.text(left + 50, 150, "load x: 32 pixels, stride = 4 floats apart")
    count, _ = traces.draw_sectors(picture, left, 160, image)
    for lane in (0, 1, LANES - 1):  # from the thread to its value
        word = (image["offsets"][lane] - image["offsets"][0]) // FLOAT
        first = image["offsets"][0] // FLOAT % 8
        at = first + word
        picture.line(left + (lane + 0.5) * size, 66, left + at * 6 + at // 8 * 2 + 3, 158, RED, 1.5,
                     arrow=True)
    picture.text(left, 214, f"{count} sectors of 32 bytes, of which each lane needs 4", 14)

    picture.text(left, 256, "load w: the same tap of the same filter for all")
    traces.draw_sectors(picture, left, 266, filters)
    picture.text(left + 70, 288, f"{counted(filters)}; but a request all the same", 14)

    picture.text(left, 338, "At the end, store y: neighbours")
    traces.draw_sectors(picture, left, 348, output)
    picture.text(left + 220, 370, f"{counted(output)}: as few as 32 floats can have", 14)

    picture.text(left, 424, "Per warp: 363 taps × (load x + load w) = 726 requests, "
                 "for 363 × 32 multiplications.", 15, bold=True)
    picture.text(left, 450, "No lane keeps anything for another. Every value comes from L1 again "
                 "each time.", 15)
    return picture


# ---- 02 -------------------------------------------------------------------------------------------


def draw_02(program):
    """The matrix that im2col writes, who writes it, and what it adds to the traffic."""
    accesses = traces.trace_stage(program, "02_im2col_gemm")
    image = traces.find(accesses, "input", "load")
    column = traces.find(accesses, "workspace", "store")
    picture = Picture("Stage 02: the im2col matrix", 584)
    picture.text(15, 24, "im2col: a thread owns the 121 values under one pixel in one channel",
                 bold=True)
    x, y, size, rows = 15, 64, 17, 7
    picture.text(x, 54, "the image: windows of three neighbouring pixels", 14)
    cells_across = 19
    for row in range(rows):
        cells(picture, x, y + row * 15, cells_across, 15, PALE)
    for pixel, colour in ((0, ORANGE), (1, SKY), (2, GREEN)):
        picture.rect(x + pixel * 4 * 15 + 1 + pixel * 2, y + 4 + pixel * 4, 11 * 15 - 6,
                     rows * 15 - 16, "none", colour, 4)
    picture.text(x, y + rows * 15 + 22, "stride 4, windows 11 wide: most values", 14)
    picture.text(x, y + rows * 15 + 42, "lie in several windows", 14)

    left, top, width, height, third = 400, 64, 11, 10, 4  # third: of the rows, as drawn
    picture.text(left, 54, "the matrix: 3 · 121 rows (taps) × 3025 columns (pixels)", 14)
    for channel in range(C):
        for row in range(third):
            at = top + (channel * third + row) * height + channel * 4
            for pixel in range(LANES):
                coloured = channel == 0 and pixel < 3
                fill = (ORANGE, SKY, GREEN)[pixel] if coloured else PALE
                picture.rect(left + pixel * width, at, width, height, fill, WHITE, 0.5)
            picture.text(left + LANES * width + 6, at + height - 1, "…", 14)
    picture.line(x + 19 * 15 + 8, top + 20, left - 8, top + 20, BLACK, 2, arrow=True)
    picture.rect(left, top + 2 * height, LANES * width, height, "none", RED, 3)
    bottom = top + C * third * height + 8
    picture.text(left, bottom + 20, "one thread's: 121 rows of a column, a channel's", 14)
    picture.text(left, bottom + 40, "red: one store of a warp, 32 columns of a row", 14)

    y = 258
    picture.text(15, y, f"a warp's load of x, as in stage 01, pixels 4 floats apart: {counted(image)}")
    traces.draw_sectors(picture, 15, y + 10, image, height=26)
    picture.text(15, y + 70, f"its store into a row: {counted(column)}")
    traces.draw_sectors(picture, 270, y + 50, column, height=26)

    y = 376
    picture.text(15, y, "The least that DRAM can move for one image, by kernel [MB]", 15, bold=True)
    padded = -(-PQ // 8) * 8
    megabytes = FLOAT / 1e6
    steps = (("im2col", C * H * W, CRS * padded), ("product", CRS * padded + K * CRS, K * PQ),
             ("bias", K * PQ, K * PQ), ("stage 03", C * H * W + K * CRS, K * PQ),
             ("its bias", K * PQ, K * PQ))
    for i, (name, reads, writes) in enumerate(steps):
        at = y + 16 + i * 34 + (10 if i > 2 else 0)
        picture.text(15, at + 19, name, 15)
        first, second = reads * megabytes, writes * megabytes
        scale = 110
        picture.rect(100, at, first * scale / 1.6, 26, SKY)
        picture.rect(100 + first * scale / 1.6, at, second * scale / 1.6, 26, ORANGE)
        picture.text(110 + (first + second) * scale / 1.6, at + 19,
                     f"{first:.2f} read, {second:.2f} written", 14)
    return picture


# ---- 03 -------------------------------------------------------------------------------------------


def draw_03(program):
    """Two tiles, the block's outputs, one thread's row and column, and the banks of its warp."""
    accesses = traces.trace_stage(program, "03_shared_tiling")
    w_read = traces.find(accesses, "w_tile", "load", size=16)
    x_read = traces.find(accesses, "x_tile", "load")
    picture = Picture("Stage 03: tiles in shared memory", 610)
    size, tile = 6, 32 * 6
    ty, tx = 9, 20  # the thread that is shown
    left, right, top, bottom = 150, 390, 64, 288

    def grid(x, y, fill):
        picture.rect(x, y, tile, tile, fill)
        for i in range(4, 32, 4):
            picture.line(x + i * size, y, x + i * size, y + tile, WHITE, 0.5)
            picture.line(x, y + i * size, x + tile, y + i * size, WHITE, 0.5)

    picture.text(15, 24, "A block owns 32 filters × 32 pixels: 1024 threads, one output each",
                 bold=True)
    grid(right, top, SKY)
    grid(left, bottom, YELLOW)
    grid(right, bottom, PALE)
    picture.text(right + tile + 12, top + 24, "x_tile: 32 taps × 32 pixels,", 14)
    picture.text(right + tile + 12, top + 44, "gathered from the input", 14)
    picture.text(left, bottom + tile + 20, "w_tile: 32 filters × 32 taps", 14)
    picture.text(right, bottom + tile + 20, "32 × 32 sums, in registers", 14)
    picture.rect(left, bottom + ty * size, tile, size, ORANGE, BLACK, 1)
    picture.rect(right + tx * size, top, size, tile, ORANGE, BLACK, 1)
    picture.rect(right + tx * size - 1, bottom + ty * size - 1, size + 2, size + 2, RED, BLACK, 1)
    picture.line(left + tile + 4, bottom + ty * size + 3, right + tx * size - 5,
                 bottom + ty * size + 3, BLACK, 1.5, arrow=True)
    picture.line(right + tx * size + 3, top + tile + 4, right + tx * size + 3,
                 bottom + ty * size - 5, BLACK, 1.5, arrow=True)
    picture.text(right + tile + 12, bottom + 24, "thread (tx, ty), red: multiplies its", 14)
    picture.text(right + tile + 12, bottom + 44, "row of w_tile by its column of", 14)
    picture.text(right + tile + 12, bottom + 64, "x_tile (orange), 32 taps long.", 14)
    picture.text(right + tile + 12, bottom + 100, "It loads one element of each", 14)
    picture.text(right + tile + 12, bottom + 120, "tile: (ty, tx). Each serves 32", 14)
    picture.text(right + tile + 12, bottom + 140, "threads.", 14)
    picture.text(15, top + 24, "Then the next 32 of", 14)
    picture.text(15, top + 44, "C·R·S = 363 taps:", 14)
    picture.text(15, top + 64, "12 pairs of tiles.", 14)

    y = 536
    picture.text(15, y, f"a warp reads x_tile: {counted(x_read)}", 14)
    traces.draw_banks(picture, 15, y + 14, x_read, width=12, block=12)
    picture.text(430, y, f"4 taps of w_tile, the same for all: {counted(w_read)}", 14)
    traces.draw_banks(picture, 430, y + 14, w_read, width=12, block=12)
    picture.text(15, y + 62, "The banks of shared memory; one block: one word of a bank.", 13,
                 fill=BLACK)
    return picture


# ---- 04 -------------------------------------------------------------------------------------------


def draw_04_outputs(picture):
    """The block's outputs, and one thread's among them; gives the y below."""
    TM, BN, BM = 12, 128, 96
    size, left, top = 3.6, 130, 66
    tx, ty = 5, 3  # the thread that is shown
    x0, y0 = left + 40, top + 36
    picture.rect(x0, y0, BN * size, BM * size, PALE)
    for i in range(1, 8):
        picture.line(x0, y0 + i * TM * size, x0 + BN * size, y0 + i * TM * size, WHITE, 1)
    for i in range(1, 32):
        picture.line(x0 + i * 4 * size, y0, x0 + i * 4 * size, y0 + BM * size, WHITE, 1)
    picture.rect(x0, top, BN * size, 22, SKY)
    picture.text(x0, top - 10, "one tap (row) of x_tile: 128 pixels", 14)
    picture.rect(left, y0, 22, BM * size, YELLOW)
    for i, text in enumerate(("the same tap", "of w_tile:", "96 filters")):
        picture.text(15, y0 + 20 * (i + 1), text, 14)
    for half in range(2):
        x = x0 + (tx * 4 + half * BN // 2) * size
        picture.rect(x, top, 4 * size, 22, ORANGE)
        picture.rect(x, y0 + ty * TM * size, 4 * size, TM * size, RED)
    picture.rect(left, y0 + ty * TM * size, 22, TM * size, ORANGE)
    notes = ("red: one thread's", "96 sums", "", "orange: what it", "reads for a tap:",
             "12 + 8 values for", "96 multiplications")
    for i, text in enumerate(notes):
        picture.text(x0 + BN * size + 16, y0 + 20 * (i + 1), text, 14)
    return y0 + BM * size


def draw_04_slots(picture, y):
    """Which tile lies in which slot, step by step."""
    SLOTS, STEPS = 3, 4
    picture.text(15, y, "Three slots in shared memory", 15, bold=True)
    for step in range(STEPS):
        picture.text(188 + 80 * step, y + 22, f"step {step}", 13, "middle")
        for slot in range(SLOTS):
            tile = slot + SLOTS * ((step + SLOTS - 1 - slot) // SLOTS)  # the newest in this slot
            top = y + 28 + slot * 24
            picture.rect(150 + 80 * step, top, 76, 21, GREEN if tile == step else PALE)
            picture.text(188 + 80 * step, top + 15, f"tile {tile}", 13, "middle")
    for slot in range(SLOTS):
        picture.text(15, y + 44 + slot * 24, f"slot {slot}", 14)
    picture.text(490, y + 44, "green: multiplied now", 14)
    picture.text(490, y + 66, "grey: on its way (asynchronous copies)", 14)
    return y + 28 + SLOTS * 24


def draw_04(program):
    """A thread's outputs among its block's, the slots over time, a warp's reads and its store."""
    accesses = traces.trace_stage(program, "04_register_blocking")
    x_read, w_read = (traces.find(accesses, name, "load", size=16) for name in ("x_tile", "w_tile"))
    store = traces.find(accesses, "output", "store")
    picture = Picture("Stage 04: a tile of outputs per thread", 738)
    picture.text(15, 24, "A block of 128 threads owns 96 filters × 128 pixels: 12 × 8 outputs each",
                 bold=True)
    y = draw_04_slots(picture, draw_04_outputs(picture) + 34) + 32
    picture.text(15, y, f"a warp reads 4 pixels per lane: {counted(x_read)}", 14)
    traces.draw_banks(picture, 15, y + 12, x_read, width=12, block=10)
    picture.text(430, y, f"4 filters, for two rows of threads: {counted(w_read)}", 14)
    traces.draw_banks(picture, 430, y + 22, w_read, width=12, block=10)
    picture.text(15, y + 82, f"a warp stores one of each lane's pixels: {counted(store)} for 32 floats",
                 14)
    traces.draw_sectors(picture, 15, y + 92, store, cell=5, height=24)
    return picture


# ---- 05 -------------------------------------------------------------------------------------------


def draw_05_row(picture, left):
    """The inputs under one strip, in the image and by phase in shared memory."""
    colours, columns, size = (ORANGE, SKY, GREEN, PURPLE), 7 * STRIDE + S, 20
    picture.text(left, 24, "A strip: 8 neighbouring outputs need 7·4 + 11 = 39 inputs of a row, "
                 "copied once", bold=True)
    for i in range(columns):
        picture.rect(left + i * size, 38, size, 22, colours[i % STRIDE], WHITE, 1)
    for j in (0, 1):
        picture.line(left + j * STRIDE * size + 1, 68 + 8 * j,
                     left + (j * STRIDE + S) * size - 1, 68 + 8 * j, BLACK, 3)
    picture.text(left + 15 * size + 10, 80, "the windows of outputs 0 and 1 (of 8)", 14)
    picture.text(left, 116, "In shared memory by phase (colour: column mod 4), so that neighbours "
                 "are neighbours again:", 15, bold=True)
    for phase in range(STRIDE):
        y = 130 + phase * 30
        for i, column in enumerate(range(phase, columns, STRIDE)):
            picture.rect(left + i * 26, y, 26, 22, colours[phase], WHITE, 1)
            picture.text(left + i * 26 + 13, y + 16, str(column), 13, "middle")
        taps = range(phase, S, STRIDE)
        picture.text(left + 300, y + 16, f"taps s = {', '.join(map(str, taps))}: boxes "
                     f"{', '.join(f'{i}…{i + 7}' for i in range(len(taps)))} of this row", 14)
    picture.rect(left + 26, 127, 8 * 26, 28, "none", RED, 3)
    picture.text(left, 266, "Red: what tap s = 4 needs, one value for each of the 8 outputs. The taps "
                 "of a phase slide over registers.", 14)


def draw_05_banks(picture, left, y, accesses):
    """What a warp reads of both tiles."""
    reads = [access for access in accesses if access["memory"] == "shared" and
             access["operation"] == "load" and access["bytes"] == 16]
    x_read, w_read = (next(access for access in reads if access["line"] == line)
                      for line in dict.fromkeys(access["line"] for access in reads))
    picture.text(left, y, f"a warp reads 4 inputs of 8 strips: {counted(x_read)}", 14)
    traces.draw_banks(picture, left, y + 12, x_read, width=12, block=14)
    picture.text(430, y, f"4 filters of 4 groups: {counted(w_read)}", 14)
    traces.draw_banks(picture, 430, y + 12, w_read, width=12, block=14)
    picture.text(left, y + 66, "8 strips begin in 8 different groups of 4 banks: 52 words from one to "
                 "the next, not 48.", 14)


def draw_05(program):
    """The phases of an input row, the strips' place in the banks, and the transposed store."""
    accesses = traces.trace_stage(program, "05_fused_bias")
    store = traces.find(accesses, "output", "store")
    before = traces.find(traces.trace_stage(program, "04_register_blocking"), "output", "store")
    left, y = 15, 416
    picture = Picture("Stage 05: rows of the input, and stores in order", 690)
    draw_05_row(picture, left)
    draw_05_banks(picture, left, 306, accesses)
    picture.text(left, y, "The sums are transposed in shared memory on their way out", 15, bold=True)
    picture.text(left, y + 26, "a thread has 8 neighbours:", 14)
    for i, colour in enumerate((ORANGE, SKY, GREEN, PURPLE, YELLOW)):
        cells(picture, left + i * 84, y + 36, 8, 10, colour, 20)
    picture.text(left + 430, y + 52, "… of which a store takes one per thread", 14)
    picture.text(left, y + 84, "transposed: a warp has 32 neighbours:", 14)
    cells(picture, left, y + 94, LANES, 10, BLUE, 20)
    picture.text(left, y + 148, f"a warp's store in stage 04: {counted(before)}", 14)
    traces.draw_sectors(picture, left, y + 158, before, cell=5, height=24)
    picture.text(left, y + 214, f"and here: {counted(store)}", 14)
    traces.draw_sectors(picture, left, y + 224, store, cell=5, height=24)
    return picture


def draw_all(program):
    """All of them: {name of the file: Picture}. `program`: bin/trace_warp."""
    return {"stage_01": draw_01(program), "stage_02": draw_02(program), "stage_03": draw_03(program),
            "stage_04": draw_04(program), "stage_05": draw_05(program)}
