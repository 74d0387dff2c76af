"""Lowerings of indexing, gathering and scattering."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight.onnx import _views
from rushlight.onnx._builder import Builder, Unsupported, Value
from rushlight.onnx._registry import lowers
from rushlight.onnx.logic import chosen, truth
from rushlight.onnx.pointwise import floored

__all__: list[str] = []  # lowerings are found by the names of their ops

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


@lowers("aten.index.Tensor")
def index(g: Builder, self: Value, indices: list[Value | None]) -> Value:
    at = _Index(g, self, indices)
    if len(at.dims) == 1:
        return g.Gather(self, at.tensors[0], axis=at.dims[0])
    out = g.GatherND(g.transpose(self, at.order()), at.places())
    order = at.result_order()
    return out if order == sorted(order) else g.Transpose(out, perm=order)


@lowers("aten.index_put.default")
def index_put(
    g: Builder, self: Value, indices: list[Value | None], values: Value, accumulate: bool
) -> Value:
    masks = [i for i in indices if i is not None]
    if len(masks) == 1 and indices[0] is masks[0] and masks[0].dtype == rushlight.bool:
        mask = masks[0]
        if values.shape in ((), (1,)):
            mask = g.unsqueeze(mask, *range(mask.rank, self.rank))
            put = g.Add(self, values) if accumulate else values
            return chosen(g, mask, g.cast(put, self.dtype), self)
        places = g.Transpose(g.NonZero(mask), perm=[1, 0])
        count = g.Shape(places, start=0, end=1)
        rest = g.Shape(self, start=mask.rank)
        values = g.Expand(g.cast(values, self.dtype), g.Concat(count, rest, axis=0))
        return g.ScatterND(self, places, values, reduction="add" if accumulate else None)
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
    """A tensor with a dimension at least, and whether that had to be put in."""
    if x.rank:
        return x, False
    x = g.unsqueeze(x, 0)
    x.shape = (1,)
    return x, True


@lowers("aten.gather.default")
def gather(g: Builder, self: Value, dim: int, index: Value) -> Value:
    alone = index.rank == 0
    x, index = _on_one(g, self)[0], _on_one(g, index)[0]
    out = g.GatherElements(x, index, axis=dim)
    return g.squeeze(out, 0) if alone else out


@lowers("aten.take_along_dim.default")
def take_along_dim(g: Builder, self: Value, indices: Value, dim: int | None) -> Value:
    if dim is None:
        return g.Gather(g.reshape(self, [-1]), g.reshape(indices, [-1]), axis=0)
    dim %= self.rank
    sizes, others = list(self.sizes), list(indices.sizes)
    if [*sizes[:dim], *sizes[dim + 1 :]] != [*others[:dim], *others[dim + 1 :]]:
        wide = [
            a if isinstance(a, int) and a != 1 else b for a, b in zip(sizes, others, strict=True)
        ]
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
def scatter_with(g: Builder, self: Value, dim: int, index: Value, src: Value, reduce: str) -> Value:
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
    if reduce == "mean":
        return _scattered_mean(g, self, dim, index, src, include_self)
    if not include_self:
        neutral = _neutral(reduce, self.dtype)
        value = g.Expand(g.constant(neutral, self.dtype), g.shape(index))
        value.shape = index.shape
        self = _scatter(g, self, dim, index, value, None)
    return _scatter(g, self, dim, index, src, _REDUCTIONS[reduce])


def _scattered_mean(
    g: Builder, self: Value, dim: int, index: Value, src: Value, include_self: bool
) -> Value:
    one = g.Expand(g.constant(1, self.dtype), g.shape(index))
    one.shape = index.shape
    ones = g.full(self.sizes, 1, self.dtype)
    count = _scatter(g, ones, dim, index, one, "add")
    if not include_self:
        zero = g.Expand(g.constant(0, self.dtype), g.shape(index))
        zero.shape = index.shape
        self = _scatter(g, self, dim, index, zero, None)
        untouched = g.Equal(count, 1)
        count = g.Where(untouched, count, g.Sub(count, 1))
    return floored_or_divided(g, _scatter(g, self, dim, index, src, "add"), count)


def floored_or_divided(g: Builder, a: Value, b: Value) -> Value:
    """The quotient; of integers, rounded down."""
    return g.Div(a, b) if a.dtype.is_floating_point else floored(g, a, b)


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
def index_add(g: Builder, self: Value, dim: int, index: Value, source: Value, alpha: Any) -> Value:
    x, alone = _on_one(g, self)
    source, index = _on_one(g, source)[0], g.int64(_on_one(g, index)[0])
    source = source if alpha == 1 else g.Mul(source, alpha)
    out = g.ScatterElements(x, _rows(g, index, source, dim), source, axis=dim, reduction="add")
    return g.squeeze(out, 0) if alone else out


@lowers("aten.index_copy.default")
def index_copy(g: Builder, self: Value, dim: int, index: Value, source: Value) -> Value:
    x, alone = _on_one(g, self)
    source, index = _on_one(g, source)[0], _on_one(g, index)[0]
    out = g.ScatterElements(x, _rows(g, index, source, dim), source, axis=dim)
    return g.squeeze(out, 0) if alone else out


@lowers("aten.index_fill.int_Scalar", "aten.index_fill.int_Tensor")
def index_fill(g: Builder, self: Value, dim: int, index: Value, value: Any) -> Value:
    x, alone = _on_one(g, self)
    index = _on_one(g, index)[0]
    sizes = list(x.sizes)
    sizes[dim] = index.shape[0] if index.shape else 1
    source = g.expand(g.operand(value, x.dtype), sizes)
    out = g.ScatterElements(x, _rows(g, index, source, dim), source, axis=dim)
    return g.squeeze(out, 0) if alone else out


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
def embedding(g: Builder, weight: Value, indices: Value) -> Value:
    return g.Gather(weight, indices, axis=0)


@lowers("aten.one_hot.default")
def one_hot(g: Builder, self: Value, num_classes: int) -> Value:
    if isinstance(num_classes, int) and num_classes < 0:
        raise Unsupported("num_classes=-1: the number of classes depends on values")
    classes = g.constant(rushlight.arange(num_classes))
    return g.cast(g.Equal(g.unsqueeze(self, self.rank), classes), rushlight.int64)


def _constant_rows(g: Builder, weight: Value) -> int:
    rows = g.size(weight, 0)
    if not isinstance(rows, int):
        raise Unsupported("a negative padding_idx, and a table of which the size is not constant")
    return rows


@lowers("aten.embedding_bag.padding_idx", "aten.embedding_bag.default")
def embedding_bag(
    g: Builder,
    weight: Value,
    indices: Value,
    offsets: Value,
    mode: int,
    per_sample_weights: Value | None,
    include_last_offset: bool,
    padding_idx: int | None = None,
) -> tuple[Any, ...]:
    if include_last_offset:
        offsets = g.slice(offsets, 0, 0, -1)
    rows = g.Gather(weight, indices, axis=0)
    if per_sample_weights is not None:
        rows = g.Mul(rows, g.unsqueeze(per_sample_weights, 1))
    # Which bag a row belongs to: a matrix of bags and rows.
    offsets = g.int64(offsets)
    at = g.Range(g.int64(0), g.int64(g.size(indices, 0)), g.int64(1))
    begun = g.cast(g.LessOrEqual(g.Unsqueeze(offsets, [1]), at), rushlight.int64)
    bag = g.Sub(g.ReduceSum(begun, [0], keepdims=0), 1)
    bags = g.Squeeze(g.Shape(offsets), [0])
    inside = g.Equal(g.Unsqueeze(g.Range(g.int64(0), bags, g.int64(1)), [1]), bag)
    if padding_idx is not None:
        row = padding_idx if padding_idx >= 0 else padding_idx + _constant_rows(g, weight)
        inside = g.And(inside, g.Not(g.Equal(indices, row)))
    shares = g.cast(inside, weight.dtype)
    count = g.ReduceSum(shares, [1], keepdims=1)
    if mode == 2:
        lowest = g.constant(float("-inf"), weight.dtype)
        out = g.ReduceMax(g.Where(g.Unsqueeze(inside, [2]), rows, lowest), [1], keepdims=0)
        out = g.Where(g.Equal(count, 0), g.constant(0.0, weight.dtype), out)
    else:
        out = g.MatMul(g.Div(shares, g.Max(count, 1.0)) if mode == 1 else shares, rows)
    return out, None, None, None
