"""Normalised arguments of calls, as in their signatures."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any, NamedTuple, Union, get_args, get_origin

import rushlight
from rushlight import nn

__all__ = [
    "ArgsKwargsPair",
    "check_for_mutable_operation",
    "create_type_hint",
    "get_signature_for_torch_op",
    "normalize_function",
    "normalize_module",
    "type_matches",
]


class ArgsKwargsPair(NamedTuple):
    """Positional and keyword arguments.

    Args:
        args: the positional ones.
        kwargs: those by name.

    For an example see `fx.operator_schemas.normalize_function`.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


# Functions of these have names that ops have, too.
_PYTHONS = ("_operator", "builtins", "math")


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
    """The signatures of an op's overloads, with schemas if asked for; None if it is no op.

    Args:
        op: the op.
        return_schemas: give a pair: signatures and schemas.

    Example:
        >>> from rushlight.fx.operator_schemas import get_signature_for_torch_op
        >>> list(get_signature_for_torch_op(torch.relu)[0].parameters)
        ['input']
    """
    schemas = []
    if hasattr(op, "_schema"):
        schemas = [op._schema]
    else:
        name = getattr(op, "__name__", "")
        if getattr(op, "__module__", None) in _PYTHONS:
            name = ""
        packet = getattr(rushlight.ops.aten, name, None) if name else None
        if packet is not None:
            overloads = [getattr(packet, overload) for overload in packet.overloads()]
            schemas = [o._schema for o in overloads if "out" not in o._schema.overload_name]
    if not schemas:
        return (None, None) if return_schemas else None
    signatures = [_signature_of_schema(schema) for schema in schemas]
    return (signatures, schemas) if return_schemas else signatures


def _is_op(target: Any) -> bool:
    """Whether it is an overload, or a packet of them."""
    return hasattr(target, "_schema") or hasattr(target, "overloads")


def check_for_mutable_operation(
    target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Raise RuntimeError if a call of an op with these arguments writes into one of them.

    Args:
        target: the op.
        args: positional arguments.
        kwargs: keyword arguments.

    Example:
        >>> from rushlight.fx.operator_schemas import check_for_mutable_operation
        >>> check_for_mutable_operation(torch.add, (torch.ones(1), 1), {})
    """
    if not isinstance(target, types.BuiltinFunctionType) and not _is_op(target):
        return
    signatures, schemas = get_signature_for_torch_op(target, return_schemas=True)
    for signature, schema in zip(signatures or (), schemas or (), strict=True):
        if _bind(signature, args, kwargs, False) is None:
            continue
        if schema.is_mutable:
            raise RuntimeError(
                f"Tried to trace mutable operation {schema}. FX only supports functional code"
            )
        return


def create_type_hint(x: Any) -> Any:
    """The type of a list or tuple of items, if one type covers all of them; else `x`.

    Args:
        x: a type, or a list or tuple of types.

    Example:
        >>> from rushlight.fx.operator_schemas import create_type_hint
        >>> create_type_hint([int, int])
        list[int]
    """
    if not isinstance(x, list | tuple):
        return x
    if not all(isinstance(item, type) for item in x):
        return x
    common: Any = next((t for t in x if all(issubclass(item, t) for item in x)), Any)
    return list[common] if isinstance(x, list) else tuple[common, ...]


def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Whether an argument of one type can be passed for a parameter of another.

    A single number stands for a list of them, and a dtype for an int.

    Args:
        signature_type: of the parameter.
        argument_type: of the argument.

    Example:
        >>> from typing import List
        >>> from rushlight.fx.operator_schemas import type_matches
        >>> type_matches(List[int], int), type_matches(int, float)
        (True, False)
    """
    origin, parts = get_origin(signature_type), get_args(signature_type)
    if signature_type is argument_type:
        return True
    if origin in (Union, types.UnionType):
        return any(type_matches(part, argument_type) for part in parts)
    if origin is list:
        if get_origin(argument_type) in (list, tuple):
            inner = [part for part in get_args(argument_type) if part is not Ellipsis]
            return all(type_matches(parts[0], part) for part in inner)
        return parts == (int,) and argument_type is int
    if signature_type is int and argument_type is rushlight.dtype:
        return True
    if isinstance(signature_type, type) and isinstance(argument_type, type):
        return issubclass(argument_type, signature_type)
    return False


def _bind(
    signature: inspect.Signature, args: Any, kwargs: Any, by_keyword: bool
) -> ArgsKwargsPair | None:
    """Arguments in the order of a signature, defaults put in; None if they do not fit."""
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    if not by_keyword:
        return ArgsKwargsPair(bound.args, bound.kwargs)
    unnamed = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.VAR_KEYWORD,
    )
    if any(parameter.kind in unnamed for parameter in signature.parameters.values()):
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
    """The arguments of a call of a function, or None if no single signature fits.

    Args:
        target: the function.
        args: positional arguments.
        kwargs: keyword arguments.
        arg_types: has no effect, since overloads are told apart by the number and names of
            arguments.
        kwarg_types: has no effect.
        normalize_to_only_use_kwargs: give all by keyword.

    Example:
        >>> from rushlight.fx.operator_schemas import normalize_function
        >>> x = torch.ones(2)
        >>> pair = normalize_function(torch.add, (x, 1), normalize_to_only_use_kwargs=True)
        >>> sorted(pair.kwargs)
        ['alpha', 'input', 'other']
    """
    kwargs = {} if kwargs is None else kwargs
    signatures = None
    if isinstance(target, types.BuiltinFunctionType) or _is_op(target):
        signatures = get_signature_for_torch_op(target)
    if signatures is None:
        try:
            signatures = [inspect.signature(target)]
        except (TypeError, ValueError):
            return None
    for signature in signatures:
        found = _bind(signature, args, kwargs, normalize_to_only_use_kwargs)
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
    """The arguments of a call of a submodule, as in the signature of its `forward`.

    Args:
        root: the module that it is in.
        target: its dotted name.
        args: positional arguments.
        kwargs: keyword arguments.
        normalize_to_only_use_kwargs: give all by keyword.

    For an example see `fx.operator_schemas.normalize_function`.
    """
    signature = inspect.signature(root.get_submodule(target).forward)
    return _bind(signature, args, kwargs or {}, normalize_to_only_use_kwargs)
