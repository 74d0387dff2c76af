"""What optimisers share beyond `Optimizer`: checks of settings, steps of all parameters at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import rushlight
from rushlight import Tensor
from rushlight._table import ops

from .optimizer import Optimizer


def _settings(names: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with these names, of a constructor's arguments or of a group."""
    return {name: arguments[name] for name in names.split()}


def _check_settings(lr: Any, **at_least_zero: Any) -> None:
    """Raise ValueError if a setting is out of its range, in PyTorch's words and order."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if not lr >= 0.0:
        raise ValueError(f"Invalid learning rate: {lr}, where lr is 0 or more")
    for name, value in at_least_zero.items():
        if name == "betas":  # shares of old values
            for i, beta in enumerate(value):
                if not 0.0 <= beta < 1.0:
                    raise ValueError(
                        f"Invalid beta parameter at index {i}: {beta}; betas={tuple(value)} are "
                        "shares of old averages, from 0 to below 1"
                    )
        elif not value >= 0.0:
            words = {"eps": "epsilon value"}.get(name, f"{name} value")
            raise ValueError(f"Invalid {words}: {value}")


def _check_ways(foreach: bool | None, fused: bool | None, differentiable: bool) -> None:
    """Every step but a differentiable one is fused; the switches are checked, no more."""
    if foreach and fused:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")


def _steps(differentiable: bool) -> Any:
    """Where a step is found: the ops, or the same of ops that are recorded."""
    if differentiable:
        from . import _differentiable

        return _differentiable
    return ops


def _zeros_like(parameter: Tensor) -> Tensor:
    return rushlight.zeros_like(parameter, memory_format=rushlight.preserve_format)


def _counter() -> Tensor:
    """A count of steps as states hold it."""
    return rushlight.tensor(0.0, dtype=rushlight.float32, device="cpu")


class ParameterwiseOptimizer(Optimizer):
    """An optimiser whose step is composed of ops, for one parameter after the other."""

    def _step_parameter(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        """Updates a parameter by its gradient."""
        raise NotImplementedError

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = self._loss_of(closure)
        with rushlight.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        self._step_parameter(p, p.grad, group)
        return loss


class StatewiseOptimizer(Optimizer):
    """An optimiser whose step is one op for all parameters of a group that have gradients.

    Each parameter's state is a dict of tensors, among them the count of its steps.
    """

    _later_settings: ClassVar[dict[str, Any]] = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for own in self.state.values():
            if "step" in own and not isinstance(own["step"], Tensor):  # as old files have it
                own["step"] = _counter().fill_(float(own["step"]))

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """A parameter's state before its first step."""
        raise NotImplementedError

    def _step_group(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Any]],
    ) -> None:
        """Calls the op for parameters, their gradients and their states."""
        raise NotImplementedError

    def _step_sparse(
        self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Updates a parameter whose gradient is sparse."""
        raise RuntimeError(
            f"{type(self).__name__} does not support sparse gradients, please consider SparseAdam "
            "instead"
        )

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = self._loss_of(closure)
        differentiable = self.defaults["differentiable"]
        for group in self.param_groups:
            params, grads, states = [], [], []
            for p in group["params"]:
                grad = p.grad
                if grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state.update(self._new_state(p, group))
                if grad.layout is not rushlight.strided:
                    self._step_sparse(p, grad, state, group)
                    continue
                params.append(p)
                grads.append(grad)
                states.append(state)
            if params and differentiable:
                with rushlight.enable_grad():
                    self._step_group(group, params, grads, states)
            elif params:
                self._step_group(group, params, grads, states)
        return loss


def _each(states: list[dict[str, Any]], name: str) -> list[Any]:
    """A list of one entry of all states."""
    return [state[name] for state in states]


def _sparse_like(pattern: Tensor, values: Any) -> Tensor:
    """A sparse tensor of these values at the indices of another."""
    return rushlight.sparse_coo_tensor(pattern.indices(), values, pattern.shape, is_coalesced=True)
