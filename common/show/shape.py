"""A problem's extents, read from the text that the other commands write, and its least traffic."""
import collections
import math
import re

Shape = collections.namedtuple(
    "Shape", "N C H W K R S stride_h stride_w pad_h pad_w dil_h dil_w groups P Q rows columns")
PATTERN = re.compile(r"n(\d+) c(\d+) (\d+)x(\d+) k(\d+) (\d+)x(\d+) "
                     r"stride (\d+)x(\d+) pad (\d+)x(\d+) dil (\d+)x(\d+)(?: groups (\d+))?")
FLOAT_BYTES = 4


def parse(text):
    """The Shape of "n256 c3 224x224 k96 11x11 stride 4x4 pad 2x2 dil 1x1", or of the same with
    " groups 2" behind it; P, Q: the output's extents. Raises ValueError where it isn't one."""
    match = PATTERN.fullmatch(str(text))
    if not match:
        raise ValueError(f"'{text}' is no shape")
    N, C, H, W, K, R, S, *steps, groups = map(int, match.groups(default="1"))
    rows, columns = (H, R, *steps[0::2]), (W, S, *steps[1::2])
    return Shape(N, C, H, W, K, R, S, *steps, groups, output_extent(*rows), output_extent(*columns),
                 rows, columns)


def extents(shape):
    """Of the tensors, by name."""
    return {"input": [shape.N, shape.C, shape.H, shape.W],
            "filters": [shape.K, shape.C // shape.groups, shape.R, shape.S], "bias": [shape.K],
            "output": [shape.N, shape.K, shape.P, shape.Q]}


def output_extent(extent, filter_extent, stride, pad, dilation):
    return (extent + 2 * pad - dilation * (filter_extent - 1) - 1) // stride + 1


def elements_met(extent, filter_extent, stride, pad, dilation):
    """Along one axis: how many elements of the input lie under any tap of the filter."""
    met = set()
    for output in range(output_extent(extent, filter_extent, stride, pad, dilation)):
        first = output * stride - pad
        met.update(range(first, first + filter_extent * dilation, dilation))
    return sum(0 <= i < extent for i in met)


def least_bytes(text, bias):
    """Bytes that the convolution must move at the least: the elements of the input under any tap,
    filters, bias and output, once each. Raises ValueError where `text` is no shape."""
    shape = parse(text)
    met = shape.N * shape.C * elements_met(*shape.rows) * elements_met(*shape.columns)
    others = [math.prod(own) for name, own in extents(shape).items() if name != "input"]
    return FLOAT_BYTES * (met + sum(others) - (0 if bias else shape.K))
