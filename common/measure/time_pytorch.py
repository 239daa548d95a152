"""PyTorch's turns in `convladder bench`, which starts this and asks by lines of JSON.

First it says of itself {"version": ..., "library": ..., "ways": [[precision, layout], ...]}: what it
computes each problem by. Every line of its input it answers with one:

    {"do": "prepare", "problem": {"n": ..., ..., "bias": ...}, "seed": ..., "flush_bytes": ...,
     "bounds": {"fp32": ..., "tf32": ...}, "flushes": [at first, at most]}
                                      makes tensors and finds the fastest algorithm
    {"do": "round"}                   times each way once, cold and then warm
    {"do": "finish", "repeats": N}    checks the last results, and forgets the problem. The answer is
                                      {"ways": [{"record": {"status", "message", "max_error_ratio"},
                                      "cold": [...], "warm": [...], "host_late": ...}, ...]}, of the
                                      last N rounds

What goes wrong with one way is in its record, anything else is the answer {"error": ...}. It ends
with its input.
"""
import json
import math
import os
import signal
import sys

WAYS = [("fp32", "nchw"), ("tf32", "nchw"), ("tf32", "nhwc")]  # the second is what PyTorch does by default


class Stopwatch:
    """Times a call by the rule of common/measure/stopwatch.h: the GPU has flushes to do until all
    of the measurement has been enqueued. Where they weren't enough, the measurement is void: twice
    as many, and once more."""

    def __init__(self, torch, flush, flushes, most):
        self.flush, self.flushes, self.most = flush, flushes, most
        self.events = [torch.cuda.Event(enable_timing=True) for _ in range(3)]

    def time(self, call):
        """What the last call returned, and (cold, warm, late): milliseconds, and whether the GPU may have
        waited for the host."""
        output, in_time = self.enqueue(call)
        while not in_time and self.flushes < self.most:
            self.flushes = min(2 * self.flushes, self.most)
            del output  # its memory is for the next
            output, in_time = self.enqueue(call)
        start, between, stop = self.events
        stop.synchronize()
        return output, (start.elapsed_time(between), between.elapsed_time(stop), not in_time)

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


class Way:
    """One problem in one precision and layout."""

    def __init__(self, torch, precision, layout):
        self.torch, self.precision, self.layout = torch, precision, layout
        self.record = {"status": "pass", "message": "", "max_error_ratio": None}
        self.turns = []
        self.tensors = self.checked = None  # checked: the last run's outputs, of the first image and the last

    def attempt(self, action, *arguments):
        """Unless something has gone wrong before."""
        if self.record["status"] != "pass":
            return
        try:
            action(self, *arguments)
        except Exception as error:  # whatever it is, the one who asked must hear of it
            short = isinstance(error, self.torch.cuda.OutOfMemoryError)
            self.record.update(status="skipped" if short else "fail", message=one_line(error))
        if self.record["status"] != "pass":
            self.tensors = self.checked = None

    def prepare(self, flush, request):
        torch, p = self.torch, request["problem"]
        memory_format = {"nchw": torch.contiguous_format, "nhwc": torch.channels_last}[self.layout]
        generator = torch.Generator("cuda").manual_seed(request["seed"])

        def uniform(*shape):
            return torch.empty(shape, device="cuda").uniform_(-1, 1, generator=generator)

        x = uniform(p["n"], p["c"], p["h"], p["w"]).to(memory_format=memory_format)
        weight = uniform(p["k"], p["c"] // p["groups"], p["r"], p["s"]).to(memory_format=memory_format)
        bias = uniform(p["k"]) if p["bias"] else None
        steps = [(p[f"{name}_h"], p[f"{name}_w"]) for name in ("stride", "pad", "dil")]
        self.tensors = x, weight, bias, *steps, p["groups"]
        self.bound = request["bounds"][self.precision]
        self.stopwatch = Stopwatch(torch, flush, *request["flushes"])
        self.forward()  # searches for the fastest algorithm
        torch.cuda.synchronize()
        torch.cuda.empty_cache()  # what the search has worked in

    def forward(self):
        self.torch.backends.cudnn.allow_tf32 = self.precision == "tf32"
        return self.torch.nn.functional.conv2d(*self.tensors)

    def time(self):
        output, times = self.stopwatch.time(self.forward)
        self.checked = output[[0, -1]]
        self.turns.append(times)

    def check(self):
        from common.bindings.reference import max_error_ratio, reference  # imports torch

        x, *others = self.tensors
        ratio = max_error_ratio(self.checked, *reference(x[[0, -1]], *others), self.bound)
        self.record["max_error_ratio"] = ratio if math.isfinite(ratio) else None
        if not ratio <= 1:
            self.record.update(status="fail", message="an error beyond the bound, or NaN")

    def result(self, repeats):
        cold, warm, late = map(list, zip(*self.turns[-repeats:])) if self.turns else ([], [], [])
        return {"record": self.record, "cold": cold, "warm": warm, "host_late": sum(late)}


def answer(torch, ways, request):
    """Does what is asked with the ways, a list that stays between requests."""
    if request["do"] == "prepare":
        ways[:] = [Way(torch, *way) for way in WAYS]
        flush = torch.empty(request["flush_bytes"], dtype=torch.uint8, device="cuda")
        for way in ways:
            way.attempt(Way.prepare, flush, request)
        return {}
    for way in ways:
        way.attempt(Way.check if request["do"] == "finish" else Way.time)
    if request["do"] != "finish":
        return {}
    results = [way.result(request["repeats"]) for way in ways]
    ways.clear()
    torch.cuda.empty_cache()
    return {"ways": results}


def one_line(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


def open_torch():
    import torch

    if not torch.cuda.is_available():
        raise RuntimeError(f"PyTorch {torch.__version__} sees no GPU")
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.benchmark_limit = 0  # tries all of cuDNN's plans, not the first 10
    return torch


def main():
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends the one who asks as well
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a library prints is no answer
    try:
        torch = open_torch()
        cudnn = torch.backends.cudnn.version()  # 91900: 9.19.0
        library = f"PyTorch {torch.__version__}, cuDNN {cudnn // 10000}.{cudnn // 100 % 100}.{cudnn % 100}"
    except Exception as error:
        print(json.dumps({"error": one_line(error)}), file=answers)
        return 1
    print(json.dumps({"version": torch.__version__, "library": library, "ways": WAYS}), file=answers)
    ways = []
    with torch.inference_mode():
        for line in sys.stdin:
            try:
                said = answer(torch, ways, json.loads(line))
            except Exception as error:
                said = {"error": one_line(error)}
            print(json.dumps(said), file=answers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
