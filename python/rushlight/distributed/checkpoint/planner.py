"""How a state is cut for saving and loading: plans, and what makes them."""

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
    """Whether a whole tensor, a piece of one, or bytes are written."""

    TENSOR = auto()
    SHARD = auto()
    BYTE_IO = auto()


class LoadItemType(Enum):
    """Whether a tensor or bytes are read."""

    TENSOR = auto()
    BYTE_IO = auto()


@dataclass(frozen=True)
class BytesIOWriteData:
    """How many bytes."""

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """Which box of which tensor."""

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: rushlight.Size


@dataclass(frozen=True)
class WriteItem:
    """Something to be written."""

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self) -> int | None:
        """The bytes of its tensor; None where it is none."""
        if self.tensor_data is None:
            return None
        return math.prod(self.tensor_data.size) * self.tensor_data.properties.dtype.itemsize


@dataclass(frozen=True)
class ReadItem:
    """Something to be read: where it is stored, where it goes, and how much of it."""

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: rushlight.Size
    storage_index: MetadataIndex
    storage_offsets: rushlight.Size
    lengths: rushlight.Size


@dataclass(frozen=True)
class SavePlan:
    """What a process writes."""

    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """What a process reads."""

    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(abc.ABC):
    """Says what is written: each process plans, one process makes the plans fit."""

    @abc.abstractmethod
    def set_up_planner(
        self,
        state_dict: dict[str, Any],
        storage_meta: StorageMeta | None = None,
        is_coordinator: bool = False,
    ) -> None:
        """Take the state; on all processes."""

    @abc.abstractmethod
    def create_local_plan(self) -> SavePlan:
        """What this process could write; on all processes."""

    @abc.abstractmethod
    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """What each process writes, and what the checkpoint has; on the coordinator."""

    @abc.abstractmethod
    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """Take the coordinator's plan; on all processes."""

    @abc.abstractmethod
    def resolve_data(self, write_item: WriteItem) -> rushlight.Tensor | io.BytesIO:
        """The tensor or the bytes of an item."""


class LoadPlanner:
    """Says what is read, and where it goes."""

    @abc.abstractmethod
    def set_up_planner(
        self,
        state_dict: dict[str, Any],
        metadata: Metadata | None = None,
        is_coordinator: bool = False,
    ) -> None:
        """Take the state that is loaded into, and what the checkpoint has."""

    @abc.abstractmethod
    def create_local_plan(self) -> LoadPlan:
        """What this process reads; on all processes."""

    @abc.abstractmethod
    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """What all processes read; on the coordinator."""

    @abc.abstractmethod
    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """Take the coordinator's plan; on all processes."""

    @abc.abstractmethod
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Take the bytes of an item."""

    def resolve_bytes(self, read_item: ReadItem) -> io.BytesIO:
        """Where the bytes of an item go."""
        raise NotImplementedError("LoadPlanner.resolve_bytes is not implemented")

    @abc.abstractmethod
    def resolve_tensor(self, read_item: ReadItem) -> rushlight.Tensor:
        """Where the numbers of an item go: a tensor of the item's lengths."""

    @abc.abstractmethod
    def commit_tensor(self, read_item: ReadItem, tensor: rushlight.Tensor) -> None:
        """Hear that the tensor of `resolve_tensor` has its numbers."""
