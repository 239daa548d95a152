"""The pictures of the stages' lessons: who owns what, and what a warp's accesses look like.

AlexNet's first layer throughout. Stage 05 owns what stage 04 does, and has its picture. Addresses,
sectors and wavefronts are those of `profile --trace`.
"""

from common.show.pictures import traces
from common.show.pictures.svg import (BLACK, BLUE, GREEN, GREY, ORANGE, PALE, PURPLE, RED, SKY, WHITE, YELLOW, Picture)

LANES = 32
C, H, W, K, R, S, STRIDE, P, Q = 3, 224, 224, 96, 11, 11, 4, 55, 55
CRS, PQ = C * R * S, P * Q
FLOAT = 4  # bytes
TILES = (64, 96, 128)  # filters per block that stage 09 has


def counted(access):
    """'16 sectors' or '1 wavefront'."""
    shared = access["space"] == "shared"
    count, unit = (access["wavefronts"], "wavefront") if shared else (access["sectors"], "sector")
    return f"{count} {unit}{'s' * (count != 1)}"


def cells(picture, x, y, count, size, fill, height=None):
    for i in range(count):
        picture.rect(x + i * size, y, size, height or size, fill, GREY, 0.5)


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
    x, y, rows = 15, 64, 7
    picture.text(x, 54, "the image: windows of three neighbouring pixels", 14)
    cells_across = 19
    for row in range(rows):
        cells(picture, x, y + row * 15, cells_across, 15, PALE)
    for pixel, colour in ((0, ORANGE), (1, SKY), (2, GREEN)):
        picture.rect(x + pixel * 4 * 15 + 1 + pixel * 2, y + 4 + pixel * 4, 11 * 15 - 6,
                     rows * 15 - 16, "none", colour, 4)
    picture.lines(x, y + rows * 15 + 22, ("stride 4, windows 11 wide: most values",
                                          "lie in several windows"))

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
    picture.lines(left, bottom + 20, ("one thread's: 121 rows of a column, a channel's",
                                      "red: one store of a warp, 32 columns of a row"))

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
    picture = Picture("Stage 03: tiles in shared memory", 630)
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
    picture.lines(right + tile + 12, top + 24, ("x_tile: 32 taps × 32 pixels,",
                                                "gathered from the input"))
    picture.text(left, bottom + tile + 20, "w_tile: 32 filters × 32 taps", 14)
    picture.text(right, bottom + tile + 20, "32 × 32 sums, in registers", 14)
    picture.rect(left, bottom + ty * size, tile, size, ORANGE, BLACK, 1)
    picture.rect(right + tx * size, top, size, tile, ORANGE, BLACK, 1)
    picture.rect(right + tx * size - 1, bottom + ty * size - 1, size + 2, size + 2, RED, BLACK, 1)
    picture.line(left + tile + 4, bottom + ty * size + 3, right + tx * size - 5,
                 bottom + ty * size + 3, BLACK, 1.5, arrow=True)
    picture.line(right + tx * size + 3, top + tile + 4, right + tx * size + 3,
                 bottom + ty * size - 5, BLACK, 1.5, arrow=True)
    picture.lines(right + tile + 12, bottom + 24, (
        "thread (tx, ty), red: multiplies its", "row of w_tile by its column of",
        "x_tile (orange), 32 taps long."))
    picture.lines(right + tile + 12, bottom + 100, (
        "It loads one element of each", "tile: (ty, tx). Each serves 32", "threads."))
    picture.lines(15, top + 24, ("Then the next 32 of", "C·R·S = 363 taps:", "12 pairs of tiles."))

    y = 536
    picture.text(15, y, f"a warp reads x_tile: {counted(x_read)}", 14)
    traces.draw_banks(picture, 15, y + 14, x_read, width=12, block=14)
    picture.text(430, y, f"4 taps of w_tile, the same for all: {counted(w_read)}", 14)
    traces.draw_banks(picture, 430, y + 14, w_read, width=10, block=14)
    picture.text(15, y + 82, "The 32 banks of shared memory; one row: one wavefront; beside it: the "
                 "lanes that it serves.", 13)
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
    picture.lines(15, y0 + 20, ("the same tap", "of w_tile:", "96 filters"))
    for half in range(2):
        x = x0 + (tx * 4 + half * BN // 2) * size
        picture.rect(x, top, 4 * size, 22, ORANGE)
        picture.rect(x, y0 + ty * TM * size, 4 * size, TM * size, RED)
    picture.rect(left, y0 + ty * TM * size, 22, TM * size, ORANGE)
    picture.lines(x0 + BN * size + 16, y0 + 20, (
        "red: one thread's", "96 sums", "", "orange: what it", "reads for a tap:",
        "12 + 8 values for", "96 multiplications"))
    return y0 + BM * size


def draw_04(program):
    """A thread's outputs among its block's, a warp's reads and its store."""
    accesses = traces.trace_stage(program, "04_register_blocking")
    x_read, w_read = (traces.find(accesses, name, "load", size=16) for name in ("x_tile", "w_tile"))
    store = traces.find(accesses, "output", "store")
    picture = Picture("Stage 04: a tile of outputs per thread", 664)
    picture.text(15, 24, "A block of 128 threads owns 96 filters × 128 pixels: 12 × 8 outputs each",
                 bold=True)
    y = draw_04_outputs(picture) + 34
    picture.text(15, y, f"a warp reads 4 pixels per lane: {counted(x_read)}", 14)
    traces.draw_banks(picture, 15, y + 12, x_read, width=10, block=14)
    picture.text(430, y, f"4 filters, for two rows of threads: {counted(w_read)}", 14)
    traces.draw_banks(picture, 430, y + 12, w_read, width=10, block=14)
    picture.lines(430, y + 84, ("one row: one wavefront through the",
                                "32 banks; beside it: the lanes it serves"), 18, size=13)
    picture.text(15, y + 128, f"a warp stores one of each lane's pixels: {counted(store)} for 32 floats",
                 14)
    traces.draw_sectors(picture, 15, y + 138, store, cell=5, height=24)
    return picture


# ---- 06 -------------------------------------------------------------------------------------------


def draw_06():
    """Which tile lies in which slot, step by step, and who waits for what."""
    SLOTS, STEPS = 3, 5
    picture = Picture("Stage 06: three slots", 214)
    picture.text(15, 24, "Three slots in shared memory: one tile is multiplied, two are on their way",
                 bold=True)
    for step in range(STEPS):
        picture.text(138 + 90 * step, 58, f"step {step}", 14, "middle")
        for slot in range(SLOTS):
            tile = slot + SLOTS * ((step + SLOTS - 1 - slot) // SLOTS)  # the newest in this slot
            top = 66 + slot * 28
            new = tile == step + SLOTS - 1
            picture.rect(96 + 90 * step, top, 86, 25,
                         GREEN if tile == step else ORANGE if new else PALE)
            picture.text(138 + 90 * step, top + 17, f"tile {tile}", 14, "middle")
    picture.lines(15, 83, (f"slot {slot}" for slot in range(SLOTS)), 28)
    for i, (colour, text) in enumerate(((GREEN, "multiplied in this step"),
                                        (ORANGE, "its copies begin in this step"),
                                        (PALE, "on its way since the step before"))):
        picture.rect(560, 68 + i * 28, 20, 20, colour)
        picture.text(590, 83 + i * 28, text, 14)
    picture.lines(15, 180, (
        "A step begins with a wait for the copies of its own tile, and one barrier. Then the slot "
        "of the", "step before is free: all have passed the barrier, so all have multiplied it."))
    return picture


# ---- 07 -------------------------------------------------------------------------------------------


def draw_07():
    """The filters as they come and as they are copied, tile by tile."""
    picture = Picture("Stage 07: filters in the order of their use", 602)
    cell, shown = 22, 8
    colours = (ORANGE, SKY, GREEN)

    def grid(x, y, rows, fill_of):
        for row in range(rows):
            for column in range(2 * shown):
                picture.rect(x + column * cell, y + row * 18, cell, 18, fill_of(row, column), WHITE, 1)

    picture.text(15, 24, "The filters, [K, C·R·S]: what a tile wants lies 363 floats apart", bold=True)
    grid(90, 40, 4, lambda row, column: colours[column // 8] if column < 16 else PALE)
    for row in range(3):
        picture.text(82, 54 + row * 18, f"filter {row}", 13, "end")
    picture.text(82, 54 + 3 * 18, "…", 13, "end")
    picture.text(90, 132, "taps 0 … 7: tile 0", 14)
    picture.text(90 + shown * cell, 132, "taps 8 … 15: tile 1", 14)
    picture.text(90 + 2 * shown * cell + 12, 70, "… 363 taps", 14)
    draw_07_turning(picture, 176)
    y = 476
    picture.text(15, y, "Packed: tile after tile, in each one tap after the other, 96 filters each",
                 bold=True)
    for tile in range(2):
        for tap in range(8):
            x = 90 + (tile * 8 + tap) * 42
            picture.box(x, y + 14, 42, 26, f"tap {tile * 8 + tap}", colours[tile], WHITE, size=12)
    picture.text(768, y + 32, "…", 14)
    picture.line(111, y + 46, 111, y + 66, BLACK, 1.5)
    for i in range(24):
        picture.rect(90 + i * 26, y + 70, 26, 20, YELLOW, BLACK, 0.5)
    picture.text(90, y + 112, "96 filters of one tap: 24 copies of 16 bytes, by neighbouring lanes", 14)
    return picture


def draw_07_turning(picture, y):
    """How a block of `pack` turns 32 filters × 32 taps: what one warp reads and writes in each step."""
    size, side = 5, LANES * 5
    first, second = 9, 21  # the warp that is shown, before and behind the barrier
    picture.text(15, y, "pack: a block turns 32 filters × 32 taps in shared memory; a warp's part of "
                 "each step", bold=True)
    left = (90, 340, 590)
    for x, name, rows, columns in ((left[0], "filters", "filters", "32 taps"),
                                   (left[1], "turned[32][33]", "taps", "32 filters"),
                                   (left[2], "packed", "taps", "32 filters")):
        picture.text(x, y + 28, name, 14, mono=True)
        picture.rect(x, y + 58, side, side, PALE)
        picture.text(x, y + 50, columns + " →", 13)
        picture.text(x - 8, y + 70, rows, 13, "end")
    picture.rect(left[1] + side, y + 58, size, side, GREY)  # the 33rd column
    picture.rect(left[0], y + 58 + first * size, side, size, BLUE)
    picture.rect(left[1] + first * size, y + 58, size, side, BLUE)
    picture.rect(left[1], y + 58 + second * size, side, size, ORANGE)
    picture.rect(left[2], y + 58 + second * size, side, size, ORANGE)
    picture.line(left[0] + side + 4, y + 58 + first * size + 2, left[1] - 4, y + 58 + first * size + 2,
                 BLUE, 2.5, arrow=True)
    picture.line(left[1] + side + size + 4, y + 58 + second * size + 2, left[2] - 4,
                 y + 58 + second * size + 2, ORANGE, 2.5, arrow=True)
    picture.lines(15, y + 244, (
        "blue: reads 32 neighbouring taps of a filter, writes a column. Then a barrier, then "
        "orange: reads a row,", "writes 32 neighbouring filters of a tap. Grey: with a 33rd float "
        "in a row, a column lies in 32 banks."), 18, size=13)


# ---- 08 -------------------------------------------------------------------------------------------


def draw_08(program):
    """The panel: written by strips of four, read by neighbours; and the store before and after."""
    before, store = (traces.find(traces.trace_stage(program, stage), "output", "store")
                     for stage in ("07_packed_filters", "08_ordered_stores"))
    left, width, rows = 15, 6, 8
    picture = Picture("Stage 08: outputs go through a panel in shared memory", 520)
    picture.text(left, 24, "The panel: 8 filters × 128 pixels, one filter of each row of threads",
                 bold=True)

    def panel(y, colour_of):
        for row in range(rows):
            for pixel in range(128):
                picture.rect(left + pixel * width, y + row * 11, width, 11, colour_of(row, pixel),
                             WHITE, 0.3)

    panel(38, lambda row, pixel: RED if row == 2 and pixel % 64 // 4 == 5 else PALE)
    picture.text(left, 146, "written: each thread puts its 4 and 4 pixels of one filter (red: one "
                 "thread's)", 14)
    panel(170, lambda row, pixel: (RED if pixel == 37 else SKY) if 32 <= pixel < 64 else PALE)
    picture.text(left, 278, "read: each thread takes one pixel of 8 filters (blue: one warp's; red: one "
                 "thread's)", 14)
    picture.text(left, 316, "Which lane of warp 0 stores what (boxes: sectors of 8 floats)", bold=True)
    picture.text(left, 342, f"stage 07, one store: {counted(before)}; every fourth pixel of filter 0, and "
                 "of filter 12", 14)
    y = traces.draw_lanes(picture, left, 352, before, cell=11)
    picture.text(left, y + 28, f"here: {counted(store)}; 32 neighbours of filter 0", 14)
    traces.draw_lanes(picture, left, y + 38, store, cell=24)
    picture.text(left, y + 92, "12 panels, one for each of a thread's filters.", 14)
    picture.height = y + 102
    return picture


# ---- 09 -------------------------------------------------------------------------------------------


def chosen_tile(filters):
    """As enqueue() of stage 09 chooses: the fewest empty rows, and of these the largest tile."""
    return min(TILES, key=lambda BM: (-filters % BM, -BM))


def draw_09():
    """Rows of tiles that filters fill, and those that none fills: of one size, and of the chosen."""
    picture, left, scale = Picture("Stage 09: tiles that the filters fill", 374), 15, 0.8
    picture.text(left, 24, "The blocks that share 128 pixels, by the filters of a layer", bold=True)
    for i, filters in enumerate((64, 96, 256)):
        x = left + i * 275
        picture.text(x, 56, f"{filters} filters", 15, bold=True)
        for j, BM in enumerate((96, chosen_tile(filters))):
            tiles = -(-filters // BM)
            for tile in range(tiles):
                filled = min(BM, filters - tile * BM)
                y = 68 + tile * BM * scale
                if filled < BM:
                    picture.rect(x + j * 125, y, 100, BM * scale, RED)
                picture.rect(x + j * 125, y, 100, filled * scale, YELLOW)
            picture.text(x + j * 125 + 50, 68 + 36 * scale, f"{BM}", 14, "middle")
            empty = tiles * BM - filters
            picture.text(x + j * 125, 68 + tiles * BM * scale + 20,
                         f"{empty} of {tiles * BM} empty" if empty else "all filled", 14)
    picture.lines(left, 346, (
        "Left tiles of 96 filters, right the size that stage 09 chooses.",
        "Yellow: rows with a filter. Red: rows that are multiplied for nothing."))
    return picture


# ---- 10 -------------------------------------------------------------------------------------------


def draw_10():
    """The inputs under one strip, in the image and by phase in shared memory; a warp's threads."""
    picture, left = Picture("Stage 10: rows of the input, by phase", 490), 15
    colours, columns, size = (ORANGE, SKY, GREEN, PURPLE), 7 * STRIDE + S, 20
    picture.text(left, 24, "A strip: 8 neighbouring outputs need 7·4 + 11 = 39 inputs of a row, "
                 "copied once (as 48)", bold=True)
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
            picture.box(left + i * 26, y, 26, 22, str(column), colours[phase], WHITE, size=13)
        taps = range(phase, S, STRIDE)
        picture.text(left + 300, y + 16, f"taps s = {', '.join(map(str, taps))}: boxes "
                     f"{', '.join(f'{i}…{i + 7}' for i in range(len(taps)))} of this row", 14)
    picture.rect(left + 26, 127, 8 * 26, 28, "none", RED, 3)
    picture.text(left, 266, "Red: what tap s = 4 needs, one value for each of the 8 outputs. The taps "
                 "of a phase slide over registers.", 14)
    y = 306
    picture.text(left, y, "The order of the taps, i · 4 mod 11: phase by phase", bold=True)
    for i in range(S):
        s = i * STRIDE % S
        picture.box(left + i * 40, y + 12, 40, 24, str(s), colours[s % STRIDE], WHITE)
    picture.text(left + 460, y + 29, "3 · 4 = 11 + 1: past the end begins the next phase", 14)
    y = 376
    picture.text(left, y, "A warp: 4 rows of filters × 8 strips", bold=True)
    for lane in range(LANES):
        column, row = lane // 2 % 8, lane % 2 + lane // 16 * 2
        picture.box(left + column * 40, y + 12 + row * 22, 40, 22, str(lane),
                    SKY if row % 2 else YELLOW, WHITE, size=13)
    picture.lines(left + 350, y + 34, ("lanes that share a strip (a column) read the same inputs,",
                                       "lanes that share a row read the same filters:",
                                       "4 · 12 + 8 · 8 values for 32 · 96 multiplications"), 24)
    return picture


# ---- 11 -------------------------------------------------------------------------------------------

MULTIPROCESSORS = 132
STAGE_10, STAGE_11 = (96, 1), (32, 5)  # filters of a tile, and parts: the plans for one image


def blocks_of(plan):
    """Of 128 pixels, in strips of 8 that end with their row."""
    BM, parts = plan
    return -(-K // BM) * -(-P * -(-Q // 8) * 8 // 128) * parts


def draw_11():
    """Blocks on multiprocessors, before and after; a sum in parts, and how these are added."""
    picture, left, rows = Picture("Stage 11: sums cut in parts", 424), 15, 4
    picture.text(left, 24, "One image of AlexNet's layer on 132 multiprocessors, and the blocks of each",
                 bold=True)
    for x, name, plan in ((left, "10", STAGE_10), (left + 415, "11", STAGE_11)):
        blocks = blocks_of(plan)
        for i in range(MULTIPROCESSORS):
            count = (blocks - i - 1) // MULTIPROCESSORS + 1
            picture.rect(x + i // rows * 11, 66 + i % rows * 20, 11, 20,
                         (WHITE, SKY, ORANGE, GREEN)[count], GREY, 0.5)
        most = -(-blocks // MULTIPROCESSORS)
        picture.text(x, 56, f"stage {name}: {blocks} block{'s' * (blocks > 1)}", 14)
        picture.text(x, 166, f"the busiest: {most} · {-(-C * R // plan[1])} filter rows, for "
                     f"{plan[0]} filters", 14)
    picture.text(left, 190, "white: none, blue: one, orange: two, green: three", 14)
    y, size, parts = 250, 24, STAGE_11[1]
    picture.text(left, y - 16, f"A sum: {C * R} filter rows of 11 taps, in {parts} parts", bold=True)
    first = 0
    for part, colour in enumerate((SKY, YELLOW, GREEN, ORANGE, GREY)[:parts]):
        rows = C * R // parts + (part < C * R % parts)  # the first parts take what is left over
        for row in range(first, first + rows):
            picture.box(left + row * size, y, size, 24, str(row), colour, WHITE, size=13)
        middle = left + (first + rows / 2) * size
        picture.line(middle, y + 28, middle, y + 56, BLACK, 2, arrow=True)
        picture.box(middle - 68, y + 60, 136, 28,
                    f"sums {part}: workspace" if part else "sums 0, and bias", colour, size=13)
        picture.line(middle, y + 92, left + 16.5 * size + (part - parts // 2) * 60, y + 122, BLACK, 2,
                     arrow=True)
        first += rows
    added = " + ".join(map(str, range(parts)))
    picture.box(left + 8 * size, y + 126, 17 * size, 28,
                f"add_parts: {added}, then ReLU: output", ORANGE)
    return picture


# ---- 12 -------------------------------------------------------------------------------------------


def draw_fragment(picture, x, y, name, rows, columns, held_by, marked):
    """A matrix; held_by(row, column) says which lane has the value, and in which of its registers."""
    colours, width, height = (YELLOW, SKY, ORANGE, GREEN), 27, 19
    picture.text(x, y - 10, name, 14)
    for row in range(rows):
        for column in range(columns):
            lane, register = held_by(row, column)
            picture.box(x + column * width, y + row * height, width, height, str(lane),
                        colours[register], WHITE, size=12, bold=lane == marked)
    for row in range(rows):
        for column in range(columns):
            if held_by(row, column)[0] == marked:
                picture.rect(x + column * width, y + row * height, width, height, "none", RED, 3)


def tap_of(taps, product, i):
    """Row and tap that stand for factor i of a tile's product, as in the kernel; None for a zero."""
    if taps == 3:
        return i, product
    row, s = (product, i) if taps == 7 or product < 2 else (i // 4, 8 + i % 4)
    return (row, s) if s < taps else None


def draw_12():
    """Which lane holds what of mma_tf32()'s matrices, and in which order a tile's taps are multiplied."""
    picture, left, marked = Picture("Stage 12: fragments, and the order of taps", 620), 15, 5
    picture.text(left, 24, "Which lane holds what of one product; red: the values of lane 5", bold=True)
    draw_fragment(picture, left, 66, "16 filters × 8 taps: a[0…3]", 16, 8, lambda row, column: (
        row % 8 * 4 + column % 4, row // 8 + column // 4 * 2), marked)
    draw_fragment(picture, left + 265, 66, "8 taps × 8 pixels: b[0…1]", 8, 8, lambda row, column: (
        column * 4 + row % 4, row // 4), marked)
    draw_fragment(picture, left + 530, 66, "16 filters × 8 pixels: c[0…3]", 16, 8, lambda row, column: (
        row % 8 * 4 + column // 2, row // 8 * 2 + column % 2), marked)
    for i, text in enumerate(("[0]", "[1]", "[2]", "[3]")):
        picture.rect(left + 265 + i * 54, 250, 24, 19, (YELLOW, SKY, ORANGE, GREEN)[i], WHITE, 1)
        picture.text(left + 293 + i * 54, 264, text, 14)
    picture.lines(left + 265, 302, ("The product adds to c:", "each filter's 8 taps",
                                    "times each pixel's."), 22)
    y = 416
    picture.text(left, y, "Three products, a tile of 24 factors: row and tap of each (colour: the row)",
                 bold=True)
    colours = (YELLOW, SKY, ORANGE, GREEN, PURPLE, PALE, BLUE, RED)
    for line, taps in enumerate((3, 7, 11)):
        top = y + 24 + line * 48
        picture.text(left, top + 17, f"S = {taps}", 14)
        for product in range(3):
            for i in range(8):
                found = tap_of(taps, product, i)
                picture.box(left + 60 + product * 250 + i * 30, top, 30, 24,
                            f"{found[0]},{found[1]}" if found else "0",
                            colours[found[0]] if found else WHITE, GREY, 0.5,
                            size=12, colour=WHITE if found and found[0] > 5 else BLACK)
    picture.text(left, y + 190, "Lanes 4 · pixel + 0…3 read the first four factors of a product, then the "
                 "other four.", 14)
    return picture


def draw_all(program):
    """All of them: {name of the file: Picture}. `program`: bin/convladder."""
    return {"stage_01": draw_01(program), "stage_02": draw_02(program), "stage_03": draw_03(program),
            "stage_04": draw_04(program), "stage_06": draw_06(), "stage_07": draw_07(),
            "stage_08": draw_08(program), "stage_09": draw_09(), "stage_10": draw_10(),
            "stage_11": draw_11(), "stage_12": draw_12()}
