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


def make_layer(seed):
    torch.manual_seed(seed)
    return torch.nn.Conv2d(3, 96, 11, stride=4, padding=2)


# Each part yields (whether it is as the page says, None where there is nothing to be expected, and the text).

def bias(x):
    layer = make_layer(1)
    yield None, "bias: nn.Conv2d has one unless told otherwise"
    yield layer.bias is not None, "nn.Conv2d(3, 96, 11, stride=4, padding=2).bias is a tensor"
    without = torch.nn.functional.conv2d(x, layer.weight, None, stride=4, padding=2)
    ratio = error_ratio(without, layer, x)
    yield ratio > 1, f"without it the largest error is {ratio:.3g} times what is allowed"


def weights(x):
    first, second = make_layer(1), make_layer(2)
    yield None, "weights: two models draw their own"
    yield first(x).shape == second(x).shape, "the outputs of two such models have one shape"
    ratio = error_ratio(second(x), first, x)
    yield ratio > 1, f"their largest difference is {ratio:.3g} times what is allowed"
    second.load_state_dict(first.state_dict())
    ratio = error_ratio(second(x), first, x)
    yield ratio <= 1, f"with the first one's weights in the second: {ratio:.3g} times"


def tf32(_):
    yield None, "tf32: convolutions use 10-bit mantissas unless told otherwise"
    yield torch.backends.cudnn.allow_tf32, "torch.backends.cudnn.allow_tf32 is True by default"
    yield (not torch.backends.cuda.matmul.allow_tf32,
           "torch.backends.cuda.matmul.allow_tf32, for matrix products, is False")


def median_ms(run):
    """With a cold L2."""
    return statistics.median(time_in_turns(torch, [run], RUNS)[0])


def time_of_tf32(x):
    layer = make_layer(1).cuda()
    torch.backends.cudnn.benchmark = True
    for allowed, name, err in ((True, "TF32 allowed", "more"), (False, "float32 only", "no more")):
        torch.backends.cudnn.allow_tf32 = allowed
        ratio, time_ms = error_ratio(layer(x), layer, x), median_ms(lambda: layer(x))
        yield None, f"       {name}: {time_ms:.3f} ms, largest error / allowed {ratio:.3g}"
        yield (ratio > 1) == allowed, f"{err} than float32 may err"
    torch.backends.cudnn.allow_tf32 = True


def clock(x):
    layer = make_layer(1).cuda()

    def host_ms(wait):
        times = []
        for _ in range(RUNS + 1):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            layer(x)
            if wait:
                torch.cuda.synchronize()
            times.append((time.perf_counter() - begin) * 1e3)
        return statistics.median(times[1:])

    hasty, patient = host_ms(False), host_ms(True)
    yield None, "clock: a call returns before the GPU has finished"
    yield None, f"       host's clock, not waiting {hasty:.3f} ms, waiting {patient:.3f} ms"
    yield None, f"       CUDA events {median_ms(lambda: layer(x)):.3f} ms"
    yield hasty < patient, "not waiting shows less than the call takes"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--batch", type=int, default=256, help="images for what is timed")
    batch, failures = parser.parse_args().batch, 0
    if batch < 2:
        parser.error(f"--batch = {batch}: must be at least 2")
    print(f"PyTorch {torch.__version__}")
    torch.manual_seed(3)
    images = torch.rand(2, 3, 224, 224) * 2 - 1
    parts = [(bias, images), (weights, images), (tf32, images)]
    if torch.cuda.is_available():
        many = torch.rand(batch, 3, 224, 224, device="cuda") * 2 - 1
        parts += [(time_of_tf32, many), (clock, many)]
    with torch.no_grad():
        for part, x in parts:
            for right, text in part(x):
                print(text if right is None else f"  {'yes' if right else 'NO '}  {text}")
                failures += right is False
            if part is tf32:
                print(f"{torch.cuda.get_device_name()}, batch {batch}" if torch.cuda.is_available() else
                      "no GPU here: the time and error of TF32, and the clock, are left out")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
