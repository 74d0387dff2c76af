"""The steps of optimisers as recorded ops: what `differentiable=True` runs.

The functions have the names and arguments of the ops in `ops/optim.py`, whose rules stand in
`src/kernels/optim.h`. They change parameters and states in place, so a parameter is no leaf, and
gradients of parameters after a step reach parameters, gradients and states before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import rushlight
from rushlight import Tensor


def _parts(*tensors: Tensor) -> list[Any]:
    """Complex tensors as real ones with the two parts as their last dimension."""
    return [rushlight.view_as_real(t) if t.is_complex() else t for t in tensors]


def _members(*lists: Sequence[Tensor]) -> Iterator[list[Any]]:
    """The tensors of each parameter, as real ones; None if a list is empty."""
    count = len(lists[0])
    filled: list[Sequence[Any]] = [own or [None] * count for own in lists]
    for tensors in zip(*filled, strict=True):
        yield [None if t is None else _parts(t)[0] for t in tensors]


def _add_weight_decay(p: Tensor, g: Tensor, weight_decay: float, maximize: bool) -> Tensor:
    g = -g if maximize else g
    return g + weight_decay * p if weight_decay != 0 else g


def _count_step(step: Any) -> float:
    """The number of this step, after it has been counted."""
    with rushlight.no_grad():
        step += 1
    return float(step)


def _average(old: Tensor, value: Any, weight: Any) -> Tensor:
    """old = weight * old + (1 - weight) * value; a copy, which the next step does not change."""
    return old.mul_(weight).add_(value * (1 - weight)).clone()


def sgd_step_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    momentum_buffers: Sequence[Tensor],
    *,
    lr: Any,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
    maximize: bool,
    first: bool,
) -> None:
    for p, g, buffer in _members(params, grads, momentum_buffers):
        g = _add_weight_decay(p, g, weight_decay, maximize)
        if buffer is not None:
            if first:
                buffer.copy_(g)
            else:
                buffer.mul_(momentum).add_(g * (1 - dampening))
            g = g + momentum * buffer if nesterov else buffer
        p.sub_(lr * g)


def adam_step_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    exp_avgs: Sequence[Tensor],
    exp_avg_sqs: Sequence[Tensor],
    max_exp_avg_sqs: Sequence[Tensor],
    steps: Sequence[Tensor],
    *,
    lr: Any,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    decoupled: bool,
    amsgrad: bool,
    maximize: bool,
) -> None:
    lists = _members(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs)
    for (p, g, mean, square, largest), step in zip(lists, steps, strict=True):
        count = _count_step(step)
        g = _add_weight_decay(p, g, 0 if decoupled else weight_decay, maximize)
        if decoupled:
            p.mul_(1 - lr * weight_decay)
        mean = _average(mean, g, beta1)
        square = _average(square, g * g, beta2)
        if amsgrad:
            square = rushlight.maximum(largest.clone(), square)
            largest.copy_(square)
        denominator = square.sqrt() / math.sqrt(1 - beta2**count) + eps
        p.sub_(lr / (1 - beta1**count) * mean / denominator)


def rmsprop_step_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    square_avgs: Sequence[Tensor],
    momentum_buffers: Sequence[Tensor],
    grad_avgs: Sequence[Tensor],
    steps: Sequence[Tensor],
    *,
    lr: Any,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
    maximize: bool,
) -> None:
    lists = _members(params, grads, square_avgs, momentum_buffers, grad_avgs)
    for (p, g, square, buffer, mean), step in zip(lists, steps, strict=True):
        _count_step(step)
        g = _add_weight_decay(p, g, weight_decay, maximize)
        square = _average(square, g * g, alpha)
        if centered:
            mean = _average(mean, g, alpha)
            # A variance is not negative but for rounding; of squares that overflow it is infinite.
            spread = (square - mean * mean).clamp(min=0)
            square = rushlight.where(square.isinf(), square, spread)
        move = g / (square.sqrt() + eps)
        if momentum > 0:
            move = buffer.mul_(momentum).add_(move)
        p.sub_(lr * move)


def adagrad_step_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    state_sums: Sequence[Tensor],
    steps: Sequence[Tensor],
    *,
    lr: Any,
    lr_decay: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    for (p, g, total), step in zip(_members(params, grads, state_sums), steps, strict=True):
        count = _count_step(step)
        g = _add_weight_decay(p, g, weight_decay, maximize)
        total.add_(g * g)
        p.sub_(lr / (1 + (count - 1) * lr_decay) * g / (total.sqrt() + eps))


def adadelta_step_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    square_avgs: Sequence[Tensor],
    acc_deltas: Sequence[Tensor],
    steps: Sequence[Tensor],
    *,
    lr: Any,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    lists = _members(params, grads, square_avgs, acc_deltas)
    for (p, g, square, moved), step in zip(lists, steps, strict=True):
        _count_step(step)
        g = _add_weight_decay(p, g, weight_decay, maximize)
        square = _average(square, g * g, rho)
        delta = (moved + eps).sqrt() / (square + eps).sqrt() * g
        moved = _average(moved, delta * delta, rho)
        p.sub_(lr * delta)


def adamax_step_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    exp_avgs: Sequence[Tensor],
    exp_infs: Sequence[Tensor],
    steps: Sequence[Tensor],
    *,
    lr: Any,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    lists = _members(params, grads, exp_avgs, exp_infs)
    for (p, g, mean, largest), step in zip(lists, steps, strict=True):
        count = _count_step(step)
        g = _add_weight_decay(p, g, weight_decay, maximize)
        mean = _average(mean, g, beta1)
        faded = rushlight.maximum(largest * beta2, g.abs() + eps)
        largest.copy_(faded)
        p.sub_(lr / (1 - beta1**count) * mean / faded)


def nadam_step_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    exp_avgs: Sequence[Tensor],
    exp_avg_sqs: Sequence[Tensor],
    mu_products: Sequence[Tensor],
    steps: Sequence[Tensor],
    *,
    lr: Any,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    momentum_decay: float,
    decoupled: bool,
    maximize: bool,
) -> None:
    lists = _members(params, grads, exp_avgs, exp_avg_sqs)
    for (p, g, mean, square), product, step in zip(lists, mu_products, steps, strict=True):
        count = _count_step(step)
        if decoupled:
            p.mul_(1 - lr * weight_decay)
        g = _add_weight_decay(p, g, 0 if decoupled else weight_decay, maximize)
        now, after = (beta1 * (1 - 0.5 * 0.96 ** (c * momentum_decay)) for c in (count, count + 1))
        product.mul_(now)
        mean = _average(mean, g, beta1)
        square = _average(square, g * g, beta2)
        denominator = (square / (1 - beta2**count)).sqrt() + eps
        p.sub_(lr * (1 - now) / (1 - product) * g / denominator)
        p.sub_(lr * after / (1 - product * after) * mean / denominator)


def radam_step_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    exp_avgs: Sequence[Tensor],
    exp_avg_sqs: Sequence[Tensor],
    steps: Sequence[Tensor],
    *,
    lr: Any,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    decoupled: bool,
    maximize: bool,
) -> None:
    lists = _members(params, grads, exp_avgs, exp_avg_sqs)
    for (p, g, mean, square), step in zip(lists, steps, strict=True):
        count = _count_step(step)
        if decoupled:
            p.mul_(1 - lr * weight_decay)
        g = _add_weight_decay(p, g, 0 if decoupled else weight_decay, maximize)
        mean = _average(mean, g, beta1)
        square = _average(square, g * g, beta2)
        power = beta2**count
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * count * power / (1 - power)
        move = mean * (lr / (1 - beta1**count))
        if length > 5:  # before, the variance of the averages cannot be relied on
            rectified = math.sqrt(
                (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
            )
            move = move * (rectified * math.sqrt(1 - power)) / (square.sqrt() + eps)
        p.sub_(move)


def rprop_step_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    prevs: Sequence[Tensor],
    step_sizes: Sequence[Tensor],
    steps: Sequence[Tensor],
    *,
    eta_minus: float,
    eta_plus: float,
    step_size_min: float,
    step_size_max: float,
    maximize: bool,
) -> None:
    lists = _members(params, grads, prevs, step_sizes)
    for (p, g, before, size), step in zip(lists, steps, strict=True):
        _count_step(step)
        g = -g if maximize else g
        agreement = (g * before).detach()
        factor = rushlight.where(agreement > 0, eta_plus, rushlight.ones_like(size))
        factor = rushlight.where(agreement < 0, eta_minus, factor)
        size.mul_(factor).clamp_(step_size_min, step_size_max)
        g = rushlight.where(agreement < 0, 0.0, g)
        before.copy_(g)
        p.sub_(g.sign() * size.clone())


def asgd_step_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    axs: Sequence[Tensor],
    *,
    lambd: float,
    eta: float,
    mu: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    for p, g, average in _members(params, grads, axs):
        g = _add_weight_decay(p, g, weight_decay, maximize)
        p.mul_(1 - lambd * eta).sub_(eta * g)
        if mu == 1:
            average.copy_(p)
        else:
            average.add_((p - average) * mu)
