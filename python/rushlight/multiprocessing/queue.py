"""Queues whose items may contain tensors, which are sent in shared memory."""

from __future__ import annotations

from multiprocessing.queues import Queue, SimpleQueue

__all__ = ["Queue", "SimpleQueue"]
