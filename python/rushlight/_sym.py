"""Sizes that stand for any number: their types, and arithmetic that takes plain numbers as well.

`export` makes such sizes (`export._sizes`). Programs ask `isinstance(n, SymInt)` and call
`sym_int`, `sym_max` and so on in the place of `int` and `max`.
"""

from __future__ import annotations

import math
from typing import Any

from rushlight import _C

__all__ = [
    "SymBool",
    "SymFloat",
    "SymInt",
    "sym_float",
    "sym_int",
    "sym_ite",
    "sym_max",
    "sym_min",
    "sym_not",
    "sym_sqrt",
    "sym_sum",
]


class _Symbol:
    def __init__(self, node: Any = None) -> None:
        raise RuntimeError(f"rushlight makes no {type(self).__name__} yet")


class SymInt(_Symbol):
    """A symbolic int: a size of a program that is exported, a ragged one of a nested tensor.

    Args:
        node: what symbols of PyTorch's are made of; here nothing is made of it.

    Example:
        >>> isinstance(torch.ones(3).size(0), torch.SymInt)
        False
    """


class SymFloat(_Symbol):
    """A symbolic float: what depends on sizes of a program that is exported.

    Args:
        node: what symbols of PyTorch's are made of; here nothing is made of it.

    Example:
        >>> isinstance(2.5, torch.SymFloat)
        False
    """


class SymBool(_Symbol):
    """A symbolic bool: a comparison with what depends on values, in a program that is exported.

    Args:
        node: what symbols of PyTorch's are made of; here nothing is made of it.

    Example:
        >>> isinstance(2 > 1, torch.SymBool)
        False
    """


def _result(name: str, operands: tuple[Any, ...], value: Any) -> Any:
    """A result, which knows its operands where one of them is a size that does so."""
    for operand in operands:
        give = getattr(operand, "_give", None)
        if give is not None:
            return give(name, operands, value)
    return value


@_C._Offered
def sym_int(a: Any) -> int:
    """Convert a number to an int.

    Args:
        a: the number.

    Example:
        >>> torch.sym_int(4.7)
        4
    """
    if isinstance(a, int) and not isinstance(a, bool):
        return a
    return _result("sym_int", (a,), int(a))


@_C._Offered
def sym_float(a: Any) -> float:
    """Convert a number to a float.

    Args:
        a: the number.

    Example:
        >>> torch.sym_float(4)
        4.0
    """
    return _result("sym_float", (a,), float(a))


@_C._Offered
def sym_not(a: Any) -> bool:
    """Return `not a`.

    Args:
        a: the condition.

    Example:
        >>> torch.sym_not(True)
        False
    """
    return not a


def _chosen(function: Any, a: Any, b: Any) -> Any:
    if isinstance(a, float) or isinstance(b, float):
        return function(float(a), float(b))
    return function(int(a), int(b)) if isinstance(a, int) and isinstance(b, int) else function(a, b)


@_C._Offered
def sym_max(a: Any, b: Any) -> Any:
    """The larger of two numbers; a float where one is.

    Args:
        a, b: the numbers.

    Example:
        >>> torch.sym_max(4, 7)
        7
    """
    return _result("sym_max", (a, b), _chosen(max, a, b))


@_C._Offered
def sym_min(a: Any, b: Any) -> Any:
    """The smaller of two numbers; a float where one is.

    Args:
        a, b: the numbers.

    Example:
        >>> torch.sym_min(4, 7)
        4
    """
    return _result("sym_min", (a, b), _chosen(min, a, b))


@_C._Offered
def sym_sum(args: Any) -> Any:
    """The sum of numbers.

    Args:
        args: the numbers.

    Example:
        >>> torch.sym_sum([4, 7])
        11
    """
    return sum(args)


@_C._Offered
def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """Return `t` if `b` is true, else `f`.

    Args:
        b: the condition.
        t, f: the values.

    Example:
        >>> torch.sym_ite(False, 4, 7)
        7
    """
    if not isinstance(b, bool) or type(t) is not type(f):
        raise AssertionError("sym_ite takes a bool and two values of one type")
    return t if b else f


@_C._Offered
def sym_sqrt(a: Any) -> float:
    """The square root of a number.

    Args:
        a: the number.

    Example:
        >>> torch.sym_sqrt(9)
        3.0
    """
    return _result("sym_sqrt", (a,), math.sqrt(a))
