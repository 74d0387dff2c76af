"""Adagrad."""

import rushlight
from rushlight._table import ops

from .adam import _counters_to_tensors
from .optimizer import Optimizer, _check_settings, _check_ways, _counter

__all__ = ["Adagrad"]


class Adagrad(Optimizer):
    """Divides the gradient by the root of the sum of its squares so far.

    Args:
        params: see `Optimizer`.
        lr: learning rate.
        lr_decay: the rate is divided by 1 + (steps before) * lr_decay.
        weight_decay: this times the parameter is added to the gradient.
        initial_accumulator_value: what the sums start from.
        eps: added to the root.
        maximize: climb instead.
    """

    def __init__(
        self,
        params,
        lr=1e-2,
        lr_decay=0,
        weight_decay=0,
        initial_accumulator_value=0,
        eps=1e-10,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        fused=None,
    ):
        _check_settings(
            lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        _check_ways(foreach, fused, differentiable)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        # Unlike others', this state exists before the first step.
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state["step"] = _counter()
                state["sum"] = rushlight.full_like(
                    p, initial_accumulator_value, memory_format=rushlight.preserve_format
                )

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("foreach", None)
            group.setdefault("maximize", False)
            group.setdefault("differentiable", False)
            group.setdefault("fused", None)
        _counters_to_tensors(self.state)

    def step(self, closure=None):
        loss = self._loss_of(closure)
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            if not params:
                continue
            states = [self.state[p] for p in params]
            ops.adagrad_step_(
                params,
                [p.grad for p in params],
                [state["sum"] for state in states],
                [state["step"] for state in states],
                lr=float(group["lr"]),
                lr_decay=group["lr_decay"],
                eps=group["eps"],
                weight_decay=group["weight_decay"],
                maximize=group["maximize"],
            )
        return loss
