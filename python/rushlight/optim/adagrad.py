"""Adagrad."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import rushlight
from rushlight import Tensor

from ._functional import adagrad  # noqa: F401  # PyTorch has it here, too
from ._stepping import (
    StatewiseOptimizer,
    _check_settings,
    _check_ways,
    _counter,
    _settings,
    _sparse_like,
)

__all__ = ["Adagrad"]


class Adagrad(StatewiseOptimizer):
    """Divides the gradient by the root of the sum of its squares so far.

    Step t, with the gradient g (Duchi and others, 2011): s ← s + g², and p ← p - lr / (1 + (t - 1)
    * lr_decay) * g / (√s + eps).

    Args:
        params: the parameters, or groups of them (see `Optimizer`).
        lr: the learning rate.
        lr_decay: the rate is divided by 1 + (steps before) * lr_decay.
        weight_decay: this times the parameter is added to the gradient.
        initial_accumulator_value: the initial value of the sums.
        eps: a number that is added to the root, against division by zero.
        maximize: maximise the objective instead of minimising it.
        foreach: accepted; all parameters of a group are updated at once anyway.
        differentiable: whether autograd records the step, so that one can differentiate
            through it.
        fused: accepted, as `foreach` is.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = torch.optim.Adagrad([w], lr=0.1)
        >>> w.square().sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([ 0.9000, -1.9000])
    """

    _op = "adagrad_step_"
    _kept: ClassVar = {"sum": ""}
    _later_settings: ClassVar = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "fused": None,
    }

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        _check_settings(
            lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        _check_ways(foreach, fused, differentiable)
        names = (
            "lr lr_decay eps weight_decay initial_accumulator_value foreach maximize "
            "differentiable fused"
        )
        super().__init__(params, _settings(names, locals()))
        # Unlike others', this state exists before the first step.
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p].update(self._new_state(p, group))

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        start = group["initial_accumulator_value"]
        if p.is_complex():  # two real numbers
            start = complex(start, start)
        total = rushlight.full_like(p, start, memory_format=rushlight.preserve_format)
        return {"step": _counter(), "sum": total}

    def _step_sparse(
        self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        # Only rows that have a gradient change.
        if group["weight_decay"] != 0:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        with rushlight.no_grad():
            state["step"] += 1
            grad = (-grad if group["maximize"] else grad).coalesce()
            lr = float(group["lr"]) / (1 + (float(state["step"]) - 1) * group["lr_decay"])
            values = grad.values()
            if values.numel() == 0:
                return
            state["sum"].add_(_sparse_like(grad, values * values))
            total = state["sum"].sparse_mask(grad).values().sqrt_().add_(group["eps"])
            p.add_(_sparse_like(grad, values / total), alpha=-lr)
