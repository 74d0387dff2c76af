"""Where the classes of nested tensors find what handles calls: `_rules` enters it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__: list[str] = []

HANDLERS: dict[str, Callable[..., Any]] = {}


class HandlesCalls:
    """A tensor whose calls go to the rules, above autograd and below."""

    is_nested = True
    _sees_whole_ops = True  # rules are of linear, not of what it is composed of

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return HANDLERS["call"](func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return HANDLERS["dispatch"](func, args, kwargs or {})
