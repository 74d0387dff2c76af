"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import rushlight
from rushlight import Tensor

from ._functional import _step_sgd, sgd  # noqa: F401  # PyTorch has the latter here, too
from ._stepping import _check_settings, _check_ways, _settings
from .optimizer import Optimizer

__all__ = ["SGD"]


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum and weight decay.

    Step, with the gradient g: v ← momentum * v + (1 - dampening) * g, where v begins as g, and p ←
    p - lr * v; with `nesterov` p ← p - lr * (g + momentum * v). Without momentum v is g.

    Args:
        params: the parameters, or groups of them (see `Optimizer`).
        lr: the learning rate, a number or a tensor of one element.
        momentum: weight of the running gradient, which starts as the first gradient.
        dampening: the new gradient counts 1 - dampening in the running one.
        weight_decay: this times the parameter is added to the gradient.
        nesterov: use Nesterov's momentum.
        maximize: maximise the objective instead of minimising it.
        foreach: accepted; all parameters of a group are updated at once anyway.
        differentiable: whether autograd records the step, so that one can differentiate
            through it.
        fused: accepted, as `foreach` is.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = torch.optim.SGD([w], lr=0.1)
        >>> w.square().sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([ 0.8000, -1.6000])
    """

    _later_settings: ClassVar = {
        "nesterov": False,
        "maximize": False,
        "foreach": None,
        "differentiable": False,
        "fused": False,
    }

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        _check_settings(lr, momentum=momentum, weight_decay=weight_decay)
        _check_ways(foreach, fused, differentiable)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(
                f"Nesterov momentum requires a momentum above 0 ({momentum}) and no dampening "
                f"({dampening})"
            )
        names = "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused"
        super().__init__(params, _settings(names, locals()))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = self._loss_of(closure)
        with rushlight.set_grad_enabled(bool(self.defaults["differentiable"])):
            for group in self.param_groups:
                self._step_group(group)
        return loss

    def _step_sparse(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        """Composed of ops on sparse tensors, but for Nesterov's way as PyTorch does it."""
        if group["nesterov"]:
            raise RuntimeError("SGD: nesterov is not compatible with sparse gradients")
        if group["weight_decay"] != 0:
            raise RuntimeError("SGD: weight_decay is not compatible with sparse gradients")
        if group["maximize"]:
            grad = -grad
        if group["momentum"] != 0:
            state = self.state[p]
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = grad.detach().clone()
            else:
                buffer.mul_(group["momentum"]).add_(grad, alpha=1 - group["dampening"])
            grad = buffer
        p.add_(grad, alpha=-float(group["lr"]))

    def _step_group(self, group: dict[str, Any]) -> None:
        params, grads = [], []
        for p in group["params"]:
            if p.grad is None:
                continue
            if p.grad.layout is not rushlight.strided:
                self._step_sparse(p, p.grad, group)
                continue
            params.append(p)
            grads.append(p.grad)
        keeps = group["momentum"] != 0
        buffers = [self.state[p].get("momentum_buffer") if keeps else None for p in params]
        _step_sgd(params, grads, buffers, group, group["differentiable"])
        for p, buffer in zip(params, buffers, strict=True):
            if buffer is not None:
                self.state[p]["momentum_buffer"] = buffer
