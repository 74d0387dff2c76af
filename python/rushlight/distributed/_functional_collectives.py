"""Collectives that return their results and write into nothing; gradients pass through them.

A loss is understood to be the sum of the processes' losses. What is returned is there: nothing is
left to wait for. A group is a process group, its name, the ranks of one that there is, a mesh of
one dimension, or (mesh, dimension).
"""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight._lazy import lazy
from rushlight.autograd import Function
from rushlight.distributed import _collectives, _world
from rushlight.distributed._kinds import ReduceOp

__all__ = [
    "AsyncCollectiveTensor",  # noqa: F822  # refused
    "all_gather_into_tensor_coalesced",
    "all_gather_single",
    "all_gather_single_autograd",
    "all_gather_single_coalesced",
    "all_gather_tensor",
    "all_gather_tensor_autograd",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all_single",
    "all_to_all_single_autograd",
    "broadcast",
    "permute_tensor",
    "reduce_scatter_single",
    "reduce_scatter_single_autograd",
    "reduce_scatter_single_coalesced",
    "reduce_scatter_tensor",
    "reduce_scatter_tensor_autograd",
    "reduce_scatter_tensor_coalesced",
    "wait_tensor",
]

lazy(__name__)


def _group_of(group):
    if isinstance(group, tuple):
        return group[0].get_group(group[1])
    if hasattr(group, "get_group"):
        return group.get_group()
    if isinstance(group, str):
        return _world._resolve_process_group(group)
    if not isinstance(group, list):
        return _world._group(group)
    for pg, ranks in _world._pg_group_ranks.items():
        if list(ranks) == group:
            return pg
    raise ValueError(f"there is no process group {group}: new_group makes one")


def _op(name):
    return name if isinstance(name, ReduceOp) else ReduceOp.__members__[str(name).upper()]


def _adjoint_op(op, what):
    if op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise RuntimeError(f"{what} backward only supports 'sum' and 'avg', got {op}")
    return op


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, tensor, op, group):
        ctx.op, ctx.group = op, group
        out = tensor.clone(memory_format=rushlight.contiguous_format)
        _collectives.all_reduce(out, op, group=group)
        return out

    @staticmethod
    def backward(ctx, grad):
        return _AllReduce.apply(grad, _adjoint_op(ctx.op, "all_reduce"), ctx.group), None, None


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, tensor, group):
        ctx.group = group
        out = tensor.new_empty((group.size() * tensor.shape[0], *tensor.shape[1:]))
        _collectives.all_gather_into_tensor(out, tensor.contiguous(), group)
        return out

    @staticmethod
    def backward(ctx, grad):
        return _ReduceScatter.apply(grad, ReduceOp.SUM, ctx.group), None


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, tensor, op, group):
        ctx.op, ctx.group = op, group
        out = tensor.new_empty((tensor.shape[0] // group.size(), *tensor.shape[1:]))
        _collectives.reduce_scatter_tensor(out, tensor.contiguous(), op, group)
        return out

    @staticmethod
    def backward(ctx, grad):
        op = _adjoint_op(ctx.op, "reduce_scatter_tensor")
        whole = _AllGather.apply(grad, ctx.group)
        return whole / ctx.group.size() if op == ReduceOp.AVG else whole, None, None


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, tensor, output_sizes, input_sizes, group):
        ctx.sizes, ctx.group = (input_sizes, output_sizes), group
        rows = tensor.shape[0] if output_sizes is None else sum(output_sizes)
        out = tensor.new_empty((rows, *tensor.shape[1:]))
        _collectives.all_to_all_single(out, tensor.contiguous(), output_sizes, input_sizes, group)
        return out

    @staticmethod
    def backward(ctx, grad):
        return _AllToAll.apply(grad, *ctx.sizes, ctx.group), None, None, None


def wait_tensor(tensor):
    """Return the tensor, which is complete already."""
    return tensor


def broadcast(self, src: int, group, tag: str = ""):
    """Broadcast one process's tensor; it is not differentiable."""
    out = self.detach().clone(memory_format=rushlight.contiguous_format)
    _collectives.broadcast(out, src, group=_group_of(group))
    return out


def all_reduce(self, reduceOp: str, group, tag: str = ""):
    """Reduce all tensors; sums and means are differentiable."""
    return _AllReduce.apply(self, _op(reduceOp), _group_of(group))


def all_gather_tensor(self, gather_dim: int, group, tag: str = ""):
    """Gather all tensors, concatenated along a dimension; differentiable."""
    group = _group_of(group)
    whole = _AllGather.apply(self, group)
    return whole if gather_dim == 0 else rushlight.cat(whole.chunk(group.size()), gather_dim)


def reduce_scatter_tensor(self, reduceOp: str, scatter_dim: int, group, tag: str = ""):
    """Reduce all tensors; each process gets its slice along a dimension. Sums and means are
    differentiable.
    """
    group = _group_of(group)
    if self.shape[scatter_dim] % group.size() != 0:
        raise AssertionError(
            f"input dimension {scatter_dim} ({self.shape[scatter_dim]}) must be a multiple of "
            f"group_size {group.size()}"
        )
    if scatter_dim != 0:
        self = rushlight.cat(self.chunk(group.size(), scatter_dim))
    return _ReduceScatter.apply(self, _op(reduceOp), group)


def all_to_all_single(self, output_split_sizes, input_split_sizes, group, tag: str = ""):
    """Send each process its rows of every process's tensor; differentiable."""
    return _AllToAll.apply(self, output_split_sizes, input_split_sizes, _group_of(group))


def permute_tensor(self, src_dst: list[int], group, tag: str = ""):
    """The tensor that another process sends here: process i sends to `src_dst[i]`."""
    group = _group_of(group)
    rank, size = group.rank(), group.size()
    to, come = [0] * size, [0] * size
    to[src_dst[rank]] = come[src_dst.index(rank)] = self.numel()
    return _AllToAll.apply(self.reshape(-1), come, to, group).view(self.shape)


def all_reduce_coalesced(self, reduceOp: str, group, tag: str = ""):
    """`all_reduce` of several tensors."""
    return [all_reduce(t, reduceOp, group, tag) for t in self]


def all_gather_single_coalesced(self, group, tag: str = ""):
    """`all_gather_tensor` of several tensors, along their first dimensions."""
    return [all_gather_tensor(t, 0, group, tag) for t in self]


def reduce_scatter_single_coalesced(inputs, reduceOp: str, scatter_dim, group, tag: str = ""):
    """`reduce_scatter_tensor` of several tensors, along a dimension of each."""
    dims = zip(inputs, scatter_dim, strict=True)
    return [reduce_scatter_tensor(t, reduceOp, dim, group, tag) for t, dim in dims]


# PyTorch's other names for the same.
all_gather_single = all_gather_single_autograd = all_gather_tensor_autograd = all_gather_tensor
reduce_scatter_single = reduce_scatter_single_autograd = reduce_scatter_tensor
reduce_scatter_tensor_autograd = reduce_scatter_tensor
all_to_all_single_autograd = all_to_all_single
all_gather_into_tensor_coalesced = all_gather_single_coalesced
reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
