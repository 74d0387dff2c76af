"""Questions about symbolic sizes; sizes are plain numbers here."""

from __future__ import annotations

from typing import Any

__all__ = [
    "ConstraintViolationError",
    "GuardOnDataDependentSymNode",
    "free_symbols",
    "free_unbacked_symbols",
    "guard_or_false",
    "guard_or_true",
    "guard_size_oblivious",
    "has_free_symbols",
    "hint_int",
    "is_concrete_bool",
    "is_concrete_int",
    "is_symbolic",
    "statically_known_true",
    "sym_eq",
]


class ConstraintViolationError(RuntimeError):
    """The error of a size that is not what `dynamic_shapes` says."""


class GuardOnDataDependentSymNode(RuntimeError):
    """The error of a program that needs a size which depends on data."""


def guard_or_false(a: Any) -> bool:
    """The value of a condition on sizes."""
    return bool(a)


guard_or_true = guard_size_oblivious = statically_known_true = guard_or_false


def free_symbols(val: Any) -> set[Any]:
    """The symbols in a value: an empty set for numbers and tensors.

    Args:
        val: the value.
    """
    if isinstance(val, list | tuple):
        return set().union(*map(free_symbols, val))
    return set()


free_unbacked_symbols = free_symbols


def has_free_symbols(val: Any) -> bool:
    """Whether a value contains symbols."""
    return bool(free_symbols(val))


def is_symbolic(val: Any) -> bool:
    """Whether a number is symbolic."""
    return has_free_symbols(val)


def is_concrete_int(a: Any) -> bool:
    """Whether a number is known."""
    return isinstance(a, int)


def is_concrete_bool(a: Any) -> bool:
    """Whether a condition is known."""
    return isinstance(a, bool)


def hint_int(a: Any, fallback: int | None = None) -> int:
    """The number itself; `fallback` is for symbolic ones."""
    known: Any = fallback if a is None else a
    return int(known)


def sym_eq(x: Any, y: Any) -> bool:
    """Whether numbers, or lists of them, are equal."""
    if isinstance(x, list | tuple) and isinstance(y, list | tuple):
        return len(x) == len(y) and all(map(sym_eq, x, y))
    return x == y
