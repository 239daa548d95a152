"""ConvLadder's stages for PyTorch: conv2d(), and Conv2d in place of nn.Conv2d.

float32, forward only. Calls libconvladder.so by ctypes; docs/pytorch.md says how to build it.
"""

import contextlib
import ctypes
import functools
import itertools
import operator
import os
import pathlib

import torch

__all__ = ["Conv2d", "backend", "conv2d", "stage_names"]

ABI_VERSION = 1  # of convladder.h
WORKSPACE_LIMIT = 1 << 30  # bytes, as DEFAULT_WORKSPACE_LIMIT of common/core/stage.h
WORKSPACE_ALIGNMENT = 256
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
    return library


def _check(status):
    """Raises what a status other than success stands for, with the library's own words."""
    if status == 0:
        return
    message = _library().convladder_last_error().decode(errors="replace")
    raise (ValueError if status == INVALID_ARGUMENT else RuntimeError)(message)


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
            raise TypeError(f"{name} is {tensor.dtype}: must be torch.float32")
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


def _run(x, w, b, problem, stage, relu):
    """The output of contiguous tensors, enqueued on PyTorch's current stream.

    PyTorch's allocator reuses memory in the order of that stream, so the workspace may be let go of
    while the kernels still wait for their turn.
    """
    library = _library()
    size = (ctypes.c_int64 * 4)()
    _check(library.convladder_output_size(problem, size))
    bytes_ = ctypes.c_size_t()
    _check(library.convladder_workspace_bytes(stage, problem, WORKSPACE_LIMIT, bytes_))
    output = torch.empty(tuple(size), dtype=torch.float32, device=x.device)
    # PyTorch aligns to less than that on a CPU.
    workspace = torch.empty(bytes_.value + WORKSPACE_ALIGNMENT, dtype=torch.uint8, device=x.device)
    aligned = -(-workspace.data_ptr() // WORKSPACE_ALIGNMENT) * WORKSPACE_ALIGNMENT
    stream = torch.cuda.current_stream().cuda_stream if x.is_cuda else None
    call = Convolution(
        problem,
        *(None if t is None else t.data_ptr() for t in (x, w, b, output)),
        *(0 if t is None else t.numel() for t in (x, w, b, output)),
        bool(relu), aligned, bytes_.value,
    )
    _check(library.convladder_run(stage, call, stream))
    return output


def _refuse(what):
    raise NotImplementedError(f"convladder.conv2d has no {what}: use torch.nn.functional.conv2d")


class _Conv2d(torch.autograd.Function):
    """Makes what is asked for, and isn't there, an error, rather than a wrong result."""

    @staticmethod
    def forward(x, w, b, problem, stage, relu):
        if torch.jit.is_tracing():
            _refuse("jit.trace, which would keep this call's output as a constant")
        return _run(x, w, b, problem, stage, relu)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, gradient):
        _refuse("backward, to train")

    @staticmethod
    def jvp(ctx, *tangents):
        _refuse("jvp")

    @staticmethod
    def vmap(info, in_dims, *arguments):
        _refuse("vmap")


@torch.compiler.disable
def conv2d(x, w, b=None, stride=1, padding=0, dilation=1, groups=1, stage=None, relu=False):
    """conv(x, w) + b, then ReLU if asked: torch.nn.functional.conv2d, computed by `stage`.

    x: [N,C,H,W], w: [K,C/groups,R,S], b: [K] or None; float32, on one device: a GPU, or the CPU
    where the library is the simulator's. stride, padding, dilation: an integer, or (height, width);
    padding also 'valid', or 'same' where both sides get as much. What is not contiguous, or is a
    view with the negative bit, is copied first.
    Returns a new contiguous [N,K,P,Q] on PyTorch's current stream. Only stages that fuse it take
    relu=True. Where no stage is named, it is the ladder's last.

    ValueError and TypeError name the argument; RuntimeError gives CUDA's reason. There is no
    backward, jvp, vmap or jit.trace: NotImplementedError where one is asked for, a gradient in backward().
    """
    _check_tensors(x, w, b, groups)
    stage = stage_names()[-1] if stage is None else str(stage)
    stride, dilation = _pair("stride", stride), _pair("dilation", dilation)
    padding = _padding(padding, w.shape[2:], stride, dilation)
    problem = Problem(*x.shape, w.shape[0], *w.shape[2:], *stride, *padding, *dilation, groups)
    x, w, b = (None if t is None else t.resolve_neg().contiguous() for t in (x, w, b))
    with torch.cuda.device(x.device) if x.is_cuda else contextlib.nullcontext():
        return _Conv2d.apply(x, w, b, problem, stage.encode(), relu)


class Conv2d(torch.nn.Conv2d):
    """torch.nn.Conv2d (its arguments, weights and state_dict), computed by one of the stages.

    `stage` and `relu`: see conv2d(). ValueError where padding_mode is not 'zeros'.
    """

    def __init__(self, *args, stage=None, relu=False, **kwargs):
        super().__init__(*args, **kwargs)
        if self.padding_mode != "zeros":
            raise ValueError(f"padding_mode = {self.padding_mode!r}: must be 'zeros'")
        self.stage = stage_names()[-1] if stage is None else stage
        self.relu = relu

    @classmethod
    def from_torch(cls, conv, stage=None, relu=False):
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
