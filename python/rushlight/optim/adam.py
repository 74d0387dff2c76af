"""Adam."""

import rushlight
from rushlight import Tensor
from rushlight._table import ops

from .optimizer import Optimizer, _check_betas, _check_settings, _check_ways, _counter, _zeros_like

__all__ = ["Adam"]


class Adam(Optimizer):
    """Steps along the running mean of the gradient over the root of its running mean square.

    Args:
        params: see `Optimizer`.
        lr: learning rate, a number or a tensor of one element.
        betas: weights of the old values in the two running means.
        eps: added to the root.
        weight_decay: this times the parameter is added to the gradient (see `AdamW`).
        amsgrad: divide by the largest mean square so far.
        maximize: climb instead.
        decoupled_weight_decay: shrink the parameters by lr * weight_decay instead.
    """

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        amsgrad=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
        fused=None,
        decoupled_weight_decay=False,
    ):
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError(
                "lr as a Tensor is not supported for capturable=False and foreach=True"
            )
        _check_settings(lr, eps=eps)
        _check_betas(betas)
        _check_settings(lr, weight_decay=weight_decay)
        _check_ways(foreach, fused, differentiable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("amsgrad", False)
            group.setdefault("maximize", False)
            group.setdefault("foreach", None)
            group.setdefault("capturable", False)
            group.setdefault("differentiable", False)
            group.setdefault("decoupled_weight_decay", False)
            group.setdefault("fused", None)
        _counters_to_tensors(self.state)

    def step(self, closure=None):
        loss = self._loss_of(closure)
        for group in self.param_groups:
            self._step_group(group)
        return loss

    def _step_group(self, group):
        params, grads, means, squares, largest, steps = [], [], [], [], [], []
        amsgrad = group["amsgrad"]
        for p in group["params"]:
            grad = p.grad
            if grad is None:
                continue
            state = self.state[p]
            if not state:
                state["step"] = _counter()
                state["exp_avg"] = _zeros_like(p)
                state["exp_avg_sq"] = _zeros_like(p)
                if amsgrad:
                    state["max_exp_avg_sq"] = _zeros_like(p)
            params.append(p)
            grads.append(grad)
            means.append(state["exp_avg"])
            squares.append(state["exp_avg_sq"])
            steps.append(state["step"])
            if amsgrad:
                largest.append(state["max_exp_avg_sq"])
        if not params:
            return
        beta1, beta2 = group["betas"]
        ops.adam_step_(
            params,
            grads,
            means,
            squares,
            largest,
            steps,
            lr=float(group["lr"]),
            beta1=float(beta1),
            beta2=float(beta2),
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            decoupled=group["decoupled_weight_decay"],
            amsgrad=amsgrad,
            maximize=group["maximize"],
        )


def _counters_to_tensors(states):
    """Old states hold the number of steps as a Python number."""
    for state in states.values():
        if "step" in state and not isinstance(state["step"], Tensor):
            state["step"] = rushlight.tensor(float(state["step"]), dtype=rushlight.float32)
