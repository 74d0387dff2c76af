"""What stands for names that programs import and that rushlight does not have yet.

They can be imported and asked about; whoever calls one is told by its name that it is not there.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Any)


def refuses(why: str) -> Callable[[_F], _F]:
    """Marks a function that does nothing but raise, for `python -m rushlight check`."""

    def mark(fn: _F) -> _F:
        fn._why = why
        return fn

    return mark


def function(name: str, why: str) -> Any:
    """A function that raises RuntimeError.

    Args:
        name: its whole name, from `torch` on.
        why: what follows "rushlight has no NAME yet: ".
    """

    @refuses(why)
    def refuse(*args, **kwargs):
        raise RuntimeError(f"rushlight has no {name} yet: {why}")

    refuse.__name__ = refuse.__qualname__ = name.rpartition(".")[2]
    refuse.__doc__ = f"Refused: {why}."
    return refuse


class _RefusingClass(type):
    """The class of classes without instances."""

    _why: str

    def __call__(cls, *args, **kwargs):
        raise RuntimeError(f"rushlight has no {cls.__module__}.{cls.__qualname__} yet: {cls._why}")


def kind(name: str, module: str, why: str, **attributes: Any) -> Any:
    """A class that has no instances: to make one raises RuntimeError.

    Args:
        name: its name.
        module: the module that it stands in.
        why: as above.
        attributes: what else the class has.
    """
    space = {"__module__": module, "__doc__": f"Refused: {why}.", "_why": why}
    return _RefusingClass(name, (), {**space, **attributes})


def why_refused(value: Any, called: bool) -> str | None:
    """Why a program that uses a name's value is refused, or None.

    Args:
        value: a function is refused wherever it is used.
        called: what a class is refused for; programs may ask `isinstance` with it.
    """
    kinds = (types.FunctionType, _RefusingClass) if called else types.FunctionType
    return getattr(value, "_why", None) if isinstance(value, kinds) else None
