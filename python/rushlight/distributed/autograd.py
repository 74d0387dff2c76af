"""Backward through other processes: the names exist and raise."""

from __future__ import annotations

from rushlight.distributed import _refused

__all__ = ["backward", "context", "get_gradients", "is_available"]

context = _refused.kind("context", __name__)
backward = _refused.function("torch.distributed.autograd.backward")
get_gradients = _refused.function("torch.distributed.autograd.get_gradients")


def is_available() -> bool:
    """Whether backward can go through other processes: always False."""
    return False
