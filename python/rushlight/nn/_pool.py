"""Pooling with what only Python has: `return_indices`, and None for a size that stays.

Public in `nn.functional`; functions whose signature is the op's own are the ops themselves.
"""

from typing import Any

from rushlight import Tensor
from rushlight._table import ops

from ._arguments import _list_with_default

# ---- maxima --------------------------------------------------------------------------------------


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest value of each window and its index."""
    stride = kernel_size if stride is None else stride
    return ops.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest value of each window of (N, C, L)."""
    stride = kernel_size if stride is None else stride
    function = ops.max_pool1d_with_indices if return_indices else ops.max_pool1d
    return function(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest value of each window and its index."""
    stride = kernel_size if stride is None else stride
    return ops.max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest value of each window of (N, C, H, W)."""
    stride = kernel_size if stride is None else stride
    function = ops.max_pool2d_with_indices if return_indices else ops.max_pool2d
    return function(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest value of each window and its index."""
    stride = kernel_size if stride is None else stride
    return ops.max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
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


def adaptive_max_pool1d(input, output_size, return_indices: bool = False) -> Any:
    """The largest values of `output_size` windows."""
    values, indices = ops.adaptive_max_pool1d(input, output_size)
    return (values, indices) if return_indices else values


def adaptive_max_pool2d(input, output_size, return_indices: bool = False) -> Any:
    """The largest values of as many windows as `output_size` says."""
    size = _list_with_default(output_size, input.size())
    values, indices = ops.adaptive_max_pool2d(input, size)
    return (values, indices) if return_indices else values


def adaptive_max_pool3d(input, output_size, return_indices: bool = False) -> Any:
    """The largest values of as many windows as `output_size` says."""
    size = _list_with_default(output_size, input.size())
    values, indices = ops.adaptive_max_pool3d(input, size)
    return (values, indices) if return_indices else values


def adaptive_max_pool1d_with_indices(input, output_size, return_indices: bool = False) -> Any:
    """The largest values of `output_size` windows and their places."""
    return ops.adaptive_max_pool1d(input, output_size)


def adaptive_max_pool2d_with_indices(input, output_size, return_indices: bool = False) -> Any:
    """The largest values of as many windows as `output_size` says, and their places."""
    return ops.adaptive_max_pool2d(input, output_size)


def adaptive_max_pool3d_with_indices(input, output_size, return_indices: bool = False) -> Any:
    """The largest values of as many windows as `output_size` says, and their places."""
    return ops.adaptive_max_pool3d(input, output_size)


# ---- undone maxima -----------------------------------------------------------------------------


def max_unpool1d(input, indices, kernel_size, stride=None, padding: Any = 0, output_size=None):
    """The maxima of `max_pool1d` at their `indices`, zeros elsewhere."""
    return ops._max_unpool(input, indices, 1, kernel_size, stride, padding, output_size)


def max_unpool2d(input, indices, kernel_size, stride=None, padding: Any = 0, output_size=None):
    """The maxima of `max_pool2d` at their `indices`, zeros elsewhere."""
    return ops._max_unpool(input, indices, 2, kernel_size, stride, padding, output_size)


def max_unpool3d(input, indices, kernel_size, stride=None, padding: Any = 0, output_size=None):
    """The maxima of `max_pool3d` at their `indices`, zeros elsewhere."""
    return ops._max_unpool(input, indices, 3, kernel_size, stride, padding, output_size)


# ---- fractional --------------------------------------------------------------------------------


def fractional_max_pool2d_with_indices(
    input,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices=False,
    _random_samples=None,
):
    """The largest values of windows at random, nearly equal distances, and their places."""
    return ops._fractional_max_pool(
        input, 2, kernel_size, output_size, output_ratio, _random_samples
    )


def fractional_max_pool2d(
    input,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices=False,
    _random_samples=None,
):
    """The largest values of windows at random, nearly equal distances; places if asked."""
    made = ops._fractional_max_pool(
        input, 2, kernel_size, output_size, output_ratio, _random_samples
    )
    return made if return_indices else made[0]


def fractional_max_pool3d_with_indices(
    input,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices=False,
    _random_samples=None,
):
    """The largest values of windows at random, nearly equal distances, and their places."""
    return ops._fractional_max_pool(
        input, 3, kernel_size, output_size, output_ratio, _random_samples
    )


def fractional_max_pool3d(
    input,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices=False,
    _random_samples=None,
):
    """The largest values of windows at random, nearly equal distances; places if asked."""
    made = ops._fractional_max_pool(
        input, 3, kernel_size, output_size, output_ratio, _random_samples
    )
    return made if return_indices else made[0]
