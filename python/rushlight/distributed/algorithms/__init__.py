"""Algorithms for training in several processes."""

from __future__ import annotations

from rushlight.distributed.algorithms.join import Join, Joinable, JoinHook

__all__ = [
    "Join",
    "JoinHook",
    "Joinable",
]
