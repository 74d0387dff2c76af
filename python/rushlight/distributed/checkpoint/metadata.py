"""The metadata of a checkpoint: its tensors, their pieces, and where they are stored."""

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
    """A chunk of a tensor: its offsets and its sizes."""

    offsets: rushlight.Size
    sizes: rushlight.Size


@dataclass
class TensorStorageMetadata:
    """A tensor of a checkpoint, and its chunks."""

    properties: TensorProperties
    size: rushlight.Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """An object of a checkpoint that is not a tensor."""


@dataclass
class StorageMeta:
    """The place and the call in which a checkpoint was saved."""

    checkpoint_id: str | os.PathLike | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """The metadata of a checkpoint; `storage_data` says where each piece is stored."""

    state_dict_metadata: dict[str, Any]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True)
class MetadataIndex:
    """The key of a piece: its name and offsets; `index` is a hint to its chunk."""

    fqn: str
    offset: rushlight.Size | None = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None):
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "offset", None if offset is None else rushlight.Size(offset))
