"""Whether arguments want to see a call by `__torch_function__`, and offering it to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight import _C

if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
]


def has_torch_function(relevant_args: Any) -> bool:
    """Whether one of the arguments, or a mode, wants to see the call.

    Args:
        relevant_args: the arguments that may want to.

    Example:
        >>> torch.overrides.has_torch_function((torch.ones(2), 4))
        False
    """
    return _C._has_torch_function(*relevant_args)


def has_torch_function_variadic(*args: Any) -> bool:
    """The same with the arguments given one by one.

    Args:
        *args: the arguments.

    Example:
        >>> torch.overrides.has_torch_function_variadic(torch.ones(2), 4)
        False
    """
    return _C._has_torch_function(*args)


def has_torch_function_unary(argument: Any) -> bool:
    """The same for one argument.

    Args:
        argument: the argument.

    Example:
        >>> torch.overrides.has_torch_function_unary(torch.ones(2))
        False
    """
    return _C._has_torch_function(argument)


def handle_torch_function(public_api: Any, relevant_args: Any, *args: Any, **kwargs: Any) -> Any:
    """Offers a call to the modes and the arguments that have `__torch_function__`.

    For an example see `overrides.wrap_torch_function`, which offers calls as well.

    Args:
        public_api: the function that was called.
        relevant_args: the arguments that may want to see the call.
        *args, **kwargs: all arguments.

    Raises:
        TypeError: none of them implements it.
    """
    return _C._offer_torch_function(public_api, tuple(relevant_args), args, kwargs)
