"""The PyTorch module and its examples, on the library that CONVLADDER_LIBRARY names.

On the simulator's library with CPU tensors, on a GPU's with CUDA tensors. Exit status 77, skipped,
where there is no PyTorch, or no GPU for a GPU's library.
"""

import itertools
import os
import pathlib
import subprocess
import sys
import unittest
from unittest import mock

try:
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

from common.bindings import convladder
from common.bindings.examples import kernelbench_50, kernelbench_63
from common.bindings.reference import error_ratio, max_error_ratio, reference

BINDINGS = pathlib.Path(convladder.__file__).parent
ON_GPU = convladder.backend() == "gpu"
if ON_GPU and not torch.cuda.is_available():
    print("skipped: the library is for a GPU, and there is none")
    sys.exit(77)
DEVICE = torch.device("cuda", torch.cuda.current_device()) if ON_GPU else torch.device("cpu")
STAGES = convladder.stage_names()


def integers(*shape, seed=1):
    """Small integers: float32 computes their convolution exactly."""
    random = torch.Generator().manual_seed(seed)
    return torch.randint(-8, 9, shape, generator=random).float().to(DEVICE)


def expected(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
    return reference(x, w, b, stride, padding, dilation, groups)[0].float()


# No two extents agree, nor do the two axes' strides, pads and dilations.
X, W, B = integers(2, 3, 9, 8), integers(5, 3, 4, 2, seed=2), integers(5, seed=3)
PAIRS = {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 3)}
# Three groups: each has 2 channels and 5 filters.
GROUPED = integers(2, 6, 9, 8, seed=4), integers(15, 2, 4, 2, seed=5), integers(15, seed=6)
DEPTHWISE = integers(2, 6, 9, 8, seed=4), integers(12, 1, 3, 3, seed=7), integers(12, seed=8)


def suited(stage):
    """x, w, b and groups of a problem that the stage takes."""
    return (*DEPTHWISE, 6) if stage == "16_depthwise" else (X, W, B, 1)


class Convolution(unittest.TestCase):
    def check(self, x, w, b=None, wanted=None, **options):
        """conv2d() gives exactly `wanted`, by default what float64 makes of the same arguments."""
        output = convladder.conv2d(x, w, b, **options)
        last = options.pop("stage", "").endswith("_nhwc")
        wanted = expected(x, w, b, **options) if wanted is None else wanted
        self.assertEqual(output.shape, wanted.shape)
        self.assertTrue(output.is_contiguous(
            memory_format=torch.channels_last if last else torch.contiguous_format))
        self.assertTrue(torch.equal(output, wanted), "wrong values")

    def test_every_stage(self):
        for (x, w, bias), groups in (((X, W, B), 1), (GROUPED, 3), (DEPTHWISE, 6)):
            for stage, b in itertools.product([*STAGES, "auto"], (bias, None)):
                if stage == "16_depthwise" and groups != 6:
                    with self.assertRaisesRegex(ValueError, "^not for this shape: 16_depthwise wants one"):
                        convladder.conv2d(x, w, b, **PAIRS, groups=groups, stage=stage)
                    continue
                with self.subTest(stage=stage, bias=b is not None, groups=groups):
                    self.check(x, w, b, **PAIRS, groups=groups, stage=stage)

    def test_defaults_and_names(self):
        self.check(X, W)
        self.check(X, W, B, stride=2, padding=1, dilation=2)
        self.check(GROUPED[0], integers(12, 1, 3, 3, seed=8), groups=6)  # depthwise
        self.check(X, W, B, wanted=expected(X, W, B).relu(), relu=True)
        self.check(X, W, padding="valid")
        self.check(X, integers(4, 3, 3, 5), padding="same", dilation=(2, 1))

    def test_channels_last(self):
        """Goes as it lies where the stage has a form for that, and comes back so; else it is copied."""
        x = X.to(memory_format=torch.channels_last)
        copied = mock.patch.object(convladder, "_dense", wraps=convladder._dense)
        for stage in [*STAGES, "auto"]:
            if stage == "16_depthwise" or stage.endswith("_nhwc"):
                continue
            with self.subTest(stage=stage), copied as dense:
                last = stage + "_nhwc" in STAGES
                output = convladder.conv2d(x, W, B, **PAIRS, stage=stage)
                self.assertTrue(torch.equal(output, expected(X, W, B, **PAIRS)), "wrong values")
                self.assertEqual(output.is_contiguous(memory_format=torch.channels_last), last)
                self.assertEqual(output.is_contiguous(), not last)
                given = dense.call_args_list[0].args
                self.assertEqual(given[0].contiguous(memory_format=given[1]).data_ptr() == x.data_ptr(), last)
        self.assertTrue(any(stage.endswith("_nhwc") for stage in STAGES))

    def test_views(self):
        x = X.to(memory_format=torch.channels_last)
        w = W.permute(1, 0, 3, 2).contiguous().permute(1, 0, 3, 2)
        b = B.repeat_interleave(2)[::2]
        self.assertFalse(x.is_contiguous() or w.is_contiguous() or b.is_contiguous())
        before = x.clone()
        self.check(x, w, b)
        self.assertTrue(torch.equal(x, before))
        self.check(X[:1].expand(3, -1, -1, -1), W)
        self.check(*map(torch._neg_view, (X, W, B)))
        self.check(torch.complex(X, -X).conj().imag, W)
        for offset, stage in itertools.product((1, 2, 3), STAGES):  # off alignment
            whole, w, b, groups = suited(stage)
            x = torch.cat([X.new_full((offset,), float("nan")), whole.flatten()])[offset:].view_as(whole)
            self.check(x, w, b, groups=groups, stage=stage)

class BadArguments(unittest.TestCase):
    def test_each_is_named_and_the_next_call_works(self):
        wanted = expected(X, W, B)
        huge = 2**64 + 1  # cut to 64 bits it would be 1
        cases = [
            (TypeError, "x is a list", {"x": [1.0]}),
            (TypeError, "w is a NoneType", {"w": None}),
            (TypeError, "x is torch.float64", {"x": X.double()}),
            (TypeError, "w is torch.float16", {"w": W.half()}),
            (TypeError, "b is torch.int64", {"b": B.long()}),
            (TypeError, "x is torch.complex64", {"x": torch.complex(X, X).conj()}),
            (TypeError, "x is torch.sparse_coo", {"x": X.to_sparse()}),
            (ValueError, "x has 3 dimensions: must be \\[N,C,H,W\\]", {"x": X[0]}),
            (ValueError, "w has 5 dimensions: must be \\[K,C/groups,R,S\\]", {"w": W[None]}),
            (ValueError, "b has 2 dimensions: must be \\[K\\]", {"b": B[None]}),
            (ValueError, "w has 2 input channels, x has 3$", {"w": W[:, :2]}),
            (ValueError, "w has 3 input channels, x has 6 in 3 groups",
             {"x": GROUPED[0], "groups": 3}),
            (ValueError, "groups = 1.5: must be an integer", {"groups": 1.5}),
            (ValueError, "groups = \\(1, 1\\): must be an integer", {"groups": (1, 1)}),
            (ValueError, f"groups = {huge}: must be an integer", {"groups": huge}),
            (ValueError, "b has 4 elements, w has 5 filters", {"b": B[:4]}),
            (ValueError, "n = 0: must be at least 1", {"x": X[:0]}),  # in the words of the C interface
            (ValueError, "x is on meta", {"x": X.to("meta")}),
            (ValueError, "w is on meta: must be on", {"w": W.to("meta")}),
            (ValueError, "stride = 1.5: must be an integer", {"stride": 1.5}),
            (ValueError, "stride = '2': must be an integer", {"stride": "2"}),
            (ValueError, "padding = 'reflect': must be an integer", {"padding": "reflect"}),
            (ValueError, "dilation = \\(1, 1, 1\\)", {"dilation": (1, 1, 1)}),
            (ValueError, f"padding = \\(0, {huge}\\)", {"padding": (0, huge)}),
            (ValueError, "padding = 'same': stride", {"padding": "same", "stride": 2}),
            (ValueError, "padding = 'same': \\(3, 1\\) rows", {"padding": "same"}),
        ]
        for error, message, wrong in cases:
            with self.subTest(message):
                with self.assertRaisesRegex(error, "^" + message):
                    convladder.conv2d(**{"x": X, "w": W, "b": B, **wrong})
                self.assertTrue(torch.equal(convladder.conv2d(X, W, B), wanted))

    def test_device_that_the_library_cannot_use(self):
        with mock.patch.object(convladder, "backend", return_value="sim" if ON_GPU else "gpu"):
            with self.assertRaisesRegex(ValueError, "^x is on .*CONVLADDER_LIBRARY"):
                convladder.conv2d(X, W)

    def test_libraries_that_cannot_be_used(self):
        for library, message in [
            ("/nowhere/libconvladder.so", "/nowhere/libconvladder.so can't be used"),
            ("libm.so.6", "libm.so.6 can't be used: .*convladder_abi_version"),
        ]:
            result = subprocess.run(
                [sys.executable, "-c", "import convladder; convladder.stage_names()"],
                env={**os.environ, "CONVLADDER_LIBRARY": library, "PYTHONPATH": str(BINDINGS)},
                capture_output=True, text=True, check=False,
            )
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr, "RuntimeError: " + message)


class Gradients(unittest.TestCase):
    # Strides and dilations with and without common factors, windows in the padding, rows that no window sees.
    PROBLEMS = [
        ((2, 3, 9, 8), (5, 3, 4, 2), PAIRS, 1), ((2, 6, 9, 8), (15, 2, 4, 2), PAIRS, 3),
        ((3, 4, 11, 13), (6, 4, 3, 3), {"stride": 2, "padding": 1}, 1),
        ((2, 4, 17, 12), (4, 2, 3, 2), {"stride": (4, 3), "dilation": (2, 3), "padding": (5, 4)}, 2),
        ((2, 6, 10, 7), (12, 1, 3, 3), {"padding": 1}, 6), ((1, 5, 6, 6), (5, 1, 5, 5), {"padding": 2}, 5),
    ]

    def gradients(self, convolve, tensors, upstream, dtype):
        tensors = [tensor.to(dtype).requires_grad_() for tensor in tensors]
        convolve(*tensors).backward(upstream.to(dtype))
        return [tensor.grad for tensor in tensors]

    def test_of_every_stage(self):
        random = torch.Generator().manual_seed(1)
        for (x, w, options, groups), stage in itertools.product(self.PROBLEMS, [*STAGES, "auto"]):
            if stage == "16_depthwise" and w[1] > 1:
                continue
            tensors = [torch.rand(size, generator=random).sub(0.5).to(DEVICE) for size in (x, w, w[:1])]

            def theirs(x, w, b, options=options, groups=groups):
                return torch.nn.functional.conv2d(x, w, b, **options, groups=groups)

            def ours(x, w, b, options=options, groups=groups, stage=stage):
                return convladder.conv2d(x, w, b, **options, groups=groups, stage=stage)

            upstream = torch.rand_like(theirs(*tensors)).sub(0.5)
            wanted = self.gradients(theirs, tensors, upstream, torch.float64)
            large = self.gradients(theirs, [t.abs() for t in tensors], upstream.abs(), torch.float64)
            bound = (8 + 2**15 * (stage == "12_tensor_cores" or "_tf32" in stage)) * 2.0**-24
            for name, got, want, magnitude in zip(
                    "xwb", self.gradients(ours, tensors, upstream, torch.float32), wanted, large):
                with self.subTest(stage=stage, x=x, by=name):
                    self.assertLessEqual(max_error_ratio(got, want, magnitude, bound), 1)

    def test_those_that_are_asked_for_and_no_others(self):
        for wanted in itertools.product((False, True), repeat=3):
            x, w, b = (t.clone().requires_grad_(want) for t, want in zip((X, W, B), wanted))
            output = convladder.conv2d(x, w, b)
            self.assertEqual(output.requires_grad, any(wanted))
            if any(wanted):
                output.sum().backward()
            self.assertEqual(tuple(t.grad is not None for t in (x, w, b)), wanted)
        with torch.no_grad():
            self.assertFalse(convladder.conv2d(X.clone().requires_grad_(), W).requires_grad)

    def test_through_relu(self):
        grads = []
        for convolve in (lambda x: convladder.conv2d(x, W, B, relu=True),
                         lambda x: torch.nn.functional.conv2d(x, W, B).relu()):
            x = X.clone().requires_grad_()
            convolve(x).sum().backward()
            grads.append(x.grad)
        self.assertTrue(torch.equal(*grads))

    def test_a_module_trains(self):
        torch.manual_seed(1)
        model = torch.nn.Sequential(convladder.Conv2d(1, 4, 3, padding=1), torch.nn.ReLU(),
                                    convladder.Conv2d(4, 4, 3, stride=2, groups=4), torch.nn.Flatten(),
                                    torch.nn.Linear(4 * 3 * 3, 1)).to(DEVICE)
        x = torch.rand(8, 1, 8, 8).to(DEVICE)
        optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.1), []
        for _ in range(5):
            loss = (model(x).squeeze() - x.mean((1, 2, 3))).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        self.assertLess(losses[-1], losses[0] / 2)


class Operator(unittest.TestCase):
    """What PyTorch does with operators."""

    def test_is_one_by_pytorchs_own_check(self):
        arguments = (X.clone().requires_grad_(), W.clone().requires_grad_(), B.clone().requires_grad_(),
                     [2, 1, 1, 0, 1, 3], 1, "auto", False)
        torch.library.opcheck(torch.ops.convladder.conv2d.default, arguments)

    def test_autocast_computes_in_float32(self):
        for dtype in (torch.bfloat16, torch.float16):
            with torch.autocast(DEVICE.type, dtype=dtype):
                output = convladder.conv2d(X.to(dtype), W, B)
            self.assertEqual(output.dtype, torch.float32)
            self.assertTrue(torch.equal(output, expected(X, W, B)))

    def test_compiled_whole_forward_and_backward(self):
        def step(x, w):
            return (convladder.conv2d(x * 2, w, B, padding=1, relu=True) + 1).sum()

        results = []
        for function in (step, torch.compile(step, backend="aot_eager", fullgraph=True)):
            x, w = X.clone().requires_grad_(), W.clone().requires_grad_()
            function(x, w).backward()
            results.append((x.grad, w.grad))
        for plain, compiled in zip(*results):
            self.assertTrue(torch.equal(plain, compiled))

    def test_what_is_no_gradient_says_so(self):
        for function in (lambda: torch.func.vjp(lambda x: convladder.conv2d(x, W), X),
                         lambda: torch.func.jvp(lambda x: convladder.conv2d(x, W), (X,), (X,)),
                         lambda: torch.func.grad(lambda w: convladder.conv2d(X, w).sum())(W)):
            self.assertRaisesRegex(NotImplementedError, "use backward", function)

    def test_the_operator_alone_takes_no_other_numbers(self):
        steps = [1, 1, 0, 0, 1, 1]
        for x, w in ((X.double(), W), (X, W.half())):
            with self.assertRaisesRegex(TypeError, "must be torch.float32"):
                torch.ops.convladder.conv2d(x, w, None, steps, 1, "auto", False)

    def test_vmap(self):
        several = torch.stack([X, X + 1])
        self.assertTrue(torch.equal(torch.vmap(lambda x: convladder.conv2d(x, W))(several),
                                    torch.stack([expected(x, W) for x in several])))


class Choice(unittest.TestCase):
    def test_says_which_and_why(self):
        for choose in (convladder.chosen_stage, convladder.tune, convladder.chosen_stage):
            stage, why = choose(X, W, **PAIRS)
            self.assertIn(stage, STAGES)
            self.assertRegex(why, "fastest")
            self.assertTrue(torch.equal(convladder.conv2d(X, W, B, **PAIRS), expected(X, W, B, **PAIRS)))
        with self.assertRaisesRegex(ValueError, "stride_h = 0"):
            convladder.chosen_stage(X, W, stride=0)


class Module(unittest.TestCase):
    def torch_conv(self, w=W, b=B, **options):
        channels = w.shape[1] * options.get("groups", 1)
        conv = torch.nn.Conv2d(channels, w.shape[0], (4, 2), **PAIRS, **options).to(DEVICE)
        values = {"weight": w, "bias": b}
        conv.load_state_dict({name: values[name] for name in conv.state_dict()})
        return conv

    def test_refuses_what_it_does_not_compute(self):
        for error, conv in ((ValueError, torch.nn.Conv2d(4, 8, 3, padding=1, padding_mode="reflect")),
                            (TypeError, torch.nn.ConvTranspose2d(4, 8, 3))):
            self.assertRaises(error, convladder.Conv2d.from_torch, conv)

    def test_takes_over_the_weights(self):
        for bias in (True, False):
            conv = self.torch_conv(bias=bias).eval()
            module = convladder.Conv2d.from_torch(conv, stage="03_shared_tiling")
            self.assertIs(module.weight, conv.weight)
            self.assertIs(module.bias, conv.bias)
            self.assertFalse(module.training)
            wanted = expected(X, W, B if bias else None, **PAIRS)
            self.assertTrue(torch.equal(module(X), wanted))
            self.assertIn("stage=03_shared_tiling", repr(module))

    def test_stands_in_for_a_module_of_the_same_name(self):
        own = convladder.Conv2d(3, 5, (4, 2), **PAIRS, relu=True).to(DEVICE)
        own.load_state_dict(self.torch_conv().state_dict())
        self.assertTrue(torch.equal(own(X), expected(X, W, B, **PAIRS).relu()))
        torch.manual_seed(1)
        first = convladder.Conv2d(3, 5, 3).weight
        torch.manual_seed(1)
        self.assertTrue(torch.equal(first, torch.nn.Conv2d(3, 5, 3).weight))

    def test_groups_and_padding_by_name(self):
        x, w, b = GROUPED
        module = convladder.Conv2d.from_torch(self.torch_conv(w, b, groups=3))
        self.assertTrue(torch.equal(module(x), expected(x, w, b, **PAIRS, groups=3)))
        conv = torch.nn.Conv2d(3, 5, 3, padding="same").to(DEVICE)
        self.assertEqual(convladder.Conv2d.from_torch(conv)(X).shape, conv(X).shape)

@unittest.skipUnless(ON_GPU, "the simulator has no streams to mix up")
class OnGpu(unittest.TestCase):
    def test_waits_for_the_current_stream(self):
        for stage in STAGES:
            whole, w, b, groups = suited(stage)
            wanted = expected(whole, w, b, groups=groups)
            stream = torch.cuda.Stream()
            x = torch.full_like(whole, float("nan"))
            torch.cuda.synchronize()
            with torch.cuda.stream(stream):  # what is made once may wait for the GPU
                convladder.conv2d(x, w, b, groups=groups, stage=stage)
            stream.synchronize()
            with torch.cuda.stream(stream):
                torch.cuda._sleep(200_000_000)  # clock ticks: about 0.1 s
                x.copy_(whole)
                output = convladder.conv2d(x, w, b, groups=groups, stage=stage)
                self.assertFalse(stream.query(), "the call waited for the GPU")
            stream.synchronize()
            self.assertTrue(torch.equal(output, wanted), stage)

    def test_in_a_cuda_graph(self):
        x = X.clone()
        convladder.conv2d(x, W, B)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            output = convladder.conv2d(x, W, B)
        x.copy_(X + 1)
        graph.replay()
        self.assertTrue(torch.equal(output, expected(X + 1, W, B)))

    def test_cpu_tensors(self):
        with self.assertRaisesRegex(ValueError, "^x is on cpu: .* takes cuda tensors"):
            convladder.conv2d(X.cpu(), W.cpu())
        with self.assertRaisesRegex(ValueError, "^w is on cpu: must be on cuda:0, as x is"):
            convladder.conv2d(X, W.cpu())

    @unittest.skipUnless(torch.cuda.device_count() > 1, "one GPU only")
    def test_another_device_than_the_current_one(self):
        for stage in STAGES:
            *here, groups = suited(stage)
            output = convladder.conv2d(*(t.to("cuda:1") for t in here), groups=groups, stage=stage)
            self.assertEqual(output.device, torch.device("cuda:1"))
            self.assertTrue(torch.equal(output.cpu(), expected(*here, groups=groups).cpu()))
        self.assertEqual(torch.cuda.current_device(), DEVICE.index)


class Examples(unittest.TestCase):
    def test_kernelbench(self):
        for example, x, size in ((kernelbench_50, torch.rand(2, 3, 65, 63), (2, 96, 15, 15)),
                                 (kernelbench_63, torch.rand(2, 16, 20, 17), (2, 128, 18, 15))):
            model = example.ModelNew(*example.get_init_inputs()).to(DEVICE)
            layer, = (each for each in model.modules() if isinstance(each, convladder.Conv2d))
            output, x = model(x.to(DEVICE)).detach(), x.to(DEVICE)
            self.assertEqual(output.shape, size)
            self.assertLessEqual(error_ratio(output, layer, x), 1)
        self.assertIsNone(layer.bias)


if __name__ == "__main__":
    unittest.main()
