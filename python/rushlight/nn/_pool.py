"""Pooling: maxima, means and norms of windows, windows at random places, and maxima put back.

Public in `nn.functional`; averages whose signature is the op's own are the ops themselves.
"""

import math

import rushlight
from rushlight._table import ops

from ._arguments import _list_with_default, _ntuple, _pair, _single, _triple

# ---- maxima --------------------------------------------------------------------------------------


def max_pool1d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """The largest value of each window and its index."""
    stride = kernel_size if stride is None else stride
    return ops.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool1d(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """The largest value of each window of (N, C, L)."""
    stride = kernel_size if stride is None else stride
    function = ops.max_pool1d_with_indices if return_indices else ops.max_pool1d
    return function(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """The largest value of each window and its index."""
    stride = kernel_size if stride is None else stride
    return ops.max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """The largest value of each window of (N, C, H, W)."""
    stride = kernel_size if stride is None else stride
    function = ops.max_pool2d_with_indices if return_indices else ops.max_pool2d
    return function(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """The largest value of each window and its index."""
    stride = kernel_size if stride is None else stride
    return ops.max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """The largest value of each window of (N, C, D, H, W)."""
    stride = kernel_size if stride is None else stride
    function = ops.max_pool3d_with_indices if return_indices else ops.max_pool3d
    return function(input, kernel_size, stride, padding, dilation, ceil_mode)


# ---- as many windows as wanted -------------------------------------------------------------------


def adaptive_avg_pool2d(input, output_size):
    """The means of as many windows as `output_size` says; None keeps a dimension's size."""
    return ops.adaptive_avg_pool2d(input, _list_with_default(output_size, input.size()))


def adaptive_avg_pool3d(input, output_size):
    """The means of as many windows as `output_size` says; None keeps a dimension's size."""
    return ops.adaptive_avg_pool3d(input, _list_with_default(output_size, input.size()))


def adaptive_max_pool1d(input, output_size, return_indices=False):
    """The largest values of `output_size` windows."""
    values, indices = ops.adaptive_max_pool1d(input, output_size)
    return (values, indices) if return_indices else values


def adaptive_max_pool2d(input, output_size, return_indices=False):
    """The largest values of as many windows as `output_size` says."""
    size = _list_with_default(output_size, input.size())
    values, indices = ops.adaptive_max_pool2d(input, size)
    return (values, indices) if return_indices else values


def adaptive_max_pool3d(input, output_size, return_indices=False):
    """The largest values of as many windows as `output_size` says."""
    size = _list_with_default(output_size, input.size())
    values, indices = ops.adaptive_max_pool3d(input, size)
    return (values, indices) if return_indices else values


def adaptive_max_pool1d_with_indices(input, output_size, return_indices=False):
    """The largest values of `output_size` windows and their places."""
    return ops.adaptive_max_pool1d(input, _single(output_size))


def adaptive_max_pool2d_with_indices(input, output_size, return_indices=False):
    """The largest values of as many windows as `output_size` says, and their places."""
    return ops.adaptive_max_pool2d(input, output_size)


def adaptive_max_pool3d_with_indices(input, output_size, return_indices=False):
    """The largest values of as many windows as `output_size` says, and their places."""
    return ops.adaptive_max_pool3d(input, output_size)


# ---- norms ---------------------------------------------------------------------------------------


def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of each window of (N, C, L)."""
    mean = ops.avg_pool1d(input.pow(norm_type), kernel_size, stride or (), 0, ceil_mode)
    return _lp_finish(mean, kernel_size, norm_type)


def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of each window of (N, C, H, W)."""
    mean = ops.avg_pool2d(input.pow(norm_type), kernel_size, stride or (), 0, ceil_mode)
    return _lp_finish(mean, math.prod(_pair(kernel_size)), norm_type)


def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of each window of (N, C, D, H, W)."""
    mean = ops.avg_pool3d(input.pow(norm_type), kernel_size, stride or (), 0, ceil_mode)
    return _lp_finish(mean, math.prod(_triple(kernel_size)), norm_type)


def _lp_finish(mean, count, norm_type):
    return (mean.sign() * ops.relu(mean.abs()) * count).pow(1.0 / norm_type)


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


def _fractional_functions(dims):
    """The functions of so many dimensions: the values, and with their places."""

    def with_indices(
        input,
        kernel_size,
        output_size=None,
        output_ratio=None,
        return_indices=False,
        _random_samples=None,
    ):
        """The largest values of windows at random, nearly equal distances, and their places."""
        return _fractional(dims, input, kernel_size, output_size, output_ratio, _random_samples)

    def values(
        input,
        kernel_size,
        output_size=None,
        output_ratio=None,
        return_indices=False,
        _random_samples=None,
    ):
        """The largest values of windows at random, nearly equal distances; places if asked."""
        made = _fractional(dims, input, kernel_size, output_size, output_ratio, _random_samples)
        return made if return_indices else made[0]

    values.__name__ = values.__qualname__ = f"fractional_max_pool{dims}d"
    with_indices.__name__ = with_indices.__qualname__ = f"{values.__name__}_with_indices"
    return values, with_indices


fractional_max_pool2d, fractional_max_pool2d_with_indices = _fractional_functions(2)
fractional_max_pool3d, fractional_max_pool3d_with_indices = _fractional_functions(3)
