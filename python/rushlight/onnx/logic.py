"""Lowerings of questions about elements, of comparisons and of logic."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight.onnx._builder import Builder, Value
from rushlight.onnx._names import binary, unary
from rushlight.onnx._registry import lowers

__all__: list[str] = []  # lowerings are found by the names of their ops


def is_float(x: Value) -> bool:
    return x.dtype.is_floating_point


def chosen(g: Builder, condition: Value, a: Value, b: Value) -> Value:
    """a where a condition holds, b elsewhere."""
    if a.dtype == rushlight.bool:  # which runtimes do not have Where of
        return g.Or(g.And(condition, a), g.And(g.Not(condition), b))
    return g.Where(condition, a, b)


# ---- questions ----


@unary("isnan")
def isnan(g: Builder, self: Value) -> Value:
    return g.IsNaN(self) if is_float(self) else _always(g, self, False)


@unary("isinf")
def isinf(g: Builder, self: Value) -> Value:
    return is_infinite(g, self, True, True)


@unary("isposinf")
def isposinf(g: Builder, self: Value) -> Value:
    return is_infinite(g, self, True, False)


@unary("isneginf")
def isneginf(g: Builder, self: Value) -> Value:
    return is_infinite(g, self, False, True)


@unary("isfinite")
def isfinite(g: Builder, self: Value) -> Value:
    if not is_float(self):
        return _always(g, self, True)
    return g.Not(g.Or(g.IsNaN(self), is_infinite(g, self, True, True)))


@unary("signbit")
def signbit(g: Builder, self: Value) -> Value:
    if self.dtype == rushlight.bool:
        return _always(g, self, False)
    # A negative zero is told by its reciprocal.
    below = g.Less(self, 0)
    return g.Or(below, is_infinite(g, g.Reciprocal(self), False, True)) if is_float(self) else below


def is_infinite(g: Builder, x: Value, above: bool, below: bool) -> Value:
    if not is_float(x):
        return _always(g, x, False)
    if not g.since(20) and x.dtype not in (rushlight.float32, rushlight.float64):
        x = g.cast(x, rushlight.float32)
    return g.IsInf(x, detect_positive=int(above), detect_negative=int(below))


def _always(g: Builder, x: Value, answer: bool) -> Value:
    return g.expand(g.constant(answer), x.sizes)


# ---- comparisons and logic ----


def _comparison(name: str, aliases: list[str], kind: str, negated: bool = False) -> None:
    @binary(name, *aliases)
    def lower(g: Builder, self: Value, other: Any) -> Value:
        a, b = g.operands(self, other)
        if a.dtype == rushlight.bool and kind != "Equal":
            a, b = g.cast(a, rushlight.int32), g.cast(b, rushlight.int32)
        found = g.op(kind, a, b)
        return g.Not(found) if negated else found


_comparison("eq", [], "Equal")
_comparison("ne", ["not_equal"], "Equal", negated=True)
_comparison("lt", ["less"], "Less")
_comparison("le", ["less_equal"], "LessOrEqual")
_comparison("gt", ["greater"], "Greater")
_comparison("ge", ["greater_equal"], "GreaterOrEqual")


def truth(g: Builder, x: Any) -> Value:
    """Whether elements are not zero."""
    return g.operand(x, rushlight.bool)


@unary("logical_not")
def logical_not(g: Builder, self: Value) -> Value:
    return g.Not(truth(g, self))


def _logical(name: str, kind: str) -> None:
    @lowers(f"aten.logical_{name}.default")
    def lower(g: Builder, self: Value, other: Value) -> Value:
        return g.op(kind, truth(g, self), truth(g, other))

    forms = [f"aten.bitwise_{name}.{form}" for form in ("Tensor", "Scalar", "Scalar_Tensor")]

    @lowers(*forms, *(f"aten.__{name}__.{form}" for form in ("Tensor", "Scalar")))
    def bitwise(g: Builder, self: Any, other: Any) -> Value:
        a, b = g.operands(self, other, dtype=g.result.dtype)
        return g.op(kind if a.dtype == rushlight.bool else f"Bitwise{kind}", a, b)


for _name in ("and", "or", "xor"):
    _logical(_name, _name.capitalize())


@unary("bitwise_not")
def bitwise_not(g: Builder, self: Value) -> Value:
    return g.Not(self) if self.dtype == rushlight.bool else g.BitwiseNot(self)


@lowers("aten.isclose.default")
def isclose(
    g: Builder, self: Value, other: Value, rtol: float, atol: float, equal_nan: bool
) -> Value:
    a, b = g.operands(self, other)
    if not is_float(a):
        a, b = g.cast(a, rushlight.float64), g.cast(b, rushlight.float64)
    near = g.LessOrEqual(g.Abs(g.Sub(a, b)), g.Add(g.Mul(g.Abs(b), rtol), atol))
    finite = g.Not(is_infinite(g, g.Sub(a, b), True, True))
    found = g.Or(g.Equal(a, b), g.And(near, finite))
    return g.Or(found, g.And(g.IsNaN(a), g.IsNaN(b))) if equal_nan else found
