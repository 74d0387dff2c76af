"""Adamax."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from rushlight import Tensor

from ._functional import adamax  # noqa: F401  # PyTorch has it here, too
from ._stepping import (
    StatewiseOptimizer,
    _check_settings,
    _check_ways,
    _settings,
)

__all__ = ["Adamax"]


class Adamax(StatewiseOptimizer):
    """Adam with the largest recent gradient in place of the root of the mean square.

    Step t, with the gradient g (Kingma and Ba, 2015): m ← b1 * m + (1 - b1) * g, u ← max(b2 * u,
    |g| + eps), and p ← p - lr / (1 - b1^t) * m / u.

    Args:
        params: the parameters, or groups of them (see `Optimizer`).
        lr: the learning rate.
        betas: weights of the old values in the running mean and in the running maximum.
        eps: added to the gradient's size.
        weight_decay: this times the parameter is added to the gradient.
        maximize: maximise the objective instead of minimising it.
        foreach: accepted; all parameters of a group are updated at once anyway.
        differentiable: whether autograd records the step, so that one can differentiate
            through it.
        capturable: accepted, without effect.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = torch.optim.Adamax([w], lr=0.1)
        >>> w.square().sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([ 0.9000, -1.9000])
    """

    _op = "adamax_step_"
    _kept: ClassVar = {"exp_avg": "", "exp_inf": ""}

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        _check_settings(lr, eps=eps, betas=betas, weight_decay=weight_decay)
        _check_ways(foreach, None, differentiable)
        names = "lr betas eps weight_decay foreach maximize differentiable capturable"
        super().__init__(params, _settings(names, locals()))
