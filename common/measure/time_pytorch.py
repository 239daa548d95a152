#!/usr/bin/env python3
"""PyTorch's convolution, run and timed on request: PyTorch's part in `convladder bench`.

usage: time_pytorch.py BYTES FLUSHES MOST    of the buffer that is written to flush the L2; how
                                             often it is written ahead of a measurement, at first
                                             and at the most

It says `ready TORCH CUDNN` (versions) and then answers each line of its input with one line:

    prepare ID PRECISION LAYOUT SEED BOUND N C H W K R S STRIDE_H STRIDE_W PAD_H PAD_W DIL_H DIL_W
            GROUPS BIAS
                  -> ok               tensors made, fastest algorithm found; PRECISION is fp32 or
                                      tf32, LAYOUT nchw or nhwc, BIAS 0 or 1
    time ID       -> ok COLD WARM LATE
                                      milliseconds of one run each; LATE is 1 if the GPU may have
                                      waited for the host, else 0
    check ID      -> ok RATIO         of the last run: largest |error| / (BOUND * A), against
                                      float64, A = sum |x*w| + |bias|; first and last image
    release ID    -> ok               its tensors are gone

or with `memory WHY` where device memory is short, or `error WHY`. It ends with its input.
"""

import collections
import os
import sys


FLUSH_BYTES = 1 << 28  # more than twice the L2 of any GPU

Problem = collections.namedtuple(
    "Problem", "n c h w k r s stride_h stride_w pad_h pad_w dil_h dil_w groups bias"
)


class Stopwatch:
    """Times a call by the rule of common/measure/stopwatch.h: the GPU has flushes to do until all
    of the measurement has been enqueued. Where they weren't enough, the measurement is void: twice
    as many, and once more."""

    def __init__(self, torch, flush, flushes, most):
        self.flush, self.flushes, self.most = flush, flushes, most
        self.events = [torch.cuda.Event(enable_timing=True) for _ in range(3)]

    def time(self, call):
        """What the last call returned, and (cold, warm, late) as in the protocol above."""
        output, in_time = self.enqueue(call)
        while not in_time and self.flushes < self.most:
            self.flushes = min(2 * self.flushes, self.most)
            del output  # its memory is for the next
            output, in_time = self.enqueue(call)
        start, between, stop = self.events
        stop.synchronize()
        return output, (start.elapsed_time(between), between.elapsed_time(stop), int(not in_time))

    def enqueue(self, call):
        """The second call's output, and whether the GPU was still at the flushes at the end."""
        start, between, stop = self.events
        for _ in range(self.flushes):
            self.flush.zero_()
        start.record()
        call()
        between.record()
        output = call()
        stop.record()
        return output, not start.query()


def time_in_turns(torch, calls, runs):
    """Milliseconds of the cold runs of each call, so many of each."""
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    stopwatch = Stopwatch(torch, flush, 4, 1024)
    times = [[] for _ in calls]
    for _ in range(runs):
        for call, row in zip(calls, times):
            row.append(stopwatch.time(call)[1][0])
    return times


class Convolution:
    """One problem in one precision and layout."""

    def __init__(self, torch, stopwatch, precision, layout, seed, bound, problem):
        self.torch, self.stopwatch, self.bound, self.problem = torch, stopwatch, bound, problem
        self.allow_tf32 = {"fp32": False, "tf32": True}[precision]
        memory_format = {"nchw": torch.contiguous_format, "nhwc": torch.channels_last}[layout]
        device = stopwatch.flush.device
        generator = torch.Generator(device).manual_seed(seed)

        def uniform(*shape):
            tensor = torch.empty(shape, device=device)
            return tensor.uniform_(-1, 1, generator=generator)

        p = problem
        self.x = uniform(p.n, p.c, p.h, p.w).to(memory_format=memory_format)
        self.weight = uniform(p.k, p.c // p.groups, p.r, p.s).to(memory_format=memory_format)
        self.bias = uniform(p.k) if p.bias else None
        self.checked = None  # the last run's outputs, of the first image and the last
        self.forward()  # searches for the fastest algorithm
        torch.cuda.synchronize()
        torch.cuda.empty_cache()  # what the search has worked in

    def forward(self):
        self.torch.backends.cudnn.allow_tf32 = self.allow_tf32
        return self.torch.nn.functional.conv2d(
            self.x, self.weight, self.bias, *self.strides_to_groups()
        )

    def strides_to_groups(self):
        p = self.problem
        return (p.stride_h, p.stride_w), (p.pad_h, p.pad_w), (p.dil_h, p.dil_w), p.groups

    def time(self):
        output, times = self.stopwatch.time(self.forward)
        self.checked = output[[0, -1]]
        return times

    def check(self):
        # These import torch, which open_torch() has found.
        from common.bindings.reference import max_error_ratio, reference

        expected = reference(self.x[[0, -1]], self.weight, self.bias, *self.strides_to_groups())
        return (max_error_ratio(self.checked, *expected, self.bound),)


class Server:
    """The convolutions that exist, by their ID."""

    def __init__(self, torch, flush_bytes, flushes, most):
        self.torch, self.flushes = torch, (flushes, most)
        self.flush = torch.empty(flush_bytes, dtype=torch.uint8, device="cuda")
        self.convolutions = {}

    def prepare(self, name, precision, layout, seed, bound, *numbers):
        problem = Problem(*map(int, numbers))
        stopwatch = Stopwatch(self.torch, self.flush, *self.flushes)
        self.convolutions[name] = Convolution(
            self.torch, stopwatch, precision, layout, int(seed), float(bound), problem
        )

    def time(self, name):
        return self.convolutions[name].time()

    def check(self, name):
        return self.convolutions[name].check()

    def release(self, name):
        self.convolutions.pop(name, None)
        self.torch.cuda.empty_cache()

    def answer(self, line):
        command, *words = line.split()
        commands = {"prepare": self.prepare, "time": self.time, "check": self.check,
                    "release": self.release}
        try:
            numbers = commands[command](*words) or ()
            return " ".join(["ok"] + [repr(number) for number in numbers])
        except self.torch.cuda.OutOfMemoryError as error:
            return "memory " + one_line(error)
        except Exception as error:  # whatever it is, the one who asked must hear of it
            return "error " + one_line(error)


def one_line(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


def dotted(version):
    """91900: 9.19.0"""
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}"


def open_torch():
    import torch

    if not torch.cuda.is_available():
        raise RuntimeError(f"PyTorch {torch.__version__} sees no GPU")
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.benchmark_limit = 0  # tries all of cuDNN's plans, not the first 10
    return torch


def main():
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a library prints is no answer
    try:
        torch = open_torch()
        flush_bytes, flushes, most = (int(float(word)) for word in sys.argv[1:])
        server = Server(torch, flush_bytes, flushes, most)
        greeting = f"ready {torch.__version__} {dotted(torch.backends.cudnn.version())}"
    except Exception as error:
        print("error " + one_line(error), file=answers)
        return 1
    print(greeting, file=answers)
    with torch.inference_mode():
        for line in sys.stdin:
            print(server.answer(line), file=answers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
