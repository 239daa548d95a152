"""Times gradients by the input and by the filters, beside PyTorch's in FP32, on layers of common/layers.csv.

  python3 -m common.measure.time_gradients [--every N] [--stage NAME] [--repeats N]

Cold, as bench times (stopwatch.h); every fifth layer unless told otherwise. Of PyTorch the fastest of cuDNN's
plans. Errors are held against PyTorch's gradients in float64 and what the rule for outputs allows
(docs/reliability.md): ours must be within it; PyTorch's own, which may be Winograd's, is shown beside.
"""
import argparse
import math
import statistics
import sys

import torch

from common.bindings import convladder  # noqa: F401  its operators
from common.measure.time_pytorch import Stopwatch
from common.show import files, shape

KINDS = {"input": [True, False, False], "filters": [False, True, False]}
LARGE = 1 << 24  # elements, of which one may be off twice as much


def ways(layer, stage):
    """For each kind of gradient (ours, PyTorch's, the same in float64, how large what that sums is)."""
    n, c, h, w, k, r, s, *steps, groups, P, Q = layer
    x = torch.rand(n, c, h, w, device="cuda") - 0.5
    filters = torch.rand(k, c // groups, r, s, device="cuda") - 0.5
    gradient = torch.rand(n, k, P, Q, device="cuda") - 0.5
    pairs = steps[:2], steps[2:4], steps[4:]

    def theirs(dy, a, b, wanted):
        return torch.ops.aten.convolution_backward(dy, a, b, None, *pairs, False, [0, 0], groups, wanted)

    for kind, wanted in KINDS.items():
        place = wanted.index(True)
        yield (kind,
               lambda wanted=wanted, place=place: torch.ops.convladder.conv2d_backward(
                   x, filters, gradient, steps, groups, stage, wanted)[place],
               lambda wanted=wanted, place=place: theirs(gradient, x, filters, wanted)[place],
               lambda wanted=wanted, place=place: theirs(
                   gradient.double(), x.double(), filters.double(), wanted)[place],
               lambda wanted=wanted, place=place: theirs(
                   gradient.abs(), x.abs(), filters.abs(), wanted)[place])


def error(call, exact, magnitude):
    """The largest, divided by what is allowed."""
    allowed = magnitude.double().clamp_min(1e-30) * (16 if exact.numel() >= LARGE else 8) * 2.0**-24
    return ((call() - exact).abs() / allowed).max().item()


def main(words):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=5)
    parser.add_argument("--stage", default="auto")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args(words)
    torch.backends.cudnn.benchmark_limit = 0
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    size = 2 * torch.cuda.get_device_properties(0).L2_cache_size
    flush = torch.empty(size, dtype=torch.uint8, device="cuda")
    quotients, wrong, late = {kind: [] for kind in KINDS}, 0, 0
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; ms, stage {options.stage}")
    for row in files.read_rows(files.ROOT + "/common/layers.csv")[::options.every]:
        for kind, ours, theirs, exactly, magnitude in ways(shape.of_row(row), options.stage):
            torch.backends.cudnn.benchmark = False  # of what is not timed
            errors = [error(call, exactly(), magnitude()) for call in (ours, theirs)]
            torch.backends.cudnn.benchmark = True
            wrong += not errors[0] <= 1
            times = []
            for call in (ours, theirs):
                stopwatch = Stopwatch(torch, flush, 2, 64)
                found = [stopwatch.time(call)[1] for _ in range(options.repeats)]
                late += sum(host_late for *_, host_late in found)
                times.append(statistics.median(cold for cold, *_ in found))
            quotients[kind].append(times[1] / times[0])
            said = ", ".join(f"{each:.2f}" for each in errors)
            print(f"{row['name']:32} by {kind:8} {times[0]:8.4f}  PyTorch {times[1]:8.4f}  "
                  f"x {quotients[kind][-1]:.2f}  error / allowed {said}", flush=True)
    for kind, found in quotients.items():
        mean = math.exp(sum(map(math.log, found)) / len(found))
        print(f"by {kind}: x PyTorch FP32 {mean:.3f}, faster on {sum(q > 1 for q in found)} of {len(found)}")
    print(f"{wrong} wrong; {late} runs whose times may contain the host's")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
