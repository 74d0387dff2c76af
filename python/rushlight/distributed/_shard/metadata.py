"""A box of a tensor, and who has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["ShardMetadata"]


@dataclass
class ShardMetadata:
    """Where a box begins, its sizes, and where it is ("rank:1/cpu")."""

    shard_offsets: list[int]
    shard_sizes: list[int]
    placement: Any = None

    def __init__(self, shard_offsets, shard_sizes, placement=None):
        self.shard_offsets, self.shard_sizes = list(shard_offsets), list(shard_sizes)
        self.placement = placement
        if len(self.shard_offsets) != len(self.shard_sizes):
            raise ValueError(
                "shard_offsets and shard_sizes should have the same number of elements, but are "
                f"{self.shard_offsets} and {self.shard_sizes}"
            )
        if any(n < 0 for n in self.shard_offsets):
            raise ValueError("shard_offsets should be >=0")
        if any(n < 0 for n in self.shard_sizes):
            raise ValueError("shard_sizes should be >= 0")

    def __hash__(self):
        return hash((*self.shard_offsets, *self.shard_sizes, str(self.placement)))
