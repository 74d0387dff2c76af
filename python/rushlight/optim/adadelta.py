"""Adadelta."""

from rushlight._table import ops

from .adam import _counters_to_tensors
from .optimizer import Optimizer, _check_settings, _check_ways, _counter, _zeros_like

__all__ = ["Adadelta"]


class Adadelta(Optimizer):
    """Scales the gradient by the root of the running mean square of steps over that of gradients.

    Args:
        params: see `Optimizer`.
        lr: factor on the step.
        rho: weight of the old values in the running means.
        eps: added to both mean squares.
        weight_decay: this times the parameter is added to the gradient.
        maximize: climb instead.
    """

    def __init__(
        self,
        params,
        lr=1.0,
        rho=0.9,
        eps=1e-6,
        weight_decay=0,
        foreach=None,
        *,
        capturable=False,
        maximize=False,
        differentiable=False,
    ):
        _check_settings(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        _check_settings(lr, eps=eps, weight_decay=weight_decay)
        _check_ways(foreach, None, differentiable)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
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
        _counters_to_tensors(self.state)

    def step(self, closure=None):
        loss = self._loss_of(closure)
        for group in self.param_groups:
            self._step_group(group)
        return loss

    def _step_group(self, group):
        params = [p for p in group["params"] if p.grad is not None]
        if not params:
            return
        states = [self.state[p] for p in params]
        for p, state in zip(params, states, strict=True):
            if not state:
                state["step"] = _counter()
                state["square_avg"] = _zeros_like(p)
                state["acc_delta"] = _zeros_like(p)
        ops.adadelta_step_(
            params,
            [p.grad for p in params],
            [state["square_avg"] for state in states],
            [state["acc_delta"] for state in states],
            [state["step"] for state in states],
            lr=float(group["lr"]),
            rho=group["rho"],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            maximize=group["maximize"],
        )
