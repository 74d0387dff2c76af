"""Where the pieces of a distributed tensor lie: sizes, offsets and strides."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import rushlight
from rushlight.distributed._cuts import cut_order
from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
    _StridedShard,
)

__all__ = [
    "DTensorSpec",
    "TensorMeta",
    "contiguous_strides",
    "cut_order",
    "local_shape_and_offset",
    "mesh_or_current",
    "normalize_placements",
]


@dataclasses.dataclass(frozen=True)
class TensorMeta:
    """Shape, strides and dtype of the whole tensor."""

    shape: Any
    stride: tuple[int, ...]
    dtype: Any


@dataclasses.dataclass(frozen=True)
class DTensorSpec:
    """How a tensor lies on a mesh: a placement for each of the mesh's dimensions."""

    mesh: DeviceMesh
    placements: tuple[Placement, ...]
    tensor_meta: TensorMeta

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh."""
        return self.mesh

    @property
    def shape(self):
        """The shape of the whole tensor."""
        return self.tensor_meta.shape

    @property
    def ndim(self) -> int:
        """How many dimensions the tensor has."""
        return len(self.tensor_meta.shape)

    @property
    def num_shards(self) -> int:
        """Into how many pieces it is cut."""
        sizes = self.mesh.shape
        return math.prod(n for n, p in zip(sizes, self.placements, strict=True) if p.is_shard())

    @property
    def dim_map(self) -> list[int]:
        """For each dimension of the tensor the mesh dimension that cuts it, or -1."""
        found = [-1] * self.ndim
        for i, placement in enumerate(self.placements):
            if isinstance(placement, Shard):
                found[placement.dim] = i
        return found

    @property
    def sums(self) -> list[int]:
        """The mesh dimensions over which values are yet to be reduced."""
        return [i for i, p in enumerate(self.placements) if p.is_partial()]

    def is_replicated(self) -> bool:
        """Whether every process has the whole."""
        return all(p.is_replicate() for p in self.placements)

    def is_sharded(self) -> bool:
        """Whether it is cut along any dimension of the mesh."""
        return any(p.is_shard() for p in self.placements)


def mesh_or_current(mesh) -> DeviceMesh:
    """The mesh, or that of the innermost `with mesh:`."""
    if mesh is not None:
        return mesh
    current = DeviceMesh._current()
    if current is None:
        raise RuntimeError("No device mesh is currently active!")
    return current


def normalize_placements(placements, mesh: DeviceMesh, ndim: int, default) -> tuple:
    """A placement for each mesh dimension, dimensions of tensors from the front."""
    if placements is None:
        return tuple(default)
    placements = tuple(placements)
    if len(placements) != mesh.ndim:
        raise ValueError(
            f"`placements` must have the same length as the mesh has dimensions: {len(placements)} "
            f"for {mesh.ndim}"
        )
    result = []
    for placement in placements:
        if not isinstance(placement, Placement):
            raise RuntimeError(f"expected a Placement, but got {placement!r}")
        if isinstance(placement, Shard):
            if not -ndim <= placement.dim < max(ndim, 1):
                raise IndexError(
                    f"Shard dim {placement.dim} is out of range for a tensor of {ndim} dimensions"
                )
            placement = dataclasses.replace(placement, dim=placement.dim % ndim if ndim else 0)
        result.append(placement)
    for i, placement in enumerate(result):
        if isinstance(placement, _StridedShard):
            later = (j for j in range(i + 1, mesh.ndim) if result[j].is_shard(placement.dim))
            pieces = math.prod(mesh.size(j) for j in later)
            if placement.split_factor != pieces:
                raise NotImplementedError(
                    f"{placement}: a split factor other than the number of pieces that the later "
                    f"dimensions of the mesh make, which is {pieces}"
                )
    return tuple(result)


def local_shape_and_offset(shape, mesh: DeviceMesh, placements, coordinate=None):
    """The shape of this process's piece and where it begins, for each dimension.

    Where the same dimension is cut by several mesh dimensions, the first in `cut_order` cuts the
    whole and the next its pieces. A process that is not in the mesh has a piece of no elements.
    """
    coordinate = mesh.get_coordinate() if coordinate is None else coordinate
    sizes = list(shape)
    offsets = [0] * len(sizes)
    if coordinate is None:
        return ((0,) * max(len(sizes), 1), tuple(offsets))
    for i in cut_order(placements):
        placement = placements[i]
        if isinstance(placement, Shard):
            d = placement.dim
            sizes[d], begin = Shard.local_shard_size_and_offset(
                sizes[d], mesh.size(i), coordinate[i]
            )
            offsets[d] += begin
    return tuple(sizes), tuple(offsets)


def contiguous_strides(shape, order=None) -> tuple[int, ...]:
    """Strides of a dense tensor whose dimensions follow each other in memory as in `order`."""
    strides = [0] * len(shape)
    step = 1
    for d in reversed(range(len(shape)) if order is None else order):
        strides[d] = step
        step *= max(shape[d], 1)
    return tuple(strides)


def whole_meta(local, mesh: DeviceMesh, placements) -> TensorMeta:
    """What the whole looks like whose pieces are all like `local`."""
    shape = list(local.shape)
    for i, placement in enumerate(placements):
        if isinstance(placement, Shard):
            shape[placement.dim] *= mesh.size(i)
    order = sorted(range(local.ndim), key=lambda d: (-local.stride(d), d))
    return TensorMeta(rushlight.Size(shape), contiguous_strides(shape, order), local.dtype)


def all_replicate(mesh: DeviceMesh) -> tuple[Placement, ...]:
    """Every process has the whole."""
    return (Replicate(),) * mesh.ndim


def partial_free(placements) -> tuple[Placement, ...]:
    """The placements, with the whole where values are yet to be reduced."""
    return tuple(Replicate() if isinstance(p, Partial) else p for p in placements)
