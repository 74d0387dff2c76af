"""Lowerings of losses."""

from __future__ import annotations

import math

import rushlight
from rushlight.onnx._builder import Builder, Unsupported, Value
from rushlight.onnx._registry import lowers
from rushlight.onnx.reduce import reduced
from rushlight.onnx.softmax import softmax

__all__: list[str] = []  # lowerings are found by the names of their ops

_REDUCTIONS = ("none", "mean", "sum")


def _reduced(g: Builder, losses: Value, reduction: int) -> Value:
    kinds = (None, "ReduceMean", "ReduceSum")
    kind = kinds[reduction]
    return losses if kind is None else g.op(kind, losses, keepdims=0)


@lowers("aten.mse_loss.default")
def mse_loss(g: Builder, self: Value, target: Value, reduction: int) -> Value:
    apart = g.Sub(*g.operands(self, target))
    return _reduced(g, g.Mul(apart, apart), reduction)


@lowers("aten.l1_loss.default")
def l1_loss(g: Builder, self: Value, target: Value, reduction: int) -> Value:
    return _reduced(g, g.Abs(g.Sub(*g.operands(self, target))), reduction)


@lowers("aten.smooth_l1_loss.default")
def smooth_l1_loss(g: Builder, self: Value, target: Value, reduction: int, beta: float) -> Value:
    apart = g.Abs(g.Sub(*g.operands(self, target)))
    if beta == 0:
        return _reduced(g, apart, reduction)
    near = g.Mul(g.Mul(apart, apart), 0.5 / beta)
    return _reduced(g, g.Where(g.Less(apart, beta), near, g.Sub(apart, 0.5 * beta)), reduction)


@lowers("aten.huber_loss.default")
def huber_loss(g: Builder, self: Value, target: Value, reduction: int, delta: float) -> Value:
    apart = g.Abs(g.Sub(*g.operands(self, target)))
    near = g.Mul(g.Mul(apart, apart), 0.5)
    far = g.Mul(g.Sub(apart, 0.5 * delta), delta)
    return _reduced(g, g.Where(g.Less(apart, delta), near, far), reduction)


@lowers("aten.binary_cross_entropy.default")
def bce(g: Builder, self: Value, target: Value, weight: Value | None, reduction: int) -> Value:
    one = g.constant(1.0, self.dtype)
    yes = g.Max(g.Log(self), -100.0)
    no = g.Max(g.Log(g.Sub(one, self)), -100.0)
    losses = g.Neg(g.Add(g.Mul(target, yes), g.Mul(g.Sub(one, target), no)))
    return _reduced(g, losses if weight is None else g.Mul(losses, weight), reduction)


@lowers("aten.binary_cross_entropy_with_logits.default")
def bce_with_logits(
    g: Builder,
    self: Value,
    target: Value,
    weight: Value | None,
    pos_weight: Value | None,
    reduction: int,
) -> Value:
    one = g.constant(1.0, self.dtype)
    no = g.Mul(g.Sub(one, target), self)
    soft = g.Softplus(g.Neg(self))
    if pos_weight is not None:
        soft = g.Mul(soft, g.Add(g.Mul(g.Sub(pos_weight, one), target), one))
    losses = g.Add(no, soft)
    return _reduced(g, losses if weight is None else g.Mul(losses, weight), reduction)


@lowers("aten.kl_div.default")
def kl_div(g: Builder, self: Value, target: Value, reduction: int, log_target: bool) -> Value:
    if log_target:
        losses = g.Mul(g.Exp(target), g.Sub(target, self))
    else:
        zero = g.LessOrEqual(target, 0)
        safe = g.Where(zero, g.constant(1.0, self.dtype), target)
        entropy = g.Where(zero, g.constant(0.0, self.dtype), g.Mul(target, g.Log(safe)))
        losses = g.Sub(entropy, g.Mul(target, self))
    return _reduced(g, losses, reduction)


@lowers("aten.cross_entropy_loss.default")
def cross_entropy(
    g: Builder,
    self: Value,
    target: Value,
    weight: Value | None,
    reduction: int,
    ignore_index: int,
    label_smoothing: float,
) -> Value:
    if target.dtype.is_floating_point or label_smoothing:
        return _soft_cross_entropy(
            g, self, target, weight, reduction, ignore_index, label_smoothing
        )
    if self.rank == 1:
        self, target = g.unsqueeze(self, 0), g.unsqueeze(target, 0)
    out = g.SoftmaxCrossEntropyLoss(
        self, target, weight, reduction=_REDUCTIONS[reduction], ignore_index=ignore_index
    )
    return out if g.result.rank == 0 and reduction else g.reshape(out, g.result.shape)


def _soft_cross_entropy(
    g: Builder,
    x: Value,
    target: Value,
    weight: Value | None,
    reduction: int,
    ignore_index: int,
    smoothing: float,
) -> Value:
    """Cross entropy with shares of all classes: given ones, or smoothed labels."""
    dim = min(1, x.rank - 1)
    classes = g.size(x, dim)
    if not isinstance(classes, int):
        raise Unsupported("cross entropy over a number of classes that is not constant")
    logs = softmax(g, x, dim, "LogSoftmax")
    if weight is not None:
        weight = g.unsqueeze(weight, *range(1, x.rank - dim))
        logs = g.Mul(logs, weight)
    counted = None
    if target.dtype.is_floating_point:
        shares = target
    else:
        every = g.unsqueeze(g.constant(rushlight.arange(classes)), *range(1, x.rank - dim))
        labels = g.unsqueeze(target, dim)
        counted = g.Not(g.Equal(target, ignore_index))
        shares = g.cast(g.Equal(labels, every), x.dtype)
    own = shares
    if smoothing:
        shares = g.Add(g.Mul(shares, 1 - smoothing), smoothing / classes)
    losses = g.Neg(reduced(g, "ReduceSum", g.Mul(shares, logs), dim, False))
    if counted is None:
        if reduction != 1:
            return _reduced(g, losses, reduction)
        return g.Div(g.ReduceSum(losses, keepdims=0), float(_rows(x, dim)))
    losses = g.Where(counted, losses, g.constant(0.0, x.dtype))
    if reduction != 1:
        return _reduced(g, losses, reduction)
    shared = own if weight is None else g.Mul(own, weight)
    weights = reduced(g, "ReduceSum", shared, dim, False)
    weights = g.Where(counted, weights, g.constant(0.0, x.dtype))
    return g.Div(g.ReduceSum(losses, keepdims=0), g.ReduceSum(weights, keepdims=0))


def _rows(x: Value, dim: int) -> int:
    sizes = [s for d, s in enumerate(x.sizes) if d != dim]
    if not all(isinstance(s, int) for s in sizes):
        raise Unsupported("the mean over a batch of which the size is not constant")
    return math.prod(sizes)


@lowers("aten.nll_loss_nd.default", "aten.nll_loss.default", "aten.nll_loss2d.default")
def nll_loss(
    g: Builder, self: Value, target: Value, weight: Value | None, reduction: int, ignore_index: int
) -> Value:
    if self.rank == 1:
        self, target = g.unsqueeze(self, 0), g.unsqueeze(target, 0)
    out = g.NegativeLogLikelihoodLoss(
        self, target, weight, reduction=_REDUCTIONS[reduction], ignore_index=ignore_index
    )
    return out if g.result.rank == 0 and reduction else g.reshape(out, g.result.shape)


@lowers("aten.soft_margin_loss.default")
def soft_margin_loss(g: Builder, self: Value, target: Value, reduction: int) -> Value:
    return _reduced(g, g.Softplus(g.Neg(g.Mul(*g.operands(self, target)))), reduction)


@lowers("aten.margin_ranking_loss.default")
def margin_ranking_loss(
    g: Builder, input1: Value, input2: Value, target: Value, margin: float, reduction: int
) -> Value:
    a, b, sign = g.operands(input1, input2, target)
    losses = g.Add(g.Mul(g.Neg(sign), g.Sub(a, b)), float(margin))
    return _reduced(g, g.Max(losses, 0.0), reduction)
