#!/usr/bin/env python3
"""The pitfalls of docs/pitfalls.md that lie in PyTorch's defaults, shown on AlexNet's first layer.

Needs PyTorch; what needs a GPU is left out without one. Exit status 1 when something is not as the
page says.
"""

import argparse
import statistics
import sys
import time

try:
    import torch
except ImportError:
    sys.exit("pytorch_defaults.py: error: PyTorch isn't installed for this Python")

from common.bindings.reference import error_ratio
from common.measure.time_pytorch import time_in_turns

RUNS = 15
failures = 0


def expect(condition, text):
    """Prints `text`, and counts a failure where it isn't so."""
    global failures
    failures += not condition
    print(f"  {'yes' if condition else 'NO '}  {text}")


def make_layer(seed):
    torch.manual_seed(seed)
    return torch.nn.Conv2d(3, 96, 11, stride=4, padding=2)


def show_bias(x):
    print("bias: nn.Conv2d has one unless told otherwise")
    layer = make_layer(1)
    expect(layer.bias is not None, "nn.Conv2d(3, 96, 11, stride=4, padding=2).bias is a tensor")
    without = torch.nn.functional.conv2d(x, layer.weight, None, stride=4, padding=2)
    ratio = error_ratio(without, layer, x)
    expect(ratio > 1, f"without it the largest error is {ratio:.3g} times what is allowed")


def show_weights(x):
    print("weights: two models draw their own")
    first, second = make_layer(1), make_layer(2)
    expect(first(x).shape == second(x).shape, "the outputs of two such models have one shape")
    ratio = error_ratio(second(x), first, x)
    expect(ratio > 1, f"their largest difference is {ratio:.3g} times what is allowed")
    second.load_state_dict(first.state_dict())
    ratio = error_ratio(second(x), first, x)
    expect(ratio <= 1, f"with the first one's weights in the second: {ratio:.3g} times")


def median_ms(run):
    """With a cold L2."""
    return statistics.median(time_in_turns(torch, [run], RUNS)[0])


def show_tf32():
    print("tf32: convolutions use 10-bit mantissas unless told otherwise")
    expect(torch.backends.cudnn.allow_tf32, "torch.backends.cudnn.allow_tf32 is True by default")
    expect(not torch.backends.cuda.matmul.allow_tf32,
           "torch.backends.cuda.matmul.allow_tf32, for matrix products, is False")


def time_tf32(batch):
    layer = make_layer(1).cuda()
    x = torch.rand(batch, 3, 224, 224, device="cuda") * 2 - 1
    torch.backends.cudnn.benchmark = True
    try:
        for allowed in (True, False):
            torch.backends.cudnn.allow_tf32 = allowed
            with torch.no_grad():
                ratio = error_ratio(layer(x), layer, x)
                milliseconds = median_ms(lambda: layer(x))
            name = "TF32 allowed" if allowed else "float32 only"
            print(f"       {name}: {milliseconds:.3f} ms, largest error / allowed {ratio:.3g}")
            expect((ratio > 1) == allowed, f"{'more' if allowed else 'no more'} than float32 may err")
    finally:
        torch.backends.cudnn.allow_tf32 = True


def show_clock(batch):
    print("clock: a call returns before the GPU has finished")
    layer = make_layer(1).cuda()
    x = torch.rand(batch, 3, 224, 224, device="cuda")

    def host_ms(wait):
        times = []
        with torch.no_grad():
            for _ in range(RUNS + 1):
                torch.cuda.synchronize()
                begin = time.perf_counter()
                layer(x)
                if wait:
                    torch.cuda.synchronize()
                times.append((time.perf_counter() - begin) * 1e3)
        return statistics.median(times[1:])

    hasty, patient = host_ms(False), host_ms(True)
    print(f"       host's clock, not waiting {hasty:.3f} ms, waiting {patient:.3f} ms")
    with torch.no_grad():
        print(f"       CUDA events {median_ms(lambda: layer(x)):.3f} ms")
    expect(hasty < patient, "not waiting shows less than the call takes")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--batch", type=int, default=256, help="images for what is timed")
    arguments = parser.parse_args()
    if arguments.batch < 2:
        parser.error(f"--batch = {arguments.batch}: must be at least 2")
    print(f"PyTorch {torch.__version__}")
    torch.manual_seed(3)
    x = torch.rand(2, 3, 224, 224) * 2 - 1
    show_bias(x)
    show_weights(x)
    show_tf32()
    if torch.cuda.is_available():
        print(f"{torch.cuda.get_device_name()}, batch {arguments.batch}")
        time_tf32(arguments.batch)
        show_clock(arguments.batch)
    else:
        print("no GPU here: the time and error of TF32, and the clock, are left out")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
