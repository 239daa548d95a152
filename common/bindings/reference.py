"""A convolution in float64, and how far float32 may be from it."""

import torch

ENDS = [0, -1]  # the images that error_ratio() looks at


def reference(x, w, b, stride, padding, dilation, groups):
    """conv(x, w) + b and A = conv(|x|, |w|) + |b| in float64, as torch.nn.functional.conv2d has them.

    On a GPU as matrix products, since cuDNN is among what is checked by it.
    """

    def conv(change):
        tensors = (None if tensor is None else change(tensor.double()) for tensor in (x, w, b))
        with torch.backends.cudnn.flags(enabled=False):
            return torch.nn.functional.conv2d(*tensors, stride, padding, dilation, groups)

    return conv(torch.positive), conv(torch.abs)


def max_error_ratio(output, value, magnitude, bound):
    """The largest |error| / (bound * A): up to 1 is right. A NaN in `output` is infinite."""
    error = (output.double() - value).abs()
    ratio = error.where(error == 0, error / (bound * magnitude))  # also where A is 0
    return ratio.nan_to_num(nan=float("inf"), posinf=float("inf")).max().item()


@torch.no_grad()
def error_ratio(output, layer, x):
    """max_error_ratio() of the first and the last image that an nn.Conv2d makes of x.

    The bound is 8 * 2^-24, but 16 from 2^24 outputs on: error_factor() of common/check/compare.h.
    """
    if output.isnan().any():
        return float("inf")
    bound = (16 if output.numel() >= 2**24 else 8) * 2.0**-24
    expected = reference(x[ENDS], layer.weight, layer.bias, layer.stride, layer.padding,
                         layer.dilation, layer.groups)
    return max_error_ratio(output[ENDS], *expected, bound)
