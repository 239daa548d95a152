"""A problem's extents, of the text that the other commands write, or of a row of a list of problems."""
import collections
import re

Shape = collections.namedtuple(
    "Shape", "N C H W K R S stride_h stride_w pad_h pad_w dil_h dil_w groups P Q")
PATTERN = re.compile(r"n(\d+) c(\d+) (\d+)x(\d+) k(\d+) (\d+)x(\d+) "
                     r"stride (\d+)x(\d+) pad (\d+)x(\d+) dil (\d+)x(\d+)(?: groups (\d+))?")


def parse(text):
    """The Shape of "n256 c3 224x224 k96 11x11 stride 4x4 pad 2x2 dil 1x1", or of the same with
    " groups 2" behind it; P, Q: the output's extents. Raises ValueError where it isn't one."""
    match = PATTERN.fullmatch(str(text))
    if not match:
        raise ValueError(f"'{text}' is no shape")
    return _of(*map(int, match.groups(default="1")))


def of_row(row):
    """The Shape of a row of a CSV, whose columns have its members' names in lower case: what is absent or
    empty is 1, a pad 0."""
    values = ((row.get(name.lower()), name.startswith("pad")) for name in Shape._fields[:-2])
    return _of(*(int(not is_pad if value in (None, "") else value) for value, is_pad in values))


def _of(N, C, H, W, K, R, S, *steps):
    *steps, groups = steps
    P, Q = (output_extent(*axis) for axis in ((H, R, *steps[0::2]), (W, S, *steps[1::2])))
    return Shape(N, C, H, W, K, R, S, *steps, groups, P, Q)


def extents(shape):
    """The extents of each tensor, by its name."""
    return {"input": [shape.N, shape.C, shape.H, shape.W],
            "filters": [shape.K, shape.C // shape.groups, shape.R, shape.S], "bias": [shape.K],
            "output": [shape.N, shape.K, shape.P, shape.Q]}


def output_extent(extent, filter_extent, stride, pad, dilation):
    return (extent + 2 * pad - dilation * (filter_extent - 1) - 1) // stride + 1
