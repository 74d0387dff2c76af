"""Pooling with what only Python has: `return_indices`, and None for a size that stays.

Public in `nn.functional`; functions whose signature is the op's own are the ops themselves. Each
function here makes those of one, two and three dimensions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight import Tensor
from rushlight._table import ops

from ._arguments import _list_with_default

if TYPE_CHECKING:
    from collections.abc import Callable

    from rushlight.nn import _pool_types as types


def _set_name(name: str, function: Any, doc: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.__doc__ = doc
    return function


_MAX_POOL = """{sentence}

Args:
    input: {shape}, or without the batch.
    kernel_size: the size of a window, one number or one for each dimension.
    stride: the step from one window to the next; `kernel_size` if None.
    padding: how many elements below all numbers stand on either side.
    dilation: the distance between the elements of a window.
    ceil_mode: whether a last window that does not fit counts, too.
    return_indices: whether the places of the maxima come, too.

Example:
    >>> x = torch.zeros(1, 1{sizes})
    >>> torch.nn.functional.max_pool{n}d(x, 2, return_indices=True)[1].shape
    torch.Size([1, 1{halves}])
"""


# ---- maxima --------------------------------------------------------------------------------------


def _max_pool(n: int, shape: str) -> tuple[types.MaxPool, types.MaxPoolWithIndices]:
    """`max_poolNd` and `max_poolNd_with_indices`."""

    def make(places: bool, name: str, doc: str) -> Callable[..., Any]:
        def max_pool(
            input: Tensor,
            kernel_size: Any,
            stride: Any = None,
            padding: Any = 0,
            dilation: Any = 1,
            ceil_mode: bool = False,
            return_indices: bool = False,
        ) -> Any:
            stride = kernel_size if stride is None else stride
            function = both if places or return_indices else values
            return function(input, kernel_size, stride, padding, dilation, ceil_mode)

        return _set_name(name, max_pool, doc)

    def doc(sentence: str) -> str:
        sizes, halves = ", 4" * n, ", 2" * n
        return _MAX_POOL.format(sentence=sentence, shape=shape, sizes=sizes, halves=halves, n=n)

    name = f"max_pool{n}d"
    values, both = getattr(ops, name), getattr(ops, f"{name}_with_indices")
    return (
        make(False, name, doc("The largest value of each window; its index if asked.")),
        make(True, f"{name}_with_indices", doc("The largest value of each window and its index.")),
    )


max_pool1d, max_pool1d_with_indices = _max_pool(1, "(N, C, L)")
max_pool2d, max_pool2d_with_indices = _max_pool(2, "(N, C, H, W)")
max_pool3d, max_pool3d_with_indices = _max_pool(3, "(N, C, D, H, W)")


# ---- as many windows as wanted -------------------------------------------------------------------


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The means of as many windows as `output_size` says; None keeps a dimension's size.

    Args:
        input: the tensor to compute with.
        output_size: the spatial sizes of the result; None keeps the input's.

    Example:
        >>> torch.nn.functional.adaptive_avg_pool2d(torch.arange(16.0).view(1, 4, 4), 2)
        tensor([[[ 2.5000,  4.5000],
                 [10.5000, 12.5000]]])
    """
    return ops.adaptive_avg_pool2d(input, _list_with_default(output_size, input.size()))


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The means of as many windows as `output_size` says; None keeps a dimension's size.

    Args:
        input: the tensor to compute with.
        output_size: the spatial sizes of the result; None keeps the input's.

    Example:
        >>> torch.nn.functional.adaptive_avg_pool3d(torch.ones(1, 4, 4, 4), 2).shape
        torch.Size([1, 2, 2, 2])
    """
    return ops.adaptive_avg_pool3d(input, _list_with_default(output_size, input.size()))


def _adaptive_max_pool(
    n: int,
) -> tuple[types.AdaptiveMaxPool, types.AdaptiveMaxPoolWithIndices]:
    """`adaptive_max_poolNd` and `adaptive_max_poolNd_with_indices`."""

    def make(places: bool, name: str, doc: str) -> Callable[..., Any]:
        def adaptive_max_pool(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
            size = _list_with_default(output_size, input.size())
            values, indices = function(input, size)
            return (values, indices) if places or return_indices else values

        return _set_name(name, adaptive_max_pool, doc)

    name, what = f"adaptive_max_pool{n}d", "The largest values of as many windows as `output_size`"
    function = getattr(ops, name)
    sizes = ", 4" * n
    doc = f"""
Args:
    input: the tensor (N, C, ...) or (C, ...) with {n} spatial dimensions.
    output_size: the spatial sizes of the result, one number for all or one each; None keeps the
        input's.
    return_indices: whether places come, too: numbers within the spatial dimensions.

Example:
    >>> x = torch.ones(1, 1{sizes})
    >>> torch.nn.functional.{name}(x, 2).shape
    torch.Size([1, 1{", 2" * n}])
"""
    return (
        make(False, name, f"{what} says; their places if asked.\n{doc}"),
        make(True, f"{name}_with_indices", f"{what} says, and their places.\n{doc}"),
    )


adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _adaptive_max_pool(1)
adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _adaptive_max_pool(2)
adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _adaptive_max_pool(3)


# ---- undone maxima -----------------------------------------------------------------------------


def _max_unpool(n: int) -> types.MaxUnpool:
    def unpool(
        input: Tensor,
        indices: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        output_size: Any = None,
    ) -> Tensor:
        return ops._max_unpool(input, indices, n, kernel_size, stride, padding, output_size)

    doc = f"""The maxima of `max_pool{n}d` at their `indices`, zeros elsewhere.

Args:
    input: the maxima.
    indices: their places, from `max_pool{n}d` with return_indices=True.
    kernel_size: the size of the windows.
    stride: the step between windows; None: `kernel_size`.
    padding: what was added around the input of the pooling.
    output_size: the spatial sizes of the result; None: the least that fit.

Example:
    >>> x = torch.arange({2**n}.0).view(1, 1{", 2" * n})
    >>> values, places = torch.nn.functional.max_pool{n}d(x, 2, return_indices=True)
    >>> torch.nn.functional.max_unpool{n}d(values, places, 2).flatten()
    tensor([{", ".join(["0."] * (2**n - 1))}, {2**n - 1}.])
"""
    return _set_name(f"max_unpool{n}d", unpool, doc)


max_unpool1d, max_unpool2d, max_unpool3d = _max_unpool(1), _max_unpool(2), _max_unpool(3)


# ---- fractional --------------------------------------------------------------------------------


def _fractional_max_pool(
    n: int,
) -> tuple[types.FractionalMaxPool, types.FractionalMaxPoolWithIndices]:
    """`fractional_max_poolNd` and `fractional_max_poolNd_with_indices`."""

    def make(places: bool, name: str, doc: str) -> Callable[..., Any]:
        def fractional_max_pool(
            input: Tensor,
            kernel_size: Any,
            output_size: Any = None,
            output_ratio: Any = None,
            return_indices: bool = False,
            _random_samples: Tensor | None = None,
        ) -> Any:
            windows = (kernel_size, output_size, output_ratio, _random_samples)
            values, indices = ops._fractional_max_pool(input, n, *windows)
            return (values, indices) if places or return_indices else values

        return _set_name(name, fractional_max_pool, doc)

    name, what = f"fractional_max_pool{n}d", "The largest values of windows at random, nearly equal"
    doc = f"""
Args:
    input: the tensor (N, C, ...) or (C, ...) with {n} spatial dimensions.
    kernel_size: the size of the windows, one number for all or one each.
    output_size: the spatial sizes of the result.
    output_ratio: what they are relative to the input's, instead.
    return_indices: whether places come, too: numbers within the spatial dimensions.

Example:
    >>> x = torch.ones(1, 1{", 6" * n})
    >>> torch.nn.functional.{name}(x, 2, output_size=4).shape
    torch.Size([1, 1{", 4" * n}])
"""
    return (
        make(False, name, f"{what} distances; places if asked.\n{doc}"),
        make(True, f"{name}_with_indices", f"{what} distances, and their places.\n{doc}"),
    )


fractional_max_pool2d, fractional_max_pool2d_with_indices = _fractional_max_pool(2)
fractional_max_pool3d, fractional_max_pool3d_with_indices = _fractional_max_pool(3)
