"""What the examples share: the check against float64, and the timing against nn.Conv2d."""

import argparse
import functools
import pathlib
import statistics
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import convladder  # noqa: E402
from reference import SAMPLES, error_ratio  # noqa: E402

WARM_UP = 3  # calls of each before the timed ones


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


def time_interleaved(rows, x, runs):
    """Milliseconds of every run of every row, one row after the other in each round.

    Nothing waits in between, so that the GPU never waits for the host, and the time between two
    events is the work's alone. L2 holds what the row before left there.
    """
    events = []
    for _ in range(WARM_UP + runs):
        for _, function, tf32 in rows:
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            call(function, x, tf32)
            stop.record()
            events.append((start, stop))
    torch.cuda.synchronize()
    times = [start.elapsed_time(stop) for start, stop in events[WARM_UP * len(rows) :]]
    return [times[i :: len(rows)] for i in range(len(rows))]


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
        times = time_interleaved(rows, x, runs) if x.is_cuda else [[] for _ in rows]
        ratios = [row_error_ratio(row, layer, x) for row in rows]
    ratios[0] = max(before, ratios[0])
    where = torch.cuda.get_device_name(x.device) if x.is_cuda else "the simulator"
    print(f"{title}: input {tuple(x.shape)}, output {tuple(size)}")
    print(f"{where}, PyTorch {torch.__version__}, {SAMPLES} outputs against float64")
    if x.is_cuda:
        print(f"median, least and most of {runs} interleaved runs after {WARM_UP} to warm up")
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
