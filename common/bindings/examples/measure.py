"""What the examples share: the check against float64, and the timing against nn.Conv2d."""
import argparse
import functools
import statistics
import sys

import torch

from common.bindings import convladder
from common.bindings.reference import error_ratio
from common.measure.time_pytorch import time_in_turns


def rows_of(layer, x):
    """(name, function of no arguments) of `layer` itself, then on a GPU of nn.Conv2d with its weights."""
    default = torch.backends.cudnn.allow_tf32
    rows = [(f"ConvLadder {layer.stage}", layer, False)]
    if x.is_cuda:
        rows += [("nn.Conv2d, FP32", None, False),
                 (f"nn.Conv2d, PyTorch's default ({'TF32' if default else 'FP32'})", None, default)]

    def call(function, tf32):
        torch.backends.cudnn.allow_tf32 = tf32
        return function(x) if function else torch.nn.Conv2d.forward(layer, x)
    return [(name, functools.partial(call, function, tf32)) for name, function, tf32 in rows]


def checked(call, layer, x):
    """The largest error of the call's output, over what is allowed. The one block that PyTorch's allocator
    has to hand out again holds NaN: what the second call does not write stays so."""
    torch.cuda.empty_cache()
    output = call().fill_(float("nan"))
    del output
    return error_ratio(call(), layer, x)


def measure(title, layer, x, runs):
    """Prints the table; True if ConvLadder's output is right, before the timing and after it."""
    rows = rows_of(layer, x)
    with torch.no_grad():
        size = layer(x).shape
        before = checked(rows[0][1], layer, x)
        times = time_in_turns(torch, [call for _, call in rows], runs) if x.is_cuda else [[] for _ in rows]
        ratios = [checked(call, layer, x) for _, call in rows]
    ratios[0] = max(before, ratios[0])
    where = torch.cuda.get_device_name(x.device) if x.is_cuda else "the simulator"
    print(f"{title}: input {tuple(x.shape)}, output {tuple(size)}")
    print(f"{where}, PyTorch {torch.__version__}, first and last image against float64")
    if x.is_cuda:
        print(f"median, least and most of {runs} runs in turns, each with a cold L2")
    work = 2 * size.numel() * layer.weight[0].numel()  # multiply and add count as two
    print(f"{'':<36} {'time [ms]':>10} {'from':>8} {'to':>8} {'TFLOP/s':>8}  max error / allowed")
    for (name, _), ratio, own in zip(rows, ratios, times):
        median = statistics.median(own) if own else 0
        figures = ([f"{time:.3f}" for time in (median, min(own), max(own))] + [f"{work / median / 1e9:.1f}"]
                   if own else "----")
        print("{:<36} {:>10} {:>8} {:>8} {:>8}  {:.3g}".format(name, *figures, ratio))
    return ratios[0] <= 1


def main(title, model, get_inputs, arguments=None):
    """Runs an example whose model holds one convladder.Conv2d; the program's exit status."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--batch", type=int, help="images (default: all of the problem's)")
    parser.add_argument("--runs", type=int, default=20, help="timed runs (default 20)")
    parser.add_argument("--stage", default=convladder.stage_names()[-1], choices=convladder.stage_names())
    options = parser.parse_args(arguments)
    if options.runs < 1 or options.batch is not None and options.batch < 1:
        parser.error("--batch and --runs must be at least 1")
    device = "cuda" if convladder.backend() == "gpu" else "cpu"
    layer = next(m for m in model.modules() if isinstance(m, convladder.Conv2d)).to(device)
    layer.stage = options.stage
    torch.manual_seed(1)
    x = get_inputs()[0][: options.batch].to(device)
    x = 2 * x - 1  # [0, 1) would let no sum cancel, and hide errors
    if measure(title, layer, x, options.runs):
        return 0
    print("error: the output is wrong", file=sys.stderr)
    return 1
