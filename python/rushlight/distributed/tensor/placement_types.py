"""Placements of a tensor on the devices of a mesh, as plain data."""

from __future__ import annotations

import dataclasses

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """How a tensor is placed along one dimension of a mesh.

    Example:
        >>> torch.distributed.tensor.Shard(1).is_shard(dim=1)
        True
    """

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether the tensor is sharded, along dimension `dim` if one is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether every device has the full tensor."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether the devices' values still have to be reduced, by `reduce_op` if one is given."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclasses.dataclass(frozen=True)
class Shard(Placement):
    """The tensor is split along a dimension, as `chunk` splits.

    The first devices have ceil(size / devices) rows each, the last one that has any the rest.

    Args:
        dim: the dimension.

    Example:
        >>> torch.distributed.tensor.Shard(0)
        Shard(dim=0)
    """

    dim: int

    @staticmethod
    def local_shard_size_and_offset(
        curr_local_size: int, num_chunks: int, rank: int
    ) -> tuple[int, int]:
        """The number of rows of piece `rank`, of `curr_local_size` rows, and its offset."""
        width = -(-curr_local_size // num_chunks)
        begin = min(curr_local_size, width * rank)
        return min(width, curr_local_size - begin), begin

    def _local_shard_size_and_offset(
        self, curr_local_size: int, num_chunks: int, rank: int
    ) -> tuple[int, int]:
        return self.local_shard_size_and_offset(curr_local_size, num_chunks, rank)

    def __str__(self):
        return f"S({self.dim})"


@dataclasses.dataclass(frozen=True, repr=False)
class _StridedShard(Shard):
    """Cut into pieces of pieces: `split_factor` that later dimensions of the mesh cut first."""

    split_factor: int = dataclasses.field(kw_only=True)

    def __repr__(self):
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"

    def __str__(self):
        return f"_S({self.dim}, {self.split_factor})"


@dataclasses.dataclass(frozen=True)
class Replicate(Placement):
    """Every device has the full tensor.

    Example:
        >>> torch.distributed.tensor.Replicate()
        Replicate()
    """

    def __str__(self):
        return "R"


@dataclasses.dataclass(frozen=True)
class Partial(Placement):
    """Values that still have to be reduced over the devices, by "sum", "avg", "product", "min" or
    "max".

    Args:
        reduce_op: the reduction.

    Example:
        >>> torch.distributed.tensor.Partial("sum")
        Partial(reduce_op='sum')
    """

    reduce_op: str = "sum"

    def __str__(self):
        return f"P({self.reduce_op})"


@dataclasses.dataclass(frozen=True)
class _NormPartial(Partial):
    """Norms of pieces: the norm of the whole is the norm of theirs."""

    reduce_op: str = "norm"
    norm_type: float = 2.0
