"""SparseAdam."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rushlight import Tensor

from .optimizer import Optimizer, _check_settings

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam for sparse gradients, which touches only the rows that have one.

    There are no sparse gradients here (embeddings give dense ones), so a step either finds none
    or raises RuntimeError, as it must for dense ones.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        _check_settings(lr, eps=eps, betas=betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})

    def step(self, closure: Callable[[], Any] | None = None):
        loss = self._loss_of(closure)
        if any(p.grad is not None for group in self.param_groups for p in group["params"]):
            raise RuntimeError(
                "SparseAdam does not support dense gradients, please consider Adam instead"
            )
        return loss
