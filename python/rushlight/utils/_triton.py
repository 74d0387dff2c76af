"""Whether Triton is there: kernels are never compiled with it."""

from __future__ import annotations

import functools
import importlib.util

__all__ = ["has_triton", "has_triton_package"]


@functools.cache
def has_triton_package() -> bool:
    """Whether the package can be imported."""
    return importlib.util.find_spec("triton") is not None


def has_triton() -> bool:
    """Whether kernels are compiled with it: never."""
    return False
