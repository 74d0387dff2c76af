"""Whether an export is running."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

_running = threading.local()


def is_in_onnx_export() -> bool:
    """Whether `torch.onnx.export` is running a program on this thread.

    Example:
        >>> torch.onnx.is_in_onnx_export()
        False
    """
    return getattr(_running, "depth", 0) > 0


@contextlib.contextmanager
def running() -> Iterator[None]:
    """Inside, an export runs a program."""
    _running.depth = getattr(_running, "depth", 0) + 1
    try:
        yield
    finally:
        _running.depth -= 1
