"""Muon."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import rushlight
from rushlight import Tensor

from ._stepping import ParameterwiseOptimizer, _check_settings, _settings, _zeros_like

__all__ = ["Muon"]


def _orthogonalize(update: Tensor, coefficients: Sequence[float], steps: int, eps: float) -> Tensor:
    """The nearest matrix with orthonormal rows or columns, nearly, by Newton-Schulz iterations."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    x = update.bfloat16()
    tall = x.size(0) > x.size(1)
    if tall:
        x = x.T
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        change = rushlight.addmm(gram, gram, gram, beta=b, alpha=c)
        x = rushlight.addmm(x, change, x, beta=a)
    return x.T if tall else x


def _adjust_lr(lr: float, how: str | None, shape: Sequence[int]) -> float:
    rows, columns = shape[:2]
    if how is None or how == "original":
        return lr * math.sqrt(max(1, rows / columns))
    return lr * 0.2 * math.sqrt(max(rows, columns))


class Muon(ParameterwiseOptimizer):
    """Orthogonalised momentum for matrices.

    Step, with the gradient g (Jordan, 2024): m ← momentum * m + (1 - momentum) * g, b = m, or (1 -
    momentum) * g + momentum * m with `nesterov`, and p ← p * (1 - lr * weight_decay) - lr * s * O,
    where O is b made nearly orthogonal by steps of Newton and Schulz, and s = √max(1, rows /
    columns), or √max(rows, columns) / 5 for "match_rms_adamw".

    Args:
        params: matrices; see `Optimizer`.
        lr: the learning rate.
        weight_decay: parameters shrink by lr * weight_decay.
        momentum: weight of the old value in the running mean.
        nesterov: use Nesterov's momentum.
        ns_coefficients, ns_steps, eps: of the Newton-Schulz iteration.
        adjust_lr_fn: "original" (by the ratio of the sides) or "match_rms_adamw".

    Example:
        >>> w = torch.nn.Parameter(torch.eye(2))
        >>> optimizer = torch.optim.Muon([w], lr=0.1)
        >>> w.square().sum().backward()
        >>> optimizer.step()
        >>> w.shape
        torch.Size([2, 2])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: Sequence[float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        _check_settings(lr, momentum=momentum, weight_decay=weight_decay)
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(
                f"Adjust learning rate function {adjust_lr_fn} is not known: it is 'original' or "
                "'match_rms_adamw'"
            )
        names = "lr weight_decay momentum nesterov ns_coefficients eps ns_steps adjust_lr_fn"
        super().__init__(params, _settings(names, locals()))
        for group in self.param_groups:
            for p in group["params"]:
                if p.dim() != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters, but one has the shape {p.size()}: "
                        "give others to another optimiser"
                    )

    def _step_parameter(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        if p.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        state = self.state[p]
        if not state:
            state["momentum_buffer"] = _zeros_like(p)
        buffer = state["momentum_buffer"]
        buffer.lerp_(grad, 1 - group["momentum"])
        update = grad.lerp(buffer, group["momentum"]) if group["nesterov"] else buffer
        update = _orthogonalize(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        lr = float(group["lr"])
        p.mul_(1 - lr * group["weight_decay"])
        p.add_(update, alpha=-_adjust_lr(lr, group["adjust_lr_fn"], p.shape))
