"""Modules as functions of their parameters, the way before `functional_call`."""

from __future__ import annotations

import copy

import rushlight
from rushlight.func import functional_call, stack_module_state

__all__ = [
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


def make_functional(model, disable_autograd_tracking: bool = False):
    """A function of (parameters, *arguments) and the parameters, for a module without buffers."""
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use "
            "make_functional_with_buffers(model) instead."
        )
    names = [name for name, _ in model.named_parameters()]
    values = _without_graph((p for _, p in model.named_parameters()), disable_autograd_tracking)
    model = copy.deepcopy(model)

    def call(params, *args, **kwargs):
        return functional_call(model, dict(zip(names, params, strict=True)), args, kwargs)

    return call, values


def make_functional_with_buffers(model, disable_autograd_tracking: bool = False):
    """A function of (parameters, buffers, *arguments), the parameters and the buffers."""
    names = [name for name, _ in model.named_parameters()]
    kept = [name for name, _ in model.named_buffers()]
    values = _without_graph((p for _, p in model.named_parameters()), disable_autograd_tracking)
    buffers = tuple(b for _, b in model.named_buffers())
    model = copy.deepcopy(model)

    def call(params, buffers, *args, **kwargs):
        given = dict(zip(names, params, strict=True)) | dict(zip(kept, buffers, strict=True))
        return functional_call(model, given, args, kwargs)

    return call, values, buffers


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
