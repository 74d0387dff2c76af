"""Lowerings of factories, of random numbers and of dropout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight.onnx._builder import Builder, Unsupported, Value
from rushlight.onnx._registry import lowers
from rushlight.onnx._types import element_type

__all__: list[str] = []  # lowerings are found by the names of their ops

_NUMBERS = {"zeros": 0, "ones": 1, "empty": 0}


def _number(g: Builder) -> int:
    return next(n for name, n in _NUMBERS.items() if name in g.overload)


@lowers("aten.zeros.default", "aten.ones.default", "aten.empty.memory_format")
def zeros(g: Builder, size: Sequence[Any]) -> Value:
    return g.full(size, _number(g), g.result.dtype)


@lowers("aten.zeros_like.default", "aten.ones_like.default", "aten.empty_like.default")
def zeros_like(g: Builder, self: Value) -> Value:
    return g.full(self.sizes, _number(g), g.result.dtype)


@lowers("aten.new_zeros.default", "aten.new_ones.default", "aten.new_empty.default")
def new_zeros(g: Builder, size: Sequence[Any]) -> Value:
    return g.full(size, _number(g), g.result.dtype)


def _filled(g: Builder, size: Sequence[Any], value: Any) -> Value:
    if isinstance(value, Value):
        return g.expand(g.cast(value, g.result.dtype), size)
    return g.full(size, value, g.result.dtype)


@lowers("aten.full.default")
def full(g: Builder, size: Sequence[Any], value: Any) -> Value:
    return _filled(g, size, value)


@lowers("aten.full_like.default")
def full_like(g: Builder, self: Value, value: Any) -> Value:
    return _filled(g, self.sizes, value)


@lowers("aten.new_full.default")
def new_full(g: Builder, size: Sequence[Any], fill_value: Any) -> Value:
    return _filled(g, size, fill_value)


@lowers("aten.scalar_tensor.default")
def scalar_tensor(g: Builder, s: Any) -> Value:
    return g.operand(s, g.result.dtype)


def _range(g: Builder, start: Any, end: Any, step: Any) -> Value:
    dtype = g.result.dtype
    if not any(isinstance(v, Value) for v in (start, end, step)):
        return g.constant(rushlight.arange(start, end, step, dtype=dtype))
    return g.Range(*(g.operand(v, dtype) for v in (start, end, step)))


@lowers("aten.arange.default")
def arange(g: Builder, end: Any) -> Value:
    return _range(g, 0, end, 1)


@lowers("aten.arange.start")
def arange_start(g: Builder, start: Any, end: Any) -> Value:
    return _range(g, start, end, 1)


@lowers("aten.arange.start_step")
def arange_step(g: Builder, start: Any, end: Any, step: Any) -> Value:
    return _range(g, start, end, step)


def _computed(g: Builder, function: Any, *numbers: Any) -> Value:
    """A constant that is computed now."""
    if any(isinstance(n, Value) for n in numbers):
        raise Unsupported("its arguments are not constant")
    return g.constant(function(*numbers, dtype=g.result.dtype))


@lowers("aten.linspace.default")
def linspace(g: Builder, start: Any, end: Any, steps: int) -> Value:
    return _computed(g, rushlight.linspace, start, end, steps)


@lowers("aten.eye.default", "aten.eye.m")
def eye(g: Builder, n: int, *rest: Any) -> Value:
    return _computed(g, rushlight.eye, n, rest[0] if g.overload.endswith(".m") else n)


@lowers("aten.tril_indices.default", "aten.triu_indices.default")
def tril_indices(g: Builder, row: int, col: int, offset: int) -> Value:
    function = rushlight.tril_indices if "tril" in g.overload else rushlight.triu_indices
    return _computed(g, function, row, col, offset)


# ---- random numbers ----


@lowers("aten.randint.default", "aten.randint.low")
def randint(g: Builder, *bounds: Any) -> Value:
    low, high, size = (0, *bounds[:2]) if g.overload.endswith("default") else bounds[:3]
    return g.cast(g.Floor(uniform(g, size, float(low), float(high))), g.result.dtype)


def uniform(g: Builder, sizes: Sequence[Any], low: float = 0.0, high: float = 1.0) -> Value:
    """Random numbers between two bounds."""
    return _random(g, "RandomUniform", sizes, low=low, high=high)


def _random(g: Builder, kind: str, sizes: Sequence[Any], **how: Any) -> Value:
    dtype = g.result.dtype if g.result.dtype.is_floating_point else rushlight.float32
    number = element_type(dtype)
    if all(isinstance(s, int) for s in sizes):
        return g.op(kind, shape_=list(sizes), dtype_=number, dtype=dtype, **how)
    return g.op(f"{kind}Like", g.full(sizes, 0, dtype), dtype_=number, dtype=dtype, **how)


@lowers("aten.rand.default")
def rand(g: Builder, size: Sequence[Any]) -> Value:
    return uniform(g, size)


@lowers("aten.rand_like.default")
def rand_like(g: Builder, self: Value) -> Value:
    return uniform(g, self.sizes)


@lowers("aten.randn.default")
def randn(g: Builder, size: Sequence[Any]) -> Value:
    return _random(g, "RandomNormal", size)


@lowers("aten.randn_like.default")
def randn_like(g: Builder, self: Value) -> Value:
    return _random(g, "RandomNormal", self.sizes)


@lowers("aten.bernoulli.default")
def bernoulli(g: Builder, self: Value) -> Value:
    return g.cast(g.Less(uniform(g, self.sizes), self), self.dtype)


@lowers("aten.bernoulli.p")
def bernoulli_p(g: Builder, self: Value, p: float) -> Value:
    return g.cast(g.Less(uniform(g, self.sizes), p), self.dtype)


@lowers("aten.exponential.default")
def exponential(g: Builder, self: Value, lambd: float) -> Value:
    # 1 - u, which is never 0.
    return g.Mul(g.Log(g.Sub(g.constant(1.0, self.dtype), uniform(g, self.sizes))), -1 / lambd)


@lowers("aten.uniform.default")
def uniform_(g: Builder, self: Value, low: float, high: float) -> Value:
    return uniform(g, self.sizes, low, high)


@lowers("aten.normal.default")
def normal_(g: Builder, self: Value, mean: float, std: float) -> Value:
    return _random(g, "RandomNormal", self.sizes, mean=mean, scale=std)


@lowers("aten.dropout.default", "aten.feature_dropout.default")
@lowers("aten.alpha_dropout.default", "aten.feature_alpha_dropout.default")
def dropout(g: Builder, input: Value, p: float, train: bool) -> Value:
    if not train or p == 0:
        return input
    if ".dropout" not in g.overload:
        raise Unsupported("in training mode (call eval() before the export)")
    ratio = g.constant(p, rushlight.float32)
    return g.Dropout(input, ratio, g.constant(True))
