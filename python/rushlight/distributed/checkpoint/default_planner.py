"""Plans for states of tensors, distributed tensors and picklable objects."""

from __future__ import annotations

import dataclasses
import io
import math
from typing import Any

import rushlight
from rushlight.distributed.checkpoint._dedup_save_plans import dedup_save_plans
from rushlight.distributed.checkpoint._nested_dict import flatten_state_dict
from rushlight.distributed.checkpoint._traverse import set_element
from rushlight.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorStorageMetadata,
)
from rushlight.distributed.checkpoint.planner import (
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
)
from rushlight.distributed.checkpoint.planner_helpers import (
    _create_default_metadata_only_plan,
    _create_read_items,
    _create_write_items,
    _overlap,
    in_mesh,
    is_dtensor,
    is_tensor,
)
from rushlight.distributed.checkpoint.utils import find_state_dict_object

__all__ = [
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "create_default_global_load_plan",
    "create_default_global_save_plan",
    "create_default_local_load_plan",
    "create_default_local_save_plan",
]


class DefaultSavePlanner(SavePlanner):
    """Each process offers its tensors, the coordinator also its objects; replicated data is written
    once.

    For an example see `distributed.checkpoint.save`, whose `planner` it is.

    Args:
        flatten_state_dict: whether nested containers are saved by the names of their leaves.
        flatten_sharded_tensors: no effect.
        dedup_replicated_tensors: no effect; what several have is always written once.
        dedup_save_to_lowest_rank: whether the lowest rank writes it, not who has least to write.
        enable_plan_caching: no effect.
    """

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None,
        dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None:
        self.flatten_state_dict = flatten_state_dict
        self.flatten_sharded_tensors = flatten_sharded_tensors
        self.dedup_replicated_tensors = dedup_replicated_tensors
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank
        self.enable_plan_caching = enable_plan_caching
        self.mappings: dict[str, tuple] = {}

    def set_up_planner(
        self,
        state_dict: dict[str, Any],
        storage_meta: StorageMeta | None = None,
        is_coordinator: bool = False,
    ) -> None:
        """Set the state to save."""
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict = state_dict
        self.storage_meta = storage_meta
        self.is_coordinator = is_coordinator

    def create_local_plan(self) -> SavePlan:
        """Plan what this process could write."""
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        if self.flatten_state_dict:
            plan = dataclasses.replace(plan, planner_data=self.mappings)
        self.plan = plan
        return plan

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """Plan what each process writes, and the checkpoint's metadata."""
        plans = dedup_save_plans(all_plans, self.dedup_save_to_lowest_rank)
        global_plan, metadata = create_default_global_save_plan(plans)
        if self.flatten_state_dict:
            merged: dict = {}
            for plan in reversed(plans):
                merged.update(plan.planner_data or {})
            metadata = dataclasses.replace(metadata, planner_data=merged)
        errors = _validate_global_plan(global_plan, metadata)
        if errors:
            raise ValueError("Failed to validate global plan: " + "; ".join(errors))
        self.global_plan, self.metadata = global_plan, metadata
        return global_plan, metadata

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """Take over the coordinator's plan."""
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> rushlight.Tensor | io.BytesIO:
        """The tensor or the bytes of an item."""
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index: MetadataIndex) -> Any:
        """The object of the state with an index."""
        return find_state_dict_object(self.state_dict, index)

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """Convert an object to what is written: a tensor, or bytes."""
        if write_item.type == WriteItemType.BYTE_IO:
            stream = io.BytesIO()
            rushlight.save(object, stream)
            return stream
        return object


class DefaultLoadPlanner(LoadPlanner):
    """Fills the tensors of a state in place, and replaces its other objects.

    Args:
        flatten_state_dict: whether nested containers were saved by the names of their leaves.
        flatten_sharded_tensors: no effect.
        allow_partial_load: whether names may be missing in the checkpoint.

    Example:
        >>> import tempfile
        >>> from rushlight.distributed import checkpoint
        >>> folder = tempfile.mkdtemp()
        >>> _ = checkpoint.save({"weight": torch.tensor([4.0])}, checkpoint_id=folder, no_dist=True)
        >>> state = {"weight": torch.zeros(1), "new": torch.zeros(1)}
        >>> planner = checkpoint.DefaultLoadPlanner(allow_partial_load=True)
        >>> checkpoint.load(state, checkpoint_id=folder, planner=planner, no_dist=True)
        >>> state
        {'weight': tensor([4.]), 'new': tensor([0.])}
    """

    original_state_dict: dict[str, Any]
    mappings: dict[str, tuple]

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        allow_partial_load: bool = False,
    ) -> None:
        self.flatten_state_dict = flatten_state_dict
        self.flatten_sharded_tensors = flatten_sharded_tensors
        self.allow_partial_load = allow_partial_load
        self.original_state_dict, self.mappings = {}, {}

    def set_up_planner(
        self,
        state_dict: dict[str, Any],
        metadata: Metadata | None = None,
        is_coordinator: bool = False,
    ) -> None:
        """Set the state to load into, and the checkpoint's metadata."""
        self.original_state_dict = state_dict
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict = state_dict
        self.metadata = metadata
        self.is_coordinator = is_coordinator

    def create_local_plan(self) -> LoadPlan:
        """Plan what this process reads."""
        assert self.metadata is not None
        return create_default_local_load_plan(
            self.state_dict, self.metadata, not self.allow_partial_load
        )

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """Plan what all processes read."""
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """Take over the coordinator's plan."""
        return central_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Put a loaded object into the state."""
        loaded = rushlight.load(value, weights_only=False)
        if self.flatten_state_dict:
            set_element(self.original_state_dict, self.mappings[read_item.dest_index.fqn], loaded)
        else:
            self.state_dict[read_item.dest_index.fqn] = loaded

    def resolve_tensor(self, read_item: ReadItem):
        """The tensor into which an item is read."""
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def commit_tensor(self, read_item: ReadItem, tensor) -> None:
        """A no-op: the tensor was filled in place."""

    def lookup_tensor(self, index: MetadataIndex):
        """The tensor of the state with an index."""
        return find_state_dict_object(self.state_dict, index)

    def transform_tensor(self, read_item: ReadItem, tensor):
        """The slice of a tensor that an item fills."""
        for dim, (begin, length) in enumerate(
            zip(read_item.dest_offsets, read_item.lengths, strict=True)
        ):
            tensor = tensor.narrow(dim, begin, length)
        return tensor


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Loads what there is, or what has one of some names, into an empty state."""

    def __init__(self, keys=None, *args, **kwargs):
        self.keys = keys
        super().__init__(*args, **kwargs)

    def _should_include_key(self, key: str, metadata: Metadata) -> bool:
        if self.keys is None or key in self.keys:
            return True
        path = (metadata.planner_data or {}).get(key, (key,))
        return any(".".join(map(str, path[: i + 1])) in self.keys for i in range(len(path)))

    def set_up_planner(
        self,
        state_dict: dict[str, Any],
        metadata: Metadata | None = None,
        is_coordinator: bool = False,
    ) -> None:
        """Make tensors for what the checkpoint has."""
        if state_dict or metadata is None:
            raise AssertionError("an empty state and the metadata of a checkpoint are expected")
        paths = metadata.planner_data or {}
        kept = (n for n in metadata.state_dict_metadata if self._should_include_key(n, metadata))
        for name in kept:
            place = _place_for(metadata.state_dict_metadata[name])
            set_element(state_dict, paths.get(name, (name,)), place)
        super().set_up_planner(state_dict, metadata, is_coordinator)


def _place_for(stored: Any) -> Any:
    """What is overwritten by what a checkpoint has."""
    if isinstance(stored, TensorStorageMetadata):
        return rushlight.empty(stored.size, dtype=stored.properties.dtype)
    return "<bytes_io>"


def create_default_local_load_plan(
    state_dict: dict[str, Any], metadata: Metadata, strict: bool = True
) -> LoadPlan:
    """Plan what is read to fill this process's shards of a state.

    Args:
        state_dict: what is to be filled.
        metadata: what the checkpoint has.
        strict: raise for what it lacks.

    For an example see `distributed.checkpoint.save`.
    """
    items: list[ReadItem] = []
    for fqn, obj in state_dict.items():
        md = metadata.state_dict_metadata.get(fqn)
        if md is None:
            if strict:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {fqn}.")
            continue
        if isinstance(md, TensorStorageMetadata) and is_tensor(obj) and md.size != obj.size():
            raise ValueError(
                f"Size mismatch between saved {md.size} and current: {obj.size()} for {fqn}"
            )
        if is_dtensor(obj) and not in_mesh(obj):
            continue
        items += _create_read_items(fqn, md, obj)
    return LoadPlan(items)


def create_default_global_load_plan(all_plans: list[LoadPlan]) -> list[LoadPlan]:
    """The global plan: every process reads what it planned.

    Args:
        all_plans: those of the processes.

    For an example see `distributed.checkpoint.save`.
    """
    return all_plans


def create_default_local_save_plan(state_dict: dict[str, Any], is_coordinator: bool) -> SavePlan:
    """Plan what a process could write: its tensors; the coordinator also all other objects.

    Args:
        state_dict: what is to be saved.
        is_coordinator: whether this process writes what all have.

    For an example see `distributed.checkpoint.save`.
    """
    items: list[WriteItem] = []
    for fqn, obj in state_dict.items():
        if is_dtensor(obj) and not in_mesh(obj):
            continue
        if is_tensor(obj) or is_coordinator:
            items += _create_write_items(fqn, obj)
    return SavePlan(items)


def create_default_global_save_plan(
    all_plans: list[SavePlan], rewrite_index_hints: bool = True
) -> tuple[list[SavePlan], Metadata]:
    """The plans with hints where a box stands in its tensor's list, and what they make.

    Args:
        all_plans: those of the processes.
        rewrite_index_hints: write into them where a box stands.

    For an example see `distributed.checkpoint.save`.
    """
    made = _MetadataBuilder()
    plans = [
        dataclasses.replace(plan, items=[made.add(item) for item in plan.items])
        for plan in all_plans
    ]
    return plans if rewrite_index_hints else list(all_plans), Metadata(made.by_name)


class _MetadataBuilder:
    """What the items of plans make, by name."""

    def __init__(self) -> None:
        self.by_name: dict[str, Any] = {}

    def add(self, item: WriteItem) -> WriteItem:
        """The item, told where its box stands among those of its tensor."""
        data, name = item.tensor_data, item.index.fqn
        if data is None:
            self.by_name[name] = BytesStorageMetadata()
            return item
        whole = TensorStorageMetadata(data.properties, data.size, chunks=[])
        boxes = self.by_name.setdefault(name, whole).chunks
        boxes.append(data.chunk)
        index = dataclasses.replace(item.index, index=len(boxes) - 1)
        return dataclasses.replace(item, index=index)


def _create_default_local_metadata(state_dict: dict[str, Any]) -> Metadata:
    """What a checkpoint of this process alone has."""
    plan = _create_default_metadata_only_plan(state_dict)
    return create_default_global_save_plan([plan])[1]


def _check_box_overlap(box0: ChunkStorageMetadata, box1: ChunkStorageMetadata) -> bool:
    return _overlap(box0, box1) is not None


def _check_box_bounds(outer_box_size, inner_box: ChunkStorageMetadata) -> bool:
    return all(
        begin >= 0 and size >= 0 and begin + size <= whole
        for whole, begin, size in zip(
            outer_box_size, inner_box.offsets, inner_box.sizes, strict=True
        )
    )


def _validate_global_plan(global_plan: list[SavePlan], metadata: Metadata) -> list[str]:
    """What is wrong with plans: boxes that leave their tensor, overlap, or do not fill it."""
    errors = []
    for name, md in metadata.state_dict_metadata.items():
        if isinstance(md, BytesStorageMetadata) or not md.size:
            continue
        volume = 0
        boxes = sorted(md.chunks, key=lambda box: tuple(box.offsets))
        open_boxes: list[ChunkStorageMetadata] = []
        for box in boxes:
            if not _check_box_bounds(md.size, box):
                errors.append(f"key:{name} has a box out of bounds: {box}")
            volume += math.prod(box.sizes)
            open_boxes = [o for o in open_boxes if o.offsets[0] + o.sizes[0] > box.offsets[0]]
            errors += [
                f"key:{name} has boxes that overlap: {o} {box}"
                for o in open_boxes
                if _check_box_overlap(o, box)
            ]
            open_boxes.append(box)
        if volume != math.prod(md.size):
            errors.append(
                f"key:{name} has boxes of {volume} elements, but the tensor has "
                f"{math.prod(md.size)}"
            )
    return errors
