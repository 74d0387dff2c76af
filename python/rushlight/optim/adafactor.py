"""Adafactor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import rushlight
from rushlight import Tensor

from ._stepping import ParameterwiseOptimizer, _counter, _settings

__all__ = ["Adafactor"]


class Adafactor(ParameterwiseOptimizer):
    """Divides by the root of a mean square that is kept as a row and a column of each matrix.

    Step t, with the gradient g (Shazeer and Stern, 2018): V ← (1 - k) * V + k * g² with k =
    t^beta2_decay, of a matrix from the means R of its rows and C of its columns, V = R * C /
    mean(R); u = g / √V, and p ← p - max(eps[1], rms(p)) * min(lr, 1 / √t) * u / max(1, rms(u) / d).

    Args:
        params: the parameters, or groups of them (see `Optimizer`).
        lr: the greatest relative step.
        beta2_decay: the power of the step count that gives the weight of new squares.
        eps: the least root (None: the dtype's epsilon) and the least size of a parameter.
        d: the limit of the root mean square of steps, to which larger ones are scaled down.
        weight_decay: parameters shrink by lr * weight_decay.
        maximize: maximise the objective instead of minimising it.
        foreach: accepted; all parameters of a group are updated at once anyway.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = torch.optim.Adafactor([w])
        >>> w.square().sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([ 0.9842, -1.9842])
    """

    _later_settings: ClassVar = {"foreach": None}

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for name, value, least in (
            ("Learning rate", lr, 0),
            ("epsilon1", 0 if eps[0] is None else eps[0], 0),
            ("epsilon2", eps[1], 0),
            ("Clipping threshold d", d, 1),
            ("weight_decay", weight_decay, 0),
        ):
            if not value >= least:
                raise ValueError(f"{name} should be >= {least} but is: {value}")
        if not beta2_decay <= 0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        names = "lr beta2_decay eps d weight_decay foreach maximize"
        super().__init__(params, _settings(names, locals()))

    def _state_of(self, p: Tensor) -> dict[str, Any]:
        state = self.state[p]
        if not state:
            state["step"] = _counter()
            if p.dim() > 1:
                state["row_var"] = p.new_zeros((*p.shape[:-1], 1))
                state["col_var"] = p.new_zeros((*p.shape[:-2], 1, p.shape[-1]))
            else:
                state["variance"] = rushlight.zeros_like(p)
        return state

    def _step_parameter(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        if p.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        grad = -grad if group["maximize"] else grad
        state = self._state_of(p)
        state["step"] += 1
        count = float(state["step"])
        lr = float(group["lr"])
        eps1, eps2 = group["eps"]
        eps1 = rushlight.finfo(p.dtype).eps if eps1 is None else eps1
        share = count ** group["beta2_decay"]
        size = float(p.norm(2)) / p.numel() ** 0.5 if p.numel() else 0.0
        alpha = max(eps2, size) * min(lr, 1 / count**0.5)
        if group["weight_decay"] != 0:
            p.mul_(1 - lr * group["weight_decay"])
        if grad.dim() > 1:
            rows, columns = state["row_var"], state["col_var"]
            rows.lerp_(grad.norm(2, -1, keepdim=True).square_().div_(grad.size(-1)), share)
            columns.lerp_(grad.norm(2, -2, keepdim=True).square_().div_(grad.size(-2)), share)
            variance = rows @ columns
            variance.div_(rows.mean(-2, keepdim=True).clamp_(min=eps1))
        else:
            state["variance"].lerp_(grad.square(), share)
            variance = state["variance"].clone()
        update = variance.clamp_(min=eps1 * eps1).rsqrt_().mul_(grad)
        length = float(update.norm(2)) / (update.numel() ** 0.5 * group["d"]) if p.numel() else 0.0
        p.add_(update, alpha=-alpha / max(1.0, length))
