"""Lowerings of reductions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight.onnx._builder import Builder, Unsupported, Value
from rushlight.onnx._registry import lowers
from rushlight.onnx.logic import truth

__all__: list[str] = []  # lowerings are found by the names of their ops

Dims = int | Sequence[int] | None


def axes(x: Value, dim: Dims) -> list[int] | None:
    """Dimensions to reduce; None for all of them."""
    if dim is None or x.rank == 0:
        return None
    dims = [dim] if isinstance(dim, int) else list(dim)
    return [d % x.rank for d in dims] or None


def reduced(g: Builder, kind: str, x: Value, dim: Dims, keepdim: bool) -> Value:
    """One of ONNX's reductions."""
    dims = axes(x, dim)
    over = range(x.rank) if dims is None else dims
    sizes = [1 if d in over else s for d, s in enumerate(x.sizes)]
    shape = sizes if keepdim else [s for d, s in enumerate(sizes) if d not in over]
    return g.op(kind, x, dims, keepdims=int(keepdim), shape=shape)


def count(g: Builder, x: Value, dim: Dims) -> Any:
    """How many elements are reduced to one: an int, or a 0-d Value."""
    assert x.shape is not None
    dims = axes(x, dim)
    return g.product([x.shape[d] for d in (range(x.rank) if dims is None else dims)])


def _sum(g: Builder, kind: str, self: Value, dim: Dims, keepdim: bool) -> Value:
    return reduced(g, kind, g.cast(self, g.result.dtype), dim, keepdim)


@lowers("aten.sum.default", "aten.mean.default", "aten.prod.default")
def sum_of_all(g: Builder, self: Value) -> Value:
    return _sum(g, _KINDS[g.overload.split(".")[1]], self, None, False)


@lowers("aten.sum.dim_IntList", "aten.mean.dim", "aten.prod.dim_int")
def sum_of_dims(g: Builder, self: Value, dim: Dims, keepdim: bool) -> Value:
    return _sum(g, _KINDS[g.overload.split(".")[1]], self, dim, keepdim)


_KINDS = {"sum": "ReduceSum", "mean": "ReduceMean", "prod": "ReduceProd"}


@lowers("aten.nansum.default", "aten.nanmean.default")
def nansum(g: Builder, self: Value, dim: Dims, keepdim: bool) -> Value:
    x = g.cast(self, g.result.dtype)
    if not x.dtype.is_floating_point:
        return reduced(g, "ReduceSum", x, dim, keepdim)
    nan = g.IsNaN(x)
    total = reduced(g, "ReduceSum", g.Where(nan, g.constant(0.0, x.dtype), x), dim, keepdim)
    if "nanmean" not in g.overload:
        return total
    return g.Div(total, reduced(g, "ReduceSum", g.cast(g.Not(nan), x.dtype), dim, keepdim))


# ---- extremes ----


def _extreme(g: Builder, kind: str, x: Value, dim: Dims, keepdim: bool) -> Value:
    """The largest or smallest; runtimes have it for few dtypes of integers."""
    dtype = x.dtype
    if dtype == rushlight.bool:
        x = g.cast(x, rushlight.int32)
    return g.cast(reduced(g, kind, x, dim, keepdim), dtype)


@lowers("aten.amax.default", "aten.amin.default")
def amax(g: Builder, self: Value, dim: Dims, keepdim: bool) -> Value:
    return _extreme(g, "ReduceMax" if "amax" in g.overload else "ReduceMin", self, dim, keepdim)


@lowers("aten.max.default", "aten.min.default")
def max(g: Builder, self: Value) -> Value:
    kind = "ReduceMax" if "max" in g.overload else "ReduceMin"
    return _extreme(g, kind, self, None, False)


@lowers("aten.aminmax.default")
def aminmax(g: Builder, self: Value, dim: int | None, keepdim: bool) -> tuple[Value, Value]:
    kinds = ("ReduceMin", "ReduceMax")
    low, high = (_extreme(g, kind, self, dim, keepdim) for kind in kinds)
    return low, high


def place(g: Builder, kind: str, x: Value, dim: int | None, keepdim: bool) -> Value:
    """Where the largest or smallest element is: the first one."""
    if x.dtype in (rushlight.bool, rushlight.int16):
        x = g.cast(x, rushlight.int32)
    if x.rank == 0:
        return g.Mul(g.cast(x, rushlight.int64), 0)
    if dim is not None:
        return g.op(kind, x, axis=dim, keepdims=int(keepdim))
    found = g.op(kind, g.reshape(x, [-1]), axis=0, keepdims=0)
    return g.reshape(found, [1] * x.rank) if keepdim else found


@lowers("aten.max.dim", "aten.min.dim")
def max_dim(g: Builder, self: Value, dim: int, keepdim: bool) -> tuple[Value, Value]:
    name = "Max" if "max" in g.overload else "Min"
    values = _extreme(g, f"Reduce{name}", self, dim, keepdim)
    return values, place(g, f"Arg{name}", self, dim, keepdim)


@lowers("aten.argmax.default", "aten.argmin.default")
def argmax(g: Builder, self: Value, dim: int | None, keepdim: bool) -> Value:
    return place(g, "ArgMax" if "argmax" in g.overload else "ArgMin", self, dim, keepdim)


# ---- truth ----


def _all(g: Builder, self: Value, dim: Dims, keepdim: bool) -> Value:
    kind = "ReduceMin" if ".all" in g.overload else "ReduceMax"
    # The dtype that runtimes reduce empty tensors of.
    found = reduced(g, kind, g.cast(truth(g, self), rushlight.int32), dim, keepdim)
    return g.cast(g.Greater(found, 0), g.result.dtype)


@lowers("aten.all.default", "aten.any.default")
def all_of_all(g: Builder, self: Value) -> Value:
    return _all(g, self, None, False)


@lowers("aten.all.dim", "aten.any.dim", "aten.all.dims", "aten.any.dims")
def all_of_dims(g: Builder, self: Value, dim: Dims, keepdim: bool) -> Value:
    return _all(g, self, dim, keepdim)


@lowers("aten.count_nonzero.default", "aten.count_nonzero.dim_IntList")
def count_nonzero(g: Builder, self: Value, dim: Dims) -> Value:
    return reduced(g, "ReduceSum", g.cast(truth(g, self), rushlight.int64), dim, False)


# ---- spread ----


def spread(
    g: Builder, self: Value, dim: Dims, correction: Any, keepdim: bool
) -> tuple[Value, Value]:
    """The variance, and the mean."""
    mean = reduced(g, "ReduceMean", self, dim, True)
    apart = g.Sub(self, mean)
    total = reduced(g, "ReduceSum", g.Mul(apart, apart), dim, keepdim)
    n = count(g, self, dim)
    if isinstance(n, int):
        less = n - correction
        var = g.Div(total, float(less) if less > 0 else 0.0)
    else:
        less = g.Sub(g.cast(n, self.dtype), g.constant(correction, self.dtype))
        var = g.Div(total, g.Max(less, 0.0))
    return var, mean if keepdim else reduced(g, "ReduceMean", self, dim, False)


def _spread(g: Builder, self: Value, dim: Dims, correction: Any, keepdim: bool):
    name = g.overload.split(".")[1]
    var, mean = spread(g, self, dim, correction, keepdim)
    found = g.Sqrt(var) if name.startswith("std") else var
    return (found, mean) if name.endswith("_mean") else found


_SPREADS = ("var", "std", "var_mean", "std_mean")


@lowers(*(f"aten.{name}.correction" for name in _SPREADS))
def spread_correction(g: Builder, self: Value, dim: Dims, correction: Any, keepdim: bool):
    return _spread(g, self, dim, 1 if correction is None else correction, keepdim)


@lowers(*(f"aten.{name}.dim" for name in _SPREADS))
def spread_dim(g: Builder, self: Value, dim: Dims, unbiased: bool, keepdim: bool):
    return _spread(g, self, dim, int(unbiased), keepdim)


@lowers(*(f"aten.{name}.default" for name in _SPREADS))
def spread_default(g: Builder, self: Value, unbiased: bool):
    return _spread(g, self, None, int(unbiased), False)


# ---- norms ----


def vector_norm(g: Builder, x: Value, ord: Any, dim: Dims, keepdim: bool) -> Value:
    """The norm of the vectors along dimensions."""
    if ord in (math.inf, -math.inf):
        kind = "ReduceMax" if ord > 0 else "ReduceMin"
        return reduced(g, kind, g.Abs(x), dim, keepdim)
    if ord == 0:
        return reduced(g, "ReduceSum", g.cast(g.Not(g.Equal(x, 0)), x.dtype), dim, keepdim)
    if ord in (1, 2):
        return reduced(g, f"ReduceL{int(ord)}", x, dim, keepdim)
    power = reduced(g, "ReduceSum", g.Pow(g.Abs(x), float(ord)), dim, keepdim)
    return g.Pow(power, 1.0 / float(ord))


@lowers("aten.linalg_vector_norm.default")
def linalg_vector_norm(g: Builder, self: Value, ord: Any, dim: Dims, keepdim: bool) -> Value:
    return vector_norm(g, g.cast(self, g.result.dtype), ord, dim, keepdim)


@lowers("aten.norm.Scalar")
def norm_of_all(g: Builder, self: Value, p: Any) -> Value:
    return vector_norm(g, g.cast(self, g.result.dtype), 2 if p is None else p, None, False)


@lowers("aten.norm.ScalarOpt_dim", "aten.norm.ScalarOpt_dim_dtype", "aten.norm.ScalarOpt_dtype")
def norm(g: Builder, self: Value, p: Any, dim: Dims = None, keepdim: bool = False) -> Value:
    return vector_norm(g, g.cast(self, g.result.dtype), 2 if p is None else p, dim, keepdim)


@lowers("aten.linalg_norm.default")
def linalg_norm(g: Builder, self: Value, ord: Any, dim: Dims, keepdim: bool) -> Value:
    dims = axes(self, dim)
    if ord is not None and len(range(self.rank) if dims is None else dims) > 1:
        raise Unsupported("the norm of a matrix by ord")
    return vector_norm(g, g.cast(self, g.result.dtype), 2 if ord is None else ord, dim, keepdim)


@lowers("aten.frobenius_norm.dim")
def frobenius_norm(g: Builder, self: Value, dim: Dims, keepdim: bool) -> Value:
    return vector_norm(g, self, 2, dim, keepdim)


@lowers("aten.dist.default")
def dist(g: Builder, self: Value, other: Value, p: Any) -> Value:
    return vector_norm(g, g.Sub(*g.operands(self, other)), p, None, False)


@lowers("aten.logsumexp.default")
def logsumexp(g: Builder, self: Value, dim: Dims, keepdim: bool) -> Value:
    return reduced(g, "ReduceLogSumExp", g.cast(self, g.result.dtype), dim, keepdim)


# ---- running sums ----


@lowers("aten.cumsum.default")
def cumsum(g: Builder, self: Value, dim: int) -> Value:
    x = g.cast(self, g.result.dtype)
    return x if x.rank == 0 else g.CumSum(x, g.int64(dim))


@lowers("aten.logcumsumexp.default")
def logcumsumexp(g: Builder, self: Value, dim: int) -> Value:
    if self.rank == 0:
        return self
    top = g.ReduceMax(self, [dim % self.rank], keepdims=1)
    return g.Add(g.Log(g.CumSum(g.Exp(g.Sub(self, top)), g.int64(dim))), top)


@lowers("aten.cumprod.default")
def cumprod(g: Builder, self: Value, dim: int) -> Value:
    x = g.cast(self, g.result.dtype)
    size = g.size(x, dim) if x.rank else 1
    if not isinstance(size, int) or size > 64:
        raise Unsupported(
            "cumprod over a dimension that is long, or of which the size is not known"
        )
    if size < 2:
        return x
    parts = list(g.Split(x, axis=dim, num_outputs=size, outputs=size))
    for i in range(1, size):
        parts[i] = g.Mul(parts[i - 1], parts[i])
    return g.Concat(*parts, axis=dim)
