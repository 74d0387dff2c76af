"""Collectives that return their results and write into nothing."""

from __future__ import annotations

import rushlight
from rushlight.distributed import _collectives, _refused, _world
from rushlight.distributed._kinds import ReduceOp

__all__ = [
    "AsyncCollectiveTensor",
    "all_gather_tensor",
    "all_reduce",
    "all_to_all_single",
    "all_to_all_single_autograd",
    "broadcast",
    "reduce_scatter_tensor",
    "wait_tensor",
]

AsyncCollectiveTensor = _refused.kind("AsyncCollectiveTensor", __name__)


def _group_of(group):
    """A group: itself, a mesh of one dimension, or (mesh, dimension)."""
    if isinstance(group, tuple):
        return group[0].get_group(group[1])
    if hasattr(group, "get_group"):
        return group.get_group()
    return _world._group(group)


def _op(name):
    return name if isinstance(name, ReduceOp) else ReduceOp.__members__[str(name).upper()]


def wait_tensor(tensor):
    """The tensor: what these functions return is there already."""
    return tensor


def broadcast(self, src: int, group, tag: str = ""):
    """One process's tensor."""
    out = self.detach().clone()
    _collectives.broadcast(out, src, group=_group_of(group))
    return out


def all_reduce(self, reduceOp: str, group, tag: str = ""):
    """The reduction of all tensors."""
    out = self.detach().clone()
    _collectives.all_reduce(out, _op(reduceOp), group=_group_of(group))
    return out


def all_gather_tensor(self, gather_dim: int, group, tag: str = ""):
    """All tensors, one after the other along a dimension."""
    group = _group_of(group)
    own = self.detach().contiguous()
    parts = [rushlight.empty_like(own) for _ in range(group.size())]
    _collectives.all_gather(parts, own, group)
    return rushlight.cat(parts, gather_dim)


def reduce_scatter_tensor(self, reduceOp: str, scatter_dim: int, group, tag: str = ""):
    """This process's part, along a dimension, of the reduction of all tensors."""
    group = _group_of(group)
    if self.shape[scatter_dim] % group.size() != 0:
        raise AssertionError(
            f"input dimension {scatter_dim} ({self.shape[scatter_dim]}) must be a multiple of "
            f"group_size {group.size()}"
        )
    parts = [part.contiguous() for part in self.detach().chunk(group.size(), scatter_dim)]
    out = rushlight.empty_like(parts[0])
    _collectives.reduce_scatter(out, parts, _op(reduceOp), group)
    return out


def all_to_all_single(self, output_split_sizes, input_split_sizes, group, tag: str = ""):
    """This process's rows of everybody's tensor."""
    own = self.detach().contiguous()
    rows = own.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    out = own.new_empty((rows, *own.shape[1:]))
    _collectives.all_to_all_single(
        out, own, output_split_sizes, input_split_sizes, _group_of(group)
    )
    return out


all_to_all_single_autograd = _refused.function(
    "torch.distributed._functional_collectives.all_to_all_single_autograd"
)
