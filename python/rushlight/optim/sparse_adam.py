"""SparseAdam."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import rushlight
from rushlight import Tensor

from ._stepping import ParameterwiseOptimizer, _check_settings, _sparse_like, _zeros_like

__all__ = ["SparseAdam"]


class SparseAdam(ParameterwiseOptimizer):
    """Adam for sparse gradients: only rows with gradients, and their running means, change.

    Step: that of `Adam`, for the rows that the gradient has.

    Args:
        params: see `Optimizer`; none of them may be sparse itself.
        lr: the learning rate, a number or a tensor of one element.
        betas: shares of the old running means of the gradient and of its square.
        eps: a number that is added to the root, against division by zero.
        maximize: maximise the objective instead of minimising it.

    Example:
        >>> table = torch.nn.Embedding(10, 3, sparse=True)
        >>> optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1)
        >>> table(torch.tensor([1, 2])).sum().backward()
        >>> optimizer.step()
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        _check_settings(lr)
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        _check_settings(lr, betas=betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        sparse = [
            (i, j)
            for i, group in enumerate(self.param_groups)
            for j, p in enumerate(group["params"])
            if p.layout is not rushlight.strided
        ]
        if sparse:
            raise ValueError(
                f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors"
            )

    def _step_parameter(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        if grad.layout is not rushlight.sparse_coo:
            raise RuntimeError(
                "SparseAdam does not support dense gradients, please consider Adam instead"
            )
        state = self.state[p]
        if not state:
            state.update(step=0, exp_avg=_zeros_like(p), exp_avg_sq=_zeros_like(p))
        state["step"] += 1
        grad = (-grad if group["maximize"] else grad).coalesce()
        values = grad.values()
        if values.numel() == 0:
            return
        first, second = group["betas"]

        def move(mean: Tensor, target: Tensor, share: float) -> Tensor:
            """Brings the rows of a running mean towards a target; returns what they are now."""
            old = mean.sparse_mask(grad).values()
            change = (target - old).mul_(1 - share)
            mean.add_(_sparse_like(grad, change))
            return old.add_(change)

        mean = move(state["exp_avg"], values, first)
        root = move(state["exp_avg_sq"], values * values, second).sqrt_().add_(group["eps"])
        step = state["step"]
        size = float(group["lr"]) * (1 - second**step) ** 0.5 / (1 - first**step)
        p.add_(_sparse_like(grad, mean.div_(root)), alpha=-size)
