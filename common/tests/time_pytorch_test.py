"""PyTorch's part in bench, without a GPU: what it answers, and its check.

Skipped (exit status 77) where PyTorch is missing.
"""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "torch"))
import time_pytorch

try:
    import torch
except ImportError:
    sys.exit(77)

from reference import reference, sample_outputs

# n c h w k r s, strides, pads, dilations, bias: no two extents alike
PROBLEM = time_pytorch.Problem(2, 3, 13, 17, 5, 3, 4, 2, 3, 1, 2, 2, 1, 1)
OUTPUT_SIZE = (2, 5, 6, 6)


def tensors(problem):
    generator = torch.Generator().manual_seed(1)
    draw = lambda *shape: torch.rand(shape, generator=generator) * 2 - 1
    p = problem
    return draw(p.n, p.c, p.h, p.w), draw(p.k, p.c, p.r, p.s), draw(p.k) if p.bias else None


class FakeConvolution:
    """Stands in for time_pytorch.Convolution, which needs a GPU."""

    def __init__(self, output, bound=0.0):
        self.output, self.bound = output, bound

    def time(self):
        return 1.5, 0.25


class Answers(unittest.TestCase):
    def setUp(self):
        self.server = time_pytorch.Server.__new__(time_pytorch.Server)
        self.server.torch = torch
        self.server.convolutions = {"a": FakeConvolution(None)}

    def test_of_numbers(self):
        self.assertEqual(self.server.answer("time a"), "ok 1.5 0.25")

    def test_of_nothing(self):
        self.assertEqual(self.server.answer("release a"), "ok")
        self.assertEqual(self.server.answer("time a"), "error KeyError: 'a'")

    def test_to_nonsense(self):
        for line in ("dance", "time", "prepare a fp32 nchw"):
            self.assertRegex(self.server.answer(line), "^error [A-Za-z]+: [^\n]*$")

    def test_when_memory_is_short(self):
        def short():
            raise torch.cuda.OutOfMemoryError("CUDA out of memory.\nTried to allocate 8 GiB")
        self.server.convolutions["a"].time = short
        self.assertEqual(self.server.answer("time a"),
                         "memory OutOfMemoryError: CUDA out of memory. Tried to allocate 8 GiB")

    def test_version(self):
        self.assertEqual(time_pytorch.dotted(91900), "9.19.0")


class Check(unittest.TestCase):
    def ratio(self, damage):
        """check() of a right result, as changed by `damage`."""
        p = PROBLEM
        convolution = time_pytorch.Convolution.__new__(time_pytorch.Convolution)
        convolution.torch, convolution.problem, convolution.bound = torch, p, 8 * 2.0**-24
        convolution.x, convolution.weight, convolution.bias = tensors(p)
        convolution.positions = sample_outputs(OUTPUT_SIZE, 1000, seed=1)
        value, _ = reference(convolution.x, convolution.weight, convolution.bias,
                             *convolution.strides_pads_dilations(), convolution.positions)
        convolution.sampled = damage(value.float())
        return convolution.check()[0]

    def test_a_right_result_is_within_the_bound(self):
        self.assertLessEqual(self.ratio(lambda output: output), 1)

    def test_a_wrong_one_is_not(self):
        def damage(output):
            output[-1] += 0.001
            return output
        self.assertGreater(self.ratio(damage), 1)

    def test_ten_bits_are_not_float32(self):
        cut = lambda output: (output.view(torch.int32) & ~0x1FFF).view(torch.float32)
        self.assertGreater(self.ratio(cut), 1)

    def test_nan_shows(self):
        def damage(output):
            output[7] = float("nan")
            return output
        self.assertFalse(self.ratio(damage) <= 1)


if __name__ == "__main__":
    unittest.main()
