"""Whether arguments want to see a call by `__torch_function__`, and offering it to them."""

from rushlight import _C

__all__ = [
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
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
