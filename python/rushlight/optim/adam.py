"""Adam."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from rushlight import Tensor

from ._functional import adam  # noqa: F401  # PyTorch has it here, too
from ._stepping import (
    StatewiseOptimizer,
    _check_settings,
    _check_ways,
    _settings,
)

__all__ = ["Adam"]


class Adam(StatewiseOptimizer):
    """Steps along the running mean of the gradient over the root of its running mean square.

    Step t, with the gradient g (Kingma and Ba, 2015): m ← b1 * m + (1 - b1) * g, v ← b2 * v + (1 -
    b2) * g², and p ← p - lr * (m / (1 - b1^t)) / (√(v / (1 - b2^t)) + eps).

    Args:
        params: the parameters, or groups of them (see `Optimizer`).
        lr: the learning rate, a number or a tensor of one element.
        betas: weights of the old values in the two running means.
        eps: a number that is added to the root, against division by zero.
        weight_decay: this times the parameter is added to the gradient (see `AdamW`).
        amsgrad: divide by the largest mean square so far.
        maximize: maximise the objective instead of minimising it.
        decoupled_weight_decay: shrink the parameters by lr * weight_decay instead.
        foreach: accepted; all parameters of a group are updated at once anyway.
        capturable: accepted, without effect.
        differentiable: whether autograd records the step, so that one can differentiate
            through it.
        fused: accepted, as `foreach` is.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = torch.optim.Adam([w], lr=0.1)
        >>> w.square().sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([ 0.9000, -1.9000])
    """

    _op = "adam_step_"
    _kept: ClassVar = {"exp_avg": "", "exp_avg_sq": "", "max_exp_avg_sq": "amsgrad"}
    _later_settings: ClassVar = {
        **StatewiseOptimizer._later_settings,
        "amsgrad": False,
        "decoupled_weight_decay": False,
        "fused": None,
    }

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError(
                "Adam: lr as a Tensor is not supported with foreach=True unless capturable=True; "
                "give a number"
            )
        _check_settings(lr, eps=eps, betas=betas, weight_decay=weight_decay)
        _check_ways(foreach, fused, differentiable)
        names = (
            "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable "
            "fused decoupled_weight_decay"
        )
        super().__init__(params, _settings(names, locals()))
