"""What programs take from `torch._jit_internal`, the place where PyTorch defines parts of `jit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.jit import Final, Future, export, ignore, is_scripting, unused  # noqa: F401


def _copy_to_script_wrapper(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a method of a container that its program has, too; it has all special methods."""
    return fn
