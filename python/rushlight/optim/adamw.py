"""AdamW."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rushlight import Tensor

from ._functional import adamw  # noqa: F401  # PyTorch has it here, too
from .adam import Adam

__all__ = ["AdamW"]


class AdamW(Adam):
    """Adam with decoupled weight decay: parameters shrink by lr * weight_decay at each step.

    Step (Loshchilov and Hutter, 2019): p ← p * (1 - lr * weight_decay), and then the step of
    `Adam`.

    Args:
        params, lr, betas, eps, weight_decay, amsgrad, maximize: see `Adam`.
        foreach: accepted; all parameters of a group are updated at once anyway.
        capturable: accepted, without effect.
        differentiable: whether autograd records the step, so that one can differentiate
            through it.
        fused: accepted, as `foreach` is.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = torch.optim.AdamW([w], lr=0.1)
        >>> w.square().sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([ 0.8990, -1.8980])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
