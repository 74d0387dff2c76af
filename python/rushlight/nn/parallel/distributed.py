"""Modules trained by several processes: the name, which refuses."""

from __future__ import annotations

from rushlight.distributed import _refused

__all__ = ["DistributedDataParallel"]

DistributedDataParallel = _refused.kind("DistributedDataParallel", __name__)
