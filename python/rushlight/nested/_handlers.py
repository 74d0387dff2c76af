"""What the classes of nested tensors do with calls: they leave them to the rules of `_rules`."""

from __future__ import annotations

from rushlight._lazy import later

__all__: list[str] = []

_rules = later("rushlight._rules.nested")


class HandlesCalls:
    """A tensor whose calls go to the rules, above autograd and below."""

    is_nested = True
    _sees_whole_ops = True  # rules are of linear, not of what it is composed of

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return _rules.call(func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return _rules.dispatch(func, args, kwargs or {})
