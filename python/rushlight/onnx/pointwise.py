"""Lowerings of what is computed element by element."""

from __future__ import annotations

import math
from typing import Any

import rushlight
from rushlight.onnx._builder import Builder, Value
from rushlight.onnx._names import binary, unary
from rushlight.onnx._registry import lowers
from rushlight.onnx.logic import chosen, is_float, is_infinite, signbit, truth

__all__: list[str] = []  # lowerings are found by the names of their ops

# Floating-point functions that ONNX has under the same meaning; integers are converted first.
FLOATS = {
    "acos": "Acos",
    "acosh": "Acosh",
    "asin": "Asin",
    "asinh": "Asinh",
    "atan": "Atan",
    "atanh": "Atanh",
    "cos": "Cos",
    "cosh": "Cosh",
    "erf": "Erf",
    "exp": "Exp",
    "hardswish": "HardSwish",
    "log": "Log",
    "mish": "Mish",
    "reciprocal": "Reciprocal",
    "sigmoid": "Sigmoid",
    "sin": "Sin",
    "sinh": "Sinh",
    "sqrt": "Sqrt",
    "tan": "Tan",
    "tanh": "Tanh",
}


def _direct(name: str, kind: str) -> None:
    @unary(name)
    def lower(g: Builder, self: Value) -> Value:
        return g.op(kind, g.cast(self, g.result.dtype))


for _name, _kind in FLOATS.items():
    _direct(_name, _kind)


# ---- arithmetic ----


def _scaled(g: Builder, x: Value, factor: Any) -> Value:
    return x if factor == 1 else g.Mul(x, factor)


@binary("add")
def add(g: Builder, self: Value, other: Any, alpha: Any) -> Value:
    a, b = g.operands(self, other, dtype=g.result.dtype)
    if a.dtype == rushlight.bool:
        return g.Or(a, b) if alpha else a
    return g.Add(a, _scaled(g, b, alpha))


@binary("sub", "subtract")
def sub(g: Builder, self: Value, other: Any, alpha: Any) -> Value:
    a, b = g.operands(self, other, dtype=g.result.dtype)
    return g.Sub(a, _scaled(g, b, alpha))


@binary("rsub")
def rsub(g: Builder, self: Value, other: Any, alpha: Any) -> Value:
    a, b = g.operands(self, other, dtype=g.result.dtype)
    return g.Sub(b, _scaled(g, a, alpha))


@binary("mul", "multiply")
def mul(g: Builder, self: Value, other: Any) -> Value:
    a, b = g.operands(self, other, dtype=g.result.dtype)
    return g.And(a, b) if a.dtype == rushlight.bool else g.Mul(a, b)


@binary("div", "divide", "true_divide")
def div(g: Builder, self: Value, other: Any) -> Value:
    return g.Div(*g.operands(self, other, dtype=g.result.dtype))


def floored(g: Builder, a: Value, b: Value) -> Value:
    """The quotient, rounded down."""
    if is_float(a):
        return g.Floor(g.Div(a, b))
    # ONNX rounds to zero: one less where a remainder is left and the signs differ.
    rest = g.Mod(a, b)
    return g.Div(g.Sub(a, rest), b)


def truncated(g: Builder, x: Value) -> Value:
    """A number rounded to zero."""
    return g.Mul(g.Sign(x), g.Floor(g.Abs(x))) if is_float(x) else x


@lowers("aten.div.Tensor_mode", "aten.div.Scalar_mode")
@lowers("aten.divide.Tensor_mode", "aten.divide.Scalar_mode")
def div_mode(g: Builder, self: Value, other: Any, rounding_mode: str | None) -> Value:
    a, b = g.operands(self, other, dtype=g.result.dtype)
    if rounding_mode == "floor":
        return floored(g, a, b)
    return g.Div(a, b) if rounding_mode is None else truncated(g, g.Div(a, b))


@lowers("aten.floor_divide.default", "aten.floor_divide.Scalar")
def floor_divide(g: Builder, self: Value, other: Any) -> Value:
    return floored(g, *g.operands(self, other, dtype=g.result.dtype))


def _remainder(g: Builder, a: Value, b: Value) -> Value:
    if not is_float(a):
        return g.Mod(a, b)
    # ONNX has only C's fmod for floats: the divisor is added where the signs differ.
    rest = g.Mod(a, b, fmod=1)
    wrong = g.And(g.Not(g.Equal(rest, 0)), g.Less(g.Mul(g.Sign(rest), g.Sign(b)), 0))
    return g.Where(wrong, g.Add(rest, b), rest)


@binary("remainder")
@lowers("aten.remainder.Scalar_Tensor")
def remainder(g: Builder, self: Any, other: Any) -> Value:
    return _remainder(g, *g.operands(self, other, dtype=g.result.dtype))


@binary("fmod")
def fmod(g: Builder, self: Value, other: Any) -> Value:
    return g.Mod(*g.operands(self, other, dtype=g.result.dtype), fmod=1)


@lowers("aten.pow.Tensor_Scalar", "aten.pow.Tensor_Tensor", "aten.pow.Scalar")
@lowers(
    "aten.float_power.Tensor_Scalar", "aten.float_power.Tensor_Tensor", "aten.float_power.Scalar"
)
def pow(g: Builder, self: Any, exponent: Any) -> Value:
    dtype = g.result.dtype
    simple = {2: lambda x: g.Mul(x, x), 0.5: g.Sqrt, -1: g.Reciprocal, 1: g.Identity}
    if isinstance(exponent, int | float) and exponent in simple:
        return simple[exponent](g.cast(self, dtype))
    if dtype.is_floating_point or dtype in (rushlight.int32, rushlight.int64):
        return g.Pow(*g.operands(self, exponent, dtype=dtype))
    return g.cast(g.Pow(*g.operands(self, exponent, dtype=rushlight.int64)), dtype)


@unary("neg")
def neg(g: Builder, self: Value) -> Value:
    return g.Neg(self)


@unary("abs")
def abs(g: Builder, self: Value) -> Value:
    return g.Abs(self)


@unary("positive")
def positive(g: Builder, self: Value) -> Value:
    return g.Identity(self)


@unary("square")
def square(g: Builder, self: Value) -> Value:
    x = g.cast(self, g.result.dtype)
    return g.Mul(x, x)


@unary("sign", "sgn")
def sign(g: Builder, self: Value) -> Value:
    return self if self.dtype == rushlight.bool else g.Sign(self)


@lowers("aten.addcmul.default")
def addcmul(g: Builder, self: Value, tensor1: Value, tensor2: Value, value: Any) -> Value:
    x, a, b = g.operands(self, tensor1, tensor2, dtype=g.result.dtype)
    return g.Add(x, _scaled(g, g.Mul(a, b), value))


@lowers("aten.addcdiv.default")
def addcdiv(g: Builder, self: Value, tensor1: Value, tensor2: Value, value: Any) -> Value:
    x, a, b = g.operands(self, tensor1, tensor2, dtype=g.result.dtype)
    return g.Add(x, _scaled(g, g.Div(a, b), value))


@binary("lerp")
def lerp(g: Builder, self: Value, end: Value, weight: Any) -> Value:
    a, b, w = g.operands(self, end, weight, dtype=g.result.dtype)
    return g.Add(a, g.Mul(w, g.Sub(b, a)))


@lowers("aten.bitwise_left_shift.Tensor", "aten.bitwise_left_shift.Tensor_Scalar")
@lowers("aten.__lshift__.Tensor", "aten.__lshift__.Scalar")
def left_shift(g: Builder, self: Value, other: Any) -> Value:
    a, b = g.operands(self, other, dtype=rushlight.int64)
    return g.cast(g.Mul(a, g.Pow(g.constant(2, rushlight.int64), b)), g.result.dtype)


@lowers("aten.bitwise_right_shift.Tensor", "aten.bitwise_right_shift.Tensor_Scalar")
@lowers("aten.__rshift__.Tensor", "aten.__rshift__.Scalar")
def right_shift(g: Builder, self: Value, other: Any) -> Value:
    a, b = g.operands(self, other, dtype=rushlight.int64)
    return g.cast(floored(g, a, g.Pow(g.constant(2, rushlight.int64), b)), g.result.dtype)


# ---- exponentials, logarithms, roots ----


@unary("exp2")
def exp2(g: Builder, self: Value) -> Value:
    return g.Pow(g.constant(2.0, g.result.dtype), g.cast(self, g.result.dtype))


@unary("expm1")
def expm1(g: Builder, self: Value) -> Value:
    x = g.cast(self, g.result.dtype)
    # tanh(x / 2) (e^x + 1), which keeps the digits of small numbers.
    return g.Mul(g.Tanh(g.Mul(x, 0.5)), g.Add(g.Exp(x), 1.0))


@unary("log1p")
def log1p(g: Builder, self: Value) -> Value:
    return g.Log(g.Add(g.cast(self, g.result.dtype), 1.0))


@unary("log2")
def log2(g: Builder, self: Value) -> Value:
    return g.Mul(g.Log(g.cast(self, g.result.dtype)), 1 / math.log(2))


@unary("log10")
def log10(g: Builder, self: Value) -> Value:
    return g.Mul(g.Log(g.cast(self, g.result.dtype)), 1 / math.log(10))


@unary("rsqrt")
def rsqrt(g: Builder, self: Value) -> Value:
    return g.Reciprocal(g.Sqrt(g.cast(self, g.result.dtype)))


@lowers("aten.special_xlogy.default", "aten.special_xlogy.other_scalar")
@lowers("aten.special_xlogy.self_scalar")
@lowers("aten.xlogy.Tensor", "aten.xlogy.Scalar_Other", "aten.xlogy.Scalar_Self")
def xlogy(g: Builder, self: Any, other: Any) -> Value:
    a, b = g.operands(self, other, dtype=g.result.dtype)
    return g.Where(g.Equal(a, 0), g.Mul(a, 0.0), g.Mul(a, g.Log(b)))


@lowers("aten.logaddexp.default")
def logaddexp(g: Builder, self: Value, other: Value) -> Value:
    a, b = g.operands(self, other, dtype=g.result.dtype)
    return g.Add(g.Max(a, b), g.Log(g.Add(g.Exp(g.Neg(g.Abs(g.Sub(a, b)))), 1.0)))


@lowers("aten.logaddexp2.default")
def logaddexp2(g: Builder, self: Value, other: Value) -> Value:
    a, b = g.operands(self, other, dtype=g.result.dtype)
    power = g.Pow(g.constant(2.0, a.dtype), g.Neg(g.Abs(g.Sub(a, b))))
    return g.Add(g.Max(a, b), g.Mul(g.Log(g.Add(power, 1.0)), 1 / math.log(2)))


# ---- angles, hyperbolas, other functions ----


@lowers("aten.atan2.default", "aten.arctan2.default")
def atan2(g: Builder, self: Value, other: Value) -> Value:
    y, x = g.operands(self, other, dtype=g.result.dtype)
    angle = g.Atan(g.Div(y, x))
    half_turn = g.Where(g.Less(y, 0), g.constant(-math.pi, y.dtype), g.constant(math.pi, y.dtype))
    found = g.Where(g.Less(x, 0), g.Add(angle, half_turn), angle)
    upright = g.Mul(g.Sign(y), math.pi / 2)
    return g.Where(g.Equal(x, 0), upright, found)


@lowers("aten.hypot.default")
def hypot(g: Builder, self: Value, other: Value) -> Value:
    a, b = g.operands(self, other, dtype=g.result.dtype)
    return g.Sqrt(g.Add(g.Mul(a, a), g.Mul(b, b)))


@unary("sinc")
def sinc(g: Builder, self: Value) -> Value:
    x = g.Mul(g.cast(self, g.result.dtype), math.pi)
    zero = g.Equal(x, 0)
    safe = g.Where(zero, g.constant(1.0, x.dtype), x)
    return g.Where(zero, g.constant(1.0, x.dtype), g.Div(g.Sin(safe), safe))


@unary("deg2rad")
def deg2rad(g: Builder, self: Value) -> Value:
    return g.Mul(g.cast(self, g.result.dtype), math.pi / 180)


@unary("rad2deg")
def rad2deg(g: Builder, self: Value) -> Value:
    return g.Mul(g.cast(self, g.result.dtype), 180 / math.pi)


@unary("erfc")
def erfc(g: Builder, self: Value) -> Value:
    return g.Sub(g.constant(1.0, g.result.dtype), g.Erf(g.cast(self, g.result.dtype)))


@lowers("aten.logit.default", "aten.special_logit.default")
def logit(g: Builder, self: Value, eps: float | None) -> Value:
    x = g.cast(self, g.result.dtype)
    if eps is not None:
        x = g.Clip(x, eps, 1 - eps)
    return g.Log(g.Div(x, g.Sub(g.constant(1.0, x.dtype), x)))


# ---- rounding ----


def _rounding(name: str, kind: str) -> None:
    @unary(name)
    def lower(g: Builder, self: Value) -> Value:
        return g.op(kind, self) if is_float(self) else self


_rounding("floor", "Floor")
_rounding("ceil", "Ceil")
_rounding("round", "Round")


@unary("trunc")
def trunc(g: Builder, self: Value) -> Value:
    return truncated(g, self)


@lowers("aten.round.decimals", "aten.special_round.default")
def round_decimals(g: Builder, self: Value, decimals: int) -> Value:
    if not is_float(self):
        return self
    if decimals == 0:
        return g.Round(self)
    return g.Div(g.Round(g.Mul(self, 10.0**decimals)), 10.0**decimals)


@unary("frac")
def frac(g: Builder, self: Value) -> Value:
    return g.Sub(self, truncated(g, self))


# ---- extremes and choices ----


def _extreme(kind: str, overloads: list[str], skips_nan: bool = False) -> None:
    @lowers(*overloads)
    def lower(g: Builder, self: Value, other: Value) -> Value:
        a, b = g.operands(self, other, dtype=g.result.dtype)
        if a.dtype == rushlight.bool:
            return g.Or(a, b) if kind == "Max" else g.And(a, b)
        found = g.op(kind, a, b)
        if skips_nan and is_float(a):
            found = g.Where(g.IsNaN(a), b, g.Where(g.IsNaN(b), a, found))
        return found


_extreme("Max", ["aten.maximum.default", "aten.max.other"])
_extreme("Min", ["aten.minimum.default", "aten.min.other"])
_extreme("Max", ["aten.fmax.default"], skips_nan=True)
_extreme("Min", ["aten.fmin.default"], skips_nan=True)


@lowers("aten.clamp_min.default", "aten.clamp_max.default")
@lowers("aten.clamp_min.Tensor", "aten.clamp_max.Tensor")
def clamp_one(g: Builder, self: Value, bound: Any) -> Value:
    a, b = g.operands(self, bound, dtype=g.result.dtype)
    return g.op("Max" if "clamp_min" in g.overload else "Min", a, b)


@lowers("aten.clamp.default", "aten.clamp.Tensor", "aten.clip.default", "aten.clip.Tensor")
def clamp(g: Builder, self: Value, min: Any, max: Any) -> Value:
    x = g.cast(self, g.result.dtype)
    if x.dtype in (rushlight.float32, rushlight.float64, rushlight.int32, rushlight.int64):
        low, high = (None if v is None else g.operand(v, x.dtype) for v in (min, max))
        # Where a bound is left out, Clip stops at the largest number, below infinity.
        if low is not None and high is not None and low.shape == high.shape == ():
            return g.Clip(x, low, high)
    for kind, bound in (("Max", min), ("Min", max)):
        if bound is not None:
            x = g.op(kind, x, g.operand(bound, x.dtype))
    return x


@lowers("aten.where.self", "aten.where.ScalarSelf", "aten.where.ScalarOther", "aten.where.Scalar")
def where(g: Builder, condition: Value, self: Any, other: Any) -> Value:
    return chosen(g, truth(g, condition), *g.operands(self, other, dtype=g.result.dtype))


@lowers("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(g: Builder, self: Value, mask: Value, value: Any) -> Value:
    return chosen(g, truth(g, mask), g.operand(value, self.dtype), self)


@lowers("aten.heaviside.default")
def heaviside(g: Builder, self: Value, values: Value) -> Value:
    if self.dtype == rushlight.bool:
        return g.Or(self, values)
    step = g.cast(g.Greater(self, 0), self.dtype)
    return g.Where(g.Equal(self, 0), values, step)


@binary("copysign")
def copysign(g: Builder, self: Value, other: Any) -> Value:
    a, b = g.operands(self, other, dtype=g.result.dtype)
    size = g.Abs(a)
    return g.Where(signbit(g, b), g.Neg(size), size)


@lowers("aten.fill.Scalar", "aten.fill.Tensor")
def fill(g: Builder, self: Value, value: Any) -> Value:
    return g.expand(g.operand(value, self.dtype), self.sizes)


@lowers("aten.zero.default")
def zero(g: Builder, self: Value) -> Value:
    return g.expand(g.constant(0, self.dtype), self.sizes)


@lowers("aten.nan_to_num.default")
def nan_to_num(
    g: Builder, self: Value, nan: float | None, posinf: float | None, neginf: float | None
) -> Value:
    if not is_float(self):
        return self
    info = rushlight.finfo(self.dtype)
    x = g.Where(g.IsNaN(self), g.constant(0.0 if nan is None else nan, self.dtype), self)
    top, bottom = (info.max if posinf is None else posinf), (info.min if neginf is None else neginf)
    x = g.Where(is_infinite(g, x, True, False), g.constant(top, self.dtype), x)
    return g.Where(is_infinite(g, x, False, True), g.constant(bottom, self.dtype), x)
