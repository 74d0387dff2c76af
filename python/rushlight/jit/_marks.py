"""Marks on functions and classes for the compiler of programs, and what they mean as Python."""

from __future__ import annotations

import functools
import types
import typing
from typing import Any, NamedTuple, TypeVar, cast

from rushlight._warnings import warn

_F = TypeVar("_F")
_is = isinstance  # the name is a function of this module below


class Attribute(NamedTuple):
    """A value of a module with a type for the compiler.

    Args:
        value: the value.
        type: its type for the compiler.

    Example:
        >>> torch.jit.Attribute([3, 5], list[int]).value
        [3, 5]
    """

    value: Any
    type: Any


def _mark(function: Any, kind: str) -> Any:
    function._torchscript_modifier = kind
    return function


def export(fn: _F) -> _F:
    """Marks a method that is compiled although `forward` does not call it.

    Args:
        fn: the method.

    Example:
        >>> class Net(torch.nn.Module):
        ...     def forward(self, number):
        ...         return number - 1
        ...
        ...     @torch.jit.export
        ...     def twice(self, number):
        ...         return 2 * number
        >>> torch.jit.script(Net()).twice(torch.tensor([3]))
        tensor([6])
    """
    return _mark(fn, "export")


def unused(fn: _F) -> _F:
    """Marks a method that raises where compiled code calls it.

    Args:
        fn: the method.

    Example:
        >>> class Net(torch.nn.Module):
        ...     @torch.jit.unused
        ...     def only_in_python(self, x):
        ...         return x
        ...
        ...     def forward(self, x):
        ...         return self.only_in_python(x) if x.dim() > 9 else -x
        >>> torch.jit.script(Net())(torch.tensor([3]))
        tensor([-3])
    """
    if _is(fn, property):
        for part in (fn.fget, fn.fset):
            if part is not None:
                _mark(part, "unused")
        return fn
    return _mark(fn, "unused")


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Marks a function that stays Python code, which compiled code calls back.

    Args:
        drop: whether compiled code raises instead.
        kwargs: accepted, without effect.

    Example:
        >>> @torch.jit.ignore
        ... def show(x):
        ...     print(x)
    """
    if callable(drop):
        return _mark(drop, "ignore")
    if not _is(drop, bool):
        raise RuntimeError(f"jit.ignore: `drop` must be a bool or a function, but got {drop}")
    return lambda fn: _mark(fn, "unused" if drop or kwargs.get("drop_on_export") else "ignore")


def interface(obj: _F) -> _F:
    """Marks a class as the common interface of several classes or modules.

    Args:
        obj: the class.

    Example:
        >>> @torch.jit.interface
        ... class Scorer:
        ...     def score(self, x: torch.Tensor) -> torch.Tensor:
        ...         pass
    """
    if not _is(obj, type):
        raise RuntimeError("interface must be applied to a class")
    obj.__torch_script_interface__ = True
    return obj


class MarkedMethod:
    """A method of a `ScriptModule` that is compiled when the module has been made."""

    def __init__(self, function: Any) -> None:
        self.function = function
        functools.update_wrapper(cast("Any", self), function)

    def __get__(self, module: Any, kind: Any = None) -> Any:
        if module is None:
            return self
        compiled = module.__dict__.get("_program_methods", ())
        if self.function.__name__ in compiled:
            return module._method(self.function.__name__)
        return types.MethodType(self.function, module)


def script_method(fn: Any) -> Any:
    """Marks a method of a `ScriptModule` that is compiled.

    Args:
        fn: the method.

    Example:
        >>> class Net(torch.jit.ScriptModule):
        ...     @torch.jit.script_method
        ...     def forward(self, x):
        ...         return x + 1
        >>> Net()(torch.tensor([4]))
        tensor([5])
    """
    return MarkedMethod(fn)


# Signatures by the qualified names of the functions that they are of.
_overloads: dict[str, list[Any]] = {}


def _overload(func: _F) -> _F:
    """Marks a signature of the function of the same name that follows."""
    function: Any = func
    _overloads.setdefault(f"{function.__module__}.{function.__qualname__}", []).append(function)
    return func


def _overload_method(func: _F) -> _F:
    """Marks a signature of the method of the same name that follows."""
    return _overload(func)


def annotate(the_type: Any, the_value: Any) -> Any:
    """Return the value; the type is for the compiler.

    Args:
        the_type: the type.
        the_value: the value, which is returned.

    Example:
        >>> torch.jit.annotate(list[int], [])
        []
    """
    return the_value


def is_scripting() -> bool:
    """Whether compiled code asks: False in Python, True where it is compiled.

    Example:
        >>> torch.jit.is_scripting()
        False
    """
    return False


def _fits(value: Any, kind: Any) -> bool:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, one) for one in inner)
    if (origin or kind) in (list, dict, tuple) and not inner:
        raise RuntimeError(f"Attempted to use {kind} without a contained type")
    if origin is None and not _is(kind, type | None):
        raise RuntimeError(f"jit.isinstance() takes types and tuples of types, not {kind}")
    if origin is None:
        return value is None if kind is None else _is(value, kind)
    if not _is(value, origin):
        return False
    if origin in (list, dict) and not value:
        warn(
            "The inner type of a container is lost where it is empty: jit.isinstance() takes it "
            "for one of the type that is asked for"
        )
    if origin is list:
        return all(_fits(item, inner[0]) for item in value)
    if origin is dict:
        return all(_fits(k, inner[0]) and _fits(v, inner[1]) for k, v in value.items())
    if origin is tuple:
        if len(inner) == 2 and inner[1] is Ellipsis:
            return all(_fits(item, inner[0]) for item in value)
        return len(inner) == len(value) and all(map(_fits, value, inner))
    return True


def isinstance(obj: Any, target_type: Any) -> bool:
    """`isinstance` that looks into containers: `isinstance(x, List[int])`.

    Args:
        obj: the value.
        target_type: a type, or several in a tuple.

    Example:
        >>> torch.jit.isinstance([2, 4], list[int])
        True
        >>> torch.jit.isinstance(["a"], list[int])
        False
    """
    kinds = target_type if _is(target_type, tuple) else (target_type,)
    return any(_fits(obj, kind) for kind in kinds)
