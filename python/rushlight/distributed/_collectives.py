"""What processes exchange: tensors, from one to all, all to one and all to all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rushlight
from rushlight.distributed import _kinds
from rushlight.distributed._calls import (
    _as_real,
    _check_complex,
    _check_list,
    _check_root_list,
    _check_same,
    _check_tensor,
    _checked_list,
    _finish,
    _finish_coalesced,
    _options,
    _peer,
    supports_complex,
)
from rushlight.distributed._kinds import ReduceOp
from rushlight.distributed._messages import P2POp, batch_isend_irecv, irecv, isend, recv, send
from rushlight.distributed._world import (
    _group,
    _rank_not_in_group,
    _warn_not_in_group,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta
    from typing import Any

    from rushlight import Tensor
    from rushlight.distributed import ProcessGroup, Work
    from rushlight.futures import Future

__all__ = [
    "P2POp",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "gather",
    "irecv",
    "isend",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "scatter",
    "send",
    "supports_complex",
]


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Send one process's tensor to all processes.

    Args:
        tensor: the input at `src`, the result elsewhere.
        src: the rank of the sender.
        group: the processes; all of them if None.
        async_op: whether to return a handle with `wait()` at once.
        group_src: the rank of the sender within the group.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> torch.distributed.broadcast(torch.ones(2), src=0)
        >>> torch.distributed.destroy_process_group()
    """
    group = _group(group)
    source = None if _rank_not_in_group(group) else _peer(group, src, group_src)
    _check_tensor(tensor, "tensor")
    if source is None:
        return _warn_not_in_group("broadcast")
    opts = _options(_kinds.BroadcastOptions, async_op, rootRank=source)
    return _finish(group.broadcast([tensor], opts), async_op)


def all_reduce(
    tensor: Tensor,
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce all tensors in all processes.

    Args:
        tensor: the input, which becomes the result.
        op: `ReduceOp.SUM`, `MAX` or another.
        group: the processes; all of them if None.
        async_op: whether to return a handle with `wait()` at once.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.distributed.all_reduce(x)
        >>> x
        tensor([1., 2.])
        >>> torch.distributed.destroy_process_group()
    """
    _check_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_reduce")
    _check_complex([tensor], op, "all_reduce")
    opts = _options(_kinds.AllreduceOptions, async_op, reduceOp=op)
    return _finish(_group(group).allreduce([_as_real(tensor)], opts), async_op)


def all_reduce_coalesced(
    tensors: Sequence[Tensor],
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | Future[Any] | None:
    """`all_reduce` of several tensors.

    Args:
        tensors: the inputs, which become the results, all of one dtype.
        op: `ReduceOp.SUM`, `MAX` or another.
        group: the processes; all of them if None.
        async_op: whether to return a future at once.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> x, y = torch.tensor([4.0]), torch.tensor([5.0, 6.0])
        >>> torch.distributed.all_reduce_coalesced([x, y])
        >>> y
        tensor([5., 6.])
        >>> torch.distributed.destroy_process_group()
    """
    if isinstance(tensors, rushlight.Tensor):
        tensors = [tensors]
    _check_list(tensors, "tensor")
    _check_same(tensors)
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_reduce_coalesced")
    _check_complex(tensors, op, "all_reduce")
    opts = _options(_kinds.AllreduceCoalescedOptions, async_op, reduceOp=op)
    work = _group(group).allreduce_coalesced([_as_real(t) for t in tensors], opts)
    return _finish_coalesced(work, async_op)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Reduce all tensors in one process.

    Args:
        tensor: the input, which becomes the result at `dst`; elsewhere its values are lost.
        dst: the rank of the process that gets the result.
        op: `ReduceOp.SUM`, `MAX` or another.
        group: the processes; all of them if None.
        async_op: whether to return a handle with `wait()` at once.
        group_dst: that rank within the group, instead of `dst`.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> x = torch.tensor([4.0, 5.0])
        >>> torch.distributed.reduce(x, dst=0)
        >>> x
        tensor([4., 5.])
        >>> torch.distributed.destroy_process_group()
    """
    group = _group(group)
    if _rank_not_in_group(group):
        return _warn_not_in_group("reduce")
    to = _peer(group, dst, group_dst)
    _check_tensor(tensor, "tensor")
    _check_complex([tensor], op, "reduce")
    opts = _options(_kinds.ReduceOptions, async_op, reduceOp=op, rootRank=to)
    return _finish(group.reduce([_as_real(tensor)], opts), async_op)


def all_gather(
    tensor_list: Sequence[Tensor],
    tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Gather the list of all tensors in all processes.

    Args:
        tensor_list: tensors to write into, one for each process.
        tensor: the input.
        group: the processes; all of them if None.
        async_op: whether to return a handle with `wait()` at once.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> results = [torch.zeros(2)]
        >>> torch.distributed.all_gather(results, torch.tensor([1.0, 2.0]))
        >>> results
        [tensor([1., 2.])]
        >>> torch.distributed.destroy_process_group()
    """
    _check_list(tensor_list, "tensor_list")
    _check_tensor(tensor, "tensor")
    _check_same(tensor_list, tensor)
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather")
    opts = _options(_kinds.AllgatherOptions, async_op)
    work = _group(group).allgather([[_as_real(t) for t in tensor_list]], [_as_real(tensor)], opts)
    return _finish(work, async_op)


def all_gather_into_tensor(
    output_tensor: Tensor,
    input_tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Gather all tensors in one tensor, concatenated or stacked, in all processes.

    Args:
        output_tensor: the tensor to write into.
        input_tensor: the input.
        group: the processes; all of them if None.
        async_op: whether to return a handle with `wait()` at once.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> result = torch.zeros(2)
        >>> torch.distributed.all_gather_into_tensor(result, torch.tensor([1.0, 2.0]))
        >>> result
        tensor([1., 2.])
        >>> torch.distributed.destroy_process_group()
    """
    _check_tensor(input_tensor, "input_tensor")
    _check_tensor(output_tensor, "output_tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather_into_tensor")
    opts = _options(_kinds.AllgatherOptions, async_op)
    work = _group(group)._allgather_base(_as_real(output_tensor), _as_real(input_tensor), opts)
    return _finish(work, async_op)


def all_gather_single(
    output_tensor: Tensor,
    input_tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Alias of `all_gather_into_tensor`.

    For an example see `distributed.all_gather_into_tensor`.

    Args:
        output_tensor: the tensor to write into.
        input_tensor: the input.
        group: the processes; all of them if None.
        async_op: whether to return a handle with `wait()` at once.
    """
    return all_gather_into_tensor(output_tensor, input_tensor, group, async_op)


def all_gather_coalesced(
    output_tensor_lists: Any,
    input_tensor_list: Sequence[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | Future[Any] | None:
    """`all_gather` of several tensors: output_tensor_lists[i] has the tensors of process i.

    Args:
        output_tensor_lists: for each process a list of tensors to write into.
        input_tensor_list: the inputs, all of one dtype.
        group: the processes; all of them if None.
        async_op: whether to return a future at once.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> results = [[torch.zeros(1), torch.zeros(2)]]
        >>> torch.distributed.all_gather_coalesced(results, [torch.ones(1), torch.ones(2)])
        >>> results
        [[tensor([1.]), tensor([1., 1.])]]
        >>> torch.distributed.destroy_process_group()
    """
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather_coalesced")
    _check_list(input_tensor_list, "input_tensor_list")
    _check_same(input_tensor_list)
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    for part in output_tensor_lists:
        _check_list(part, "output_tensor_lists")
        _check_same(part)
    work = _group(group).allgather_coalesced(
        [[_as_real(t) for t in part] for part in output_tensor_lists],
        [_as_real(t) for t in input_tensor_list],
    )
    return _finish_coalesced(work, async_op)


def gather(
    tensor: Tensor,
    gather_list: Sequence[Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Gather the list of all tensors in one process.

    Args:
        tensor: the input, of one shape and dtype everywhere.
        gather_list: at `dst` tensors to write into, one for each process.
        dst: the rank of the process that gets them; by default 0.
        group: the processes; all of them if None.
        async_op: whether to return a handle with `wait()` at once.
        group_dst: that rank within the group, instead of `dst`.

    Raises:
        ValueError: there is a list elsewhere, or none at `dst`.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> results = [torch.zeros(2)]
        >>> torch.distributed.gather(torch.tensor([4.0, 5.0]), results, dst=0)
        >>> results
        [tensor([4., 5.])]
        >>> torch.distributed.destroy_process_group()
    """
    _check_tensor(tensor, "tensor")
    gather_list = _checked_list(gather_list, "gather_list", tensor)
    group = _group(group)
    if _rank_not_in_group(group):
        return _warn_not_in_group("gather")
    to = _peer(group, dst, group_dst, 0)
    _check_root_list(gather_list, to == group.rank(), "gather_list", "destination")
    opts = _options(_kinds.GatherOptions, async_op, rootRank=to)
    outputs = [[_as_real(t) for t in gather_list]] if gather_list else []
    return _finish(group.gather(outputs, [_as_real(tensor)], opts), async_op)


def scatter(
    tensor: Tensor,
    scatter_list: Sequence[Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Send each process its tensor of one process's list.

    Args:
        tensor: is written into.
        scatter_list: at `src` what is sent, one tensor for each process.
        src: the rank of the sender; by default 0.
        group: the processes; all of them if None.
        async_op: whether to return a handle with `wait()` at once.
        group_src: that rank within the group, instead of `src`.

    Raises:
        ValueError: there is a list elsewhere, or none at `src`.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> x = torch.zeros(2)
        >>> torch.distributed.scatter(x, [torch.tensor([4.0, 5.0])], src=0)
        >>> x
        tensor([4., 5.])
        >>> torch.distributed.destroy_process_group()
    """
    _check_tensor(tensor, "tensor")
    scatter_list = _checked_list(scatter_list, "scatter_list", tensor)
    group = _group(group)
    if _rank_not_in_group(group):
        return _warn_not_in_group("scatter")
    source = _peer(group, src, group_src, 0)
    _check_root_list(scatter_list, source == group.rank(), "scatter_list", "source")
    opts = _options(_kinds.ScatterOptions, async_op, rootRank=source)
    inputs = [[_as_real(t) for t in scatter_list]] if scatter_list else []
    return _finish(group.scatter([_as_real(tensor)], inputs, opts), async_op)


def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce lists of tensors elementwise; each process gets its tensor.

    Args:
        output: is written into.
        input_list: one tensor for each process.
        op: `ReduceOp.SUM`, `MAX` or another.
        group: the processes; all of them if None.
        async_op: whether to return a handle with `wait()` at once.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> x = torch.zeros(2)
        >>> torch.distributed.reduce_scatter(x, [torch.tensor([4.0, 5.0])])
        >>> x
        tensor([4., 5.])
        >>> torch.distributed.destroy_process_group()
    """
    _check_tensor(output, "output")
    _check_list(input_list, "input_list")
    _check_same(output, input_list)
    if _rank_not_in_group(group):
        return _warn_not_in_group("reduce_scatter")
    _check_complex(input_list, op, "reduce_scatter")
    opts = _options(_kinds.ReduceScatterOptions, async_op, reduceOp=op)
    inputs = [[_as_real(t) for t in input_list]]
    return _finish(_group(group).reduce_scatter([_as_real(output)], inputs, opts), async_op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce all tensors; each process gets its rows.

    Args:
        output: is written into: the share of this process.
        input: the input, (processes * rows, ...), or (processes, rows, ...).
        op: `ReduceOp.SUM`, `MAX` or another.
        group: the processes; all of them if None.
        async_op: whether to return a handle with `wait()` at once.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> x = torch.zeros(2)
        >>> torch.distributed.reduce_scatter_tensor(x, torch.tensor([4.0, 5.0]))
        >>> x
        tensor([4., 5.])
        >>> torch.distributed.destroy_process_group()
    """
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    if _rank_not_in_group(group):
        return _warn_not_in_group("reduce_scatter_tensor")
    _check_complex([input], op, "reduce_scatter_tensor")
    opts = _options(_kinds.ReduceScatterOptions, async_op, reduceOp=op)
    work = _group(group)._reduce_scatter_base(_as_real(output), _as_real(input), opts)
    return _finish(work, async_op)


def reduce_scatter_single(
    output: Tensor,
    input: Tensor,
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Alias of `reduce_scatter_tensor`.

    For an example see `distributed.reduce_scatter_tensor`.

    Args:
        output: is written into: the share of this process.
        input: the input, (processes * rows, ...), or (processes, rows, ...).
        op: `ReduceOp.SUM`, `MAX` or another.
        group: the processes; all of them if None.
        async_op: whether to return a handle with `wait()` at once.
    """
    return reduce_scatter_tensor(output, input, op, group, async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Send each process its rows of every process's tensor.

    Args:
        output: is written into.
        input: what is sent.
        output_split_sizes: rows that come from each process; None: as many from each.
        input_split_sizes: rows that go to each process; None: as many to each.
        group: the processes; all of them if None.
        async_op: whether to return a handle with `wait()` at once.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> x = torch.zeros(2)
        >>> torch.distributed.all_to_all_single(x, torch.tensor([4.0, 5.0]))
        >>> x
        tensor([4., 5.])
        >>> torch.distributed.destroy_process_group()
    """
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_to_all_single")
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    _check_same(output, input)
    work = _group(group).alltoall_base(
        _as_real(output),
        _as_real(input),
        output_split_sizes or [],
        input_split_sizes or [],
        _options(_kinds.AllToAllOptions, async_op),
    )
    return _finish(work, async_op)


def all_to_all(
    output_tensor_list: Sequence[Tensor],
    input_tensor_list: Sequence[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Send each process its tensor of every process's list.

    Args:
        output_tensor_list: tensors to write into, one for each process.
        input_tensor_list: tensors to send, one to each process.
        group: the processes; all of them if None.
        async_op: whether to return a handle with `wait()` at once.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> results = [torch.zeros(2)]
        >>> torch.distributed.all_to_all(results, [torch.tensor([4.0, 5.0])])
        >>> results
        [tensor([4., 5.])]
        >>> torch.distributed.destroy_process_group()
    """
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_to_all")
    _check_list(output_tensor_list, "output_tensor_list")
    _check_list(input_tensor_list, "input_tensor_list")
    _check_same(output_tensor_list, input_tensor_list)
    work = _group(group).alltoall(
        [_as_real(t) for t in output_tensor_list],
        [_as_real(t) for t in input_tensor_list],
        _options(_kinds.AllToAllOptions, async_op),
    )
    return _finish(work, async_op)


def barrier(
    group: ProcessGroup | None = None,
    async_op: bool = False,
    device_ids: Sequence[int | str | Any] | None = None,
    timeout: timedelta | None = None,
) -> None:
    """Wait until all processes have called this, at most for `timeout`, by default the group's.

    Args:
        group: the processes; all of them if None.
        async_op: whether to return a handle with `wait()` at once.
        device_ids: accepted, without effect.
        timeout: how long to wait.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> torch.distributed.barrier()
        >>> torch.distributed.destroy_process_group()
    """
    if _rank_not_in_group(group):
        return _warn_not_in_group("barrier")
    if device_ids is not None and not isinstance(device_ids, list):
        raise TypeError("Invalid function argument: device_ids type should be List[int]")
    opts = _options(_kinds.BarrierOptions, async_op, device_ids=device_ids or [])
    opts.timeout = opts.timeout if timeout is None else timeout
    return _finish(_group(group).barrier(opts=opts), async_op)
