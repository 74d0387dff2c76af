"""Optimisers over several processes. `DistributedOptimizer`, which needs `rpc`, refuses."""

from __future__ import annotations

from rushlight.distributed import _refused
from rushlight.distributed.optim.post_localSGD_optimizer import PostLocalSGDOptimizer
from rushlight.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = [
    "DistributedOptimizer",
    "PostLocalSGDOptimizer",
    "ZeroRedundancyOptimizer",
]

DistributedOptimizer = _refused.kind("DistributedOptimizer", __name__)
