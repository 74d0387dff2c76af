"""Tensors spread over devices, what is tried out: the names, which refuse."""

from __future__ import annotations

from rushlight.distributed import _refused

__all__ = [
    "context_parallel",
    "implicit_replication",
    "local_map",
    "register_sharding",
]

context_parallel = _refused.function("torch.distributed.tensor.experimental.context_parallel")
implicit_replication = _refused.function(
    "torch.distributed.tensor.experimental.implicit_replication"
)
local_map = _refused.function("torch.distributed.tensor.experimental.local_map")
register_sharding = _refused.function("torch.distributed.tensor.experimental.register_sharding")
