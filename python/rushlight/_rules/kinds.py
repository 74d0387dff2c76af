"""What the op table says of a function by its name: if it acts on elements, where dims stand."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from rushlight import _C
from rushlight._ops import ops

if TYPE_CHECKING:
    from rushlight._ops import OpOverload

__all__: list[str] = []


@cache
def _rows(name: str) -> list[OpOverload]:
    """The indices of the overloads of a name."""
    for space in ("aten", "rushlight"):
        try:
            packet = getattr(getattr(ops, space), name)
        except AttributeError:
            continue
        return [getattr(packet, o) for o in packet._rows()]
    return []


@cache
def _indices(name: str) -> list[int]:
    for space in ("aten", "rushlight"):
        try:
            rows = getattr(getattr(ops, space), name)._rows().values()
        except AttributeError:
            continue
        return [row.index for row in rows]
    return []


@cache
def is_op(name: str) -> bool:
    """Whether the table has an op of this name."""
    return bool(_indices(name))


@cache
def is_elementwise(name: str) -> bool:
    """Whether each element of what the op gives comes from those at its place."""
    found = _indices(name)
    return "linalg" not in name and any(map(_C._op_is_elementwise, found))


@cache
def _signatures(name):
    return [[a.name for a in overload._schema.arguments] for overload in _rows(name)]


def place_of_dim(name: str, args, kwargs) -> tuple[Any, Any]:
    """Where the dims of a call are, as an index of `args` or a key of `kwargs`, and what they are.

    (None, None) where the call has none.
    """
    for key in ("dim", "dims", "axis"):
        if key in kwargs:
            return key, kwargs[key]
    for names in _signatures(name):
        for key in ("dim", "dims"):
            if key not in names:
                continue
            at = names.index(key)
            if at < len(args) and _is_dim(args[at]):
                return at, args[at]
    return None, None


def _is_dim(value):
    if isinstance(value, (list, tuple)):
        return all(map(_is_dim, value))
    return isinstance(value, int) and not isinstance(value, bool)


@cache
def default_dim(name: str):
    """The dim that a call without one takes: an int, or None for all (or nothing at all)."""
    for overload in _rows(name):
        for argument in overload._schema.arguments:
            if argument.name == "dim" and argument.default_value is not None:
                return argument.default_value
    return None


@cache
def is_view(name: str) -> bool:
    """Whether what the op gives may lie in its argument's memory and is a view of it then."""
    return name != "detach" and any(overload.is_view for overload in _rows(name))


@cache
def is_reduction(name: str) -> bool:
    """Whether an op without dims reduces all elements; those of matrices do something else."""
    return "linalg" not in name and any("keepdim" in names for names in _signatures(name))
