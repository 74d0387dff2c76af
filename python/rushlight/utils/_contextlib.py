"""Context managers that are decorators too, by the names that programs derive theirs from."""

from __future__ import annotations

from rushlight.autograd.grad_mode import ContextDecorator as _DecoratorContextManager
from rushlight.autograd.grad_mode import _BareDecorator as _NoParamDecoratorContextManager

__all__ = ["_DecoratorContextManager", "_NoParamDecoratorContextManager", "context_decorator"]


class _ContextFactory(_DecoratorContextManager):
    """The decorator of what a function makes: a fresh context for each call."""

    def __init__(self, make) -> None:
        self._make = make

    def clone(self):
        return self._make()


def context_decorator(ctx, func):
    """`func` within a context: what `ctx()` makes for each call, or always `ctx` itself."""
    if callable(ctx) and hasattr(ctx, "__enter__"):
        raise AssertionError(
            f"{ctx} is both callable and also a valid context manager, and could be meant as "
            "either: wrap it in a lambda to be called"
        )
    return _ContextFactory(ctx if callable(ctx) else lambda: ctx)(func)
