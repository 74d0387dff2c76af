"""What is to be known of a tensor in boxes."""

from __future__ import annotations

from dataclasses import dataclass, field

import rushlight
from rushlight.distributed._shard._properties import TensorProperties
from rushlight.distributed._shard.metadata import ShardMetadata

__all__ = ["ShardedTensorMetadata", "TensorProperties"]


@dataclass
class ShardedTensorMetadata:
    """All boxes of a tensor, its sizes, and what kind of tensor it is."""

    shards_metadata: list[ShardMetadata] = field(default_factory=list)
    size: rushlight.Size = field(default=rushlight.Size([]))
    tensor_properties: TensorProperties = field(default_factory=TensorProperties)
