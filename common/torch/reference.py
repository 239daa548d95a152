"""The judge of the examples and tests: a direct convolution in float64, of some outputs or all."""

import torch


def sample_outputs(size, count, seed):
    """About `count` flat indices into an output of `size` (N, K, P, Q), on the CPU.

    The corners of the first and last image in the first and last channel; of the rest, a quarter
    each in the first or last row, and in the first or last column.
    """
    random = torch.Generator().manual_seed(seed)
    drawn = [torch.randint(extent, (count,), generator=random) for extent in size]
    ends = [torch.randint(2, (count,), generator=random) * (extent - 1) for extent in size]
    corners = torch.cartesian_prod(*(torch.tensor([0, extent - 1]) for extent in size)).T
    quarter = torch.arange(count) * 4 // count
    p = torch.where(quarter == 0, ends[2], drawn[2])
    q = torch.where(quarter == 1, ends[3], drawn[3])
    n, k, p, q = (torch.cat(pair) for pair in zip(corners, (drawn[0], drawn[1], p, q)))
    return torch.unique(((n * size[1] + k) * size[2] + p) * size[3] + q)


def reference(x, w, b, stride, padding, dilation, size, index):
    """The outputs at `index` (flat, into `size`), and A = sum |x*w| + |b| of each; on x's device.

    stride, padding, dilation: (height, width).
    """
    n, k, p, q = torch.unravel_index(index.to(x.device), size)
    rows, row_inside = _taps(p, w.shape[2], stride[0], padding[0], dilation[0], x.shape[2])
    cols, col_inside = _taps(q, w.shape[3], stride[1], padding[1], dilation[1], x.shape[3])
    inputs = x[n[:, None, None], :, rows[:, :, None], cols[:, None, :]].double()  # [index,R,S,C]
    inside = row_inside[:, :, None] & col_inside[:, None, :]
    inputs = inputs.where(inside[..., None], torch.zeros_like(inputs))
    products = inputs * w[k].double().permute(0, 2, 3, 1)
    bias = torch.zeros_like(products[:, 0, 0, 0]) if b is None else b[k].double()
    return products.sum((1, 2, 3)) + bias, products.abs().sum((1, 2, 3)) + bias.abs()


def _taps(out, taps, stride, padding, dilation, extent):
    """The input rows (or columns) under each of `out`, and whether they lie inside the image."""
    at = (out * stride - padding)[:, None] + torch.arange(taps, device=out.device) * dilation
    return at.clamp(0, extent - 1), (at >= 0) & (at < extent)


def max_error_ratio(output, expected, magnitude, index):
    """The largest |error| / (factor * 2^-24 * A); up to 1 passes, and NaN anywhere is infinite.

    The factor is 8, but 16 from 2^24 outputs on: the same rule as error_factor() in
    common/check/compare.h.
    """
    if output.isnan().any():
        return float("inf")
    factor = 16 if output.numel() >= 2**24 else 8
    got = output.flatten()[index.to(output.device)].double()
    ratio = (got - expected).abs() / (factor * 2.0**-24 * magnitude)
    ratio = torch.where(got == expected, 0, ratio)  # also where A is 0
    return ratio.nan_to_num(nan=float("inf")).max().item()
