"""`infer_schema`: the schema of an op from the annotations of a function."""

from __future__ import annotations

import inspect
import types
import typing
from typing import TYPE_CHECKING

import rushlight

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_SCHEMA_TYPES = {
    rushlight.Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    rushlight.dtype: "ScalarType",
    rushlight.device: "Device",
}


def infer_schema(
    prototype_function: Callable[..., Any], /, *, mutates_args: Any, op_name: str | None = None
) -> str:
    """The schema that a function's annotations say: "(Tensor x, float y) -> Tensor".

    Args:
        prototype_function: the function, all of whose arguments have annotations.
        mutates_args: the names of the arguments that it writes.
        op_name: the name that the schema begins with; None: nothing.

    Raises:
        ValueError: an argument or the result has no annotation, or one that schemas lack.

    Example:
        >>> def halve(x: torch.Tensor, times: int = 1) -> torch.Tensor:
        ...     return x / 2**times
        >>> torch.library.infer_schema(halve, mutates_args=())
        '(Tensor x, SymInt times=1) -> Tensor'
    """
    parameters = inspect.signature(prototype_function).parameters
    missing = set() if mutates_args == "unknown" else set(mutates_args) - set(parameters)
    if missing:
        raise ValueError(
            f"infer_schema(func): {missing} in mutates_args were not found in the signature; it "
            "lists the parameters that are written into, or is 'unknown'."
        )
    hints = typing.get_type_hints(prototype_function)
    parts: list[str] = []
    for i, p in enumerate(parameters.values()):
        if p.name not in hints:
            raise ValueError(
                f"infer_schema(func): Parameter {p.name} must have a type annotation. Got func "
                f"with signature {inspect.signature(prototype_function)}"
            )
        kind = _schema_type(hints[p.name])
        if kind.startswith("Tensor") and (mutates_args == "unknown" or p.name in mutates_args):
            kind = kind.replace("Tensor", f"Tensor(a{i}!)", 1)
        default = "" if p.default is p.empty else f"={p.default}"
        star = "*, " if p.kind is p.KEYWORD_ONLY and "*, " not in "".join(parts) else ""
        parts.append(f"{star}{kind} {p.name}{default}")
    result = hints.get("return", None)
    if "return" not in hints:
        raise ValueError("infer_schema(func): the result must have a type annotation")
    results = "()" if result in (None, type(None)) else _schema_type(result)
    return f"{op_name or ''}({', '.join(parts)}) -> {results}"


def _schema_type(hint):
    if hint in _SCHEMA_TYPES:
        return _SCHEMA_TYPES[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        members = set(arguments) - {type(None)}
        optional = "?" if type(None) in arguments else ""
        if members == {int, float, bool}:
            return "Scalar" + optional
        if optional and len(members) == 1:
            return _schema_type(members.pop()) + optional
    elif origin is tuple and arguments and Ellipsis not in arguments:
        return f"({', '.join(map(_schema_type, arguments))})"
    elif origin is not None and arguments:
        return _schema_type(arguments[0]) + "[]"
    if hint is complex:
        return "Scalar"
    raise ValueError(f"infer_schema(func): the type {hint} is none of those that schemas have")
