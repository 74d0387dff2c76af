"""Arguments of calls as signatures order and name them."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import rushlight
from rushlight import nn

__all__ = [
    "ArgsKwargsPair",
    "get_signature_for_torch_op",
    "normalize_function",
    "normalize_module",
]


class ArgsKwargsPair(NamedTuple):
    """Positional and keyword arguments."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def _signature_of_schema(schema: Any) -> inspect.Signature:
    parameters = []
    for argument in schema.arguments:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        if argument.kwarg_only:
            kind = inspect.Parameter.KEYWORD_ONLY
        default = inspect.Parameter.empty
        if argument.has_default_value():
            default = argument.default_value
        name = "input" if argument.name == "self" else argument.name
        parameters.append(inspect.Parameter(name, kind, default=default))
    return inspect.Signature(parameters)


def get_signature_for_torch_op(op: Callable[..., Any], return_schemas: bool = False) -> Any:
    """The signatures of an op's overloads, or None of what is no op; with schemas if asked for."""
    schemas = []
    if hasattr(op, "_schema"):
        schemas = [op._schema]
    else:
        name = getattr(op, "__name__", "")
        packet = getattr(rushlight.ops.aten, name, None) if name else None
        if packet is not None:
            overloads = [getattr(packet, overload) for overload in packet.overloads()]
            schemas = [o._schema for o in overloads if "out" not in o._schema.overload_name]
    if not schemas:
        return (None, None) if return_schemas else None
    signatures = [_signature_of_schema(schema) for schema in schemas]
    return (signatures, schemas) if return_schemas else signatures


def _bound(
    signature: inspect.Signature, args: Any, kwargs: Any, by_keyword: bool
) -> ArgsKwargsPair | None:
    """Arguments in the order of a signature, defaults put in; None where they do not fit."""
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    if not by_keyword:
        return ArgsKwargsPair(bound.args, bound.kwargs)
    stars = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    if any(parameter.kind in stars for parameter in signature.parameters.values()):
        return None
    return ArgsKwargsPair((), dict(bound.arguments))


def normalize_function(
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any] | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a call of a function, or None where no one signature fits.

    Args:
        target: the function.
        args: positional arguments.
        kwargs: keyword arguments.
        arg_types: accepted; numbers of arguments and their names tell overloads apart.
        kwarg_types: accepted.
        normalize_to_only_use_kwargs: give all by keyword.
    """
    kwargs = {} if kwargs is None else kwargs
    signatures = None
    if isinstance(target, types.BuiltinFunctionType) or hasattr(target, "_schema"):
        signatures = get_signature_for_torch_op(target)
    if signatures is None:
        try:
            signatures = [inspect.signature(target)]
        except (TypeError, ValueError):
            return None
    for signature in signatures:
        found = _bound(signature, args, kwargs, normalize_to_only_use_kwargs)
        if found is not None:
            return found
    return None


def normalize_module(
    root: nn.Module,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a call of a submodule, by the signature of its `forward`.

    Args:
        root: the module that it is in.
        target: its dotted name.
        args: positional arguments.
        kwargs: keyword arguments.
        normalize_to_only_use_kwargs: give all by keyword.
    """
    signature = inspect.signature(root.get_submodule(target).forward)
    return _bound(signature, args, kwargs or {}, normalize_to_only_use_kwargs)
