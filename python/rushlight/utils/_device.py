"""The default device for a piece of a program."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import rushlight

__all__ = ["DeviceContext", "set_device"]


class DeviceContext:
    """`with torch.device(...)` under its old name.

    Args:
        device: the device of factories that are called without one.
    """

    def __init__(self, device: str) -> None:
        self.device = rushlight.device(device)

    def __enter__(self) -> DeviceContext:
        self.device.__enter__()
        return self

    def __exit__(self, kind, value, trace):
        return self.device.__exit__(kind, value, trace)


def set_device(device: str) -> Callable[..., Any]:
    """A decorator: the function with this default device."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def inner(*args: Any, **kwargs: Any) -> Any:
            with rushlight.device(device):
                return function(*args, **kwargs)

        return inner

    return decorate
