"""What a checkpoint says of itself: which tensors it has, in which pieces, and where they are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import rushlight

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


class _MEM_FORMAT_ENCODING(Enum):
    """Memory formats as they stand in files."""

    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


def _formats():
    return {
        rushlight.contiguous_format: _MEM_FORMAT_ENCODING.TORCH_CONTIGUOUS_FORMAT,
        rushlight.channels_last: _MEM_FORMAT_ENCODING.TORCH_CHANNELS_LAST,
        rushlight.preserve_format: _MEM_FORMAT_ENCODING.TORCH_PRESERVE_FORMAT,
    }


@dataclass
class TensorProperties:
    """What is to be known to make a tensor, but for its sizes."""

    dtype: Any = field(default_factory=rushlight.get_default_dtype)
    layout: Any = field(default=rushlight.strided)
    requires_grad: bool = False
    memory_format: Any = field(default=rushlight.contiguous_format)
    pin_memory: bool = False

    def __getstate__(self):
        formats = _formats()
        if self.memory_format not in formats:
            raise RuntimeError(f"Invalid torch.memory_format: {self.memory_format}")
        encoded = formats[self.memory_format]
        return (self.dtype, self.layout, self.requires_grad, encoded, self.pin_memory)

    def __setstate__(self, state):
        self.dtype, self.layout, self.requires_grad, encoded, self.pin_memory = state
        self.memory_format = next(f for f, code in _formats().items() if code == encoded)

    @staticmethod
    def create_from_tensor(tensor) -> TensorProperties:
        """Those of a tensor."""
        return TensorProperties(
            dtype=tensor.dtype,
            layout=tensor.layout,
            requires_grad=tensor.requires_grad,
            memory_format=rushlight.contiguous_format,
            pin_memory=tensor.is_pinned(),
        )


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
