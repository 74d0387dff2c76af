"""A mark for functions whose signatures stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["compatibility"]

_T = TypeVar("_T")


def compatibility(is_backward_compatible: bool) -> Callable[[_T], _T]:
    """Marks a function or class, which stays as it is."""

    def mark(function: _T) -> _T:
        function._backward_compatible = is_backward_compatible  # type: ignore[attr-defined]
        return function

    return mark
