"""RAdam."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from rushlight import Tensor

from ._functional import radam  # noqa: F401  # PyTorch has it here, too
from ._stepping import (
    StatewiseOptimizer,
    _check_settings,
    _check_ways,
    _settings,
)

__all__ = ["RAdam"]


class RAdam(StatewiseOptimizer):
    """Adam that begins with momentum alone, until its mean squares are reliable.

    Step t (Liu and others, 2020): m and v as in `Adam`, a = 2 / (1 - b2) - 1, r = a - 2 * t * b2^t
    / (1 - b2^t). Where r > 5, p ← p - lr * m / (1 - b1^t) * √(1 - b2^t) / (√v + eps) * √((r - 4) *
    (r - 2) * a / ((a - 4) * (a - 2) * r)); before, p ← p - lr * m / (1 - b1^t).

    Args:
        params: the parameters, or groups of them (see `Optimizer`).
        lr: the learning rate.
        betas: weights of the old values in the two running means.
        eps: a number that is added to the root, against division by zero.
        weight_decay: this times the parameter is added to the gradient.
        decoupled_weight_decay: shrink the parameters by lr * weight_decay instead.
        maximize: maximise the objective instead of minimising it.
        foreach: accepted; all parameters of a group are updated at once anyway.
        capturable: accepted, without effect.
        differentiable: whether autograd records the step, so that one can differentiate
            through it.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = torch.optim.RAdam([w], lr=0.1)
        >>> w.square().sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([ 0.8000, -1.6000])
    """

    _op = "radam_step_"
    _kept: ClassVar = {"exp_avg": "", "exp_avg_sq": ""}
    _later_settings: ClassVar = {
        **StatewiseOptimizer._later_settings,
        "decoupled_weight_decay": False,
    }

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_settings(lr, eps=eps, betas=betas, weight_decay=weight_decay)
        _check_ways(foreach, None, differentiable)
        names = (
            "lr betas eps weight_decay maximize foreach capturable decoupled_weight_decay "
            "differentiable"
        )
        super().__init__(params, _settings(names, locals()))
