"""Lowerings of indexing, gathering and scattering."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight.onnx import _views
from rushlight.onnx._builder import Builder, Unsupported, Value
from rushlight.onnx._registry import lowers
from rushlight.onnx.pointwise import truth
from rushlight.onnx.reduce import reduced

# Reductions of scattering by PyTorch's words.
_REDUCTIONS = {
    "sum": "add",
    "add": "add",
    "prod": "mul",
    "multiply": "mul",
    "amax": "max",
    "amin": "min",
}


def sizes_of_values(g: Builder) -> None:
    """Refuses a result whose shape depends on values, if the program was traced with numbers."""
    if all(isinstance(s, int) for part in g.parts for s in part.shape):
        raise Unsupported("the shape of the result depends on values")


# ---- index ----


class _Index:
    """`x[i, :, j]`: the tensors among the indices, and the way of a tensor to GatherND and back."""

    def __init__(self, g: Builder, x: Value, indices: list[Value | None]) -> None:
        found: list[Value | None] = []
        for index in indices:
            if index is not None and index.dtype in (rushlight.bool, rushlight.uint8):
                sizes_of_values(g)
                places = g.NonZero(truth(g, index))
                found += [g.Gather(places, g.int64(i), axis=0) for i in range(index.rank)]
                for part in found[-index.rank :]:
                    assert part is not None
                    part.shape = (None,)
            else:
                found.append(index)
        self.g, self.x = g, x
        self.dims = [d for d, index in enumerate(found) if index is not None]
        self.rest = [d for d in range(x.rank) if d not in self.dims]
        self.tensors = [g.int64(index) for index in found if index is not None]
        self.rank = max(t.rank for t in self.tensors)
        first, n = self.dims[0], len(self.dims)
        adjacent = self.dims == list(range(first, first + n))
        # Where the dimensions of the indices are in the result.
        self.place = first if adjacent else 0

    def order(self) -> list[int]:
        """Indexed dimensions first."""
        return [*self.dims, *self.rest]

    def places(self) -> Value:
        """The indices, side by side in the last dimension."""
        g = self.g
        tensors = g.broadcast(*self.tensors)
        parts = [g.Unsqueeze(t, [-1]) for t in tensors]
        return g.Concat(*parts, axis=-1) if len(parts) > 1 else parts[0]

    def result_order(self) -> list[int]:
        """From (dimensions of the indices, the rest) to the result."""
        inner = list(range(self.rank))
        outer = list(range(self.rank, self.rank + len(self.rest)))
        return [*outer[: self.place], *inner, *outer[self.place :]]


@lowers("aten.index.Tensor", "aten._unsafe_index.Tensor")
def index(g: Builder, self: Value, indices: list[Value | None]) -> Value:
    at = _Index(g, self, indices)
    if len(at.dims) == 1:
        return g.Gather(self, at.tensors[0], axis=at.dims[0])
    out = g.GatherND(g.transpose(self, at.order()), at.places())
    order = at.result_order()
    return out if order == sorted(order) else g.Transpose(out, perm=order)


@lowers("aten.index_put.default", "aten._unsafe_index_put.default")
def index_put(
    g: Builder, self: Value, indices: list[Value | None], values: Value, accumulate: bool
) -> Value:
    masks = [i for i in indices if i is not None]
    if len(masks) == 1 and indices[0] is masks[0] and masks[0].dtype == rushlight.bool:
        mask = masks[0]
        if values.shape in ((), (1,)):
            mask = g.unsqueeze(mask, *range(mask.rank, self.rank))
            put = g.Add(self, values) if accumulate else values
            return g.Where(mask, g.cast(put, self.dtype), self)
        raise Unsupported("several values for the elements that a mask selects")
    at = _Index(g, self, indices)
    order = at.order()
    x = g.transpose(self, order)
    places = at.places()
    # Values broadcast to the shape of `self[indices]`, then lose the order of the result.
    found = g.GatherND(x, places)
    back = at.result_order()
    if back != sorted(back):
        shape = g.Shape(g.Transpose(found, perm=back))
        values = g.Expand(g.cast(values, self.dtype), shape)
        values = g.Transpose(values, perm=[back.index(d) for d in range(len(back))])
    else:
        values = g.Expand(g.cast(values, self.dtype), g.Shape(found))
    out = g.ScatterND(x, places, values, reduction="add" if accumulate else None)
    out.shape = x.shape
    return g.transpose(out, [order.index(d) for d in range(len(order))])


@lowers("aten.index_select.default")
def index_select(g: Builder, self: Value, dim: int, index: Value) -> Value:
    if self.rank == 0:
        return self
    return g.Gather(self, index if index.rank else g.unsqueeze(index, 0), axis=dim)


@lowers("aten.take.default")
def take(g: Builder, self: Value, index: Value) -> Value:
    return g.Gather(g.reshape(self, [-1]), index, axis=0)


# ---- gather and scatter ----


def _on_one(g: Builder, x: Value) -> tuple[Value, bool]:
    return (g.unsqueeze(x, 0), True) if x.rank == 0 else (x, False)


@lowers("aten.gather.default")
def gather(g: Builder, self: Value, dim: int, index: Value, _: bool = False) -> Value:
    alone = index.rank == 0
    x, index = _on_one(g, self)[0], _on_one(g, index)[0]
    out = g.GatherElements(x, index, axis=dim)
    return g.squeeze(out, 0) if alone else out


@lowers("aten.take_along_dim.default")
def take_along_dim(g: Builder, self: Value, indices: Value, dim: int | None) -> Value:
    if dim is None:
        return g.Gather(g.reshape(self, [-1]), g.reshape(indices, [-1]), axis=0)
    dim %= self.rank
    sizes, others = list(self.shape or ()), list(indices.shape or ())
    if [*sizes[:dim], *sizes[dim + 1 :]] != [*others[:dim], *others[dim + 1 :]]:
        wide = [a if isinstance(a, int) and a != 1 else b for a, b in zip(sizes, others, strict=True)]
        x = g.expand(self, [*wide[:dim], sizes[dim], *wide[dim + 1 :]])
        indices = g.expand(indices, [*wide[:dim], others[dim], *wide[dim + 1 :]])
    else:
        x = self
    return g.GatherElements(x, indices, axis=dim)


def _scatter(
    g: Builder, self: Value, dim: int, index: Value, src: Value, reduction: str | None
) -> Value:
    x, alone = _on_one(g, self)
    index, src = _on_one(g, index)[0], _on_one(g, src)[0]
    if src.shape != index.shape and src.shape is not None and src.shape != (1,) * src.rank:
        bounds = g.shape(index)
        src = g.Slice(src, [0] * index.rank, bounds)
    elif src.shape != index.shape:
        src = g.Expand(src, g.shape(index))
    out = g.ScatterElements(x, index, g.cast(src, x.dtype), axis=dim, reduction=reduction)
    return g.squeeze(out, 0) if alone else out


@lowers("aten.scatter.src")
def scatter_src(g: Builder, self: Value, dim: int, index: Value, src: Value) -> Value:
    return _scatter(g, self, dim, index, src, None)


@lowers("aten.scatter.value")
def scatter_value(g: Builder, self: Value, dim: int, index: Value, value: Any) -> Value:
    src = g.Expand(g.constant(value, self.dtype), g.shape(index))
    src.shape = index.shape
    return _scatter(g, self, dim, index, src, None)


@lowers("aten.scatter.reduce")
def scatter_with(
    g: Builder, self: Value, dim: int, index: Value, src: Value, reduce: str
) -> Value:
    return _scatter(g, self, dim, index, src, _REDUCTIONS[reduce])


@lowers("aten.scatter.value_reduce")
def scatter_value_with(
    g: Builder, self: Value, dim: int, index: Value, value: Any, reduce: str
) -> Value:
    src = g.Expand(g.constant(value, self.dtype), g.shape(index))
    src.shape = index.shape
    return _scatter(g, self, dim, index, src, _REDUCTIONS[reduce])


@lowers("aten.scatter_add.default")
def scatter_add(g: Builder, self: Value, dim: int, index: Value, src: Value) -> Value:
    return _scatter(g, self, dim, index, src, "add")


@lowers("aten.scatter_reduce.two")
def scatter_reduce(
    g: Builder, self: Value, dim: int, index: Value, src: Value, reduce: str, include_self: bool
) -> Value:
    if reduce not in _REDUCTIONS:
        raise Unsupported(f"reduce={reduce!r}")
    if not include_self:
        neutral = _neutral(reduce, self.dtype)
        value = g.Expand(g.constant(neutral, self.dtype), g.shape(index))
        value.shape = index.shape
        self = _scatter(g, self, dim, index, value, None)
    return _scatter(g, self, dim, index, src, _REDUCTIONS[reduce])


def _neutral(reduce: str, dtype: rushlight.dtype) -> Any:
    if reduce in ("sum", "prod"):
        return 0 if reduce == "sum" else 1
    if dtype.is_floating_point:
        return float("-inf") if reduce == "amax" else float("inf")
    info = rushlight.iinfo(dtype)
    return info.min if reduce == "amax" else info.max


def _rows(g: Builder, index: Value, source: Value, dim: int) -> Value:
    """The index of a dimension, repeated over the others."""
    dim %= source.rank
    return g.Expand(g.unsqueeze(index, *_others(source.rank, dim)), g.shape(source))


def _others(rank: int, dim: int) -> list[int]:
    return [d for d in range(rank) if d != dim]


@lowers("aten.index_add.default")
def index_add(
    g: Builder, self: Value, dim: int, index: Value, source: Value, alpha: Any
) -> Value:
    source = source if alpha == 1 else g.Mul(source, alpha)
    source.shape = source.shape or g.result.shape
    index = g.int64(_on_one(g, index)[0])
    return g.ScatterElements(
        self, _rows(g, index, source, dim), source, axis=dim, reduction="add"
    )


@lowers("aten.index_copy.default")
def index_copy(g: Builder, self: Value, dim: int, index: Value, source: Value) -> Value:
    index = _on_one(g, index)[0]
    return g.ScatterElements(self, _rows(g, index, source, dim), source, axis=dim)


@lowers("aten.index_fill.int_Scalar", "aten.index_fill.int_Tensor")
def index_fill(g: Builder, self: Value, dim: int, index: Value, value: Any) -> Value:
    index = _on_one(g, index)[0]
    sizes = list(self.shape or ())
    sizes[dim] = index.shape[0] if index.shape else 1
    source = g.expand(g.operand(value, self.dtype), sizes)
    return g.ScatterElements(self, _rows(g, index, source, dim), source, axis=dim)


@lowers("aten.select_scatter.default", "aten.slice_scatter.default")
def select_scatter(g: Builder, self: Value, src: Value, *where: Any) -> Value:
    kind = "select" if "select" in g.overload else "slice"
    return _views.BACK[kind](g, g.cast(src, self.dtype), self, *where)


# ---- what depends on values ----


@lowers("aten.nonzero.default", "aten.argwhere.default")
def nonzero(g: Builder, self: Value) -> Value:
    sizes_of_values(g)
    return g.Transpose(g.NonZero(truth(g, self)), perm=[1, 0])


@lowers("aten.masked_select.default")
def masked_select(g: Builder, self: Value, mask: Value) -> Value:
    sizes_of_values(g)
    x, mask = g.broadcast(self, mask)
    return g.Compress(g.reshape(x, [-1]), g.reshape(truth(g, mask), [-1]))


# ---- tables ----


@lowers("aten.embedding.default")
def embedding(g: Builder, weight: Value, indices: Value, *_: Any) -> Value:
    return g.Gather(weight, indices, axis=0)


@lowers("aten.one_hot.default")
def one_hot(g: Builder, self: Value, num_classes: int) -> Value:
    if isinstance(num_classes, int) and num_classes < 0:
        raise Unsupported("num_classes=-1: the number of classes depends on values")
    classes = g.constant(rushlight.arange(num_classes))
    return g.cast(g.Equal(g.unsqueeze(self, self.rank), classes), rushlight.int64)


def _pooled(g: Builder, x: Value, mode: int, dim: int) -> Value:
    """Rows of a table as one: their sum, mean or maximum."""
    return reduced(g, ("ReduceSum", "ReduceMean", "ReduceMax")[mode], x, dim, False)


@lowers("aten.embedding_bag.padding_idx", "aten.embedding_bag.default")
def embedding_bag(
    g: Builder,
    weight: Value,
    indices: Value,
    offsets: Value,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Value | None,
    include_last_offset: bool,
    padding_idx: int | None = None,
) -> tuple[Any, ...]:
    if padding_idx is not None and padding_idx >= 0 or include_last_offset:
        raise Unsupported("embedding_bag with padding_idx or include_last_offset")
    rows = g.Gather(weight, indices, axis=0)
    if per_sample_weights is not None:
        rows = g.Mul(rows, g.unsqueeze(per_sample_weights, 1))
    # Which bag a row belongs to: a matrix of bags and rows.
    n, bags = g.size(indices, 0), g.size(offsets, 0)
    at = g.Range(g.int64(0), g.int64(n), g.int64(1))
    begun = g.cast(g.LessOrEqual(g.unsqueeze(g.int64(offsets), 1), at), rushlight.int64)
    bag = g.Sub(g.ReduceSum(begun, [0], keepdims=0), 1)
    every = g.Range(g.int64(0), g.int64(bags), g.int64(1))
    inside = g.Equal(g.unsqueeze(every, 1), bag)
    if mode == 2:
        lowest = g.constant(float("-inf"), weight.dtype)
        out = g.ReduceMax(g.Where(g.unsqueeze(inside, 2), rows, lowest), [1], keepdims=0)
    else:
        shares = g.cast(inside, weight.dtype)
        if mode == 1:
            count = g.ReduceSum(shares, [1], keepdims=1)
            shares = g.Div(shares, g.Max(count, 1.0))
        out = g.MatMul(shares, rows)
    return out, None, None, None
