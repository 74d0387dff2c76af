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
    """For a function that takes a module, or several, first: it is called once with each.

    The function gets `state(module)`, which is a `state_cls`, or None if it was not called;
    modules that are given together have one. Names of parameters, buffers and modules must be the
    same afterwards.
    """

    def decorator(function):
        @functools.wraps(function)
        def wrapper(module, *args, **kwargs):
            modules = [module] if isinstance(module, nn.Module) else list(module)
            for one in modules:
                if function in _states(one):
                    raise AssertionError(
                        f"{function.__name__} has already been applied to this module, and each "
                        f"API can be applied once:\n{one}"
                    )
            before = [_all_names(one) for one in modules]
            state = state_cls()
            for one in modules:
                _states(one)[function] = state
            try:
                changed = function(module, *args, **kwargs)
            except BaseException:
                for one in modules:
                    del _states(one)[function]
                raise
            changed = module if changed is None else changed
            results = [changed] if isinstance(changed, nn.Module) else list(changed)
            if [_all_names(one) for one in results] != before:
                raise RuntimeError(
                    f"{function.__name__} changed the names of parameters, buffers or modules"
                )
            return changed

        state: Any = lambda module: module.__dict__.get(_STATES, {}).get(function)  # noqa: E731
        wrapper.__dict__["state"] = state
        return wrapper

    return decorator


def _all_names(module):
    return [
        [name for name, _ in found]
        for found in (module.named_parameters(), module.named_buffers(), module.named_modules())
    ]


def _get_registry(module: nn.Module) -> dict[str, Any]:
    """The functions that were called with a module, by name."""
    return {function.__name__: state for function, state in _states(module).items()}
