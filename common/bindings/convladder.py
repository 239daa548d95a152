"""ConvLadder's stages for PyTorch: conv2d(), and Conv2d in place of nn.Conv2d, which trains.

float32. Calls libconvladder.so by ctypes; docs/pytorch.md says how to build it.
"""

import contextlib
import ctypes
import functools
import itertools
import operator
import os
import pathlib

import torch
from torch.autograd import forward_ad

__all__ = ["Conv2d", "backend", "chosen_stage", "conv2d", "stage_names", "tune"]

ABI_VERSION = 2  # of convladder.h
WORKSPACE_LIMIT = 1 << 30  # bytes, as DEFAULT_WORKSPACE_LIMIT of common/core/stage.h
WORKSPACE_ALIGNMENT = 256
CHANNELS_LAST = "_nhwc"  # ends the names of stages whose input and output are [N,H,W,C]
INVALID_ARGUMENT = 1  # a convladder_status
HERE = pathlib.Path(__file__).resolve()
BUILD = HERE.parents[2] / "build"


# ---- The library ----


class Problem(ctypes.Structure):
    """convladder_problem."""

    _fields_ = [
        (name, ctypes.c_int64)
        for name in "n c h w k r s stride_h stride_w pad_h pad_w dil_h dil_w groups".split()
    ]


class Convolution(ctypes.Structure):
    """convladder_convolution."""

    _fields_ = [
        ("problem", Problem),
        *((name, ctypes.c_void_p) for name in ("input", "filters", "bias", "output")),
        *((f"{name}_count", ctypes.c_int64) for name in ("input", "filter", "bias", "output")),
        ("relu", ctypes.c_int32),
        ("workspace", ctypes.c_void_p),
        ("workspace_bytes", ctypes.c_size_t),
    ]


class Gradients(ctypes.Structure):
    """convladder_gradients."""

    _fields_ = [
        ("problem", Problem),
        *((name, ctypes.c_void_p) for name in ("input", "filters", "output_gradient", "input_gradient",
                                               "filter_gradient", "bias_gradient")),
        *((f"{name}_count", ctypes.c_int64) for name in ("input", "filter", "bias", "output")),
        ("workspace", ctypes.c_void_p),
        ("workspace_bytes", ctypes.c_size_t),
    ]


def _library_path():
    if os.environ.get("CONVLADDER_LIBRARY"):
        return pathlib.Path(os.environ["CONVLADDER_LIBRARY"])
    backends = ["gpu", "sim"] if torch.cuda.is_available() else ["sim"]
    installed = [HERE.with_name("libconvladder.so")] if HERE.name == "__init__.py" else []
    paths = installed + [BUILD / name / "lib" / "libconvladder.so" for name in backends]
    for path in paths:
        if path.exists():
            return path
    raise RuntimeError(
        f"libconvladder.so is neither built ({' or '.join(map(str, paths))}) "
        "nor named by CONVLADDER_LIBRARY; docs/pytorch.md says how to build it"
    )


@functools.cache
def _library():
    path = _library_path()
    try:
        library = ctypes.CDLL(str(path))
        version = library.convladder_abi_version()
    except (OSError, AttributeError) as error:
        raise RuntimeError(f"{path} can't be used: {error}") from error
    if version != ABI_VERSION:
        raise RuntimeError(f"{path} has ABI version {version}, not {ABI_VERSION}: build it again")
    names, pointer = ctypes.c_char_p, ctypes.POINTER
    library.convladder_backend.restype = names
    library.convladder_last_error.restype = names
    library.convladder_stage_names.restype = pointer(names)
    library.convladder_output_size.argtypes = [pointer(Problem), pointer(ctypes.c_int64)]
    library.convladder_workspace_bytes.argtypes = [
        names, pointer(Problem), ctypes.c_size_t, pointer(ctypes.c_size_t)
    ]
    library.convladder_run.argtypes = [names, pointer(Convolution), ctypes.c_void_p]
    library.convladder_choose.argtypes = [pointer(Problem), pointer(names), names, ctypes.c_size_t]
    library.convladder_tune.argtypes = [pointer(Problem), ctypes.c_void_p]
    library.convladder_gradient_workspace_bytes.argtypes = [
        names, pointer(Gradients), ctypes.c_size_t, pointer(ctypes.c_size_t)
    ]
    library.convladder_run_gradients.argtypes = [names, pointer(Gradients), ctypes.c_void_p]
    return library


def _check(status):
    """Raises what a status other than success stands for, with the library's own words."""
    if status == 0:
        return
    message = _library().convladder_last_error().decode(errors="replace")
    raise (ValueError if status == INVALID_ARGUMENT else RuntimeError)(message)


@torch.compiler.assume_constant_result  # of what torch.compile has compiled as well
def backend():
    """"gpu" or "sim": where the library that is in use runs."""
    return _library().convladder_backend().decode()


def stage_names():
    """The stages in order: ["01_naive", ...]."""
    names = iter(_library().convladder_stage_names())  # ends with a null
    return [name.decode() for name in itertools.takewhile(bool, names)]


# ---- Arguments ----


def _integers(values):
    """The values as a tuple; empty where one of them is no integer of 64 bits: ctypes would cut it."""
    try:
        values = tuple(operator.index(v) for v in values)
    except TypeError:
        return ()
    return values if all(-(2**63) <= v < 2**63 for v in values) else ()


def _pair(name, value):
    """An integer for both axes, or one for each, as (height, width)."""
    values = _integers(value if isinstance(value, (tuple, list)) else (value, value))
    if len(values) != 2:
        raise ValueError(f"{name} = {value!r}: must be an integer or two of them")
    return values


def _padding(padding, filter_size, stride, dilation):
    """(height, width) on each side; 'valid' and 'same' as torch.nn.Conv2d understands them."""
    if padding == "valid":
        return 0, 0
    if padding != "same":
        return _pair("padding", padding)
    if stride != (1, 1):
        raise ValueError(f"padding = 'same': stride must be 1, not {stride}")
    totals = tuple(d * (f - 1) for d, f in zip(dilation, filter_size))
    if any(total % 2 for total in totals):
        raise ValueError(
            f"padding = 'same': {totals} rows and columns can't be split evenly on two sides; "
            "pad the input with torch.nn.functional.pad"
        )
    return totals[0] // 2, totals[1] // 2


def _check_tensors(x, w, b, groups):
    """The library knows extents alone; what it can reject, it does."""
    for name, tensor, shape in (("x", x, "[N,C,H,W]"), ("w", w, "[K,C/groups,R,S]"), ("b", b, "[K]")):
        if tensor is None and name == "b":
            continue
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name} is a {type(tensor).__name__}: must be a tensor")
        if tensor.dtype != torch.float32:
            half = "; the stages have no half precision" * (tensor.dtype in (torch.float16, torch.bfloat16))
            raise TypeError(f"{name} is {tensor.dtype}: must be torch.float32{half}")
        if tensor.layout != torch.strided:
            raise TypeError(f"{name} is {tensor.layout}: must be dense")
        if tensor.dim() != shape.count(",") + 1:
            raise ValueError(f"{name} has {tensor.dim()} dimensions: must be {shape}")
        if tensor.device != x.device:
            raise ValueError(f"{name} is on {tensor.device}: must be on {x.device}, as x is")
        if x.device.type != (wanted := {"gpu": "cuda", "sim": "cpu"}[backend()]):
            raise ValueError(
                f"x is on {x.device}: {_library()._name} takes {wanted} tensors (its backend is "
                f"{backend()}); CONVLADDER_LIBRARY names another library"
            )
    if not _integers((groups,)):
        raise ValueError(f"groups = {groups!r}: must be an integer")
    # The library rejects groups that don't divide the channels.
    if groups >= 1 and x.shape[1] % groups == 0 and w.shape[1] != x.shape[1] // groups:
        of_groups = f" in {groups} groups" if groups > 1 else ""
        raise ValueError(f"w has {w.shape[1]} input channels, x has {x.shape[1]}{of_groups}")
    if b is not None and b.shape[0] != w.shape[0]:
        raise ValueError(f"b has {b.shape[0]} elements, w has {w.shape[0]} filters")


# ---- The convolution ----


def _problem(x_shape, w_shape, steps, groups):
    """steps: stride, padding and dilation, (height, width) each, in a row."""
    return Problem(*x_shape, w_shape[0], *w_shape[2:], *steps, groups)


@contextlib.contextmanager
def _placed(x):
    """With x's device as the current one: the stream to enqueue on. PyTorch's allocator reuses memory in its
    order, so that a workspace may be let go of while the kernels still wait for their turn."""
    with torch.cuda.device(x.device) if x.is_cuda else contextlib.nullcontext():
        yield torch.cuda.current_stream().cuda_stream if x.is_cuda else None


def _workspace(bytes_, device):
    """A tensor, and an aligned address in it: PyTorch aligns to less than that on a CPU."""
    workspace = torch.empty(bytes_ + WORKSPACE_ALIGNMENT, dtype=torch.uint8, device=device)
    return workspace, -(-workspace.data_ptr() // WORKSPACE_ALIGNMENT) * WORKSPACE_ALIGNMENT


def _pointers(*tensors):
    return [None if tensor is None else tensor.data_ptr() for tensor in tensors]


def _counts(*tensors):
    return [0 if tensor is None else tensor.numel() for tensor in tensors]


def _dense(tensor, memory_format=torch.contiguous_format):
    """As the kernels read it: what lies otherwise, or is a view with the negative bit, is copied."""
    if tensor is None:
        return None
    if tensor.dtype != torch.float32:  # conv2d() has said so, but its operator can be called without it
        raise TypeError(f"a tensor is {tensor.dtype}: must be torch.float32")
    return tensor.resolve_neg().contiguous(memory_format=memory_format)


def _memory_format(stage):
    return torch.channels_last if stage.endswith(CHANNELS_LAST) else torch.contiguous_format


@torch.compiler.assume_constant_result
def _takes_channels_last(stage):
    return stage + CHANNELS_LAST in stage_names()


@torch.library.custom_op("convladder::conv2d", mutates_args=())
def _forward(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, steps: list[int], groups: int,
             stage: str, relu: bool) -> torch.Tensor:
    library, problem, name = _library(), _problem(x.shape, w.shape, steps, groups), stage.encode()
    memory_format = _memory_format(stage)
    x, w, b = _dense(x, memory_format), _dense(w, memory_format), _dense(b)
    with _placed(x) as stream:
        size, bytes_ = (ctypes.c_int64 * 4)(), ctypes.c_size_t()
        _check(library.convladder_output_size(problem, size))
        _check(library.convladder_workspace_bytes(name, problem, WORKSPACE_LIMIT, bytes_))
        output = torch.empty(tuple(size), dtype=torch.float32, device=x.device,
                             memory_format=memory_format)
        _keep, workspace = _workspace(bytes_.value, x.device)
        _check(library.convladder_run(name, Convolution(
            problem, *_pointers(x, w, b, output), *_counts(x, w, b, output), relu, workspace,
            bytes_.value), stream))
    return output


@_forward.register_fake
def _(x, w, b, steps, groups, stage, relu):
    stride, padding, dilation = steps[:2], steps[2:4], steps[4:]
    size = [(x.shape[2 + i] + 2 * padding[i] - dilation[i] * (w.shape[2 + i] - 1) - 1) // stride[i] + 1
            for i in (0, 1)]
    return torch.empty((x.shape[0], w.shape[0], *size), dtype=x.dtype, device=x.device,
                       memory_format=_memory_format(stage))


@torch.library.custom_op("convladder::conv2d_backward", mutates_args=())
def _backward(x: torch.Tensor, w: torch.Tensor, gradient: torch.Tensor, steps: list[int], groups: int,
              stage: str, wanted: list[bool]) -> list[torch.Tensor]:
    """The gradients by x, w and b; empty where it isn't wanted."""
    library, problem, name = _library(), _problem(x.shape, w.shape, steps, groups), stage.encode()
    x, w, gradient = map(_dense, (x, w, gradient))
    with _placed(x) as stream:
        found = [x.new_empty(shape if want else 0)
                 for shape, want in zip((x.shape, w.shape, w.shape[:1]), wanted)]
        results = [each if want else None for each, want in zip(found, wanted)]
        call = Gradients(problem, *_pointers(x, w, gradient, *results),
                         *_counts(x, w), w.shape[0], gradient.numel(), None, 0)
        bytes_ = ctypes.c_size_t()
        _check(library.convladder_gradient_workspace_bytes(name, call, WORKSPACE_LIMIT, bytes_))
        _keep, call.workspace = _workspace(bytes_.value, x.device)
        call.workspace_bytes = bytes_.value
        _check(library.convladder_run_gradients(name, call, stream))
    return found


@_backward.register_fake
def _(x, w, gradient, steps, groups, stage, wanted):
    return [x.new_empty(shape if want else 0)
            for shape, want in zip((x.shape, w.shape, w.shape[:1]), wanted)]


def _setup_context(ctx, inputs, output):
    x, w, b, *ctx.rest, ctx.relu = inputs
    ctx.save_for_backward(x, w, *([output] if ctx.relu else []))


def _differentiate(ctx, gradient):
    x, w, *output = ctx.saved_tensors
    if ctx.relu:
        gradient = torch.ops.aten.threshold_backward(gradient, output[0], 0)
    steps, groups, stage = ctx.rest
    stage = stage.removesuffix(CHANNELS_LAST)  # gradients are [N,C,H,W]
    wanted = list(ctx.needs_input_grad[:3])
    found = torch.ops.convladder.conv2d_backward(x, w, gradient, steps, groups, stage, wanted)
    return *(each if want else None for each, want in zip(found, wanted)), None, None, None, None


_forward.register_autograd(_differentiate, setup_context=_setup_context)


def conv2d(x, w, b=None, stride=1, padding=0, dilation=1, groups=1, stage="auto", relu=False):
    """conv(x, w) + b, then ReLU if asked: torch.nn.functional.conv2d, computed by `stage`.

    x: [N,C,H,W], w: [K,C/groups,R,S], b: [K] or None; float32, on one device: a GPU, or the CPU
    where the library is the simulator's. stride, padding, dilation: an integer, or (height, width);
    padding also 'valid', or 'same' where both sides get as much. What is not contiguous, or is a
    view with the negative bit, is copied first. Under autocast it is computed in float32.
    Returns a new [N,K,P,Q] on PyTorch's current stream: contiguous, but channels last where the stage has
    a form for that ("15_copy_engine_nhwc", and x lies so or that form is named: then x isn't copied, nor is w
    if it lies so).

    Only stages that fuse it take relu=True. stage="auto" is the one that suits the problem:
    chosen_stage() says which.

    It has gradients, by the same stage's forward kernels (not gradients of gradients), and is a custom
    operator to torch.compile. ValueError and TypeError name the argument; RuntimeError gives CUDA's reason.
    """
    device = x.device.type if isinstance(x, torch.Tensor) else ""
    if device in ("cpu", "cuda") and torch.is_autocast_enabled(device):
        x, w, b = (t.float() if isinstance(t, torch.Tensor) else t for t in (x, w, b))
    _check_tensors(x, w, b, groups)
    # PyTorch would take the derivative to be zero, or speak of what nobody has written.
    forwards, transforms = forward_ad._current_level >= 0, not torch.compiler.is_compiling()
    if any(transforms and torch._C._functorch.is_gradtrackingtensor(t) or
           forwards and forward_ad.unpack_dual(t).tangent is not None for t in (x, w, b) if t is not None):
        raise NotImplementedError("convladder.conv2d has no jvp, and torch.func no gradients of it: "
                                  "use backward(), or torch.nn.functional.conv2d")
    stride, dilation = _pair("stride", stride), _pair("dilation", dilation)
    padding = _padding(padding, w.shape[2:], stride, dilation)
    steps, stage = [*stride, *padding, *dilation], str(stage)
    _, channels, height, width = x.shape  # inside vmap nobody can be asked for another memory format
    lies_last = x.stride() == (height * width * channels, 1, width * channels, channels)
    if lies_last and not x.is_contiguous() and _takes_channels_last(stage):
        stage += CHANNELS_LAST
    return torch.ops.convladder.conv2d(x, w, b, steps, groups, stage, bool(relu))


def _problem_of(x, w, stride, padding, dilation, groups):
    _check_tensors(x, w, None, groups)
    stride, dilation = _pair("stride", stride), _pair("dilation", dilation)
    steps = *stride, *_padding(padding, w.shape[2:], stride, dilation), *dilation
    return _problem(x.shape, w.shape, steps, groups)


def chosen_stage(x, w, stride=1, padding=0, dilation=1, groups=1):
    """(name, why): the stage that "auto" is for these arguments, and the reason in a line."""
    stage, why = ctypes.c_char_p(), ctypes.create_string_buffer(1000)
    problem = _problem_of(x, w, stride, padding, dilation, groups)
    _check(_library().convladder_choose(problem, stage, why, len(why)))
    return stage.value.decode(), why.value.decode()


def tune(x, w, stride=1, padding=0, dilation=1, groups=1):
    """Times the stages on this problem, on tensors of its own, and keeps the fastest for "auto" as long as
    the process lasts. Returns chosen_stage(). In the simulator, whose times say nothing, nothing is timed."""
    with _placed(x) as stream:
        _check(_library().convladder_tune(_problem_of(x, w, stride, padding, dilation, groups), stream))
    return chosen_stage(x, w, stride, padding, dilation, groups)


class Conv2d(torch.nn.Conv2d):
    """torch.nn.Conv2d (its arguments, weights and state_dict), computed by one of the stages.

    `stage` and `relu`: see conv2d(). ValueError where padding_mode is not 'zeros'.
    """

    def __init__(self, *args, stage="auto", relu=False, **kwargs):
        super().__init__(*args, **kwargs)
        if self.padding_mode != "zeros":
            raise ValueError(f"padding_mode = {self.padding_mode!r}: must be 'zeros'")
        self.stage = stage
        self.relu = relu

    @classmethod
    def from_torch(cls, conv, stage="auto", relu=False):
        """A Conv2d with the parameters of an nn.Conv2d: the same ones, not copies."""
        if not isinstance(conv, torch.nn.Conv2d):
            raise TypeError(f"conv is a {type(conv).__name__}: must be a torch.nn.Conv2d")
        module = cls(
            conv.in_channels, conv.out_channels, conv.kernel_size, conv.stride, conv.padding,
            conv.dilation, conv.groups, conv.bias is not None, conv.padding_mode, device="meta",
            stage=stage, relu=relu,
        )
        module.weight, module.bias = conv.weight, conv.bias
        return module.train(conv.training)

    def forward(self, x):
        return conv2d(
            x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups,
            self.stage, self.relu,
        )

    def extra_repr(self):
        return f"{super().extra_repr()}, stage={self.stage}" + (", relu=True" if self.relu else "")
