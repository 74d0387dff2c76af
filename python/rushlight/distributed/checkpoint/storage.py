"""The interfaces of storages of checkpoints: writers and readers of plans."""

from __future__ import annotations

import abc
import os
from dataclasses import dataclass
from typing import Any

from rushlight.distributed.checkpoint.metadata import Metadata, MetadataIndex, StorageMeta
from rushlight.distributed.checkpoint.planner import (
    LoadPlan,
    LoadPlanner,
    SavePlan,
    SavePlanner,
)
from rushlight.futures import Future

__all__ = ["StorageReader", "StorageWriter", "WriteResult"]


@dataclass(frozen=True)
class WriteResult:
    """The result of writing an item: its key, its size, and the storage's data about it.

    Args:
        index: the key.
        size_in_bytes: how many.
        storage_data: what the storage wants to know to read it.

    For an example see `distributed.checkpoint.save`.
    """

    index: MetadataIndex
    size_in_bytes: int
    storage_data: Any


class StorageWriter(abc.ABC):
    """Writes the plans of all processes, and then the metadata.

    For an example see `distributed.checkpoint.FileSystemWriter`, which is one.
    """

    @abc.abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        """Set the checkpoint."""

    @abc.abstractmethod
    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Prepare for writing; called in all processes."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Add the storage's data to a process's plan."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Add the storage's data to all plans; called in the coordinator."""

    @abc.abstractmethod
    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write the items of a plan."""

    @abc.abstractmethod
    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Write the metadata, which completes the checkpoint; called in the coordinator."""

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        """Whether a name is valid for this storage."""

    def storage_meta(self) -> StorageMeta | None:
        """The place of this checkpoint."""
        return None


class StorageReader(abc.ABC):
    """Reads the metadata of a checkpoint, and plans.

    For an example see `distributed.checkpoint.FileSystemReader`, which is one.
    """

    @abc.abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        """Set the checkpoint."""

    @abc.abstractmethod
    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """The metadata of the checkpoint."""

    @abc.abstractmethod
    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        """Prepare for reading; called in all processes."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """Add the storage's data to a process's plan."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """Add the storage's data to all plans; called in the coordinator."""

    @abc.abstractmethod
    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read the items of a plan."""

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        """Whether a name is valid for this storage."""
