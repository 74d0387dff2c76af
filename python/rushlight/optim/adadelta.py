"""Adadelta."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from rushlight import Tensor

from ._functional import adadelta  # noqa: F401  # PyTorch has it here, too
from ._stepping import (
    StatewiseOptimizer,
    _check_settings,
    _check_ways,
    _settings,
)

__all__ = ["Adadelta"]


class Adadelta(StatewiseOptimizer):
    """Scales the gradient by the root of the running mean square of steps over that of gradients.

    Step, with the gradient g (Zeiler, 2012): v ← rho * v + (1 - rho) * g², d = √(u + eps) / √(v +
    eps) * g, u ← rho * u + (1 - rho) * d², and p ← p - lr * d.

    Args:
        params: the parameters, or groups of them (see `Optimizer`).
        lr: the factor of the step.
        rho: weight of the old values in the running means.
        eps: added to both mean squares.
        weight_decay: this times the parameter is added to the gradient.
        maximize: maximise the objective instead of minimising it.
        foreach: accepted; all parameters of a group are updated at once anyway.
        capturable: accepted, without effect.
        differentiable: whether autograd records the step, so that one can differentiate
            through it.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = torch.optim.Adadelta([w])
        >>> w.square().sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([ 0.9968, -1.9968])
    """

    _op = "adadelta_step_"
    _kept: ClassVar = {"square_avg": "", "acc_delta": ""}

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_settings(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        _check_settings(lr, eps=eps, weight_decay=weight_decay)
        _check_ways(foreach, None, differentiable)
        names = "lr rho eps weight_decay maximize capturable foreach differentiable"
        super().__init__(params, _settings(names, locals()))
