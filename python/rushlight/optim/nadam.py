"""NAdam."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import rushlight
from rushlight import Tensor

from ._functional import nadam  # noqa: F401  # PyTorch has it here, too
from ._stepping import (
    StatewiseOptimizer,
    _check_settings,
    _check_ways,
    _counter,
    _settings,
    _zeros_like,
)

__all__ = ["NAdam"]


class NAdam(StatewiseOptimizer):
    """Adam with Nesterov momentum.

    Step t, with the gradient g (Dozat, 2016): m and v as in `Adam`, μ(t) = b1 * (1 - 0.96^(t *
    momentum_decay) / 2), M(t) the product of μ(1) to μ(t), and p ← p - lr * (μ(t + 1) * m / (1 -
    M(t + 1)) + (1 - μ(t)) * g / (1 - M(t))) / (√(v / (1 - b2^t)) + eps).

    Args:
        params: the parameters, or groups of them (see `Optimizer`).
        lr: the learning rate.
        betas: weights of the old values in the two running means.
        eps: a number that is added to the root, against division by zero.
        weight_decay: this times the parameter is added to the gradient.
        momentum_decay: the rate at which the momentum approaches betas[0].
        decoupled_weight_decay: shrink the parameters by lr * weight_decay instead.
        maximize: maximise the objective instead of minimising it.
        foreach: accepted; all parameters of a group are updated at once anyway.
        capturable: accepted, without effect.
        differentiable: whether autograd records the step, so that one can differentiate
            through it.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = torch.optim.NAdam([w], lr=0.1)
        >>> w.square().sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([ 0.8944, -1.8944])
    """

    _op = "nadam_step_"
    _kept: ClassVar = {"exp_avg": "", "exp_avg_sq": "", "mu_product": ""}
    _later_settings: ClassVar = {
        **StatewiseOptimizer._later_settings,
        "decoupled_weight_decay": False,
    }

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_settings(
            lr, eps=eps, betas=betas, weight_decay=weight_decay, momentum_decay=momentum_decay
        )
        _check_ways(foreach, None, differentiable)
        names = (
            "lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize "
            "foreach capturable differentiable"
        )
        super().__init__(params, _settings(names, locals()))

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": _counter(),
            "mu_product": rushlight.ones((), dtype=rushlight.float32, device="cpu"),
            "exp_avg": _zeros_like(p),
            "exp_avg_sq": _zeros_like(p),
        }
