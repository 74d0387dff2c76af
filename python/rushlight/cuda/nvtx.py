"""NVTX, the annotations for NVIDIA's profilers, which this package does not support."""

from __future__ import annotations

import contextlib
from typing import Any, NoReturn

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def _refuse(*args) -> NoReturn:
    raise RuntimeError("NVTX functions not installed: this build marks no ranges for Nsight")


def range_push(msg: str):
    """Args:
        msg: the text.

    Raises RuntimeError: it would begin a range inside the other ranges of the thread.

    Example:
        >>> torch.cuda.nvtx.range_push("epoch 3")
        Traceback (most recent call last):
            ...
        RuntimeError: NVTX functions not installed: ...
    """
    _refuse(msg)


def range_pop():
    """Raises RuntimeError: it would end the innermost range of the thread.

    For an example see `cuda.nvtx.range_push`.
    """
    _refuse()


def range_start(msg: str) -> int:
    """Args:
        msg: the text.

    Raises RuntimeError: it would begin a range that any thread may end.

    For an example see `cuda.nvtx.range_push`.
    """
    _refuse(msg)


def range_end(range_id: Any) -> None:
    """Args:
        range_id: what `range_start` would give.

    Raises RuntimeError: it would end a range of `range_start`.

    For an example see `cuda.nvtx.range_push`.
    """
    _refuse(range_id)


def mark(msg: str):
    """Args:
        msg: the text.

    Raises RuntimeError: it would mark a point in time.

    For an example see `cuda.nvtx.range_push`.
    """
    _refuse(msg)


@contextlib.contextmanager
def range(msg: str, *args, **kwargs: Any):
    """A context manager that raises RuntimeError when it is entered: it would be a range.

    Args:
        msg: the text, with places for the arguments that follow.
        args, kwargs: what is put there.

    For an example see `cuda.nvtx.range_push`.
    """
    range_push(msg.format(*args, **kwargs))
    yield
