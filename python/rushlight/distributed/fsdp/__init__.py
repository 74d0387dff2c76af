"""Fully sharded data parallelism: parameters are sharded over processes."""

from __future__ import annotations

from rushlight.distributed.fsdp import fully_sharded_data_parallel as _sharded
from rushlight.distributed.fsdp._fully_shard import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    OffloadPolicy,
    UnshardHandle,
    fully_shard,
    register_fsdp_forward_method,
    share_comm_ctx,
)
from rushlight.distributed.fsdp.fully_sharded_data_parallel import *  # noqa: F403

__all__ = [
    "CPUOffloadPolicy",
    "FSDPModule",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "UnshardHandle",
    "fully_shard",
    "register_fsdp_forward_method",
    "share_comm_ctx",
]
__all__ += _sharded.__all__
