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
    """The error of a size that is not what `dynamic_shapes` says.

    Example:
        >>> from rushlight.fx.experimental import symbolic_shapes
        >>> issubclass(symbolic_shapes.ConstraintViolationError, RuntimeError)
        True
    """


class GuardOnDataDependentSymNode(RuntimeError):
    """The error of a program that needs a size which depends on data.

    Example:
        >>> from rushlight.fx.experimental import symbolic_shapes
        >>> issubclass(symbolic_shapes.GuardOnDataDependentSymNode, RuntimeError)
        True
    """


def guard_or_false(a: Any) -> bool:
    """The value of a condition on sizes.

    Args:
        a: the condition; where it is not known, the answer is False.

    Example:
        >>> from rushlight.fx.experimental import symbolic_shapes
        >>> symbolic_shapes.guard_or_false(torch.ones(4).numel() > 3)
        True
    """
    return bool(a)


guard_or_true = guard_size_oblivious = statically_known_true = guard_or_false


def free_symbols(val: Any) -> set[Any]:
    """The symbols in a value: an empty set for numbers and tensors.

    Args:
        val: the value.

    Example:
        >>> from rushlight.fx.experimental import symbolic_shapes
        >>> symbolic_shapes.free_symbols(torch.ones(3, 2))
        set()
    """
    if isinstance(val, list | tuple):
        return set().union(*map(free_symbols, val))
    return set()


free_unbacked_symbols = free_symbols


def has_free_symbols(val: Any) -> bool:
    """Whether a value contains symbols.

    Args:
        val: a number, a tensor or a container of them.

    Example:
        >>> from rushlight.fx.experimental import symbolic_shapes
        >>> symbolic_shapes.has_free_symbols([4, torch.ones(2)])
        False
    """
    return bool(free_symbols(val))


def is_symbolic(val: Any) -> bool:
    """Whether a number is symbolic.

    Args:
        val: the number.

    Example:
        >>> from rushlight.fx.experimental import symbolic_shapes
        >>> symbolic_shapes.is_symbolic(torch.ones(3).size(0))
        False
    """
    return has_free_symbols(val)


def is_concrete_int(a: Any) -> bool:
    """Whether a number is known.

    Args:
        a: the number.

    Example:
        >>> from rushlight.fx.experimental import symbolic_shapes
        >>> symbolic_shapes.is_concrete_int(torch.ones(3).size(0))
        True
    """
    return isinstance(a, int)


def is_concrete_bool(a: Any) -> bool:
    """Whether a condition is known.

    Args:
        a: the condition.

    Example:
        >>> from rushlight.fx.experimental import symbolic_shapes
        >>> symbolic_shapes.is_concrete_bool(2 > 1)
        True
    """
    return isinstance(a, bool)


def hint_int(a: Any, fallback: int | None = None) -> int:
    """The number itself; `fallback` is for symbolic ones.

    Args:
        a: the number.
        fallback: what stands for a number that is not known.

    Example:
        >>> from rushlight.fx.experimental import symbolic_shapes
        >>> symbolic_shapes.hint_int(7, fallback=1)
        7
    """
    known: Any = fallback if a is None else a
    return int(known)


def sym_eq(x: Any, y: Any) -> bool:
    """Whether numbers, or lists of them, are equal.

    Args:
        x: numbers, or one.
        y: what they are compared with.

    Example:
        >>> from rushlight.fx.experimental import symbolic_shapes
        >>> symbolic_shapes.sym_eq(torch.ones(3, 2).shape, (3, 2))
        True
    """
    if isinstance(x, list | tuple) and isinstance(y, list | tuple):
        return len(x) == len(y) and all(map(sym_eq, x, y))
    return x == y
