"""Pooling that is written over other ops: undone, fractional, and by norm in three dimensions.

Public in `nn.functional`.
"""

import math

import rushlight
from rushlight._table import ops

from .modules.utils import _ntuple, _single, _triple

# ---- undone maxima -----------------------------------------------------------------------------


def _unpooled_size(input, kernel_size, stride, padding, output_size):
    """The image's size before pooling; ValueError for one that cannot be."""
    dims = len(kernel_size)
    default = [
        (n - 1) * s - 2 * p + k
        for n, k, s, p in zip(input.shape[-dims:], kernel_size, stride, padding, strict=True)
    ]
    if output_size is None:
        return default
    size = [int(n) for n in output_size]
    if len(size) == dims + 2:
        size = size[2:]
    if len(size) != dims:
        raise ValueError(
            "output_size should be a sequence containing "
            f"{dims} or {dims + 2} elements, but it has a length of '{len(size)}'"
        )
    for d in range(dims):
        low, high = default[d] - stride[d], default[d] + stride[d]
        if not low < size[d] < high:
            raise ValueError(
                f"invalid output_size '{size}' (dim {d} must be between {low} and {high})"
            )
    return size


def _max_unpool(dims, input, indices, kernel_size, stride, padding, output_size):
    listed = _ntuple(dims)
    kernel_size, padding = listed(kernel_size), listed(padding)
    stride = kernel_size if stride is None else listed(stride)
    if indices.dtype != rushlight.int64:
        raise RuntimeError(f"elements in indices should be type int64 but got: {indices.dtype}")
    if input.shape != indices.shape:
        raise RuntimeError(
            "Expected shape of indices to be same as that of the input tensor "
            f"({list(input.shape)}) but got indices tensor with shape: {list(indices.shape)}"
        )
    if input.dim() not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"Input to max_unpooling{dims}d should be a {dims + 1}d or {dims + 2}d Tensor, but got "
            f"a tensor with {input.dim()} dims."
        )
    size = _unpooled_size(input, kernel_size, stride, padding, output_size)
    planes = input.shape[:-dims]
    area = math.prod(size)
    if indices.numel() and not indices.is_meta:
        least, most = indices.min().item(), indices.max().item()
        if least < 0 or most >= area:
            raise RuntimeError(
                f"Found an invalid max index: {most if most >= area else least} "
                f"(output volumes are of size {'x'.join(map(str, size))})"
            )
    flat = input.new_zeros((*planes, area))
    filled = flat.scatter(-1, indices.flatten(-dims), input.flatten(-dims))
    return filled.reshape(*planes, *size)


def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """The maxima of `max_pool1d` at their `indices`, zeros elsewhere."""
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """The maxima of `max_pool2d` at their `indices`, zeros elsewhere."""
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """The maxima of `max_pool3d` at their `indices`, zeros elsewhere."""
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)


# ---- fractional --------------------------------------------------------------------------------


def _starts(samples, length, count, window):
    """(N, C, count): where the windows of one dimension begin."""
    if count == 1:
        return rushlight.full((*samples.shape, 1), length - window, dtype=rushlight.int64)
    step = (length - window) / (count - 1)
    place = rushlight.arange(count, dtype=samples.dtype)
    starts = ((place + samples.unsqueeze(-1)) * step).long()
    starts = starts - (samples.unsqueeze(-1) * step).long()
    return rushlight.cat(
        [starts[..., :-1], starts.new_full((*samples.shape, 1), length - window)], -1
    )


def _fractional(dims, input, kernel_size, output_size, output_ratio, samples):
    name = f"fractional_max_pool{dims}d"
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    listed = _ntuple(dims)
    window = listed(kernel_size)
    if input.dim() not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"{name}: Expected {dims + 1}D or {dims + 2}D tensor, but got {input.shape}"
        )
    batched = input.dim() == dims + 2
    x = input if batched else input.unsqueeze(0)
    image = x.shape[2:]
    if output_size is None:
        size = [int(n * r) for n, r in zip(image, listed(output_ratio), strict=True)]
    else:
        size = [int(n) for n in listed(output_size)]
    for n, k, out in zip(image, window, size, strict=True):
        if out < 1 or k < 1 or out + k - 1 > n:
            raise RuntimeError(
                f"{name}: pool size {k} and output size {out} are too large for an input size {n}"
            )
    batch, channels = x.shape[:2]
    if samples is None:
        samples = rushlight.rand(batch, channels, dims, dtype=input.dtype, device=input.device)
    elif tuple(samples.shape) != (batch, channels, dims):
        raise RuntimeError(
            f"{name}: expected _random_samples of shape {(batch, channels, dims)}, got "
            f"{tuple(samples.shape)}"
        )
    # The first sample is the width's in two dimensions, the depth's in three.
    order = (1, 0) if dims == 2 else (0, 1, 2)
    flat = rushlight.zeros((), dtype=rushlight.int64)
    for d in range(dims):
        starts = _starts(samples[..., order[d]], image[d], size[d], window[d])
        places = starts.unsqueeze(-1) + rushlight.arange(window[d])
        shape = [batch, channels, *([1] * (2 * dims))]
        shape[2 + d], shape[2 + dims + d] = size[d], window[d]
        flat = flat * image[d] + places.reshape(shape)
    flat = flat.flatten(2 + dims)
    values = x.flatten(2).gather(2, flat.flatten(2)).reshape(flat.shape)
    values, chosen = values.max(-1)
    indices = flat.gather(-1, chosen.unsqueeze(-1)).squeeze(-1)
    return (values, indices) if batched else (values.squeeze(0), indices.squeeze(0))


def fractional_max_pool2d_with_indices(
    input,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices=False,
    _random_samples=None,
):
    """The largest values of windows at random, nearly equal distances, and their places."""
    return _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d_with_indices(
    input,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices=False,
    _random_samples=None,
):
    """The largest values of windows at random, nearly equal distances, and their places."""
    return _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool2d(
    input,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices=False,
    _random_samples=None,
):
    """`fractional_max_pool2d_with_indices`, with the places only if asked."""
    made = _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return made if return_indices else made[0]


def fractional_max_pool3d(
    input,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices=False,
    _random_samples=None,
):
    """`fractional_max_pool3d_with_indices`, with the places only if asked."""
    made = _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return made if return_indices else made[0]


# ---- norms and names ---------------------------------------------------------------------------


def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of each window of (N, C, D, H, W)."""
    mean = ops.avg_pool3d(input.pow(norm_type), kernel_size, stride or (), 0, ceil_mode)
    count = math.prod(_triple(kernel_size))
    return (mean.sign() * ops.relu(mean.abs()) * count).pow(1.0 / norm_type)


def adaptive_max_pool1d_with_indices(input, output_size, return_indices=False):
    """The largest values of `output_size` windows and their places."""
    return ops.adaptive_max_pool1d(input, _single(output_size))


def adaptive_max_pool2d_with_indices(input, output_size, return_indices=False):
    """The largest values of as many windows as `output_size` says, and their places."""
    return ops.adaptive_max_pool2d(input, output_size)


def adaptive_max_pool3d_with_indices(input, output_size, return_indices=False):
    """The largest values of as many windows as `output_size` says, and their places."""
    return ops.adaptive_max_pool3d(input, output_size)
