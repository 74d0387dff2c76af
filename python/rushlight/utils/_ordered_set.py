"""A set that keeps the order in which its elements came."""

from __future__ import annotations

from collections.abc import Iterable, MutableSet, Set
from typing import Any, TypeVar

__all__ = ["OrderedSet"]

_T = TypeVar("_T")


class OrderedSet(MutableSet[_T]):
    """A set in the order of insertion, with the methods of `set`.

    Args:
        iterable: the elements to begin with.
    """

    __slots__ = ("_dict",)

    def __init__(self, iterable: Iterable[_T] | None = None) -> None:
        self._dict: dict[_T, None] = dict.fromkeys(() if iterable is None else iterable)

    def __contains__(self, elem: object) -> bool:
        return elem in self._dict

    def __iter__(self):
        return iter(self._dict)

    def __reversed__(self):
        return reversed(self._dict)

    def __len__(self) -> int:
        return len(self._dict)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)})"

    def __getitem__(self, index: int) -> _T:
        return list(self._dict)[index]

    def __getstate__(self):
        return list(self._dict)

    def __setstate__(self, state) -> None:
        self._dict = dict.fromkeys(state)

    def add(self, elem: _T) -> None:
        self._dict[elem] = None

    def discard(self, elem: _T) -> None:
        self._dict.pop(elem, None)

    def clear(self) -> None:
        self._dict.clear()

    def pop(self) -> _T:
        """Takes the last element out."""
        if not self._dict:
            raise KeyError("pop from an empty set")
        return self._dict.popitem()[0]

    def copy(self) -> OrderedSet[_T]:
        """The same elements in another set."""
        return OrderedSet(self._dict)

    def update(self, *others: Iterable[_T]) -> None:
        """Adds the elements of others."""
        for other in others:
            self._dict.update(dict.fromkeys(other))

    def union(self, *others: Iterable[_T]) -> OrderedSet[_T]:
        """The elements of all."""
        made = self.copy()
        made.update(*others)
        return made

    def intersection(self, *others: Iterable[_T]) -> OrderedSet[_T]:
        """The elements that all have."""
        sets = [set(other) for other in others]
        return OrderedSet(e for e in self if all(e in s for s in sets))

    def intersection_update(self, *others: Iterable[_T]) -> None:
        """Keeps the elements that all have."""
        self._dict = self.intersection(*others)._dict

    def difference(self, *others: Iterable[_T]) -> OrderedSet[_T]:
        """The elements that no other has."""
        sets = [set(other) for other in others]
        return OrderedSet(e for e in self if not any(e in s for s in sets))

    def difference_update(self, *others: Iterable[_T]) -> None:
        """Keeps the elements that no other has."""
        self._dict = self.difference(*others)._dict

    def symmetric_difference(self, other: Iterable[_T]) -> OrderedSet[_T]:
        """The elements that one of both has."""
        theirs = OrderedSet(other)
        return self.difference(theirs).union(theirs.difference(self))

    def issubset(self, other: Set[Any]) -> bool:
        """Whether the other has all elements."""
        return all(e in other for e in self)

    def issuperset(self, other: Iterable[Any]) -> bool:
        """Whether it has all elements of the other."""
        return all(e in self for e in other)

    __or__ = __ror__ = union
    __and__ = __rand__ = intersection
    __sub__ = difference
    __xor__ = __rxor__ = symmetric_difference
