"""What a checkpoint says of itself: which tensors it has, in which pieces, and where they are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import rushlight
from rushlight.distributed._shard._properties import (
    _MEM_FORMAT_ENCODING as _MEM_FORMAT_ENCODING,
)
from rushlight.distributed._shard._properties import TensorProperties

__all__ = [
    "BytesStorageMetadata",
    "ChunkStorageMetadata",
    "Metadata",
    "MetadataIndex",
    "StorageMeta",
    "TensorProperties",
    "TensorStorageMetadata",
]

STATE_DICT_TYPE = dict[str, Any]


@dataclass
class ChunkStorageMetadata:
    """A box of a tensor: where it begins, and its sizes."""

    offsets: rushlight.Size
    sizes: rushlight.Size


@dataclass
class TensorStorageMetadata:
    """A tensor of a checkpoint, and the boxes that it is stored in."""

    properties: TensorProperties
    size: rushlight.Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """Something of a checkpoint that is no tensor."""


@dataclass
class StorageMeta:
    """Where a checkpoint was saved, and by which call."""

    checkpoint_id: str | os.PathLike | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """All that a checkpoint has; `storage_data` is what the storage knows of each piece."""

    state_dict_metadata: dict[str, Any]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True)
class MetadataIndex:
    """A piece of something by name and by where it begins; `index` is a hint among its boxes."""

    fqn: str
    offset: rushlight.Size | None = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None):
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "offset", None if offset is None else rushlight.Size(offset))
