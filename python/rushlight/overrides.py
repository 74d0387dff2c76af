"""`__torch_function__` for library code: questions, offering calls to it, and modes."""

# ruff: noqa: SIM905

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import _C, _ops
from rushlight._library.offers import (
    handle_torch_function,
    has_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
)

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]


def is_tensor_like(inp: Any) -> bool:
    """Whether an object is a Tensor or has `__torch_function__`.

    Args:
        inp: the object.

    Example:
        >>> torch.overrides.is_tensor_like(torch.ones(1)), torch.overrides.is_tensor_like([5])
        (True, False)
    """
    return type(inp) is _tensor_class() or hasattr(inp, "__torch_function__")


def _tensor_class() -> type:
    return rushlight.Tensor


class TorchFunctionMode:
    """Sees every call of the public functions inside its `with` block.

    Override `__torch_function__`: it gets the function, the classes that have a say, the arguments
    and the keywords. While it runs, the mode is off.

    Example:
        >>> class Names(torch.overrides.TorchFunctionMode):
        ...     def __torch_function__(self, called, classes, args=(), kwargs=None):
        ...         print(torch.overrides.resolve_name(called))
        ...         return called(*args, **(kwargs or {}))
        >>> with Names():
        ...     x = torch.zeros(2).exp()
        None
        torch.Tensor.exp
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        _C._push_torch_function_mode(self)
        return self

    def __exit__(self, kind, value, trace):
        _C._pop_torch_function_mode()


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that runs every call unchanged.

    Example:
        >>> with torch.overrides.BaseTorchFunctionMode():
        ...     print(torch.tensor([6]) + 1)
        tensor([7])
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **({} if kwargs is None else kwargs))


def wrap_torch_function(
    dispatcher: Callable[..., Any],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that offers calls of a function to the arguments that `dispatcher(*args)`
    returns.

    Args:
        dispatcher: gets the arguments of a call; returns those that may take it.

    Example:
        >>> @torch.overrides.wrap_torch_function(lambda x: (x,))
        ... def twice(x):
        ...     return x + x
        >>> twice(torch.tensor([4]))
        tensor([8])
    """

    return functools.partial(_wrap_dispatched, dispatcher)


def _wrap_dispatched(dispatcher, function):
    @functools.wraps(function)
    def public(*args, **kwargs):
        asked = tuple(dispatcher(*args, **kwargs))
        taken = has_torch_function(asked)
        call = functools.partial(handle_torch_function, public, asked) if taken else function
        return call(*args, **kwargs)

    return public


@contextlib.contextmanager
def enable_reentrant_dispatch():
    """A no-op: calls of a dispatch mode always go to the modes around it.

    Example:
        >>> with torch.overrides.enable_reentrant_dispatch():
        ...     pass
    """
    yield


def _get_current_function_mode():
    """The innermost function mode, or None."""
    modes = _C._torch_function_modes()
    return modes[-1] if modes else None


def _get_current_function_mode_stack():
    """The function modes of this thread, the innermost last."""
    return _C._torch_function_modes()


@contextlib.contextmanager
def _pop_mode_temporarily():
    """Within it the innermost function mode is off; it is what the context gives."""
    mode = _C._pop_torch_function_mode()
    try:
        yield mode
    finally:
        _C._push_torch_function_mode(mode)


# ---- which functions are offered ----

# Methods of Tensor that look like ops and are not offered.
_NEVER = frozenset(
    (
        "__new__ __init__ __init_subclass__ __subclasshook__ __class__ __getattribute__ "
        "__setattr__ __delattr__ __getstate__ __sizeof__ __dir__ __torch_function__ "
        "__torch_dispatch__ __array_wrap__ __dlpack__ __dlpack_device__ as_subclass new "
        "_make_subclass _make_wrapper_subclass"
    ).split()
)


# Functions that are offered though no schema says that they take a tensor.
_QUESTIONS = frozenset("is_complex is_floating_point numel".split())


def _takes_tensors(name: str) -> bool:
    return any(
        a.type.startswith("Tensor") and not a.is_out
        for space in ("aten", "rushlight")
        for schema in _ops.schemas_of(f"{space}::{name}")
        for a in schema.arguments
    )


def _functions(space):
    """The public functions of a module by name."""
    kinds = (types.BuiltinFunctionType, types.FunctionType, _C._Offered)
    return {
        n: f
        for n in dir(space)
        if not n.startswith("_") and isinstance(f := getattr(space, n, None), kinds)
    }


@functools.cache
def _overridable():
    """{module or class: {name: function}} of what is offered."""
    tensor = rushlight.Tensor
    offered = {
        n: f
        for n, f in _functions(rushlight).items()
        if isinstance(f, _C._Offered) or n in _QUESTIONS or _takes_tensors(n)
    }
    of_nn = {
        n: f
        for n, f in _functions(rushlight.nn.functional).items()
        if isinstance(f, (_C._Offered, types.BuiltinFunctionType))
    }
    methods = {}
    for name in dir(tensor):
        if name in _NEVER or (name.startswith("_") and not name.startswith("__")):
            continue
        value = getattr(tensor, name)
        if isinstance(value, (types.GetSetDescriptorType, property)):
            methods[f"{name}.__get__"] = value.__get__
        elif (
            callable(value)
            and not isinstance(value, type)
            and getattr(object, name, None) is not value
        ):
            methods[name] = value
    out = {rushlight: offered, rushlight.nn.functional: of_nn, tensor: methods}
    init = rushlight.nn.init
    out[init] = {n: getattr(init, n) for n in init._OFFERED}
    for name in ("linalg", "fft", "special"):
        space = getattr(rushlight, name, None)
        if space is not None:
            out[space] = _functions(space)
    return out


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """A dict from modules and classes to their functions that `__torch_function__` can override.

    Example:
        >>> torch.add in torch.overrides.get_overridable_functions()[torch]
        True
    """
    return {space: list(found.values()) for space, found in _overridable().items()}


@functools.cache
def get_ignored_functions():
    """The public functions that cannot be overridden: factories, settings, questions about
    types.

    Example:
        >>> torch.zeros in torch.overrides.get_ignored_functions()
        True
    """
    offered = _overridable()
    ignored = {f for n, f in _functions(rushlight).items() if f not in offered[rushlight].values()}
    tensor = rushlight.Tensor
    ignored.update(getattr(tensor, n) for n in _NEVER if hasattr(tensor, n))
    return ignored


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """A dict from functions to lambdas that take the same arguments and return -1.

    Example:
        >>> torch.overrides.get_testing_overrides()[torch.add](4, 5)
        -1
    """
    return {
        function: lambda *args, **kwargs: -1
        for found in _overridable().values()
        for function in found.values()
    }


def get_default_nowrap_functions():
    """The functions whose results are not converted to the subclass.

    Example:
        >>> torch.Tensor.grad.__get__ in torch.overrides.get_default_nowrap_functions()
        True
    """
    base: Any = rushlight.Tensor
    return {base._base.__get__, base.grad.__get__}


@functools.cache
def _names():
    names = {rushlight.Tensor: "torch.Tensor", rushlight.nn.functional: "torch.nn.functional"}
    return {
        function: f"{names.get(space, getattr(space, '__name__', ''))}.{name}".replace(
            "rushlight", "torch", 1
        )
        for space, found in _overridable().items()
        for name, function in found.items()
    }


def resolve_name(f: Callable[..., Any]) -> str | None:
    """The name of an overridable function, "torch.Tensor.add"; None for others.

    Args:
        f: the function.

    Example:
        >>> torch.overrides.resolve_name(torch.Tensor.add)
        'torch.Tensor.add'
    """
    if isinstance(f, (_ops.OpOverload, _ops.OpOverloadPacket)):
        return str(f)
    try:
        return _names().get(f)
    except TypeError:  # it cannot be hashed
        return None


def is_tensor_method_or_property(func: Callable[..., Any]):
    """Whether a function is a method of Tensor or the getter of a property.

    Args:
        func: the function.

    Example:
        >>> torch.overrides.is_tensor_method_or_property(torch.Tensor.add)
        True
    """
    return (
        func in _overridable()[rushlight.Tensor].values()
        or getattr(func, "__name__", "") == "__get__"
    )
