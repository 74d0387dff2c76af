"""Conversion between checkpoint folders and single files."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import rushlight
from rushlight.distributed import _objects, _world
from rushlight.distributed.checkpoint._nested_dict import flatten_state_dict
from rushlight.distributed.checkpoint.default_planner import (
    DefaultLoadPlanner,
    _create_default_local_metadata,
    _EmptyStateDictLoadPlanner,
)
from rushlight.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from rushlight.distributed.checkpoint.metadata import Metadata
from rushlight.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner
from rushlight.distributed.checkpoint.planner_helpers import _create_chunk_list
from rushlight.distributed.checkpoint.state_dict_loader import _load_state_dict
from rushlight.distributed.checkpoint.state_dict_saver import _save_state_dict
from rushlight.distributed.checkpoint.storage import StorageReader
from rushlight.futures import Future

__all__ = [
    "BroadcastingTorchSaveReader",
    "DynamicMetaLoadPlanner",
    "dcp_to_torch_save",
    "torch_save_to_dcp",
]


def dcp_to_torch_save(
    dcp_checkpoint_dir: str | os.PathLike[str], torch_save_path: str | os.PathLike[str]
) -> None:
    """Convert a checkpoint folder to one file; needs memory for all of it in one process.

    Args:
        dcp_checkpoint_dir: the folder.
        torch_save_path: the file.

    Example:
        >>> import tempfile
        >>> import rushlight.distributed.checkpoint as dcp
        >>> from rushlight.distributed.checkpoint.format_utils import dcp_to_torch_save
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = dcp.save({"x": torch.ones(2)}, checkpoint_id=f"{folder}/checkpoint")
        ...     dcp_to_torch_save(f"{folder}/checkpoint", f"{folder}/one.pt")
        ...     torch.load(f"{folder}/one.pt")
        {'x': tensor([1., 1.])}
    """
    state: dict[str, Any] = {}
    _load_state_dict(
        state,
        storage_reader=FileSystemReader(dcp_checkpoint_dir),
        planner=_EmptyStateDictLoadPlanner(),
        no_dist=True,
    )
    rushlight.save(state, torch_save_path)


def torch_save_to_dcp(
    torch_save_path: str | os.PathLike[str], dcp_checkpoint_dir: str | os.PathLike[str]
) -> None:
    """Convert one file to a checkpoint folder; needs memory for all of it in one process.

    Args:
        torch_save_path: the file.
        dcp_checkpoint_dir: the folder.

    For an example see `distributed.checkpoint.format_utils.dcp_to_torch_save`.
    """
    state = rushlight.load(torch_save_path, weights_only=False)
    _save_state_dict(state, storage_writer=FileSystemWriter(dcp_checkpoint_dir), no_dist=True)


class BroadcastingTorchSaveReader(StorageReader):
    """Reads one file in one process and sends all processes their shares.

    Use it with `DynamicMetaLoadPlanner`.

    Args:
        checkpoint_id: the file.
        coordinator_rank: the process that reads it.

    For an example see `distributed.checkpoint.format_utils.dcp_to_torch_save`.
    """

    def __init__(
        self, checkpoint_id: str | os.PathLike[str] | None = None, coordinator_rank: int = 0
    ) -> None:
        self.checkpoint_id = checkpoint_id
        self.coordinator_rank = coordinator_rank

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Empty metadata: the planner knows its own tensors."""
        return Metadata(state_dict_metadata={})

    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        """Set which process reads."""
        self.is_coordinator = is_coordinator
        assert self.checkpoint_id is not None

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """Return the plan unchanged."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """Return the plans unchanged."""
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read the file in one process, and send every process its shares."""
        flat: dict[str, Any] = {}
        if self.is_coordinator:
            state = rushlight.load(self.checkpoint_id, map_location="cpu", weights_only=False)
            flat, _ = flatten_state_dict(state)
        several = _world.is_initialized() and _world.get_world_size() > 1
        for item in plan.items:
            if item.type == LoadItemType.BYTE_IO:
                raise RuntimeError(
                    f"{type(self).__name__} only supports loading Tensors, but "
                    f"{item.storage_index.fqn} is none"
                )
            holder = [flat.get(item.storage_index.fqn)]
            if several:
                _objects.broadcast_object_list(holder, src=self.coordinator_rank)
            stored: Any = holder[0]
            if stored is None:
                raise RuntimeError(f"The file has no {item.storage_index.fqn}")
            for dim, (begin, n) in enumerate(zip(item.storage_offsets, item.lengths, strict=True)):
                stored = stored.narrow(dim, begin, n)
            target = planner.resolve_tensor(item).detach()
            target.copy_(stored)
            planner.commit_tensor(item, target)
        future: Future[Any] = Future()
        future.set_result(None)
        return future

    def reset(self, checkpoint_id=None) -> None:
        """Set the file."""
        self.checkpoint_id = checkpoint_id

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id) -> bool:
        """Whether the file exists."""
        return os.path.isfile(checkpoint_id)


class DynamicMetaLoadPlanner(DefaultLoadPlanner):
    """Derives the metadata of a checkpoint from the state that is loaded into.

    Args:
        flatten_state_dict: dicts and lists within the state are taken apart.
        flatten_sharded_tensors: so are sharded tensors within sharded tensors.
        allow_partial_load: what the checkpoint does not have stays as it is.

    For an example see `distributed.checkpoint.format_utils.dcp_to_torch_save`.
    """

    def set_up_planner(
        self,
        state_dict: dict[str, Any],
        metadata: Metadata | None = None,
        is_coordinator: bool = False,
    ) -> None:
        """Set the state, and derive the metadata from it."""
        super().set_up_planner(state_dict, metadata, is_coordinator)
        found = _create_default_local_metadata(self.state_dict)
        for name, md in found.state_dict_metadata.items():
            if hasattr(md, "chunks"):
                whole = rushlight.empty(md.size, device="meta")
                found.state_dict_metadata[name] = dataclasses.replace(
                    md, chunks=_create_chunk_list(whole)
                )
        self.metadata = found
