"""Lowerings of activation functions."""

from __future__ import annotations

import math
from typing import Any

import rushlight
from rushlight.onnx._builder import Builder, Value
from rushlight.onnx._names import unary
from rushlight.onnx._registry import lowers

__all__: list[str] = []  # lowerings are found by the names of their ops


@unary("relu")
def relu(g: Builder, self: Value) -> Value:
    return g.Relu(self) if self.dtype.is_floating_point else g.Max(self, 0)


@unary("relu6")
def relu6(g: Builder, self: Value) -> Value:
    return g.Clip(self, 0, 6)


@lowers("aten.hardtanh.default")
def hardtanh(g: Builder, self: Value, min_val: Any, max_val: Any) -> Value:
    return g.Clip(self, min_val, max_val)


@lowers("aten.threshold.default")
def threshold(g: Builder, self: Value, threshold: Any, value: Any) -> Value:
    return g.Where(g.Greater(self, threshold), self, g.constant(value, self.dtype))


@lowers("aten.leaky_relu.default")
def leaky_relu(g: Builder, self: Value, negative_slope: Any) -> Value:
    return g.LeakyRelu(self, alpha=float(negative_slope))


@lowers("aten.prelu.default")
def prelu(g: Builder, self: Value, weight: Value) -> Value:
    if self.rank > 2 and weight.shape and weight.shape != (1,) and weight.rank == 1:
        weight = g.unsqueeze(weight, *range(1, self.rank - 1))  # it belongs to dimension 1
    return g.PRelu(self, weight, shape=self.shape)


@lowers("aten.elu.default")
def elu(g: Builder, self: Value, alpha: Any, scale: Any, input_scale: Any) -> Value:
    if (scale, input_scale) == (1, 1):
        return g.Elu(self, alpha=float(alpha))
    below = g.Mul(g.Sub(g.Exp(g.Mul(self, input_scale)), 1.0), alpha)
    return g.Mul(g.Where(g.Greater(self, 0), self, below), scale)


@unary("selu")
def selu(g: Builder, self: Value) -> Value:
    return g.Selu(self)


@lowers("aten.celu.default")
def celu(g: Builder, self: Value, alpha: Any) -> Value:
    if self.dtype == rushlight.float32:
        return g.Celu(self, alpha=float(alpha))
    below = g.Mul(g.Sub(g.Exp(g.Div(self, alpha)), 1.0), alpha)
    return g.Where(g.Greater(self, 0), self, below)


@lowers("aten.gelu.default")
def gelu(g: Builder, self: Value, approximate: str) -> Value:
    if g.since(20):
        return g.Gelu(self, approximate=approximate)
    half = g.Mul(self, 0.5)
    if approximate == "tanh":
        cube = g.Mul(g.Mul(self, self), self)
        inner = g.Mul(g.Add(self, g.Mul(cube, 0.044715)), math.sqrt(2 / math.pi))
        return g.Mul(half, g.Add(g.Tanh(inner), 1.0))
    return g.Mul(half, g.Add(g.Erf(g.Mul(self, math.sqrt(0.5))), 1.0))


@unary("silu")
def silu(g: Builder, self: Value) -> Value:
    return g.Mul(self, g.Sigmoid(self))


@unary("hardsigmoid")
def hardsigmoid(g: Builder, self: Value) -> Value:
    return g.HardSigmoid(self, alpha=1 / 6, beta=0.5)


@lowers("aten.softplus.default")
def softplus(g: Builder, self: Value, beta: Any, threshold: Any) -> Value:
    scaled = self if beta == 1 else g.Mul(self, beta)
    soft = g.Softplus(scaled)
    soft = soft if beta == 1 else g.Div(soft, beta)
    return g.Where(g.Greater(scaled, threshold), self, soft)


@lowers("aten.log_sigmoid.default")
def log_sigmoid(g: Builder, self: Value) -> Value:
    return g.Neg(g.Softplus(g.Neg(self)))


@lowers("aten.hardshrink.default")
def hardshrink(g: Builder, self: Value, lambd: Any) -> Value:
    return g.Where(g.LessOrEqual(g.Abs(self), lambd), g.constant(0, self.dtype), self)


@lowers("aten.softshrink.default")
def softshrink(g: Builder, self: Value, lambd: Any) -> Value:
    return g.Shrink(self, bias=float(lambd), lambd=float(lambd), shape=self.shape)


@lowers("aten.glu.default")
def glu(g: Builder, self: Value, dim: int) -> Value:
    a, b = g.Split(self, axis=dim, num_outputs=2, outputs=2)
    return g.Mul(a, g.Sigmoid(b))


@lowers("aten.rrelu.default")
def rrelu(g: Builder, self: Value, lower: Any, upper: Any, training: bool) -> Value:
    if not training:
        return g.LeakyRelu(self, alpha=(float(lower) + float(upper)) / 2)
    low, high = float(lower), float(upper)
    slope = g.RandomUniformLike(self, low=low, high=high)
    return g.Where(g.Less(self, 0), g.Mul(self, slope), self)
