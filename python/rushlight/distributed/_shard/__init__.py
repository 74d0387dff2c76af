"""Tensors in boxes, as states of modules that are spread over processes have them."""

from __future__ import annotations

from rushlight.distributed._shard.metadata import ShardMetadata

__all__ = ["ShardMetadata"]
