"""`ShardedTensor`: a tensor in boxes, of which each process has some."""

from __future__ import annotations

import dataclasses
from typing import Any

import rushlight
from rushlight.distributed import _objects, _world
from rushlight.distributed._shard.metadata import ShardMetadata
from rushlight.distributed._shard.sharded_tensor.metadata import (
    ShardedTensorMetadata,
    TensorProperties,
)

__all__ = ["Shard", "ShardedTensor", "init_from_local_shards"]


@dataclasses.dataclass
class Shard:
    """A box that this process has."""

    tensor: rushlight.Tensor
    metadata: ShardMetadata

    def __post_init__(self):
        if list(self.tensor.size()) != self.metadata.shard_sizes:
            raise ValueError(
                "Shard tensor size does not match its metadata: the tensor is "
                f"{list(self.tensor.size())}, shard_sizes are {self.metadata.shard_sizes}"
            )

    @classmethod
    def from_tensor_and_offsets(cls, tensor, shard_offsets, rank: int) -> Shard:
        """A box of which a process has the tensor."""
        placement = f"rank:{rank}/{tensor.device}"
        return cls(tensor, ShardMetadata(shard_offsets, list(tensor.size()), placement))


class ShardedTensor:
    """The boxes of a tensor that this process has, and where all others are.

    It is no tensor to compute with, but an entry of states.
    """

    def __init__(self, local_shards: list[Shard], metadata: ShardedTensorMetadata, group: Any):
        self._local_shards = local_shards
        self._metadata = metadata
        self._process_group = group

    @classmethod
    def _init_from_local_shards_and_global_metadata(
        cls, local_shards, sharded_tensor_metadata, process_group=None
    ) -> ShardedTensor:
        group = _world._group(process_group)
        return cls(list(local_shards), sharded_tensor_metadata, group)

    @classmethod
    def _init_from_local_shards(cls, local_shards, *global_size, process_group=None):
        group = _world._group(process_group)
        size = global_size[0] if isinstance(global_size[0], (list, tuple)) else global_size
        own = [
            (shard.metadata, TensorProperties.create_from_tensor(shard.tensor))
            for shard in local_shards
        ]
        parts: list[Any] = [None] * group.size()
        _objects.all_gather_object(parts, own, group=group)
        found = [pair for part in parts for pair in part]
        if not found:
            raise ValueError("no process has a box of the tensor")
        properties = found[0][1]
        if any(p.dtype != properties.dtype for _, p in found):
            raise ValueError("ShardedTensor dtype property does not match across ranks")
        boxes = [box for box, _ in found]
        metadata = ShardedTensorMetadata(boxes, rushlight.Size(size), properties)
        return cls(list(local_shards), metadata, group)

    def local_shards(self) -> list[Shard]:
        """The boxes of this process."""
        return self._local_shards

    def local_tensor(self) -> rushlight.Tensor:
        """The one box of this process."""
        if len(self._local_shards) != 1:
            raise NotImplementedError("Only single local shard is supported.")
        return self._local_shards[0].tensor

    def metadata(self) -> ShardedTensorMetadata:
        """Where all boxes are."""
        return self._metadata

    @property
    def shape(self) -> rushlight.Size:
        """The sizes of the whole."""
        return self._metadata.size

    @property
    def dtype(self):
        """The dtype."""
        return self._metadata.tensor_properties.dtype

    @property
    def requires_grad(self) -> bool:
        """Whether it wants a gradient."""
        return self._metadata.tensor_properties.requires_grad

    @property
    def device(self):
        """Where this process's boxes are."""
        here = self._local_shards
        return here[0].tensor.device if here else rushlight.device("cpu")

    def size(self, dim: int | None = None):
        """The sizes of the whole, or one of them."""
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        """How many dimensions it has."""
        return len(self.shape)

    def numel(self) -> int:
        """How many elements the whole has."""
        return self.shape.numel()

    def _map_shards(self, function) -> ShardedTensor:
        shards = [Shard(function(shard.tensor), shard.metadata) for shard in self._local_shards]
        return ShardedTensor(shards, self._metadata, self._process_group)

    def detach(self) -> ShardedTensor:
        """The same boxes, not recorded."""
        return self._map_shards(lambda t: t.detach())

    def clone(self) -> ShardedTensor:
        """Copies of the boxes."""
        return self._map_shards(lambda t: t.clone())

    def cpu(self) -> ShardedTensor:
        """The boxes on the CPU."""
        return self._map_shards(lambda t: t.cpu())

    def to(self, *args, **kwargs) -> ShardedTensor:
        """The boxes on another device, or in another dtype."""
        moved = self._map_shards(lambda t: t.to(*args, **kwargs))
        if moved._local_shards:
            properties = dataclasses.replace(
                self._metadata.tensor_properties, dtype=moved._local_shards[0].tensor.dtype
            )
            moved._metadata = dataclasses.replace(self._metadata, tensor_properties=properties)
        return moved

    def gather(self, dst: int = 0, out: rushlight.Tensor | None = None) -> None:
        """Fill `out` on one process with the whole."""
        own = [(shard.tensor.detach().cpu(), shard.metadata) for shard in self._local_shards]
        group = self._process_group
        here = group.rank() == dst
        parts: list[Any] | None = [None] * group.size() if here else None
        _objects.gather_object(own, parts, group=group, group_dst=dst)
        if here:
            if out is None:
                raise ValueError(f"out must be given on rank {dst}")
            self._fill(out, parts)

    def full_tensor(self) -> rushlight.Tensor:
        """The whole, on all processes."""
        whole = rushlight.zeros(self.shape, dtype=self.dtype, device=self.device)
        own = [(shard.tensor.detach().cpu(), shard.metadata) for shard in self._local_shards]
        parts: list[Any] = [None] * self._process_group.size()
        _objects.all_gather_object(parts, own, group=self._process_group)
        self._fill(whole, parts)
        return whole

    @staticmethod
    def _fill(whole, parts):
        with rushlight.no_grad():
            for part in parts:
                for tensor, box in part:
                    slot = whole
                    for dim, (begin, length) in enumerate(
                        zip(box.shard_offsets, box.shard_sizes, strict=True)
                    ):
                        slot = slot.narrow(dim, begin, length)
                    slot.copy_(tensor)

    def __repr__(self) -> str:
        return f"ShardedTensor({self._metadata})"


def init_from_local_shards(local_shards: list[Shard], *global_size, process_group=None):
    """A tensor of which each process gives its boxes."""
    return ShardedTensor._init_from_local_shards(
        local_shards, *global_size, process_group=process_group
    )
