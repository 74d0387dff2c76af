"""Optimisers over several processes: the names, which refuse."""

from __future__ import annotations

from rushlight.distributed import _refused
from rushlight.distributed._zero import ZeroRedundancyOptimizer

__all__ = [
    "DistributedOptimizer",
    "PostLocalSGDOptimizer",
    "ZeroRedundancyOptimizer",
]

DistributedOptimizer = _refused.kind("DistributedOptimizer", __name__)
PostLocalSGDOptimizer = _refused.kind("PostLocalSGDOptimizer", __name__)
