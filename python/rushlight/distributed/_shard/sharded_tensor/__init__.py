"""Tensors in boxes."""

from __future__ import annotations

from rushlight.distributed._shard.metadata import ShardMetadata
from rushlight.distributed._shard.sharded_tensor.api import (
    Shard,
    ShardedTensor,
    init_from_local_shards,
)
from rushlight.distributed._shard.sharded_tensor.metadata import (
    ShardedTensorMetadata,
    TensorProperties,
)

__all__ = [
    "Shard",
    "ShardMetadata",
    "ShardedTensor",
    "ShardedTensorMetadata",
    "TensorProperties",
    "init_from_local_shards",
]
