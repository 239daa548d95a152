"""The judge: a direct convolution in float64, of outputs at given positions."""

import torch

SAMPLES = 8192  # outputs that error_ratio() looks at
PATCH_ELEMENTS = 1 << 24  # of the inputs under the outputs that are computed at a time


def sample_outputs(size, count, seed):
    """About `count` positions [count + 16, 4] of (n, k, p, q) in an output of `size`, on the CPU.

    First the corners, of the first and last image in the first and last channel; of the rest, a
    quarter each in the first or last row, and in the first or last column.
    """
    random = torch.Generator().manual_seed(seed)

    def draw(extents):
        return torch.stack([torch.randint(e, (count,), generator=random) for e in extents], dim=1)

    last = torch.tensor(size) - 1
    corners = torch.cartesian_prod(*([torch.tensor([0, 1])] * 4)) * last
    drawn, ends = draw(size), draw([2] * 4) * last
    quarter = count // 4
    drawn[:quarter, 2] = ends[:quarter, 2]
    drawn[quarter : 2 * quarter, 3] = ends[quarter : 2 * quarter, 3]
    return torch.cat([corners, drawn])


def reference(x, w, b, stride, padding, dilation, groups, positions):
    """The outputs at `positions` [I,4] and A = sum |x*w| + |b| of each: two tensors [I], float64.

    x: [N,C,H,W], w: [K,C/groups,R,S], b: [K] or None, in any memory format, none of them copied as
    a whole; stride, padding, dilation: (height, width). All on one device, and so is the result.
    """
    values, magnitudes = [], []
    channels = torch.arange(w.shape[1], device=x.device)  # of the first group
    for some in positions.split(max(1, PATCH_ELEMENTS // w[0].numel())):
        n, k, p, q = some.unbind(1)
        rows, row_inside = _taps(p, w.shape[2], stride[0], padding[0], dilation[0], x.shape[2])
        cols, col_inside = _taps(q, w.shape[3], stride[1], padding[1], dilation[1], x.shape[3])
        seen = (k * groups // w.shape[0] * w.shape[1])[:, None] + channels  # by filter k
        image, row, col = n[:, None, None, None], rows[:, :, None, None], cols[:, None, :, None]
        inputs = x[image, seen[:, None, None], row, col].double()  # [I,R,S,C/groups]
        inside = (row_inside[:, :, None] & col_inside[:, None, :])[..., None]
        inputs = inputs.where(inside, torch.zeros_like(inputs))
        products = inputs * w[k].double().permute(0, 2, 3, 1)
        bias = products.new_zeros(len(some)) if b is None else b[k].double()
        values.append(products.sum((1, 2, 3)) + bias)
        magnitudes.append(products.abs().sum((1, 2, 3)) + bias.abs())
    return torch.cat(values), torch.cat(magnitudes)


def _taps(out, taps, stride, padding, dilation, extent):
    """The input rows (or columns) under each of `out`, and whether they lie inside the image."""
    at = (out * stride - padding)[:, None] + torch.arange(taps, device=out.device) * dilation
    return at.clamp(0, extent - 1), (at >= 0) & (at < extent)


def max_error_ratio(output, value, magnitude, positions):
    """The largest |error| / (factor * 2^-24 * A); up to 1 passes. A NaN in `output` is infinite.

    The factor is 8, but 16 from 2^24 outputs on: the same rule as error_factor() in
    common/check/compare.h.
    """
    if output.isnan().any():
        return float("inf")
    factor = 16 if output.numel() >= 2**24 else 8
    got = output[positions.unbind(1)].double()
    ratio = (got - value).abs() / (factor * 2.0**-24 * magnitude)
    ratio = ratio.where(got != value, torch.zeros_like(ratio))  # also where A is 0
    return ratio.nan_to_num(nan=float("inf")).max().item()


@torch.no_grad()
def error_ratio(output, layer, x):
    """max_error_ratio() of sampled outputs of an nn.Conv2d, computed from x by whatever it was."""
    positions = sample_outputs(output.shape, SAMPLES, seed=1).to(x.device)
    value, magnitude = reference(x, layer.weight, layer.bias, layer.stride, layer.padding,
                                 layer.dilation, layer.groups, positions)
    return max_error_ratio(output, value, magnitude, positions)
