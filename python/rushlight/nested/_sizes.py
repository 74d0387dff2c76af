"""The size of a ragged dimension: a symbol, one for each tensor that says where components end."""

from __future__ import annotations

import itertools
import weakref
from typing import TYPE_CHECKING

from rushlight._sym import SymInt

if TYPE_CHECKING:
    from rushlight import Tensor

__all__ = ["NestedInt", "get_tensor_symint"]

_numbers = itertools.count(1)
_known: dict[int, tuple[weakref.ref, int]] = {}  # by the tensor's id while it lives


class NestedInt(SymInt):
    """`factor` times the lengths of one ragged dimension: at least 2, and otherwise unknown.

    Equal where both come from the same offsets (or lengths) with the same factor.
    """

    def __init__(self, number: int, factor: int = 1) -> None:
        self._number, self._factor = number, factor

    def __repr__(self) -> str:
        return f"j{self._number}" if self._factor == 1 else f"{self._factor}*j{self._number}"

    def __hash__(self) -> int:
        return hash((self._number, self._factor))

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other) -> bool:
        if not isinstance(other, NestedInt):
            return False
        return (self._number, self._factor) == (other._number, other._factor)

    def __ne__(self, other) -> bool:
        return not self == other

    def __mul__(self, other):
        if isinstance(other, bool) or not isinstance(other, int):
            raise ValueError("eq: a ragged size can be multiplied by an int only")
        return NestedInt(self._number, self._factor * other)

    __rmul__ = __mul__

    def __ge__(self, other) -> bool:
        if isinstance(other, NestedInt):
            if other._number == self._number:
                return self._factor >= other._factor
        elif isinstance(other, int) and other <= 2:
            return True
        raise ValueError("ge: relation is indeterminate")

    def __gt__(self, other) -> bool:
        return self >= (other + 1 if isinstance(other, int) else other) and self != other

    def __lt__(self, other) -> bool:
        return not self >= other

    def __le__(self, other) -> bool:
        return not self > other

    def __int__(self) -> int:
        raise TypeError(f"the ragged size {self} is no int: components differ in it")


def get_tensor_symint(tensor: Tensor, *, coeff: int = 1) -> NestedInt:
    """The symbol of the lengths that a tensor of offsets or lengths says."""
    key = id(tensor)
    if key not in _known:
        _known[key] = weakref.ref(tensor, lambda _: _known.pop(key, None)), next(_numbers)
    return NestedInt(_known[key][1], coeff)
