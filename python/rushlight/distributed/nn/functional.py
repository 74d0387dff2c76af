"""Differentiable collectives: gradients of all processes' losses are summed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight import distributed as dist
from rushlight.autograd import Function
from rushlight.distributed import _world

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]


def _contiguous_copy(tensor):
    return tensor.detach().clone(memory_format=rushlight.contiguous_format)


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src, group, tensor):
        ctx.src, ctx.group = src, group
        out = _contiguous_copy(tensor)
        dist.broadcast(out, src, group=group)
        return out

    @staticmethod
    def backward(ctx, grad):
        total = _Reduce.apply(ctx.src, dist.ReduceOp.SUM, ctx.group, grad)
        if dist.get_rank() != ctx.src:
            total = rushlight.zeros_like(total)
        return None, None, total


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, dst, op, group, tensor):
        ctx.dst, ctx.group = dst, group
        out = _contiguous_copy(tensor)
        dist.reduce(out, dst, op, group=group)
        return out

    @staticmethod
    def backward(ctx, grad):
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, grad)


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op, group, tensor):
        ctx.op, ctx.group = op, group
        out = _contiguous_copy(tensor)
        dist.all_reduce(out, op, group=group)
        return out

    @staticmethod
    def backward(ctx, grad):
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grad)


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group, tensor):
        ctx.group = group
        out = [rushlight.empty_like(tensor) for _ in range(dist.get_world_size(group))]
        dist.all_gather(out, tensor.detach().contiguous(), group=group)
        return tuple(out)

    @staticmethod
    def backward(ctx, *grads):
        mine = rushlight.empty_like(grads[dist.get_rank(ctx.group)])
        parts = _AllToAll.apply(ctx.group, [rushlight.empty_like(mine) for _ in grads], *grads)
        return None, rushlight.stack(list(parts)).sum(0)


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, dst, group, tensor):
        ctx.dst, ctx.group = dst, group
        out = [rushlight.zeros_like(tensor) for _ in range(dist.get_world_size(group))]
        here = dist.get_rank() == dst
        dist.gather(tensor.detach().contiguous(), out if here else None, dst, group=group)
        return tuple(out)

    @staticmethod
    def backward(ctx, *grads):
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *grads)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src, group, *tensors):
        ctx.src, ctx.group = src, group
        out = rushlight.zeros_like(tensors[0])
        parts = [t.detach().contiguous() for t in tensors] if dist.get_rank() == src else None
        dist.scatter(out, parts, src, group=group)
        return out

    @staticmethod
    def backward(ctx, grad):
        return (None, None, *_Gather.apply(ctx.src, ctx.group, grad))


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op, group, tensor, *inputs):
        ctx.group = group
        out = rushlight.empty_like(tensor)
        dist.reduce_scatter(out, [t.detach().contiguous() for t in inputs], op, group=group)
        return out

    @staticmethod
    def backward(ctx, grad):
        return (None, None, None, *_AllGather.apply(ctx.group, grad))


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group, outputs, *inputs):
        ctx.group = group
        ctx.shapes = [t.shape for t in inputs]
        parts = [t.detach().contiguous() for t in inputs]
        out = [rushlight.empty_like(t) for t in outputs]
        dist.all_to_all(out, parts, group=group)
        return tuple(out)

    @staticmethod
    def backward(ctx, *grads):
        outputs = [grads[0].new_empty(shape) for shape in ctx.shapes]
        return (None, None, *_AllToAll.apply(ctx.group, outputs, *grads))


class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx: Any, group, output, output_sizes, input_sizes, tensor):
        ctx.group, ctx.shape = group, tensor.shape
        ctx.output_sizes, ctx.input_sizes = output_sizes, input_sizes
        out = rushlight.empty_like(output)
        dist.all_to_all_single(
            out, tensor.detach().contiguous(), output_sizes, input_sizes, group=group
        )
        return out

    @staticmethod
    def backward(ctx, grad):
        back = grad.new_empty(ctx.shape)
        sizes = ctx.input_sizes, ctx.output_sizes
        return None, None, None, None, _AllToAllSingle.apply(ctx.group, back, *sizes, grad)


def broadcast(
    tensor: rushlight.Tensor, src: int, group: dist.ProcessGroup | None = None
) -> rushlight.Tensor:
    """Broadcast one process's tensor; its gradient is the sum of all processes'.

    Args:
        tensor: what is sent, or of its size.
        src: the process that sends.
        group: the processes; all by default.

    For an example see `distributed.nn.all_reduce`.
    """
    return _Broadcast.apply(src, _world._group(group), tensor)


def gather(
    tensor: rushlight.Tensor, dst: int = 0, group: dist.ProcessGroup | None = None
) -> tuple[rushlight.Tensor, ...]:
    """Gather all tensors in one process.

    Args:
        tensor: this process's.
        dst: the process that gets all.
        group: the processes; all by default.

    For an example see `distributed.nn.all_reduce`.
    """
    return _Gather.apply(dst, _world._group(group), tensor)


def scatter(
    tensors: Sequence[rushlight.Tensor], src: int = 0, group: dist.ProcessGroup | None = None
) -> rushlight.Tensor:
    """Send each process its tensor of one process's list.

    Args:
        tensors: for each process a tensor; of all equal sizes.
        src: the process that sends.
        group: the processes; all by default.

    For an example see `distributed.nn.all_reduce`.
    """
    return _Scatter.apply(src, _world._group(group), *tensors)


def reduce(
    tensor: rushlight.Tensor,
    dst: int,
    op: Any = dist.ReduceOp.SUM,
    group: dist.ProcessGroup | None = None,
) -> rushlight.Tensor:
    """Reduce all tensors to one process.

    Args:
        tensor: this process's.
        dst: the process that gets the result.
        op: how tensors are reduced.
        group: the processes; all by default.

    For an example see `distributed.nn.all_reduce`.
    """
    return _Reduce.apply(dst, op, _world._group(group), tensor)


def reduce_scatter(
    output: rushlight.Tensor,
    input_list: Sequence[rushlight.Tensor],
    op: Any = dist.ReduceOp.SUM,
    group: dist.ProcessGroup | None = None,
) -> rushlight.Tensor:
    """Reduce lists of tensors elementwise; each process gets its tensor.

    Args:
        output: a tensor of the size of the result.
        input_list: for each process a tensor.
        op: how tensors are reduced.
        group: the processes; all by default.

    For an example see `distributed.nn.all_reduce`.
    """
    return _ReduceScatter.apply(op, _world._group(group), output, *input_list)


def all_gather(
    tensor: rushlight.Tensor, group: dist.ProcessGroup | None = None
) -> tuple[rushlight.Tensor, ...]:
    """Gather all tensors in all processes, as a tuple.

    Args:
        tensor: this process's.
        group: the processes; all by default.

    For an example see `distributed.nn.all_reduce`.
    """
    return _AllGather.apply(_world._group(group), tensor)


def all_to_all(
    output_tensor_list: Sequence[rushlight.Tensor],
    input_tensor_list: Sequence[rushlight.Tensor],
    group: dist.ProcessGroup | None = None,
) -> tuple[rushlight.Tensor, ...]:
    """Send each process its tensor of every process's list, as a tuple.

    Args:
        output_tensor_list: for each process a tensor of the size that comes from it.
        input_tensor_list: for each process a tensor.
        group: the processes; all by default.

    For an example see `distributed.nn.all_reduce`.
    """
    return _AllToAll.apply(_world._group(group), output_tensor_list, *input_tensor_list)


def all_to_all_single(
    output: rushlight.Tensor,
    input: rushlight.Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: dist.ProcessGroup | None = None,
) -> rushlight.Tensor:
    """Send each process its rows of every process's tensor.

    Args:
        output: a tensor of the size of the result.
        input: rows for all processes.
        output_split_sizes: rows that come from each; equally many by default.
        input_split_sizes: rows for each; equally many by default.
        group: the processes; all by default.

    For an example see `distributed.nn.all_reduce`.
    """
    return _AllToAllSingle.apply(
        _world._group(group), output, output_split_sizes, input_split_sizes, input
    )


def all_reduce(
    tensor: rushlight.Tensor, op: Any = dist.ReduceOp.SUM, group: dist.ProcessGroup | None = None
) -> rushlight.Tensor:
    """Reduce all tensors in all processes.

    Args:
        tensor: this process's.
        op: how tensors are reduced.
        group: the processes; all by default.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> x = torch.ones(2, requires_grad=True)
        >>> from rushlight.distributed import nn
        >>> nn.all_reduce(x).sum().backward()
        >>> x.grad
        tensor([1., 1.])
        >>> torch.distributed.destroy_process_group()
    """
    return _AllReduce.apply(op, _world._group(group), tensor)
