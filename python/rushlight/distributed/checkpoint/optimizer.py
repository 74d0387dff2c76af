"""States of optimisers, loaded from checkpoints by rows, without a state to load into."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight.distributed import _world
from rushlight.distributed._shard.sharded_tensor import (
    Shard,
    ShardedTensor,
    ShardedTensorMetadata,
    ShardMetadata,
)
from rushlight.distributed.checkpoint._nested_dict import unflatten_state_dict
from rushlight.distributed.checkpoint.default_planner import DefaultLoadPlanner
from rushlight.distributed.checkpoint.metadata import BytesStorageMetadata
from rushlight.distributed.checkpoint.planner_helpers import is_spread
from rushlight.distributed.checkpoint.state_dict_loader import _load_state_dict

__all__ = ["load_sharded_optimizer_state_dict"]


def _rows(properties, size, group) -> ShardedTensor:
    """A tensor of which each process of a group has some rows, new."""
    step = -(-size[0] // group.size())
    boxes = []
    for rank in range(group.size()):
        begin = min(rank * step, size[0])
        rows = min(step, size[0] - begin)
        if rows:
            placement = f"rank:{_world.get_global_rank(group, rank)}/cpu"
            begins = [begin] + [0] * (len(size) - 1)
            boxes.append(ShardMetadata(begins, [rows, *size[1:]], placement))
    mine = []
    if group.rank() < len(boxes):
        box = boxes[group.rank()]
        mine = [Shard(rushlight.zeros(box.shard_sizes, dtype=properties.dtype), box)]
    return ShardedTensor(mine, ShardedTensorMetadata(boxes, size, properties), group)


def load_sharded_optimizer_state_dict(
    model_state_dict: dict[str, Any], optimizer_key: str, storage_reader: Any, planner: Any = None
) -> dict[str, Any]:
    """Load the state of a checkpoint under a key, by rows if the model is sharded.

    For an example see `distributed.checkpoint.load`, which loads the rest.

    Args:
        model_state_dict: the state of the model, sharded or not.
        optimizer_key: under which key the optimiser's state was saved.
        storage_reader: the checkpoint.
        planner: by default a `DefaultLoadPlanner`.
    """
    metadata = storage_reader.read_metadata()
    spread = [value for value in model_state_dict.values() if is_spread(value)]
    group: Any = None
    if spread:
        group = getattr(spread[0], "_process_group", None) or _world._group(None)
    state: dict[str, Any] = {}
    paths: dict[str, tuple] = {}
    for name, md in metadata.state_dict_metadata.items():
        path = (metadata.planner_data or {}).get(name, (name,))
        if path[0] != optimizer_key:
            continue
        paths[name] = path
        if isinstance(md, BytesStorageMetadata):
            state[name] = "<bytes_io>"
        elif group is None or md.size.numel() <= 1:
            state[name] = rushlight.zeros(md.size, dtype=md.properties.dtype)
        else:
            state[name] = _rows(md.properties, md.size, group)
    if not state:
        raise KeyError(f"The checkpoint has nothing under {optimizer_key}")
    _load_state_dict(
        state,
        storage_reader,
        group,
        no_dist=not _world.is_initialized(),
        planner=planner or DefaultLoadPlanner(flatten_state_dict=False),
    )
    return unflatten_state_dict(state, paths)
