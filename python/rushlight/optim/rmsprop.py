"""RMSprop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from rushlight import Tensor

from ._functional import rmsprop  # noqa: F401  # PyTorch has it here, too
from ._stepping import (
    StatewiseOptimizer,
    _check_settings,
    _check_ways,
    _settings,
)

__all__ = ["RMSprop"]


class RMSprop(StatewiseOptimizer):
    """Divides the gradient by the root of its running mean square.

    Step, with the gradient g (Hinton, 2012): v ← alpha * v + (1 - alpha) * g², d = g / (√v + eps),
    b ← momentum * b + d, and p ← p - lr * b. If it is centered, a ← alpha * a + (1 - alpha) * g,
    and v - a² stands in the place of v.

    Args:
        params: the parameters, or groups of them (see `Optimizer`).
        lr: the learning rate.
        alpha: weight of the old value in the running mean.
        eps: a number that is added to the root, against division by zero.
        weight_decay: this times the parameter is added to the gradient.
        momentum: the weight of the previous step.
        centered: divide by the running standard deviation instead.
        maximize: maximise the objective instead of minimising it.
        capturable: accepted, without effect.
        foreach: accepted; all parameters of a group are updated at once anyway.
        differentiable: whether autograd records the step, so that one can differentiate
            through it.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = torch.optim.RMSprop([w], lr=0.1)
        >>> w.square().sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([ 5.9605e-08, -1.0000e+00])
    """

    _op = "rmsprop_step_"
    _kept: ClassVar = {"square_avg": "", "momentum_buffer": "momentum", "grad_avg": "centered"}
    _later_settings: ClassVar = {
        **StatewiseOptimizer._later_settings,
        "momentum": 0,
        "centered": False,
    }

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_settings(lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        _check_ways(foreach, None, differentiable)
        names = (
            "lr momentum alpha eps centered weight_decay capturable foreach maximize differentiable"
        )
        super().__init__(params, _settings(names, locals()))
