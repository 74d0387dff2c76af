"""Functions of PyTorch's that have nothing to do here, for `foreign.tables`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any


@contextlib.contextmanager
def enable_single_level_autograd_function():
    """Nothing: `apply` is what forward is run by."""
    yield


@contextlib.contextmanager
def disable_functional_mode():
    """Accepted: there is no such mode."""
    yield


def mb_unwrap_functional_tensor(tensor):
    """The tensor itself: it is none."""
    return tensor


def _copy_to_script_wrapper(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a method of a container that its program has, too; it has all special methods."""
    return fn


def register_decomposition(ops: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Accepted for a compiler that there is not: ops run as they are."""
    return lambda fn: fn
