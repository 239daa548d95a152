"""PyTorch's part in bench, without a GPU: what it answers, and its float64 reference.

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

# name: n c h w k r s, strides, pads, dilations, bias
PROBLEMS = {
    "no two extents alike": (2, 3, 13, 17, 5, 3, 4, 2, 3, 1, 2, 2, 1, 1),
    "padding wider than the filter": (1, 2, 4, 5, 3, 2, 1, 1, 1, 3, 2, 1, 1, 1),
    "no bias": (3, 1, 9, 8, 2, 3, 2, 1, 2, 0, 0, 1, 2, 0),
    "one by one": (1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1),
}


def tensors(problem):
    generator = torch.Generator().manual_seed(1)
    draw = lambda *shape: torch.rand(shape, generator=generator) * 2 - 1
    p = problem
    return draw(p.n, p.c, p.h, p.w), draw(p.k, p.c, p.r, p.s), draw(p.k) if p.bias else None


class Reference(unittest.TestCase):
    def test_agrees_with_a_float64_convolution(self):
        for name, numbers in PROBLEMS.items():
            with self.subTest(name):
                p = time_pytorch.Problem(*numbers)
                x, weight, bias = tensors(p)
                positions = time_pytorch.sample_outputs(torch, p, None, "cpu")
                value, magnitude = time_pytorch.reference(torch, p, x, weight, bias, positions)
                for ours, make in ((value, lambda t: t), (magnitude, torch.abs)):
                    whole = torch.nn.functional.conv2d(
                        make(x.double()), make(weight.double()),
                        None if bias is None else make(bias.double()),
                        stride=(p.stride_h, p.stride_w), padding=(p.pad_h, p.pad_w),
                        dilation=(p.dil_h, p.dil_w))
                    torch.testing.assert_close(ours, whole[positions.unbind(1)])

    def test_in_many_pieces_it_is_the_same(self):
        p = time_pytorch.Problem(*PROBLEMS["no two extents alike"])
        x, weight, bias = tensors(p)
        positions = time_pytorch.sample_outputs(torch, p, None, "cpu")
        whole = time_pytorch.reference(torch, p, x, weight, bias, positions)
        before, time_pytorch.PATCH_ELEMENTS = time_pytorch.PATCH_ELEMENTS, 100
        pieces = time_pytorch.reference(torch, p, x, weight, bias, positions)
        time_pytorch.PATCH_ELEMENTS = before
        for a, b in zip(whole, pieces):
            torch.testing.assert_close(a, b)

    def test_all_corners_are_sampled_and_nothing_outside(self):
        p = time_pytorch.Problem(*PROBLEMS["no two extents alike"])
        P = time_pytorch.out_extent(p.h, p.r, p.stride_h, p.pad_h, p.dil_h)
        Q = time_pytorch.out_extent(p.w, p.s, p.stride_w, p.pad_w, p.dil_w)
        positions = {tuple(row) for row in time_pytorch.sample_outputs(torch, p, None, "cpu").tolist()}
        for n in (0, p.n - 1):
            for k in (0, p.k - 1):
                for corner in ((0, 0), (0, Q - 1), (P - 1, 0), (P - 1, Q - 1)):
                    self.assertIn((n, k) + corner, positions)
        for n, k, row, column in positions:
            self.assertTrue(0 <= n < p.n and 0 <= k < p.k and 0 <= row < P and 0 <= column < Q)


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
        p = time_pytorch.Problem(*PROBLEMS["no two extents alike"])
        convolution = time_pytorch.Convolution.__new__(time_pytorch.Convolution)
        convolution.torch, convolution.problem, convolution.bound = torch, p, 8 * 2.0**-24
        convolution.x, convolution.weight, convolution.bias = tensors(p)
        convolution.positions = time_pytorch.sample_outputs(torch, p, None, "cpu")
        value, _ = time_pytorch.reference(torch, p, convolution.x, convolution.weight,
                                          convolution.bias, convolution.positions)
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
