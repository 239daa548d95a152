#!/usr/bin/env python3
"""The least time of every stage on a GPU, on many layers, for times to be held against.

  common/measure/count_floors.py [--program build/sim-count/bin/convladder] [--machine FILE]
                                 [--shapes FILE.csv] [--out docs/results/floors.csv] [--shape NAME]
                                 [--list]

The layers are those of common/problems.csv, or of --shapes, that networks have, with a million
multiply-adds or more in an image. Of each a few rows of one image are counted, by the simulator (where
there is padding, those at its edge have less to do, and the bound of stage 01 is so much lower);
common/measure/enlarge.h says how what the whole problem asks for follows from that, and
common/show/floors.py how the least time follows from what is asked for.
--shape, which may be repeated, counts that layer alone. A layer's rows take the place of those that the
file has. Every layer has a bias, as for bench. --list names the layers and counts none.
"""
import argparse
import os

from common.show.support import ROOT, fail, progress, records_of, run_main

from common.show import files, floors, last, shape

LEAST_MACS, MOST_MACS = 1e6, 16e6  # of one image; of the rows that are counted, if one has no more
MOST_IN_ROW = 300e6  # layers with wider rows of outputs are left out: they take too long
OPTIONAL = {"stride_h": 1, "stride_w": 1, "pad_h": 0, "pad_w": 0, "dil_h": 1, "dil_w": 1, "groups": 1}


def layers(path):
    """[(name, rows of the input to count, or None for all)] of the CSV file."""
    found = []
    for row in files.read_rows(path):
        extent = {name: int(row.get(name) or default) for name, default in OPTIONAL.items()}
        c, h, w, k, r, s = (int(row[name]) for name in "chwkrs")
        P = shape.output_extent(h, r, extent["stride_h"], extent["pad_h"], extent["dil_h"])
        Q = shape.output_extent(w, s, extent["stride_w"], extent["pad_w"], extent["dil_w"])
        in_row = k * Q * c // extent["groups"] * r * s
        small = P < 1 or Q < 1 or in_row * P < LEAST_MACS
        if small or in_row > MOST_IN_ROW or row["name"].startswith("nasty_"):
            continue
        few = max(1, int(MOST_MACS / in_row))
        h_of = (few - 1) * extent["stride_h"] + extent["dil_h"] * (r - 1) + 1 - 2 * extent["pad_h"]
        found.append((row["name"], h_of if few < P and 1 <= h_of < h else None))
    return found


def count(program, machine, shapes, name, rows):
    """A row of the file for each stage."""
    cut = ["--h", str(rows)] if rows else []
    records = records_of(program, "profile", "--shapes", shapes, "--shape", name, "--batch", "1",
                         "--bias", "1", "--max-gmac", "1000", *cut)
    gpu, rates = floors.read_machine(machine)
    floors.add(records, rates, gpu)
    whole = "whole_" if "whole_shape" in records[0] else ""
    rows = []
    for stage, kernels in last.by_stage(records).items():
        least, limit = floors.sum_of((kernel[whole + "floor_ms"], kernel[whole + "floor_limit"])
                                     for kernel in kernels)
        rows.append([name, records[0][whole + "shape"], records[0]["shape"], stage, f"{least:.6g}", limit])
    return rows


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/sim-count/bin/convladder"))
    parser.add_argument("--machine", default=os.path.join(ROOT, "common/machines/h200.json"))
    parser.add_argument("--shapes", default=os.path.join(ROOT, "common/problems.csv"))
    parser.add_argument("--out", default=os.path.join(ROOT, "docs/results/floors.csv"))
    parser.add_argument("--shape", action="append", default=[])
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args(arguments)
    chosen = [layer for layer in layers(options.shapes) if layer[0] in (options.shape or [layer[0]])]
    missing = set(options.shape) - {name for name, _ in chosen}
    if missing:
        fail(f"--shape {sorted(missing)[0]}: {options.shapes} has no such layer", 2)
    if options.list:
        print("\n".join(name for name, _ in chosen))
        return 0
    rows = {}  # of each layer
    for row in files.read_rows(options.out) if os.path.exists(options.out) else []:
        rows.setdefault(row["problem"], []).append(list(row.values()))
    for number, (name, few) in enumerate(chosen, 1):
        progress(f"[{number}/{len(chosen)}] {name}")
        rows[name] = count(options.program, options.machine, options.shapes, name, few)
        files.write_rows(options.out, [floors.COLUMNS,
                                       *(row for own in rows.values() for row in own)])
    progress("")
    print(f"wrote {options.out}: {len(rows)} layers")
    return 0


if __name__ == "__main__":
    run_main(main)
