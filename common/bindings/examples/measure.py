"""What the examples share: the check against float64, and the timing against nn.Conv2d."""

import argparse
import functools
import statistics
import sys

import torch

from common.bindings import convladder
from common.bindings.reference import error_ratio
from common.measure.time_pytorch import time_in_turns


def competitors(layer, stage):
    """(name, function of x, TF32 allowed) of each row: `layer` itself, then as nn.Conv2d."""
    torch_conv = functools.partial(torch.nn.Conv2d.forward, layer)  # the same weights
    rows = [(f"ConvLadder {stage}", layer, False)]
    if not layer.weight.is_cuda:
        return rows
    default = torch.backends.cudnn.allow_tf32
    return [
        *rows,
        ("nn.Conv2d, FP32", torch_conv, False),
        (f"nn.Conv2d, PyTorch's default ({'TF32' if default else 'FP32'})", torch_conv, default),
    ]


def call(function, x, tf32):
    torch.backends.cudnn.allow_tf32 = tf32
    return function(x)


def row_error_ratio(row, layer, x):
    """The largest error of the row's output, over what is allowed."""
    _, function, tf32 = row
    # The one block that PyTorch's allocator has to hand out again holds NaN: what the second call
    # does not write stays so.
    torch.cuda.empty_cache()
    output = call(function, x, tf32).fill_(float("nan"))
    del output
    return error_ratio(call(function, x, tf32), layer, x)


def table(rows, ratios, times, work):
    """One line per row; a dash for what is not timed (no GPU)."""
    head = f"{'time [ms]':>10} {'from':>8} {'to':>8} {'TFLOP/s':>8}"
    lines = [f"{'':<36} {head}  max error / allowed"]
    for (name, _, _), ratio, row in zip(rows, ratios, times):
        figures = f"{'-':>10} {'-':>8} {'-':>8} {'-':>8}"
        if row:
            median = statistics.median(row)
            figures = (
                f"{median:>10.3f} {min(row):>8.3f} {max(row):>8.3f} {work / median / 1e9:>8.1f}"
            )
        lines.append(f"{name:<36} {figures}  {ratio:.3g}")
    return "\n".join(lines)


def measure(title, layer, x, runs):
    """Prints the table; True if ConvLadder's output is right, before the timing and after it."""
    rows = competitors(layer, layer.stage)
    with torch.no_grad():
        size = layer(x).shape
        before = row_error_ratio(rows[0], layer, x)
        times = [[] for _ in rows]
        if x.is_cuda:
            calls = [functools.partial(call, function, x, tf32) for _, function, tf32 in rows]
            times = time_in_turns(torch, calls, runs)
        ratios = [row_error_ratio(row, layer, x) for row in rows]
    ratios[0] = max(before, ratios[0])
    where = torch.cuda.get_device_name(x.device) if x.is_cuda else "the simulator"
    print(f"{title}: input {tuple(x.shape)}, output {tuple(size)}")
    print(f"{where}, PyTorch {torch.__version__}, first and last image against float64")
    if x.is_cuda:
        print(f"median, least and most of {runs} runs in turns, each with a cold L2")
    work = 2 * size.numel() * layer.weight[0].numel()  # multiply and add count as two
    print(table(rows, ratios, times, work))
    return ratios[0] <= 1


def main(title, model, get_inputs, arguments=None):
    """Runs an example whose model holds one convladder.Conv2d; the program's exit status."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--batch", type=int, help="images (default: all of the problem's)")
    parser.add_argument("--runs", type=int, default=20, help="timed runs (default 20)")
    parser.add_argument("--stage", default=convladder.stage_names()[-1],
                        choices=convladder.stage_names())
    options = parser.parse_args(arguments)
    for name in ("batch", "runs"):
        value = getattr(options, name)
        if value is not None and value < 1:
            parser.error(f"--{name} {value}: must be at least 1")
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
