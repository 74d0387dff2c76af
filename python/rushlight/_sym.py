"""Sizes that stand for any number: their types, and arithmetic that takes plain numbers as well.

Nothing makes such sizes yet. Programs ask `isinstance(n, SymInt)` and call `sym_int`, `sym_max` and
so on in the place of `int` and `max`.
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
    def __init__(self, node=None) -> None:
        raise RuntimeError(f"rushlight makes no {type(self).__name__} yet")


class SymInt(_Symbol):
    """A symbolic int. Sizes are plain numbers, except ragged ones of nested tensors."""


class SymFloat(_Symbol):
    """A symbolic float. There are none."""


class SymBool(_Symbol):
    """A symbolic bool. There are none."""


@_C._Offered
def sym_int(a: Any) -> int:
    """Convert a number to an int."""
    return int(a)


@_C._Offered
def sym_float(a: Any) -> float:
    """Convert a number to a float."""
    return float(a)


@_C._Offered
def sym_not(a: Any) -> bool:
    """Return `not a`."""
    return not a


@_C._Offered
def sym_max(a: Any, b: Any) -> Any:
    """The larger of two numbers; a float where one is."""
    return float(max(a, b)) if isinstance(a, float) or isinstance(b, float) else max(a, b)


@_C._Offered
def sym_min(a: Any, b: Any) -> Any:
    """The smaller of two numbers; a float where one is."""
    return float(min(a, b)) if isinstance(a, float) or isinstance(b, float) else min(a, b)


@_C._Offered
def sym_sum(args: Any) -> Any:
    """The sum of numbers."""
    return sum(args)


@_C._Offered
def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """Return `t` if `b` is true, else `f`."""
    if not isinstance(b, bool) or type(t) is not type(f):
        raise AssertionError("sym_ite takes a bool and two values of one type")
    return t if b else f


@_C._Offered
def sym_sqrt(a: Any) -> float:
    """The square root of a number."""
    return math.sqrt(a)
