"""Items of plans: for tensors, pieces of distributed tensors, and bytes."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight.distributed._cuts import cut_order
from rushlight.distributed._shard.sharded_tensor import ShardedTensor
from rushlight.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from rushlight.distributed.checkpoint.planner import (
    BytesIOWriteData,
    LoadItemType,
    ReadItem,
    SavePlan,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)

__all__ = ["create_read_items_for_chunk_list"]


def is_dtensor(obj) -> bool:
    """Whether a tensor is distributed over a mesh."""
    return hasattr(obj, "placements") and hasattr(obj, "device_mesh")


def is_spread(obj) -> bool:
    """Whether an object is a tensor of which several processes have pieces."""
    return is_dtensor(obj) or isinstance(obj, ShardedTensor)


def is_tensor(obj) -> bool:
    """Whether an object is a tensor, full or distributed."""
    return isinstance(obj, (rushlight.Tensor, ShardedTensor))


def in_mesh(tensor) -> bool:
    """Whether this process has a piece of a distributed tensor."""
    return tensor.device_mesh._coordinate_on_dim is not None


def _create_chunk_from_tensor(tensor) -> ChunkStorageMetadata:
    return ChunkStorageMetadata(rushlight.Size([0] * tensor.dim()), tensor.size())


def _create_chunk_from_dtensor(tensor) -> ChunkStorageMetadata:
    """This process's box: along each dimension of the mesh a cut into equal rows, rest last."""
    sizes, offsets = list(tensor.shape), [0] * tensor.dim()
    mesh = tensor.device_mesh
    for mesh_dim in cut_order(tensor.placements):
        placement = tensor.placements[mesh_dim]
        if placement.is_partial():
            raise ValueError("A tensor whose values are still to be added up cannot be saved")
        if not placement.is_shard():
            continue
        dim = placement.dim % tensor.dim()
        step = -(-sizes[dim] // mesh.size(mesh_dim))
        begin = min(mesh._coordinate_on_dim[mesh_dim] * step, sizes[dim])
        offsets[dim] += begin
        sizes[dim] = min(step, sizes[dim] - begin)
    return ChunkStorageMetadata(rushlight.Size(offsets), rushlight.Size(sizes))


def _chunk_for_shard(box) -> ChunkStorageMetadata:
    return ChunkStorageMetadata(rushlight.Size(box.shard_offsets), rushlight.Size(box.shard_sizes))


def _create_write_item_for_shard(fqn: str, sharded_tensor, shard_md) -> WriteItem:
    properties = sharded_tensor.metadata().tensor_properties
    chunk = _chunk_for_shard(shard_md)
    return WriteItem(
        index=MetadataIndex(fqn, chunk.offsets),
        type=WriteItemType.SHARD,
        tensor_data=TensorWriteData(chunk, properties, sharded_tensor.size()),
    )


def _create_chunk_list(tensor) -> list[ChunkStorageMetadata]:
    """The boxes of a tensor that this process has."""
    if isinstance(tensor, ShardedTensor):
        return [_chunk_for_shard(shard.metadata) for shard in tensor.local_shards()]
    if is_dtensor(tensor):
        return [_create_chunk_from_dtensor(tensor)]
    return [_create_chunk_from_tensor(tensor)]


def _create_write_items_for_dtensor(fqn: str, tensor) -> WriteItem:
    chunk = _create_chunk_from_dtensor(tensor)
    properties = TensorProperties.create_from_tensor(tensor.to_local())
    return WriteItem(
        index=MetadataIndex(fqn, chunk.offsets),
        type=WriteItemType.SHARD,
        tensor_data=TensorWriteData(chunk, properties, tensor.size()),
    )


def _create_write_item_for_tensor(fqn: str, tensor) -> WriteItem:
    chunk = _create_chunk_from_tensor(tensor)
    return WriteItem(
        index=MetadataIndex(fqn, chunk.offsets),
        type=WriteItemType.TENSOR,
        tensor_data=TensorWriteData(
            chunk, TensorProperties.create_from_tensor(tensor), tensor.size()
        ),
    )


def _create_write_item_for_bytesio(fqn: str, bytes: Any) -> WriteItem:
    _ = bytes  # how many they are is known once they are written
    return WriteItem(
        index=MetadataIndex(fqn),
        type=WriteItemType.BYTE_IO,
        bytes_io_data=BytesIOWriteData(nbytes=0),
    )


def _create_write_items(fqn: str, object: Any) -> list[WriteItem]:
    """What is written of something."""
    if isinstance(object, ShardedTensor):
        boxes = [shard.metadata for shard in object.local_shards()]
        return [_create_write_item_for_shard(fqn, object, box) for box in boxes]
    if is_dtensor(object):
        item = _create_write_items_for_dtensor(fqn, object)
        assert item.tensor_data is not None
        empty = 0 in item.tensor_data.chunk.sizes and object.numel() > 0
        return [] if empty else [item]  # a process may have no rows
    if isinstance(object, rushlight.Tensor):
        return [_create_write_item_for_tensor(fqn, object)]
    return [_create_write_item_for_bytesio(fqn, object)]


def _create_default_metadata_only_plan(state_dict) -> SavePlan:
    items = [i for fqn, obj in state_dict.items() for i in _create_write_items(fqn, obj)]
    return SavePlan(items)


def _overlap(saved: ChunkStorageMetadata, wanted: ChunkStorageMetadata):
    """The box in both: where it begins in each, and its sizes; None if there is none."""
    begins, ends = [], []
    for a, m, b, n in zip(saved.offsets, saved.sizes, wanted.offsets, wanted.sizes, strict=True):
        begins.append(max(a, b))
        ends.append(min(a + m, b + n))
    if any(last <= first for first, last in zip(begins, ends, strict=True)):
        return None
    lengths = [last - first for first, last in zip(begins, ends, strict=True)]
    in_saved = [x - a for x, a in zip(begins, saved.offsets, strict=True)]
    in_wanted = [x - b for x, b in zip(begins, wanted.offsets, strict=True)]
    return in_saved, in_wanted, lengths


def create_read_items_for_chunk_list(
    fqn: str, checkpoint_md: TensorStorageMetadata, local_chunks: list[ChunkStorageMetadata]
) -> list[ReadItem]:
    """The items that are read to fill some chunks of a tensor.

    Args:
        fqn: the dotted name of the tensor.
        checkpoint_md: what the checkpoint says of it.
        local_chunks: the chunks to fill.

    For an example see `distributed.checkpoint.save`.
    """
    items = []
    for number, wanted in enumerate(local_chunks):
        for stored, saved in enumerate(checkpoint_md.chunks):
            common = _overlap(saved, wanted)
            if common is None:
                continue
            in_saved, in_wanted, lengths = common
            items.append(
                ReadItem(
                    type=LoadItemType.TENSOR,
                    dest_index=MetadataIndex(fqn, wanted.offsets, number),
                    dest_offsets=rushlight.Size(in_wanted),
                    storage_index=MetadataIndex(fqn, saved.offsets, stored),
                    storage_offsets=rushlight.Size(in_saved),
                    lengths=rushlight.Size(lengths),
                )
            )
    return items


def _create_read_items(fqn: str, md: Any, obj: Any) -> list[ReadItem]:
    """What is read of something."""
    if isinstance(md, BytesStorageMetadata):
        nothing = rushlight.Size((0,))
        return [
            ReadItem(
                type=LoadItemType.BYTE_IO,
                dest_index=MetadataIndex(fqn),
                dest_offsets=nothing,
                storage_index=MetadataIndex(fqn),
                storage_offsets=nothing,
                lengths=nothing,
            )
        ]
    if not is_tensor(obj):
        raise ValueError(
            f"Invalid checkpoint metadata for {fqn}, expected BytesStorageMetadata but found "
            f"{type(md)}"
        )
    return create_read_items_for_chunk_list(fqn, md, _create_chunk_list(obj))
