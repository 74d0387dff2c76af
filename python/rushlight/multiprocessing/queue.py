"""Queues whose items may hold tensors, which move through memory that processes share."""

from __future__ import annotations

from multiprocessing.queues import Queue, SimpleQueue

__all__ = ["Queue", "SimpleQueue"]
