"""Functions that change a module in place, each at most once, and what they keep of it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from rushlight import nn

__all__ = ["contract"]

_STATES = "__composable_api_state_key"


class _State:
    """What a function keeps of a module."""


def _states(module: nn.Module) -> dict:
    return module.__dict__.setdefault(_STATES, {})


def contract(state_cls: type[_State] = _State) -> Callable[..., Any]:
    """For a function that takes a module first: it is called at most once with each module.

    The function gets `state(module)`, which is a `state_cls`, or None where it was not called.
    Names of parameters, buffers and modules must be the same afterwards.
    """

    def decorated(function):
        @functools.wraps(function)
        def wrapper(module, *args, **kwargs):
            states = _states(module)
            if function in states:
                raise AssertionError(
                    "Each distinct composable distributed API can only be applied to a module "
                    f"once. {function.__name__} has already been applied to the following module:"
                    f"\n{module}"
                )
            before = _all_names(module)
            states[function] = state_cls()
            try:
                changed = function(module, *args, **kwargs)
            except BaseException:
                del states[function]
                raise
            changed = module if changed is None else changed
            if _all_names(changed) != before:
                raise RuntimeError(
                    f"{function.__name__} changed the names of parameters, buffers or modules"
                )
            return changed

        wrapper.state = lambda module: module.__dict__.get(_STATES, {}).get(function)
        return wrapper

    return decorated


def _all_names(module):
    return [
        [name for name, _ in found]
        for found in (module.named_parameters(), module.named_buffers(), module.named_modules())
    ]


def _get_registry(module: nn.Module) -> dict[str, Any]:
    """The functions that were called with a module, by name."""
    return {function.__name__: state for function, state in _states(module).items()}
