"""A problem's extents, read from the text that the other commands write, and its least traffic."""
import re

PATTERN = re.compile(r"n(\d+) c(\d+) (\d+)x(\d+) k(\d+) (\d+)x(\d+) "
                     r"stride (\d+)x(\d+) pad (\d+)x(\d+) dil (\d+)x(\d+)(?: groups (\d+))?")
FLOAT_BYTES = 4


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
    filters, bias and output, once each. `text` is a shape as in "n256 c3 224x224 k96 11x11
    stride 4x4 pad 2x2 dil 1x1", or the same with " groups 2" behind it. Raises ValueError where it
    isn't one."""
    match = PATTERN.fullmatch(text)
    if not match:
        raise ValueError(f"'{text}' is no shape")
    N, C, H, W, K, R, S, *rest = map(int, match.groups(default="1"))
    stride_h, stride_w, pad_h, pad_w, dil_h, dil_w, groups = rest
    rows, columns = (H, R, stride_h, pad_h, dil_h), (W, S, stride_w, pad_w, dil_w)
    values = (N * C * elements_met(*rows) * elements_met(*columns) + K * (C // groups) * R * S +
              N * K * output_extent(*rows) * output_extent(*columns) + (K if bias else 0))
    return FLOAT_BYTES * values
