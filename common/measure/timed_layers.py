"""Which stage is fastest on which layer, for `auto`: common/core/timed_layers.inc of what bench has timed.

  python3 -m common.measure.timed_layers FILE...   of what ./ladder bench --shapes common/layers.csv wrote

Stages in FP32 alone, and of them those that are the fastest on some layer by more than the times vary.
"""
import collections
import os

from common.show import files, records
from common.show.files import ROOT
from common.show.support import fail, run_main

LEAST_GAIN = 1.03
PLACE = os.path.join(ROOT, "common", "core", "timed_layers.inc")


def counts(shape):
    """Taps of a sum, filters of a group, pixels, groups of "n2 c3 9x8 k5 3x2 stride 1x1 pad 0x0 dil 1x1"."""
    words = dict(zip(("n", "c", "hw", "k", "rs"), shape.split()))
    named = shape.split()[5:]
    steps = {name: tuple(map(int, pair.split("x"))) for name, pair in zip(named[0::2], named[1::2])}
    groups = steps.get("groups", (1,))[0]
    size, filters = (tuple(map(int, words[key].split("x"))) for key in ("hw", "rs"))
    outputs = int(words["n"][1:])
    for axis in (0, 1):
        span = steps["dil"][axis] * (filters[axis] - 1) + 1
        outputs *= (size[axis] + 2 * steps["pad"][axis] - span) // steps["stride"][axis] + 1
    taps = int(words["c"][1:]) // groups * filters[0] * filters[1]
    return taps, int(words["k"][1:]) // groups, outputs, groups


def times(problem):
    return {name: timing.cold.median for name, timing in problem.stages.items()
            if timing.cold and timing.precision == "fp32" and name != "auto"}


def needed(layers):
    """The fewest stages with which no layer is slower than its fastest by more than LEAST_GAIN, found by
    taking the one that helps the most layers until none is left."""
    left, chosen = [each for _, each in layers], []
    while left:
        near = [[name for name, time in each.items() if time <= LEAST_GAIN * min(each.values())]
                for each in left]
        helped = collections.Counter(sorted(name for each in near for name in each))
        chosen.append(helped.most_common(1)[0][0])
        left = [each for each, names in zip(left, near) if chosen[-1] not in names]
    return sorted(chosen)


def table(layers):
    stages = needed(layers)
    yield "// Made by common/measure/timed_layers.py; milliseconds with a cold L2, on an NVIDIA H200.\n"
    names = ", ".join(f'"{name}"' for name in stages)
    yield f"constexpr const char* TIMED_STAGES[] = {{{names}}};\n"
    yield "struct TimedLayer {\n  const char* name;\n  Counts counts;\n"
    yield f"  double milliseconds[{len(stages)}];\n}};\n"
    yield "constexpr TimedLayer TIMED_LAYERS[] = {\n"
    for problem, found in layers:
        numbers = ", ".join(f"{found.get(name, 0):.4g}" for name in stages)
        yield f'    {{"{problem.name}", {{{", ".join(map(str, counts(problem.shape)))}}}, {{{numbers}}}}},\n'
    yield "};\n"


def main(paths):
    try:
        benches = [records.read_bench(path) for path in paths]
    except records.BadInput as error:
        fail(str(error))
    layers = [(problem, found) for bench in benches for problem in bench.problems
              if (found := times(problem))]
    if not layers:
        fail("no layer of these files has a time", 2)
    files.write(PLACE, "".join(table(layers)))
    return 0


if __name__ == "__main__":
    run_main(main)
