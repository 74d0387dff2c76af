"""Rprop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import rushlight
from rushlight import Tensor

from ._functional import rprop  # noqa: F401  # PyTorch has it here, too
from ._stepping import (
    StatewiseOptimizer,
    _check_settings,
    _check_ways,
    _counter,
    _settings,
    _zeros_like,
)

__all__ = ["Rprop"]


class Rprop(StatewiseOptimizer):
    """Adapts the step length of each element: it grows while the sign of the gradient stays the
    same.

    Step, with the gradient g and the one before, h (Riedmiller and Braun, 1993): the length s is
    multiplied by etas[1] where g * h > 0 and by etas[0] where g * h < 0, within `step_sizes`; there
    g counts as 0. Then p ← p - s * sign(g).

    Args:
        params: the parameters, or groups of them (see `Optimizer`).
        lr: the initial length of steps.
        etas: the factors of the length if the sign has changed, and if it has not.
        step_sizes: the least and the greatest length.
        maximize: maximise the objective instead of minimising it.
        capturable: accepted, without effect.
        foreach: accepted; all parameters of a group are updated at once anyway.
        differentiable: whether autograd records the step, so that one can differentiate
            through it.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = torch.optim.Rprop([w], lr=0.1)
        >>> w.square().sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([ 0.9000, -1.9000])
    """

    _op = "rprop_step_"
    _kept: ClassVar = {"prev": "", "step_size": ""}

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_settings(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        _check_ways(foreach, None, differentiable)
        names = "lr etas step_sizes foreach maximize differentiable capturable"
        super().__init__(params, _settings(names, locals()))

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        lr = float(group["lr"])
        # Both parts of a complex number have a length.
        length = rushlight.full_like(p, complex(lr, lr) if p.dtype.is_complex else lr)
        return {"step": _counter(), "prev": _zeros_like(p), "step_size": length}
