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
    """A chunk of a tensor: its offsets and its sizes.

    Args:
        offsets: where it begins in the tensor.
        sizes: its sizes.

    Example:
        >>> from rushlight.distributed import checkpoint
        >>> checkpoint.ChunkStorageMetadata(torch.Size([2]), torch.Size([4])).sizes
        torch.Size([4])
    """

    offsets: rushlight.Size
    sizes: rushlight.Size


@dataclass
class TensorStorageMetadata:
    """A tensor of a checkpoint, and its chunks.

    Args:
        properties: its dtype and layout.
        size: its size.
        chunks: its chunks.

    Example:
        >>> import tempfile
        >>> from rushlight.distributed import checkpoint
        >>> folder = tempfile.mkdtemp()
        >>> made = checkpoint.save({"weight": torch.ones(2)}, checkpoint_id=folder, no_dist=True)
        >>> made.state_dict_metadata["weight"].size
        torch.Size([2])
    """

    properties: TensorProperties
    size: rushlight.Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """An object of a checkpoint that is not a tensor.

    Example:
        >>> from rushlight.distributed import checkpoint
        >>> checkpoint.BytesStorageMetadata()
        BytesStorageMetadata()
    """


@dataclass
class StorageMeta:
    """The place and the call in which a checkpoint was saved.

    Args:
        checkpoint_id: the folder.
        save_id: the call that saved.
        load_id: the call that loads.
        modules: kept as they come.

    For an example see `distributed.checkpoint.save`.
    """

    checkpoint_id: str | os.PathLike[str] | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """The metadata of a checkpoint; `storage_data` says where each piece is stored.

    Args:
        state_dict_metadata: by name, a `TensorStorageMetadata` or a `BytesStorageMetadata`.
        planner_data: what the planner keeps.
        storage_data: by piece, where it is.
        storage_meta: where and when it was saved.
        version: the version of the format.

    Example:
        >>> from rushlight.distributed import checkpoint
        >>> checkpoint.Metadata({"step": checkpoint.BytesStorageMetadata()}).version
    """

    state_dict_metadata: dict[str, Any]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True)
class MetadataIndex:
    """The key of a piece: its name and offsets; `index` is a hint to its chunk.

    Args:
        fqn: the dotted name.
        offset: of a piece, by dimension.
        index: the number of its chunk.

    For an example see `distributed.checkpoint.save`.
    """

    fqn: str
    offset: rushlight.Size | None = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None):
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "offset", None if offset is None else rushlight.Size(offset))
