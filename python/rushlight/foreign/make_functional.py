"""Modules as functions of their parameters, the way before `functional_call`."""

from __future__ import annotations

import copy
from typing import Any

import rushlight
from rushlight import nn
from rushlight.func import functional_call, stack_module_state

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "functional_init",
    "functional_init_with_buffers",
    "make_functional",
    "make_functional_with_buffers",
]


def _without_graph(values, disable):
    if disable:
        return tuple(v.detach() for v in values)
    return tuple(v.detach().requires_grad_(v.requires_grad) for v in values)


class FunctionalModule(nn.Module):
    """A module as a function of (parameters, *arguments); it has no parameters itself."""

    def __init__(self, stateless_model: nn.Module, param_names: tuple[str, ...]) -> None:
        super().__init__()
        # Not as a part: it only says what is called.
        self.__dict__["stateless_model"] = stateless_model
        self.param_names = param_names

    @classmethod
    def _create_from(cls, model: nn.Module, disable_autograd_tracking: bool = False) -> Any:
        names = tuple(name for name, _ in model.named_parameters())
        values = _without_graph((p for _, p in model.named_parameters()), disable_autograd_tracking)
        return cls(copy.deepcopy(model), names), values

    def forward(self, params, *args, **kwargs):
        given = dict(zip(self.param_names, params, strict=True))
        return functional_call(self.stateless_model, given, args, kwargs)


class FunctionalModuleWithBuffers(nn.Module):
    """A module as a function of (parameters, buffers, *arguments)."""

    def __init__(
        self,
        stateless_model: nn.Module,
        param_names: tuple[str, ...],
        buffer_names: tuple[str, ...],
    ) -> None:
        super().__init__()
        self.__dict__["stateless_model"] = stateless_model
        self.param_names = param_names
        self.buffer_names = buffer_names

    @classmethod
    def _create_from(cls, model: nn.Module, disable_autograd_tracking: bool = False) -> Any:
        made, values = FunctionalModule._create_from(model, disable_autograd_tracking)
        kept = dict(model.named_buffers())
        made = cls(made.stateless_model, made.param_names, tuple(kept))
        return made, values, tuple(kept.values())

    def forward(self, params, buffers, *args, **kwargs):
        given = dict(zip(self.param_names, params, strict=True))
        given |= dict(zip(self.buffer_names, buffers, strict=True))
        return functional_call(self.stateless_model, given, args, kwargs)


def make_functional(model, disable_autograd_tracking: bool = False):
    """A function of (parameters, *arguments) and the parameters, for a module without buffers."""
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use "
            "make_functional_with_buffers(model) instead."
        )
    return FunctionalModule._create_from(model, disable_autograd_tracking)


def make_functional_with_buffers(model, disable_autograd_tracking: bool = False):
    """A function of (parameters, buffers, *arguments), the parameters and the buffers."""
    return FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking)


def combine_state_for_ensemble(models):
    """The function of several like modules, and their parameters and buffers, stacked."""
    call, _, _ = make_functional_with_buffers(models[0])
    params, buffers = stack_module_state(models)
    return call, tuple(params.values()), tuple(buffers.values())


def functional_init(model_class, ensemble_shape: tuple[int, ...] = (), device="cpu"):
    """A function that makes modules and returns (function, parameters), stacked for an ensemble."""
    made = functional_init_with_buffers(model_class, ensemble_shape, device)

    def init(*args, **kwargs):
        call, params, buffers, *_ = made(*args, **kwargs)
        if buffers:
            raise RuntimeError(
                "functional_init: the module has buffers, use functional_init_with_buffers"
            )
        return lambda weights, *inputs: call(weights, (), *inputs), params

    return init


def functional_init_with_buffers(model_class, ensemble_shape: tuple[int, ...] = (), device="cpu"):
    """The same with buffers: (function, parameters, buffers)."""

    def init(*args, **kwargs):
        if len(ensemble_shape) > 1:
            raise ValueError("NYI: ensemble_shape with more than 1 element")
        if not ensemble_shape:
            return make_functional_with_buffers(model_class(*args, **kwargs).to(device))
        if ensemble_shape[0] <= 0:
            raise ValueError(f"num_models {ensemble_shape[0]} should be > 0")
        models = [model_class(*args, **kwargs).to(device) for _ in range(ensemble_shape[0])]
        call, params, buffers = combine_state_for_ensemble(models)
        return call, tuple(map(rushlight.Tensor.detach, params)), buffers

    return init
