"""Modules on several devices."""

from __future__ import annotations

from rushlight._lazy import lazy
from rushlight.nn.parallel.data_parallel import DataParallel, data_parallel
from rushlight.nn.parallel.parallel_apply import parallel_apply
from rushlight.nn.parallel.replicate import replicate
from rushlight.nn.parallel.scatter_gather import gather, scatter

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
]

with lazy(__name__):
    from rushlight.nn.parallel import comm as comm
    from rushlight.nn.parallel import distributed as distributed
    from rushlight.nn.parallel import scatter_gather as scatter_gather
    from rushlight.nn.parallel.distributed import DistributedDataParallel
