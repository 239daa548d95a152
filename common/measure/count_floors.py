"""The least time of every stage on a GPU, on many layers: docs/results/floors.csv, to hold times against.

  python3 -m common.measure.count_floors [--program build/sim-count/bin/convladder] [--shape NAME]... [--list]

The layers are those of common/layers.csv with a million multiply-adds or more in an image. Of each a few
rows of one image are counted, by the simulator (where there is padding, those at its edge have less to do,
and a bound is so much lower); common/measure/enlarge.h says how what the whole problem asks for follows from
that, and common/show/floors.py how the least time follows from what is asked for. The stages are those of
which docs/results has times on these layers, and the rates those of their GPU. --shape counts that layer
alone. A layer's rows take the place of those that the file has. --list names the layers and counts none.
"""
import argparse
import os

from common.measure.profile import records_of
from common.show import files, floors, last, shape
from common.show.files import ROOT
from common.show.support import fail, progress, run_main

OUT = os.path.join(ROOT, "docs/results/floors.csv")
LAYERS, GPU, FIRST = "common/layers.csv", "h100", "05"
LEAST_MACS, MOST_MACS = 1e6, 16e6  # of one image; of the rows that are counted, if one has no more
MOST_IN_ROW = 100e6  # layers with wider rows of outputs are left out: they take too long


def layers():
    """{name: rows of the input to count, or None for all}."""
    found = {}
    for row in files.read_rows(os.path.join(ROOT, LAYERS)):
        own = shape.of_row(row)
        in_row = own.K * own.Q * own.C // own.groups * own.R * own.S
        if in_row * own.P < LEAST_MACS or in_row > MOST_IN_ROW:
            continue
        few = max(1, int(MOST_MACS / in_row))
        h = (few - 1) * own.stride_h + own.dil_h * (own.R - 1) + 1 - 2 * own.pad_h
        found[row["name"]] = h if few < own.P and 1 <= h < own.H else None
    return found


def count(program, name, rows):
    """A row of the file for each stage."""
    found, _ = records_of(program, ["--shapes", os.path.join(ROOT, LAYERS), "--shape", name, "--batch", "1",
                                    "--max-gmac", "1000", *(["--h", str(rows)] if rows else []),
                                    *(f"--stage={stage}" for stage in files.lessons() if stage >= FIRST)],
                          shown=False)
    gpu, rates = floors.read_machine(GPU)
    floors.add(found, rates, gpu)
    whole = "whole_" if "whole_shape" in found[0] else ""
    made = []
    for stage, kernels in last.by_stage(found).items():
        if any(whole + "floor_ms" not in kernel for kernel in kernels):
            continue  # on no device does it plan these rows as it plans the whole
        least, limit = floors.sum_of((kernel[whole + "floor_ms"], kernel[whole + "floor_limit"])
                                     for kernel in kernels)
        made.append([name, found[0][whole + "shape"], found[0]["shape"], stage, f"{least:.6g}", limit])
    return made


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/sim-count/bin/convladder"))
    parser.add_argument("--shape", action="append", default=[])
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args(arguments)
    known = layers()
    for name in options.shape:
        if name not in known:
            fail(f"--shape {name}: {LAYERS} has no such layer", 2)
    if options.list:
        print("\n".join(options.shape or known))
        return 0
    rows = {}  # of each layer
    for row in files.read_rows(OUT) if os.path.exists(OUT) else []:
        rows.setdefault(row["problem"], []).append(list(row.values()))
    for name in options.shape or known:
        progress(name)
        rows[name] = count(options.program, name, known[name])
        files.write_rows(OUT, [floors.COLUMNS, *(row for own in rows.values() for row in own)])
    progress("")
    print(f"wrote {OUT}: {len(rows)} layers")
    return 0


if __name__ == "__main__":
    run_main(main)
