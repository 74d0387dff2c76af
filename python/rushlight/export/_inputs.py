"""The arguments of a program that is exported: checks, and names of their leaves."""

from __future__ import annotations

import inspect
import re
from typing import Any

from rushlight import Tensor, nn
from rushlight._dynamo.exc import UserError
from rushlight.utils import _pytree as pytree
from rushlight.utils._python_dispatch import is_traceable_wrapper_subclass

__all__ = ["check_arguments", "forward_names", "leaf_names"]

_PLAIN = (int, float, complex, bool, str, type(None))


def check_arguments(mod: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """The keyword arguments of a call that is to be exported.

    Raises:
        ValueError: `mod` is no module, or an argument is of a type that graphs do not hold.
        UserError: `args` is no tuple, or `kwargs` no dict.
    """
    if not isinstance(mod, nn.Module):
        raise ValueError(
            f"Expected `mod` to be an instance of `torch.nn.Module`, not {type(mod)}. A function "
            "is exported as the forward method of a module."
        )
    if not isinstance(args, tuple):
        raise UserError(
            f"Expecting `args` to be a tuple of the positional arguments, not {type(args)}"
        )
    kwargs = {} if kwargs is None else kwargs
    if not isinstance(kwargs, dict):
        raise UserError(
            f"Expecting `kwargs` to be a dict of example keyword inputs, got {type(kwargs)}"
        )
    inspect.signature(mod.forward).bind(*args, **kwargs)
    for leaf in pytree.tree_leaves((args, kwargs)):
        if not isinstance(leaf, (Tensor, *_PLAIN)):
            raise ValueError(
                f"Unsupported input type {type(leaf)}: inputs are tensors, numbers and texts, "
                "and containers of them. torch.export.register_dataclass registers a dataclass, "
                "torch.utils._pytree.register_pytree_node any other container."
            )
        if is_traceable_wrapper_subclass(leaf):
            raise ValueError(
                f"Unsupported input type {type(leaf)}: its class runs its ops. Give the tensors "
                "that it is made of."
            )
    return kwargs


def forward_names(mod: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """A name for each argument; those of `*rest` are numbered."""
    names: list[str] = []
    bound = inspect.signature(mod.forward).bind(*args, **kwargs)
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            names += [f"{name}_{i}" for i in range(len(value))]
        elif kind is not inspect.Parameter.VAR_KEYWORD and name not in kwargs:
            names.append(name)
    return names[: len(args)] + list(kwargs)


def leaf_names(names: list[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """A name for each leaf: that of its argument and the way to it, `y_b_0`."""
    result = []
    for name, value in zip(names, (*args, *kwargs.values()), strict=True):
        for path, _ in pytree.tree_flatten_with_path(value)[0]:
            result.append("_".join([name, *(_step(key) for key in path)]).lower())
    return result


def _step(key: Any) -> str:
    value = next((getattr(key, a) for a in ("key", "idx", "name") if hasattr(key, a)), str(key))
    return re.sub(r"[^0-9a-zA-Z_]", "_", str(value))
