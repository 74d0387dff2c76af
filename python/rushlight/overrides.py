"""`__torch_function__` for library code: asking for it, offering a call, and modes."""

from __future__ import annotations

from rushlight import _C

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
]


def has_torch_function(relevant_args):
    """Whether one of the arguments, or a mode, wants to see the call."""
    return _C._has_torch_function(*relevant_args)


def has_torch_function_variadic(*args):
    """The same with the arguments given one by one."""
    return _C._has_torch_function(*args)


def has_torch_function_unary(argument):
    """The same for one argument."""
    return _C._has_torch_function(argument)


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Offers a call to the modes and the arguments that have `__torch_function__`.

    Raises:
        TypeError: none of them implements it.
    """
    return _C._offer_torch_function(public_api, tuple(relevant_args), args, kwargs)


def is_tensor_like(inp):
    """Whether it is a Tensor or has `__torch_function__`."""
    return type(inp) is _tensor_class() or hasattr(inp, "__torch_function__")


def _tensor_class():
    from rushlight import Tensor

    return Tensor


class TorchFunctionMode:
    """Sees every call of the public functions inside its `with` block.

    Override `__torch_function__(self, func, types, args=(), kwargs=None)`; while it runs, the mode
    is off.
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        _C._push_torch_function_mode(self)
        return self

    def __exit__(self, kind, value, trace):
        _C._pop_torch_function_mode()


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that lets every call pass."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **({} if kwargs is None else kwargs))
