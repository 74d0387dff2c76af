"""Gradient scaling over several processes: the name, which refuses."""

from __future__ import annotations

from rushlight.distributed import _refused

__all__ = [
    "ShardedGradScaler",
]

ShardedGradScaler = _refused.kind("ShardedGradScaler", __name__)
