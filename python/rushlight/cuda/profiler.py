"""Control of NVIDIA's profilers, which this package does not support."""

from __future__ import annotations

import contextlib
from typing import NoReturn

__all__ = ["profile", "start", "stop"]


def start() -> NoReturn:
    """Raises RuntimeError: it would start the profiler.

    Example:
        >>> torch.cuda.profiler.start()
        Traceback (most recent call last):
            ...
        RuntimeError: the CUDA profiler is not available: ...
    """
    raise RuntimeError("the CUDA profiler is not available: its library is not used")


def stop() -> NoReturn:
    """Raises RuntimeError: it would stop the profiler.

    For an example see `cuda.profiler.start`.
    """
    start()


@contextlib.contextmanager
def profile():
    """A context manager that raises RuntimeError: it would run the profiler.

    For an example see `cuda.profiler.start`.
    """
    start()
    yield
