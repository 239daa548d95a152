"""What bin/trace_warp (preset sim-count) says of one warp, and how pictures show it."""

import functools
import json
import pathlib
import subprocess
import tempfile

from svg import BLACK, BLUE, GREY, PALE, RED, WHITE

SECTOR, WORD, BANKS = 32, 4, 32  # bytes, bytes, number of banks


def trace(program, *options):
    """The memory instructions of one warp: a list of objects, see trace_warp --help."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.json"
        subprocess.run([str(program), *options, "--json", str(path)], check=True)
        return json.loads(path.read_text())


@functools.lru_cache(maxsize=None)
def trace_stage(program, stage):
    """Warp 0 of the stage on AlexNet's first layer. Stages 01 to 03 with a third of the filters: that
    leaves out blocks, and what the first one does is the same. The others with as many images as it
    takes for 12 filters per thread, as with the 256 of the lessons."""
    smaller = ("--k", "32") if stage < "04" else ("--n", "3")
    return trace(program, "--stage", stage, "--shape", "alexnet_conv1", *smaller)


def find(accesses, memory, operation, *, size=WORD):
    """The first access of that kind in which all lanes take part."""
    return next(access for access in accesses
                if access["memory"] == memory and access["operation"] == operation and
                access["bytes"] == size and None not in access["offsets"])


def words_of(access):
    """The different words that the lanes ask for."""
    return {(offset + byte) // WORD for offset in access["offsets"]
            for byte in range(0, access["bytes"], WORD)}


def draw_sectors(picture, x, y, access, cell=6, height=34):
    """The sectors that a warp's access touches, side by side; cells that it asks for in blue."""
    asked = words_of(access)
    per_sector = SECTOR // WORD
    sectors = sorted({word // per_sector for word in asked})
    if len(sectors) != access["sectors"]:
        raise SystemExit(f"draw.py: {access['line']}: {len(sectors)} sectors drawn, "
                         f"{access['sectors']} counted")
    for at, sector in enumerate(sectors):
        left = x + at * (per_sector * cell + 2)
        for word in range(per_sector):
            fill = BLUE if sector * per_sector + word in asked else PALE
            picture.rect(left + word * cell, y, cell, height, fill, WHITE, 0.5)
        picture.rect(left, y, per_sector * cell, height, "none", BLACK, 1.5)
    return len(sectors), len(asked)


def draw_banks(picture, x, y, access, width=25, block=5):
    """How many different words each of the 32 banks has to give; the y below it."""
    words = words_of(access)
    load = [sum(word % BANKS == bank for word in words) for bank in range(BANKS)]
    if access["bytes"] == WORD and max(load) != access["wavefronts"]:
        raise SystemExit(f"draw.py: {access['line']}: {max(load)} wavefronts drawn, "
                         f"{access['wavefronts']} counted")
    bottom = y + max(load) * block
    for bank in range(BANKS):
        left = x + bank * width
        for level in range(load[bank]):
            picture.rect(left + 2, bottom - (level + 1) * block, width - 4, block,
                         RED if access["conflicts"] else BLUE, WHITE, 0.5)
        if bank % (1 if width >= 20 else 4) == 0:
            picture.text(left + width / 2, bottom + 15, str(bank), 12, "middle", fill=GREY)
    picture.line(x, bottom + 1, x + BANKS * width, bottom + 1)
    return bottom + 20
