"""A hook that leaves gradients as they are."""

from __future__ import annotations

import rushlight

__all__ = ["noop_hook"]


def noop_hook(_state, bucket):
    """This process's gradients: what a step costs without communication."""
    future = rushlight.futures.Future()
    future.set_result(bucket.buffer())
    return future
