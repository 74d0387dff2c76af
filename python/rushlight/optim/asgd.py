"""ASGD."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import rushlight
from rushlight import Tensor

from ._functional import asgd
from ._stepping import (
    StatewiseOptimizer,
    _check_settings,
    _check_ways,
    _counter,
    _each,
    _settings,
    _zeros_like,
)

__all__ = ["ASGD"]


class ASGD(StatewiseOptimizer):
    """Stochastic gradient descent that also keeps the average of the parameters, in `ax`.

    Step t, with the gradient g (Polyak and Juditsky, 1992): p ← p * (1 - lambd * e) - e * g, ax ←
    ax + (p - ax) / max(1, t - 1 - t0), with the rate e = lr / (1 + lambd * lr * (t - 1))^alpha.

    Args:
        params: the parameters, or groups of them (see `Optimizer`).
        lr: the learning rate.
        lambd: the decay of the parameters and of the learning rate.
        alpha: the power with which the learning rate decreases.
        t0: steps before averaging starts.
        weight_decay: this times the parameter is added to the gradient.
        maximize: maximise the objective instead of minimising it.
        foreach: accepted; all parameters of a group are updated at once anyway.
        differentiable: whether autograd records the step, so that one can differentiate
            through it.
        capturable: accepted, without effect.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = torch.optim.ASGD([w], lr=0.1)
        >>> w.square().sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([ 0.8000, -1.6000])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        _check_settings(lr, weight_decay=weight_decay)
        _check_ways(foreach, None, differentiable)
        names = "lr lambd alpha t0 weight_decay foreach maximize differentiable capturable"
        super().__init__(params, _settings(names, locals()))

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": _counter(),
            "eta": rushlight.tensor(float(group["lr"])),
            "mu": rushlight.ones(()),
            "ax": _zeros_like(p),
        }

    def _step_group(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Any]],
    ) -> None:
        asgd(
            params,
            grads,
            _each(states, "ax"),
            _each(states, "mu"),
            _each(states, "eta"),
            _each(states, "step"),
            **_settings("lr lambd t0 alpha weight_decay maximize differentiable", group),
        )
