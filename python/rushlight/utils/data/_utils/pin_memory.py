"""Batches in memory that a GPU reads by itself."""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Mapping, Sequence
from typing import Any

from rushlight import Tensor
from rushlight._raised import ExceptionWrapper

from .collate import mapping_like, sequence_like

__all__ = ["pin_memory"]


def pin_memory(data, device=None):
    """A batch with its tensors in pinned memory, in containers of the same types.

    Args:
        data: tensors, containers of them, or objects with a method `pin_memory`.
        device: accepted as in PyTorch; the memory suits any GPU.
    """
    if isinstance(data, Tensor) or (hasattr(data, "pin_memory") and not isinstance(data, type)):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        pinned = {key: pin_memory(value, device) for key, value in data.items()}
        return mapping_like(data, pinned)
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(item, device) for item in data))
    if isinstance(data, tuple):
        return [pin_memory(item, device) for item in data]
    if isinstance(data, Sequence):
        return sequence_like(data, [pin_memory(item, device) for item in data])
    return data


def _pin_memory_loop(
    in_queue: Any, out_queue: Any, device_id: Any, done_event: Any, device: Any = None
) -> None:
    """What a thread of another package's loader does: takes pairs of a place and a batch from one
    queue, pins the batch and puts them into the other, until the event is set."""

    def until_done(call, *args):
        """What a call on a queue gives, tried again every second; None once the event is set."""
        while not done_event.is_set():
            with contextlib.suppress(queue.Empty, queue.Full):
                return call(*args, timeout=1.0)
        return None

    while (pair := until_done(in_queue.get)) is not None:
        until_done(out_queue.put, (pair[0], _pin_or_wrap_error(pair[1], device_id, device)))


def _pin_or_wrap_error(data: Any, device_id: Any, device: Any) -> Any:
    if isinstance(data, ExceptionWrapper):
        return data
    try:
        return pin_memory(data, device_id if device is None else device)
    except Exception:
        return ExceptionWrapper(where=f"in pin memory thread for device {device_id}")
