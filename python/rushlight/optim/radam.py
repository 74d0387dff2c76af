"""RAdam."""

from rushlight._table import ops

from .adam import _counters_to_tensors
from .optimizer import (
    StatewiseOptimizer,
    _check_betas,
    _check_settings,
    _check_ways,
    _counter,
    _zeros_like,
)

__all__ = ["RAdam"]


class RAdam(StatewiseOptimizer):
    """Adam that starts as momentum alone, until its mean squares can be relied on.

    Args:
        params: see `Optimizer`.
        lr: learning rate.
        betas: weights of the old values in the two running means.
        eps: added to the root.
        weight_decay: this times the parameter is added to the gradient.
        decoupled_weight_decay: shrink the parameters by lr * weight_decay instead.
        maximize: climb instead.
    """

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        decoupled_weight_decay=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
    ):
        _check_settings(lr, eps=eps)
        _check_betas(betas)
        _check_settings(lr, weight_decay=weight_decay)
        _check_ways(foreach, None, differentiable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("foreach", None)
            group.setdefault("maximize", False)
            group.setdefault("differentiable", False)
            group.setdefault("capturable", False)
            group.setdefault("decoupled_weight_decay", False)
        _counters_to_tensors(self.state)

    def _state_of(self, p, group):
        state = self.state[p]
        if not state:
            state["step"] = _counter()
            state["exp_avg"] = _zeros_like(p)
            state["exp_avg_sq"] = _zeros_like(p)
        return state

    def _step_group(self, group, params, states):
        ops.radam_step_(
            params,
            [p.grad for p in params],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [state["step"] for state in states],
            lr=float(group["lr"]),
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            decoupled=group["decoupled_weight_decay"],
            maximize=group["maximize"],
        )
