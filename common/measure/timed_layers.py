"""Which stage is fastest on which layer, for `auto`: common/core/timed_layers.inc of what bench has timed.

  python3 -m common.measure.timed_layers FILE...   of what ./ladder bench --shapes common/layers.csv wrote

Stages in FP32 alone, and of them those that are the fastest on some layer by more than the times vary. Says
how far behind its fastest stage a layer would be if the table didn't have it.
"""
import collections
import math
import os
from statistics import geometric_mean

from common.show import files, records, shape
from common.show.files import ROOT
from common.show.support import fail, run_main

LEAST_GAIN = 1.03
PLACE = os.path.join(ROOT, "common", "core", "timed_layers.inc")


def counts(text):
    """Channels of a group, taps of a sum, filters of a group, pixels in and out, and groups of a shape in
    words."""
    own = shape.parse(text)
    channels = own.C // own.groups
    return (channels, channels * own.R * own.S, own.K // own.groups, own.N * own.H * own.W,
            own.N * own.P * own.Q, own.groups)


def times(problem):
    return {name: timing.cold.median for name, timing in problem.stages.items()
            if timing.cold and timing.precision == "fp32" and name in files.stage_names()}


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


def unknown(layers):
    """[(its time by the layer most like it, as choice.cpp chooses; by its own fastest stage; its name)]"""
    def distance(a, b):
        return sum(math.log2(x / y) ** 2 for x, y in zip(counts(a.shape), counts(b.shape)))

    for problem, found in layers:
        alike = counts(problem.shape)[0] == 1 and counts(problem.shape)[2] == 1
        known = [(distance(other, problem), times) for other, times in layers
                 if other is not problem and (not alike or found.keys() <= times.keys())]
        like = min(known, key=lambda each: each[0])[1]
        chosen = min(found.keys() & like.keys(), key=like.get)
        yield found[chosen] / min(found.values()), problem.name


def table(layers, gpus):
    stages = needed(layers)
    yield (f"// Made by common/measure/timed_layers.py; milliseconds with a cold L2, on an "
           f"{' and an '.join(gpus)}.\n")
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
    files.write(PLACE, "".join(table(layers, sorted({bench.machine["gpu"] for bench in benches}))))
    stages = needed(layers)
    behind = sorted(unknown([(problem, {name: found[name] for name in stages if name in found})
                             for problem, found in layers]), reverse=True)
    mean, far = geometric_mean(b for b, _ in behind), sum(b > LEAST_GAIN for b, _ in behind)
    print(f"each of {len(layers)} layers left out in turn: {100 * mean - 100:.1f} % behind in the mean, more "
          f"than 3 % on {far}, and {behind[0][0]:.2f} times as long on {behind[0][1]}")
    return 0


if __name__ == "__main__":
    run_main(main)
