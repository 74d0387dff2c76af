"""Lowerings of pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight.onnx._builder import Builder, Unsupported, Value
from rushlight.onnx._registry import lowers
from rushlight.onnx.conv import batched

__all__: list[str] = []  # lowerings are found by the names of their ops


def _ends(
    x: Value,
    out: Sequence[Any],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> list[int] | None:
    """How many elements windows need behind the input; None if sizes are not constant."""
    dims = len(kernel)
    sizes, found = x.sizes[-dims:], list(out)[-dims:]
    if not all(isinstance(s, int) for s in [*sizes, *found]):
        return None
    return [
        max(p, (o - 1) * s + d * (k - 1) + 1 - n - p)
        for n, o, k, s, p, d in zip(sizes, found, kernel, stride, padding, dilation, strict=True)
    ]


def _max_pool(
    g: Builder,
    self: Value,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    outputs: int,
) -> Any:
    dims = len(kernel)
    stride = list(stride) or list(kernel)
    x, alone = batched(g, self, dims)
    ends = _ends(self, g.result.shape, kernel, stride, padding, dilation) if ceil_mode else padding
    out = g.MaxPool(
        x,
        kernel_shape=list(kernel),
        strides=stride,
        pads=[*padding, *(padding if ends is None else ends)],
        dilations=list(dilation),
        ceil_mode=int(ends is None),
        outputs=outputs,
        dtype=[self.dtype, rushlight.int64] if outputs == 2 else None,
    )
    if outputs == 1:
        return g.squeeze(out, 0) if alone else out
    values, places = out
    # ONNX counts through the whole tensor, PyTorch within a channel.
    places = g.Mod(places, g.int64(g.product(self.sizes[-dims:])))
    return (g.squeeze(values, 0), g.squeeze(places, 0)) if alone else (values, places)


@lowers(*(f"aten.max_pool{n}d.default" for n in (1, 2, 3)))
def max_pool(g: Builder, self: Value, *how: Any) -> Value:
    return _max_pool(g, self, *how, outputs=1)


@lowers("aten.max_pool1d_with_indices.default")
@lowers("aten.max_pool2d_with_indices.default", "aten.max_pool3d_with_indices.default")
def max_pool_with_indices(g: Builder, self: Value, *how: Any) -> tuple[Value, Value]:
    return _max_pool(g, self, *how, outputs=2)


@lowers(*(f"aten.avg_pool{n}d.default" for n in (1, 2, 3)))
def avg_pool(
    g: Builder,
    self: Value,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None = None,
) -> Value:
    dims = len(kernel)
    stride = list(stride) or list(kernel)
    x, alone = batched(g, self, dims)
    ones = [1] * dims
    ends = _ends(self, g.result.shape, kernel, stride, padding, ones) if ceil_mode else padding
    more = ends is not None and list(ends) != list(padding)
    by_hand = divisor_override is not None or more
    out = g.AveragePool(
        x,
        kernel_shape=list(kernel),
        strides=stride,
        pads=[*padding, *(padding if ends is None else ends)],
        ceil_mode=int(ends is None),
        count_include_pad=int(count_include_pad or by_hand),
    )
    if by_hand:
        total = g.Mul(out, float(math.prod(kernel)))
        if divisor_override is not None:
            out = g.Div(total, float(divisor_override))
        else:
            counts = _counts(self, g.result.shape, kernel, stride, padding, count_include_pad)
            out = g.Div(total, g.constant(counts.to(self.dtype)))
    return g.squeeze(out, 0) if alone else out


def _counts(
    x: Value,
    out: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    with_padding: bool,
) -> rushlight.Tensor:
    """How many elements each window has; what is beyond the padding never counts."""
    dims = len(kernel)
    counts = rushlight.ones(())
    for d in range(dims):
        n, p = x.sizes[d - dims], padding[d]
        low, high = (-p, n + p) if with_padding else (0, n)
        begins = [i * stride[d] - p for i in range(out[d - dims])]
        line = [min(b + kernel[d], high) - max(b, low) for b in begins]
        counts = counts.unsqueeze(-1) * rushlight.tensor(line)
    return counts


# ---- adaptive ----


def _edges(n: int, out: int) -> list[tuple[int, int]]:
    """Where the windows of adaptive pooling begin and end."""
    return [(i * n // out, -(-(i + 1) * n // out)) for i in range(out)]


def _known_sizes(x: Value, dims: int) -> list[int]:
    sizes = list(x.sizes[-dims:])
    if not all(isinstance(s, int) for s in sizes):
        raise Unsupported("adaptive pooling of an input of which the size is not constant")
    return sizes


@lowers(*(f"aten.adaptive_avg_pool{n}d.default" for n in (1, 2, 3)))
def adaptive_avg_pool(g: Builder, self: Value, output_size: Sequence[int]) -> Value:
    dims = len(output_size)
    x, alone = batched(g, self, dims)
    if all(isinstance(s, int) and s == 1 for s in output_size):
        out = g.GlobalAveragePool(x)
        return g.squeeze(out, 0) if alone else out
    sizes = _known_sizes(self, dims)
    if all(n % o == 0 for n, o in zip(sizes, output_size, strict=True)):
        window = [n // o for n, o in zip(sizes, output_size, strict=True)]
        out = g.AveragePool(x, kernel_shape=window, strides=window) if max(window) > 1 else x
        return g.squeeze(out, 0) if alone else out
    # A matrix of shares for each dimension.
    out = self
    for d, (n, o) in enumerate(zip(sizes, output_size, strict=True)):
        shares = rushlight.zeros(n, o, dtype=self.dtype)
        for i, (begin, end) in enumerate(_edges(n, o)):
            shares[begin:end, i] = 1 / (end - begin)
        last = g.swap(out, d - dims, -1)
        product = g.MatMul(last, g.constant(shares))
        product.shape = (*last.sizes[:-1], o)
        out = g.swap(product, d - dims, -1)
    return out


@lowers(*(f"aten.adaptive_max_pool{n}d.default" for n in (1, 2, 3)))
def adaptive_max_pool(g: Builder, self: Value, output_size: Sequence[int]) -> tuple[Any, Any]:
    dims = len(output_size)
    sizes = _known_sizes(self, dims)
    if all(n % o == 0 for n, o in zip(sizes, output_size, strict=True)):
        window = [n // o for n, o in zip(sizes, output_size, strict=True)]
        zeros, ones = [0] * dims, [1] * dims
        return _max_pool(g, self, window, window, zeros, ones, False, outputs=2)
    out = self
    for d, (n, o) in enumerate(zip(sizes, output_size, strict=True)):
        axis = self.rank - dims + d
        parts = [g.slice(out, axis, begin, end) for begin, end in _edges(n, o)]
        out = g.Concat(*(g.ReduceMax(p, [axis], keepdims=1) for p in parts), axis=axis)
    return out, None
