"""Steps of optimisers as functions of lists of tensors: parameters, gradients, and what each keeps.

Parameters, states and counts of steps change in place. With `differentiable` the step is recorded
(`_differentiable.py`), so parameters must not be leaves then. `foreach`, `fused` and `capturable`
mean nothing: there is one way to do a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight import Tensor

from ._stepping import _steps
from .optimizer import _get_value

__all__ = [
    "adadelta",
    "adagrad",
    "adam",
    "adamax",
    "adamw",
    "asgd",
    "nadam",
    "radam",
    "rmsprop",
    "rprop",
    "sgd",
]

_List = Sequence[Tensor]


def _is_skipped(grads: Any, grad_scale: Tensor | None, found_inf: Tensor | None) -> bool:
    """Whether a gradient scaler found infinities; if not, gradients are divided by its scale."""
    if found_inf is not None and float(found_inf) != 0:
        return True
    if grad_scale is not None:
        for grad in grads:
            grad.div_(grad_scale.to(grad.device))
    return False


def sgd(
    params: _List,
    d_p_list: _List,
    momentum_buffer_list: list[Tensor | None],
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    *,
    weight_decay: float,
    momentum: float,
    lr: float,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """A step of `SGD`. Running gradients that are None are made, and put into their list.

    Raises:
        RuntimeError: if a gradient is sparse.
    """
    if has_sparse_grad:
        raise RuntimeError("sgd(): sparse gradients are taken by the class SGD alone")
    if _is_skipped(d_p_list, grad_scale, found_inf):
        return
    parts: dict[bool, list[int]] = {False: [], True: []}
    for i, buffer in enumerate(momentum_buffer_list):
        first = momentum != 0 and buffer is None
        if first:
            momentum_buffer_list[i] = rushlight.empty_like(d_p_list[i])
        parts[first].append(i)
    for first, places in parts.items():
        if places:
            _steps(False).sgd_step_(
                [params[i] for i in places],
                [d_p_list[i] for i in places],
                [momentum_buffer_list[i] for i in places] if momentum != 0 else [],
                lr=float(_get_value(lr)),
                momentum=momentum,
                dampening=dampening,
                weight_decay=weight_decay,
                nesterov=nesterov,
                maximize=maximize,
                first=first,
            )


def adam(
    params: _List,
    grads: _List,
    exp_avgs: _List,
    exp_avg_sqs: _List,
    max_exp_avg_sqs: _List,
    state_steps: _List,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    decoupled_weight_decay: bool = False,
    *,
    amsgrad: bool,
    beta1: float | Tensor,
    beta2: float | Tensor,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """A step of `Adam`."""
    if _is_skipped(grads, grad_scale, found_inf):
        return
    _steps(differentiable).adam_step_(
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        max_exp_avg_sqs if amsgrad else [],
        state_steps,
        lr=float(lr),
        beta1=float(beta1),
        beta2=float(beta2),
        eps=eps,
        weight_decay=weight_decay,
        decoupled=decoupled_weight_decay,
        amsgrad=amsgrad,
        maximize=maximize,
    )


def adamw(
    params: _List,
    grads: _List,
    exp_avgs: _List,
    exp_avg_sqs: _List,
    max_exp_avg_sqs: _List,
    state_steps: _List,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    *,
    amsgrad: bool,
    beta1: float | Tensor,
    beta2: float | Tensor,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """A step of `AdamW`."""
    adam(
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        max_exp_avg_sqs,
        state_steps,
        differentiable=differentiable,
        grad_scale=grad_scale,
        found_inf=found_inf,
        decoupled_weight_decay=True,
        amsgrad=amsgrad,
        beta1=beta1,
        beta2=beta2,
        lr=lr,
        weight_decay=weight_decay,
        eps=eps,
        maximize=maximize,
    )


def adagrad(
    params: _List,
    grads: _List,
    state_sums: _List,
    state_steps: _List,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """A step of `Adagrad`.

    Raises:
        RuntimeError: if a gradient is sparse.
    """
    if has_sparse_grad:
        raise RuntimeError("adagrad(): sparse gradients are taken by the class Adagrad alone")
    if _is_skipped(grads, grad_scale, found_inf):
        return
    _steps(differentiable).adagrad_step_(
        params,
        grads,
        state_sums,
        state_steps,
        lr=float(lr),
        lr_decay=lr_decay,
        eps=eps,
        weight_decay=weight_decay,
        maximize=maximize,
    )


def adadelta(
    params: _List,
    grads: _List,
    square_avgs: _List,
    acc_deltas: _List,
    state_steps: _List,
    capturable: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """A step of `Adadelta`."""
    _steps(differentiable).adadelta_step_(
        params,
        grads,
        square_avgs,
        acc_deltas,
        state_steps,
        lr=float(lr),
        rho=rho,
        eps=eps,
        weight_decay=weight_decay,
        maximize=maximize,
    )


def adamax(
    params: _List,
    grads: _List,
    exp_avgs: _List,
    exp_infs: _List,
    state_steps: _List,
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
) -> None:
    """A step of `Adamax`."""
    _steps(differentiable).adamax_step_(
        params,
        grads,
        exp_avgs,
        exp_infs,
        state_steps,
        lr=float(lr),
        beta1=beta1,
        beta2=beta2,
        eps=eps,
        weight_decay=weight_decay,
        maximize=maximize,
    )


def asgd(
    params: _List,
    grads: _List,
    axs: _List,
    mus: _List,
    etas: _List,
    state_steps: _List,
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lambd: float,
    lr: float,
    t0: float,
    alpha: float,
    weight_decay: float,
) -> None:
    """A step of `ASGD`."""
    # One call for all that have taken as many steps.
    together: dict[tuple[float, float], list[int]] = {}
    for i, numbers in enumerate(zip(etas, mus, strict=True)):
        together.setdefault((float(numbers[0]), float(numbers[1])), []).append(i)
    for (eta, mu), places in together.items():
        _steps(differentiable).asgd_step_(
            [params[i] for i in places],
            [grads[i] for i in places],
            [axs[i] for i in places],
            lambd=lambd,
            eta=eta,
            mu=mu,
            weight_decay=weight_decay,
            maximize=maximize,
        )
    rate = float(lr)
    for step, next_eta, next_mu in zip(state_steps, etas, mus, strict=True):
        step += 1
        next_eta.fill_(rate / (1 + lambd * rate * float(step)) ** alpha)
        next_mu.fill_(1 / max(1, float(step) - t0))


def nadam(
    params: _List,
    grads: _List,
    exp_avgs: _List,
    exp_avg_sqs: _List,
    mu_products: _List,
    state_steps: _List,
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
) -> None:
    """A step of `NAdam`."""
    _steps(differentiable).nadam_step_(
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        mu_products,
        state_steps,
        lr=float(lr),
        beta1=beta1,
        beta2=beta2,
        eps=eps,
        weight_decay=weight_decay,
        momentum_decay=momentum_decay,
        decoupled=decoupled_weight_decay,
        maximize=maximize,
    )


def radam(
    params: _List,
    grads: _List,
    exp_avgs: _List,
    exp_avg_sqs: _List,
    state_steps: _List,
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    eps: float,
) -> None:
    """A step of `RAdam`."""
    _steps(differentiable).radam_step_(
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        state_steps,
        lr=float(lr),
        beta1=beta1,
        beta2=beta2,
        eps=eps,
        weight_decay=weight_decay,
        decoupled=decoupled_weight_decay,
        maximize=maximize,
    )


def rmsprop(
    params: _List,
    grads: _List,
    square_avgs: _List,
    grad_avgs: _List,
    momentum_buffer_list: _List,
    state_steps: _List,
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
) -> None:
    """A step of `RMSprop`."""
    _steps(differentiable).rmsprop_step_(
        params,
        grads,
        square_avgs,
        momentum_buffer_list if momentum > 0 else [],
        grad_avgs if centered else [],
        state_steps,
        lr=float(lr),
        alpha=alpha,
        eps=eps,
        weight_decay=weight_decay,
        momentum=momentum,
        centered=centered,
        maximize=maximize,
    )


def rprop(
    params: _List,
    grads: _List,
    prevs: _List,
    step_sizes: _List,
    state_steps: _List,
    foreach: bool | None = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
) -> None:
    """A step of `Rprop`."""
    _steps(differentiable).rprop_step_(
        params,
        grads,
        prevs,
        step_sizes,
        state_steps,
        eta_minus=etaminus,
        eta_plus=etaplus,
        step_size_min=step_size_min,
        step_size_max=step_size_max,
        maximize=maximize,
    )
