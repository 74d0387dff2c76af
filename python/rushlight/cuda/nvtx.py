"""Marks for NVIDIA's profilers, which this package does not write."""

from __future__ import annotations

import contextlib
from typing import NoReturn

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def _refuse(*args) -> NoReturn:
    raise RuntimeError("NVTX functions not installed: this build marks no ranges for Nsight")


def range_push(msg):
    """Begin a range within the others of the thread: RuntimeError."""
    _refuse(msg)


def range_pop():
    """End the innermost range of the thread: RuntimeError."""
    _refuse()


def range_start(msg) -> int:
    """Begin a range that any thread may end: RuntimeError."""
    _refuse(msg)


def range_end(range_id) -> None:
    """End such a range: RuntimeError."""
    _refuse(range_id)


def mark(msg):
    """Note a moment: RuntimeError."""
    _refuse(msg)


@contextlib.contextmanager
def range(msg, *args, **kwargs):
    """A range around a block: RuntimeError as it is entered."""
    range_push(msg.format(*args, **kwargs))
    yield
