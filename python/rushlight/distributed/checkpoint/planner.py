"""Plans for saving and loading: their items, and the interface of planners."""

from __future__ import annotations

import abc
import io
import math
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import rushlight
from rushlight.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
)

__all__ = [
    "BytesIOWriteData",
    "LoadItemType",
    "LoadPlan",
    "LoadPlanner",
    "ReadItem",
    "SavePlan",
    "SavePlanner",
    "TensorWriteData",
    "WriteItem",
    "WriteItemType",
]


class WriteItemType(Enum):
    """Whether an item writes a full tensor, a piece of one, or bytes.

    For an example see `distributed.checkpoint.save`.
    """

    TENSOR = auto()
    SHARD = auto()
    BYTE_IO = auto()


class LoadItemType(Enum):
    """Whether an item reads a tensor or bytes.

    For an example see `distributed.checkpoint.save`.
    """

    TENSOR = auto()
    BYTE_IO = auto()


@dataclass(frozen=True)
class BytesIOWriteData:
    """The number of bytes of an item.

    Args:
        nbytes: how many.

    For an example see `distributed.checkpoint.save`.
    """

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """The chunk of a tensor that an item writes.

    Args:
        chunk: where it lies.
        properties: dtype and the like.
        size: of the whole tensor.

    For an example see `distributed.checkpoint.save`.
    """

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: rushlight.Size


@dataclass(frozen=True)
class WriteItem:
    """An item that is written.

    Args:
        index: its key.
        type: what it writes.
        bytes_io_data: the size of bytes.
        tensor_data: the chunk of a tensor.

    Example:
        >>> from rushlight.distributed.checkpoint import planner
        >>> from rushlight.distributed.checkpoint.metadata import MetadataIndex
        >>> planner.WriteItem(
        ...     MetadataIndex("step"), planner.WriteItemType.BYTE_IO
        ... ).tensor_storage_size()
    """

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self) -> int | None:
        """The bytes of the tensor; None for other objects."""
        if self.tensor_data is None:
            return None
        return math.prod(self.tensor_data.size) * self.tensor_data.properties.dtype.itemsize


@dataclass(frozen=True)
class ReadItem:
    """An item that is read: its key in the storage, its key in the state, and its size.

    For an example see `distributed.checkpoint.LoadPlan`.

    Args:
        type: what it reads.
        dest_index: its key in the state.
        dest_offsets: where it goes in the state's tensor.
        storage_index: its key in the storage.
        storage_offsets: where it begins in the storage's chunk.
        lengths: its sizes.
    """

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: rushlight.Size
    storage_index: MetadataIndex
    storage_offsets: rushlight.Size
    lengths: rushlight.Size


@dataclass(frozen=True)
class SavePlan:
    """The items that a process writes.

    Args:
        items: the items.
        storage_data: what the storage adds.
        planner_data: what the planner adds.
        usable: whether it is a plan of its own, or says that the last one holds.

    Example:
        >>> torch.distributed.checkpoint.SavePlan([]).items
        []
    """

    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """The items that a process reads.

    Args:
        items: the items.
        storage_data: what the storage adds.
        planner_data: what the planner adds.

    Example:
        >>> torch.distributed.checkpoint.LoadPlan([]).items
        []
    """

    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(abc.ABC):
    """Plans what is written: each process plans, and the coordinator merges the plans.

    For an example see `distributed.checkpoint.DefaultLoadPlanner`, which is the planner of loads.
    """

    @abc.abstractmethod
    def set_up_planner(
        self,
        state_dict: dict[str, Any],
        storage_meta: StorageMeta | None = None,
        is_coordinator: bool = False,
    ) -> None:
        """Set the state to save; called in all processes."""

    @abc.abstractmethod
    def create_local_plan(self) -> SavePlan:
        """Plan what this process could write; called in all processes."""

    @abc.abstractmethod
    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """Merge the plans, and make the metadata; called in the coordinator."""

    @abc.abstractmethod
    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """Take over the coordinator's plan; called in all processes."""

    @abc.abstractmethod
    def resolve_data(self, write_item: WriteItem) -> rushlight.Tensor | io.BytesIO:
        """The tensor or the bytes of an item."""


class LoadPlanner:
    """Plans what is read, and where it is stored in the state.

    For an example see `distributed.checkpoint.DefaultLoadPlanner`, which is one.
    """

    @abc.abstractmethod
    def set_up_planner(
        self,
        state_dict: dict[str, Any],
        metadata: Metadata | None = None,
        is_coordinator: bool = False,
    ) -> None:
        """Set the state to load into, and the checkpoint's metadata."""

    @abc.abstractmethod
    def create_local_plan(self) -> LoadPlan:
        """Plan what this process reads; called in all processes."""

    @abc.abstractmethod
    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """Plan what all processes read; called in the coordinator."""

    @abc.abstractmethod
    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """Take over the coordinator's plan; called in all processes."""

    @abc.abstractmethod
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Load the bytes of an item."""

    def resolve_bytes(self, read_item: ReadItem) -> io.BytesIO:
        """The stream into which the bytes of an item are read."""
        raise NotImplementedError("LoadPlanner.resolve_bytes is not implemented")

    @abc.abstractmethod
    def resolve_tensor(self, read_item: ReadItem) -> rushlight.Tensor:
        """The tensor into which an item is read, of the item's lengths."""

    @abc.abstractmethod
    def commit_tensor(self, read_item: ReadItem, tensor: rushlight.Tensor) -> None:
        """Called when the tensor of `resolve_tensor` has been filled."""
