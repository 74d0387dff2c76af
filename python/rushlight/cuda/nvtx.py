"""NVTX, the annotations for NVIDIA's profilers, which this package does not support."""

from __future__ import annotations

import contextlib
from typing import Any, NoReturn

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def _refuse(*args) -> NoReturn:
    raise RuntimeError("NVTX functions not installed: this build marks no ranges for Nsight")


def range_push(msg: str):
    """Raises RuntimeError: it would begin a range inside the other ranges of the thread."""
    _refuse(msg)


def range_pop():
    """Raises RuntimeError: it would end the innermost range of the thread."""
    _refuse()


def range_start(msg: str) -> int:
    """Raises RuntimeError: it would begin a range that any thread may end."""
    _refuse(msg)


def range_end(range_id: Any) -> None:
    """Raises RuntimeError: it would end a range of `range_start`."""
    _refuse(range_id)


def mark(msg: str):
    """Raises RuntimeError: it would mark a point in time."""
    _refuse(msg)


@contextlib.contextmanager
def range(msg: str, *args, **kwargs: Any):
    """A context manager that raises RuntimeError when it is entered: it would be a range."""
    range_push(msg.format(*args, **kwargs))
    yield
