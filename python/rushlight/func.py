"""Transforms of functions: `grad`, `vjp`, `jvp`, Jacobians, `vmap`, and modules as functions.

They are built on autograd and forward mode: transforms nest in any order, and a result can be
differentiated by what is around it. `vmap` computes all slices together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight._transforms.forward import hessian, jacfwd, jvp, linearize
from rushlight._transforms.reverse import (
    debug_unwrap,
    functionalize,
    grad,
    grad_and_value,
    jacrev,
    vjp,
)
from rushlight._transforms.vmap import vmap
from rushlight.nn.utils import stateless

if TYPE_CHECKING:
    from rushlight import Tensor
    from rushlight.nn import Module, ModuleList

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]

# ---- modules as functions ----


def functional_call(
    module: rushlight.nn.Module,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other parameters and buffers, which are given by name.

    Args:
        parameter_and_buffer_dicts: a dict, or several whose names differ. Names that the module
            lacks become attributes for the time of the call; what the call assigns to a name of
            one dict is in it afterwards.
        tie_weights: whether tensors that the module has under several names are replaced under all
            of them.
        strict: RuntimeError if names are missing or more.
        module: the module.
        args: the arguments, a tuple or one tensor.
        kwargs: the arguments by name.

    Example:
        >>> layer = torch.nn.Linear(2, 1, bias=False)
        >>> torch.func.functional_call(layer, {"weight": torch.ones(1, 2)}, torch.ones(2))
        tensor([2.])
    """
    if isinstance(parameter_and_buffer_dicts, dict):
        given = parameter_and_buffer_dicts
    else:
        if not isinstance(parameter_and_buffer_dicts, (list, tuple)):
            raise ValueError(
                "parameter_and_buffer_dicts is expected to be a dict (several come in a list or a "
                f"tuple), but got {type(parameter_and_buffer_dicts)}"
            )
        given = {}
        for names in parameter_and_buffer_dicts:
            for name, value in names.items():
                if name in given:
                    raise ValueError(
                        f"{name} appeared in multiple dictionaries; behavior is ambiguous"
                    )
                given[name] = value
    return stateless._functional_call(
        module, given, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Remove the running statistics of all batch normalisations in a module, for `vmap`.

    Args:
        root: the module, which is returned.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.BatchNorm1d(2))
        >>> torch.func.replace_all_batch_norm_modules_(net)[0].running_mean is None
        True
    """
    from rushlight.nn.modules.batchnorm import _BatchNorm

    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = None
            module.running_var = None
            module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def stack_module_state(
    models: Sequence[Module] | ModuleList,
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Stack the parameters and the buffers of several modules by name, as two dicts.

    Args:
        models: modules of one class.

    Example:
        >>> parameters, buffers = torch.func.stack_module_state(
        ...     [torch.nn.Linear(2, 1) for _ in range(3)]
        ... )
        >>> parameters["weight"].shape
        torch.Size([3, 1, 2])
    """
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if any(m.training != models[0].training for m in models):
        raise RuntimeError("stack_module_state: Expected all models to have the same training mode")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stack(kind):
        spaces = [dict(getattr(m, kind)()) for m in models]
        return {
            name: rushlight.stack([s[name].detach() for s in spaces]).requires_grad_(
                value.requires_grad
            )
            for name, value in spaces[0].items()
        }

    return stack("named_parameters"), stack("named_buffers")
