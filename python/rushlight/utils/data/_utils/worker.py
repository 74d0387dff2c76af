"""What a worker knows about itself, and the memory that its batches are made in."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight import _C

from . import channel
from .seeds import numpy_state as _generate_state  # noqa: F401

__all__ = ["WorkerInfo", "get_worker_info"]


@dataclasses.dataclass(frozen=True)
class WorkerInfo:
    """A worker about itself.

    Attributes:
        id: its number, from 0.
        num_workers: how many there are.
        seed: what its generators were seeded with.
        dataset: its copy of the dataset.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str = "multiprocessing"


# What workers of other packages' loaders send and ask.


@dataclasses.dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """A worker has come to the end of its part of a stream."""

    worker_id: int


@dataclasses.dataclass(frozen=True)
class _ResumeIteration:
    """A worker is to begin another epoch."""

    seed: int | None = None


class ManagerWatchdog:
    """Tells a worker whether the process that started it is still there."""

    def __init__(self) -> None:
        self.manager_pid = os.getppid()
        self.manager_dead = False

    def is_alive(self) -> bool:
        """Whether it is."""
        if not self.manager_dead:
            self.manager_dead = os.getppid() != self.manager_pid
        return not self.manager_dead


_worker_info: WorkerInfo | None = None
_lender: Any = None


def get_worker_info():
    """What a worker process knows about itself; None in the main process.

    Example:
        >>> torch.utils.data.get_worker_info() is None
        True
    """
    return _worker_info


def start_worker(info, lender):
    """Called in a worker at first: `get_worker_info` and `batch_memory` answer from then on."""
    global _worker_info, _lender
    _worker_info, _lender = info, lender


def batch_memory(dtype, shape):
    """A tensor on memory that the main process sees, to collate into.

    None in the main process, and for batches that are sent by value.
    """
    count = math.prod(shape)
    if _lender is None or count * dtype.itemsize < channel.LARGE or _lender.is_crowded():
        return None
    storage = _lender.memory(count * dtype.itemsize).untyped_storage()
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return _C._tensor_on(storage, dtype, 0, tuple(shape), tuple(strides))


def stack(batch: Sequence[rushlight.Tensor]) -> rushlight.Tensor:
    """Tensors along a new first dimension, where it can be in memory that is sent as it is."""
    first = batch[0]
    if _lender is not None and type(first) is rushlight.Tensor and first.device.type == "cpu":
        shape, dtype = first.shape, first.dtype
        if not any(
            type(t) is not rushlight.Tensor
            or t.requires_grad
            or t.shape != shape
            or t.dtype is not dtype
            for t in batch
        ):
            memory = batch_memory(dtype, (len(batch), *shape))
            if memory is not None:
                return rushlight.stack(batch, 0, out=memory)
    return rushlight.stack(batch, 0)
