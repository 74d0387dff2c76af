"""NVIDIA's profilers, which this package does not drive."""

from __future__ import annotations

import contextlib
from typing import NoReturn

__all__ = ["profile", "start", "stop"]


def start() -> NoReturn:
    """Begin to collect: RuntimeError."""
    raise RuntimeError("the CUDA profiler is not available: its library is not used")


def stop() -> NoReturn:
    """Collect no more: RuntimeError."""
    start()


@contextlib.contextmanager
def profile():
    """Collect within: RuntimeError."""
    start()
    yield
