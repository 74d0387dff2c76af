"""ASGD."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import rushlight
from rushlight import Tensor

from ._functional import asgd  # noqa: F401  # PyTorch has it here, too
from .optimizer import (
    StatewiseOptimizer,
    _check_settings,
    _check_ways,
    _counter,
    _steps,
    _zeros_like,
)

__all__ = ["ASGD"]


class ASGD(StatewiseOptimizer):
    """Stochastic gradient descent that also keeps the average of the parameters, in `ax`.

    Args:
        params: see `Optimizer`.
        lr: learning rate.
        lambd: how fast parameters shrink and the rate falls.
        alpha: power of the rate's fall.
        t0: steps before averaging starts.
        weight_decay: this times the parameter is added to the gradient.
        maximize: climb instead.
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
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _new_state(self, p, group):
        return {
            "step": _counter(),
            "eta": rushlight.tensor(float(group["lr"])),
            "mu": rushlight.ones(()),
            "ax": _zeros_like(p),
        }

    def _step_group(self, group, params, grads, states):
        # One call for all that have taken as many steps.
        together: dict[tuple[float, float], list] = {}
        for p, state in zip(params, states, strict=True):
            rates = (float(state["eta"]), float(state["mu"]))
            together.setdefault(rates, []).append((p, state))
        lr, lambd = float(group["lr"]), group["lambd"]
        for (eta, mu), members in together.items():
            _steps(group).asgd_step_(
                [p for p, _ in members],
                [p.grad for p, _ in members],
                [state["ax"] for _, state in members],
                lambd=lambd,
                eta=eta,
                mu=mu,
                weight_decay=group["weight_decay"],
                maximize=group["maximize"],
            )
        for state in states:
            state["step"] += 1
            count = float(state["step"])
            state["eta"].fill_(lr / (1 + lambd * lr * count) ** group["alpha"])
            state["mu"].fill_(1 / max(1, count - group["t0"]))
