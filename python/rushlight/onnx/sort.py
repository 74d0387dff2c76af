"""Lowerings of sorting and searching."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight.onnx._builder import Builder, Unsupported, Value
from rushlight.onnx._registry import lowers

__all__: list[str] = []  # lowerings are found by the names of their ops


def _top(
    g: Builder, x: Value, k: Any, dim: int, largest: bool, sorted: bool = True
) -> tuple[Value, Value]:
    """The k largest or smallest along a dimension, and where they are."""
    if x.rank == 0:
        return x, g.int64(0)
    return g.TopK(
        x,
        g.vector([k]),
        axis=dim,
        largest=int(largest),
        sorted=int(sorted),
        outputs=2,
        dtype=[x.dtype, rushlight.int64],
    )


def _all_sorted(g: Builder, x: Value, dim: int, descending: bool) -> tuple[Value, Value]:
    return _top(g, x, g.size(x, dim) if x.rank else 1, dim, descending)


@lowers("aten.topk.default")
def topk(
    g: Builder, self: Value, k: Any, dim: int, largest: bool, sorted: bool
) -> tuple[Value, Value]:
    return _top(g, self, k, dim, largest, sorted)


@lowers("aten.sort.default", "aten.sort.stable")
def sort(g: Builder, self: Value, dim: int, descending: bool) -> tuple[Value, Value]:
    return _all_sorted(g, self, dim, descending)


@lowers("aten.argsort.default", "aten.argsort.stable")
def argsort(g: Builder, self: Value, dim: int, descending: bool) -> Value:
    return _all_sorted(g, self, dim, descending)[1]


@lowers("aten.msort.default")
def msort(g: Builder, self: Value) -> Value:
    return _all_sorted(g, self, 0, False)[0]


def _kth(g: Builder, x: Value, k: int, dim: int, keepdim: bool) -> tuple[Value, Value]:
    found = _top(g, x, k, dim, False)
    if x.rank == 0:
        return found
    values, places = (g.slice(v, dim, k - 1, k) for v in found)
    return (values, places) if keepdim else (g.squeeze(values, dim), g.squeeze(places, dim))


@lowers("aten.kthvalue.default")
def kthvalue(g: Builder, self: Value, k: int, dim: int, keepdim: bool) -> tuple[Value, Value]:
    return _kth(g, self, k, dim, keepdim)


def _middle(n: Any) -> int:
    if not isinstance(n, int):
        raise Unsupported("the median over a dimension of which the size is not constant")
    return (n + 1) // 2


@lowers("aten.median.dim")
def median_dim(g: Builder, self: Value, dim: int, keepdim: bool) -> tuple[Value, Value]:
    return _kth(g, self, _middle(g.size(self, dim) if self.rank else 1), dim, keepdim)


@lowers("aten.median.default")
def median(g: Builder, self: Value) -> Value:
    flat = g.reshape(self, [-1])
    flat.shape = (g.product(self.sizes),)
    return _kth(g, flat, _middle(flat.shape[0]), 0, False)[0]


@lowers("aten.searchsorted.Tensor")
def searchsorted(
    g: Builder,
    sorted_sequence: Value,
    self: Value,
    right: bool,
    side: str | None,
    sorter: Value | None,
) -> Value:
    if sorter is not None:
        raise Unsupported("sorter=")
    right = right or side == "right"
    bounds = sorted_sequence if sorted_sequence.rank == 1 else g.unsqueeze(sorted_sequence, -2)
    return _counted(g, bounds, self, right)


@lowers("aten.isin.Tensor_Tensor")
def isin(g: Builder, elements: Value, test_elements: Value, invert: bool) -> Value:
    a, b = g.operands(elements, test_elements)
    same = g.Equal(g.unsqueeze(a, a.rank), g.reshape(b, [-1]))
    found = g.ReduceMax(g.cast(same, rushlight.int32), [-1], keepdims=0)
    # The largest of nothing is below zero.
    return g.LessOrEqual(found, 0) if invert else g.Greater(found, 0)


@lowers("aten.bucketize.Tensor")
def bucketize(g: Builder, self: Value, boundaries: Value, right: bool) -> Value:
    return _counted(g, boundaries, self, right)


def _counted(g: Builder, bounds: Value, x: Value, right: bool) -> Value:
    """How many bounds are below each element."""
    a, b = g.operands(bounds, x)
    below = g.op("LessOrEqual" if right else "Less", a, g.unsqueeze(b, x.rank))
    return g.ReduceSum(g.cast(below, g.result.dtype), [-1], keepdims=0)
