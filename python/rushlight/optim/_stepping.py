"""What optimisers share beyond `Optimizer`: checks of settings, steps of all parameters at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
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


# Settings of groups that are pairs, and the settings of ops that they are.
_PAIRS = {
    "betas": ("beta1", "beta2"),
    "etas": ("eta_minus", "eta_plus"),
    "step_sizes": ("step_size_min", "step_size_max"),
}


@cache
def _arguments_of(op: str) -> tuple[list[str], list[str]]:
    """The names of what the op of a step is given: lists, and settings."""
    arguments = getattr(rushlight.ops.rushlight, op).default._schema.arguments
    lists, settings = ([a.name for a in arguments if a.kwarg_only is k] for k in (False, True))
    return lists, settings


def _take_step(
    op: str, differentiable: bool, lists: Sequence[Any], settings: Mapping[str, Any]
) -> None:
    """Calls the op of a step, or the same as recorded ops; settings may be more than it takes."""
    taken = {name: settings[name] for name in _arguments_of(op)[1]}
    numbers = {n: v if isinstance(v, (int, float)) else float(v) for n, v in taken.items()}
    getattr(ops, f"_recorded_{op}" if differentiable else op)(*lists, **numbers)


def _settings_of_op(group: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a group by the names that ops have for them."""
    settings = dict(group, decoupled=group.get("decoupled_weight_decay", False))
    for name, both in _PAIRS.items():
        if name in group:
            settings.update(zip(both, group[name], strict=True))
    return settings


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

    # The op, and what is kept beside the count, in the order of the op's lists: a name, and the
    # setting without which it is not kept.
    _op: ClassVar[str]
    _kept: ClassVar[dict[str, str]]

    _later_settings: ClassVar[dict[str, Any]] = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for own in self.state.values():
            step = own.get("step")
            if isinstance(step, Tensor):  # PyTorch's has the dtype that is the default
                own["step"] = step.to(rushlight.float32)
            elif step is not None:  # as old files have it
                own["step"] = _counter().fill_(float(step))

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """A parameter's state before its first step."""
        state = {"step": _counter()}
        for name, setting in self._kept.items():
            if not setting or group[setting] > 0:
                state[name] = _zeros_like(p)
        return state

    def _step_group(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Any]],
    ) -> None:
        """Calls the op for parameters, their gradients and their states."""
        kept = [_each(states, name) for name in (*self._kept, "step")]
        lists = [params, grads, *kept]
        _take_step(self._op, group["differentiable"], lists, _settings_of_op(group))

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
    """A list of one entry of all states, where they have it."""
    return [state[name] for state in states if name in state]


def _sparse_like(pattern: Tensor, values: Any) -> Tensor:
    """A sparse tensor of these values at the indices of another."""
    return rushlight.sparse_coo_tensor(pattern.indices(), values, pattern.shape, is_coalesced=True)
