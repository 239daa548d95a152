"""What `profile --trace` (preset sim-count) says of one warp, and how pictures show it."""

import collections
import functools
import json
import pathlib
import subprocess
import tempfile

from common.show.pictures.svg import BLACK, BLUE, GREY, PALE, RED, WHITE

SECTOR, WORD, BANKS, LANES = 32, 4, 32, 32  # bytes, bytes, numbers of these
WORDS = SECTOR // WORD  # of a sector


def traced(command):
    """The stages of the trace that the command writes to the file that is its last word."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.json"
        subprocess.run([*command, str(path)], check=True, stdout=subprocess.DEVNULL)
        return json.loads(path.read_text())["stages"]


def accesses_of(stage):
    """What the first warp of each kernel does, instruction by instruction: the kernel's name, the
    instruction's members, `offsets` of the lanes from the begin of the tensor or variable (None: takes
    no part), and `sectors` or `wavefronts` and `conflicts` of this one time."""
    accesses = []
    for kernel in stage["kernels"]:
        begins = {place["name"]: place["begin"] for place in stage["memory"] + kernel["shared"]}
        for instruction, runs in zip(kernel["instructions"], kernel["warps"][0]["runs"]):
            shared = instruction["space"] == "shared"
            length = 9 if instruction["operation"] == "copy" else 6
            for at in range(0, len(runs), length):
                pattern, base, step, times, cost, conflicts = runs[at:at + 6]
                costs = {"wavefronts": cost, "conflicts": conflicts} if shared else {"sectors": cost}
                for i in range(times):
                    begin = base + i * step - begins.get(instruction["memory"], base + i * step)
                    accesses.append({**instruction, **costs, "kernel": kernel["kernel"], "offsets": [
                        None if lane is None else begin + lane for lane in stage["patterns"][pattern]]})
    return accesses


@functools.cache
def trace_stage(program, stage):
    """Warp 0 of the stage on AlexNet's first layer, one image. Stages 01 to 03 with a third of the
    filters: that leaves out blocks, and what the first one does is the same."""
    smaller = ("--k", "32") if stage < "04" else ()
    with tempfile.NamedTemporaryFile() as counts:
        stages = traced([str(program), "profile", "--stage", stage, "--shape", "alexnet_conv1", "--n", "1",
                         *smaller, "--json", counts.name, "--block", "0", "--warp", "0", "--trace"])
    return accesses_of(stages[0])


def trace_tile_reads(program):
    """Of the program beside that one."""
    return accesses_of(traced([str(pathlib.Path(program).with_name("tile_reads"))])[0])


def find(accesses, memory, operation, *, size=WORD):
    """The first access of that kind in which all lanes take part."""
    return next(access for access in accesses
                if access["memory"] == memory and access["operation"] == operation and
                access["bytes"] == size and None not in access["offsets"])


def sectors_of(access, words):
    """Those of the words, which must be as many as were counted."""
    sectors = sorted({word // WORDS for word in words})
    if len(sectors) != access["sectors"]:
        raise SystemExit(f"draw.py: {access['line']}: {len(sectors)} sectors drawn, "
                         f"{access['sectors']} counted")
    return sectors


def words_of(access):
    """The different words that the lanes ask for."""
    return {(offset + byte) // WORD for offset in access["offsets"]
            for byte in range(0, access["bytes"], WORD)}


def draw_sectors(picture, x, y, access, cell=6, height=34):
    """The sectors that a warp's access touches, side by side; cells that it asks for in blue."""
    asked = words_of(access)
    sectors = sectors_of(access, asked)
    for at, sector in enumerate(sectors):
        left = x + at * (WORDS * cell + 2)
        for word in range(WORDS):
            fill = BLUE if sector * WORDS + word in asked else PALE
            picture.rect(left + word * cell, y, cell, height, fill, WHITE, 0.5)
        picture.rect(left, y, WORDS * cell, height, "none", BLACK, 1.5)
    return len(sectors), len(asked)


def passes_of(access):
    """The passes of a load or store through the banks, by the rules of common/simulator/counting/
    traffic.cpp: (first lane, last lane, is it a conflict's, banks that give a word) of each."""
    offsets = access["offsets"]

    def pairs_agree(bit):
        return all(offset == offsets[lane ^ bit] for lane, offset in enumerate(offsets)
                   if None not in (offset, offsets[lane ^ bit]))

    group = LANES * WORD // max(access["bytes"], WORD)
    if group < LANES and (pairs_agree(1) or pairs_agree(2)):
        group *= 2
    for first in range(0, LANES, group):
        words = words_of({**access, "offsets": offsets[first:first + group]})
        banks = collections.Counter(word % BANKS for word in words)
        for at in range(max(banks.values(), default=0)):
            yield first, first + group - 1, at > 0, {bank for bank in banks if banks[bank] > at}


def draw_banks(picture, x, y, access, width=25, block=5):
    """Pass after pass, which of the 32 banks give a word, those due to conflicts in red; the lanes
    that a pass serves, where it isn't all of them; the y below it."""
    passes = list(passes_of(access))
    counted = (access["wavefronts"], access["conflicts"])
    if (len(passes), sum(conflict for _, _, conflict, _ in passes)) != counted:
        raise SystemExit(f"draw.py: {access['line']}: {len(passes)} wavefronts drawn, {counted[0]} counted, "
                         f"{counted[1]} of them for conflicts")
    for at, (first, last, conflict, banks) in enumerate(passes):
        top = y + at * block
        picture.rect(x, top, BANKS * width, block, PALE, WHITE, 0.5)
        for bank in sorted(banks):
            picture.rect(x + bank * width + 1, top, width - 2, block, RED if conflict else BLUE, WHITE, 0.5)
        if last - first + 1 < LANES:
            picture.text(x + BANKS * width + 6, top + block - 2, f"{first}…{last}", 12)
    bottom = y + len(passes) * block
    for bank in range(0, BANKS, 1 if width >= 20 else 4):
        picture.text(x + (bank + 0.5) * width, bottom + 15, str(bank), 12, "middle", fill=GREY)
    picture.line(x, bottom + 1, x + BANKS * width, bottom + 1)
    return bottom + 20


def draw_lanes(picture, x, y, access, cell):
    """The sectors that a warp's access touches, a row for each run of them; a cell that a lane asks
    for is blue and has the lane's number, on it or beside it. The y below."""
    height = 26
    lane_of = {offset // WORD: lane for lane, offset in enumerate(access["offsets"])}
    sectors, left = sectors_of(access, lane_of), x
    for at, sector in enumerate(sectors):
        if at and sector != sectors[at - 1] + 1:
            left, y = x, y + height + 8
        lanes = [lane_of.get(sector * WORDS + word) for word in range(WORDS)]
        for word, lane in enumerate(lanes):
            picture.rect(left + word * cell, y, cell, height, PALE if lane is None else BLUE, WHITE,
                         0.5)
        picture.rect(left, y, WORDS * cell, height, "none", BLACK, 1.5)
        for word, lane in enumerate(lanes):
            at_x = left + word * cell
            if lane is not None and cell >= 20:
                picture.text(at_x + cell / 2, y + height / 2 + 5, str(lane), 13, "middle", fill=WHITE)
            elif lane is not None:
                picture.text(at_x + cell + 2, y + height / 2 + 5, str(lane), 13)
        left += WORDS * cell
    return y + height
