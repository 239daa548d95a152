"""PyTorch's part in bench, without a GPU: what it answers, its stopwatch, and its check.

All but the stopwatch's tests are skipped where PyTorch is missing.
"""

import unittest
from unittest import mock

from common.measure import time_pytorch

try:
    import torch
except ImportError:
    torch = None
if torch:
    from common.bindings.reference import reference
needs_torch = unittest.skipUnless(torch, "needs PyTorch")

# n c h w k r s, strides, pads, dilations, groups, bias: no two extents alike, nor those of a group
PROBLEM = time_pytorch.Problem(2, 6, 13, 17, 15, 3, 4, 2, 3, 1, 2, 2, 1, 3, 1)


def tensors(problem):
    generator = torch.Generator().manual_seed(1)

    def draw(*shape):
        return torch.rand(shape, generator=generator) * 2 - 1

    p = problem
    weight = draw(p.k, p.c // p.groups, p.r, p.s)
    return draw(p.n, p.c, p.h, p.w), weight, draw(p.k) if p.bias else None


class FakeEvent:
    def __init__(self, gpu, name):
        self.gpu, self.name = gpu, name

    def record(self):
        self.gpu.log.append(self.name)

    def query(self):
        self.gpu.log.append(f"{self.name}?")
        return self.gpu.reached.pop(0)

    def synchronize(self):
        self.gpu.log.append(f"wait for {self.name}")

    def elapsed_time(self, end):
        return {"start to between": 1.5, "between to stop": 0.25}[f"{self.name} to {end.name}"]


class FakeGpu:
    """Stands in for torch and for the tensor that flushes: writes down what is enqueued. `reached`:
    whether the GPU has come to an event, whenever that is asked."""

    def __init__(self, *reached):
        self.cuda, self.reached, self.log = self, list(reached), []
        self.names = ["start", "between", "stop"]

    def Event(self, enable_timing):
        return FakeEvent(self, self.names.pop(0))

    def zero_(self):
        self.log.append("flush")

    def call(self):
        self.log.append("call")
        return len(self.log)


class Time(unittest.TestCase):
    def measured(self, gpu, flushes, most):
        """The result of a measurement that begins with `flushes`, and those of the next."""
        stopwatch = time_pytorch.Stopwatch(gpu, gpu, flushes, most)
        output, times = stopwatch.time(gpu.call)
        self.assertEqual(gpu.log[output - 1:], ["call", "stop", "start?", "wait for stop"])
        self.assertEqual(gpu.reached, [])
        return times, stopwatch.flushes

    @staticmethod
    def attempt(flushes):
        return ["flush"] * flushes + ["start", "call", "between", "call", "stop", "start?"]

    def test_python_too_late_measures_again_after_twice_the_flushes_at_most(self):
        for reached, flushes in (((False,), (4,)), ((True, False), (4, 8)),
                                 ((True, True, True), (4, 8, 10))):
            gpu = FakeGpu(*reached)
            late = int(reached[-1])  # always: it says so
            self.assertEqual(self.measured(gpu, 4, most=10), ((1.5, 0.25, late), flushes[-1]))
            self.assertEqual(gpu.log, sum(map(self.attempt, flushes), []) + ["wait for stop"])


@needs_torch
class Answers(unittest.TestCase):
    def setUp(self):
        self.server = time_pytorch.Server.__new__(time_pytorch.Server)
        self.server.torch = torch
        self.convolution = mock.Mock()
        self.convolution.time.return_value = 1.5, 0.25, 1
        self.server.convolutions = {"a": self.convolution}

    def test_of_numbers(self):
        self.assertEqual(self.server.answer("time a"), "ok 1.5 0.25 1")

    def test_of_nothing(self):
        self.assertEqual(self.server.answer("release a"), "ok")
        self.assertEqual(self.server.answer("time a"), "error KeyError: 'a'")

    def test_to_nonsense(self):
        for line in ("dance", "time", "prepare a fp32 nchw"):
            self.assertRegex(self.server.answer(line), "^error [A-Za-z]+: [^\n]*$")

    def test_when_memory_is_short(self):
        self.convolution.time.side_effect = torch.cuda.OutOfMemoryError(
            "CUDA out of memory.\nTried to allocate 8 GiB")
        self.assertEqual(self.server.answer("time a"),
                         "memory OutOfMemoryError: CUDA out of memory. Tried to allocate 8 GiB")

    def test_version(self):
        self.assertEqual(time_pytorch.dotted(91900), "9.19.0")


@needs_torch
class Check(unittest.TestCase):
    def ratio(self, damage):
        """check() of a right result, as changed by `damage`."""
        p = PROBLEM
        convolution = time_pytorch.Convolution.__new__(time_pytorch.Convolution)
        convolution.torch, convolution.problem, convolution.bound = torch, p, 8 * 2.0**-24
        convolution.x, convolution.weight, convolution.bias = tensors(p)
        value, _ = reference(convolution.x, convolution.weight, convolution.bias,
                             *convolution.strides_to_groups())
        convolution.checked = damage(value.float())
        return convolution.check()[0]

    def test_a_right_result_is_within_the_bound(self):
        self.assertLessEqual(self.ratio(lambda output: output), 1)

    def test_a_wrong_one_is_not(self):
        def last_of(wrong):
            return lambda output: torch.cat([output[..., :-1], wrong(output[..., -1:])], dim=-1)

        for damage in (last_of(lambda value: value + 0.001),
                       last_of(lambda value: value * float("nan")),
                       # ten bits are not float32
                       lambda output: (output.view(torch.int32) & ~0x1FFF).view(torch.float32)):
            self.assertFalse(self.ratio(damage) <= 1)


if __name__ == "__main__":
    unittest.main()
