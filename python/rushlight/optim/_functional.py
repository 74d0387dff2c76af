"""Steps of optimisers as functions of lists of tensors: parameters, gradients, and what each keeps.

Parameters, states and counts of steps change in place. With `differentiable` autograd records the
step, so parameters must not be leaves then. `foreach`, `fused` and `capturable` mean nothing: there
is one way to do a step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import rushlight
from rushlight import Tensor

from ._stepping import _arguments_of, _take_step

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
# What the arguments of ops are called here.
_NAMES = {
    "decoupled": "decoupled_weight_decay",
    "eta_minus": "etaminus",
    "eta_plus": "etaplus",
    "momentum_buffers": "momentum_buffer_list",
    "steps": "state_steps",
}


def _is_skipped(grads: Any, grad_scale: Tensor | None, found_inf: Tensor | None) -> bool:
    """Whether a gradient scaler found infinities; if not, gradients are divided by its scale."""
    if found_inf is not None and float(found_inf) != 0:
        return True
    if grad_scale is not None:
        for grad in grads:
            grad.div_(grad_scale.to(grad.device))
    return False


def _run(op: str, given: Mapping[str, Any]) -> None:
    """The step of an op, by the arguments of a function."""
    if _is_skipped(given["grads"], given.get("grad_scale"), given.get("found_inf")):
        return
    lists, settings = _arguments_of(op)
    known = {name: given[_NAMES.get(name, name)] for name in (*lists, *settings)}
    _take_step(op, given["differentiable"], [known[name] for name in lists], known)


def _step_sgd(
    params: _List,
    grads: _List,
    buffers: list[Tensor | None],
    settings: Mapping[str, Any],
    differentiable: bool,
) -> None:
    """A step of `SGD`. Parameters that have no running gradient yet take another branch of it."""
    parts: dict[bool, list[int]] = {False: [], True: []}
    for i, buffer in enumerate(buffers):
        first = settings["momentum"] != 0 and buffer is None
        if first:
            buffers[i] = rushlight.empty_like(grads[i])
        parts[first].append(i)
    for first, places in parts.items():
        if places:
            lists = [[own[i] for i in places] for own in (params, grads, buffers)]
            kept = lists if settings["momentum"] != 0 else [*lists[:2], []]
            _take_step("sgd_step_", differentiable, kept, {**settings, "first": first})


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
    if not _is_skipped(d_p_list, grad_scale, found_inf):
        _step_sgd(params, d_p_list, momentum_buffer_list, locals(), False)


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
    _run("adam_step_", locals())


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
    _run("adam_step_", locals() | {"decoupled_weight_decay": True})


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
    _run("adagrad_step_", locals())


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
    _run("adadelta_step_", locals())


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
    _run("adamax_step_", locals())


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
        lists = [[own[i] for i in places] for own in (params, grads, axs)]
        settings = {"lambd": lambd, "eta": eta, "mu": mu}
        settings |= {"weight_decay": weight_decay, "maximize": maximize}
        _take_step("asgd_step_", differentiable, lists, settings)
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
    _run("nadam_step_", locals())


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
    _run("radam_step_", locals())


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
    _run("rmsprop_step_", locals())


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
    _run("rprop_step_", locals())
