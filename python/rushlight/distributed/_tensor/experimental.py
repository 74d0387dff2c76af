"""What is tried out with tensors spread over devices, under an old name."""

from __future__ import annotations

from rushlight.distributed.tensor.experimental import (
    context_parallel,
    implicit_replication,
    local_map,
    register_sharding,
)

__all__ = ["context_parallel", "implicit_replication", "local_map", "register_sharding"]
