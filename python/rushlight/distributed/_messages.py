"""Tensors from one process to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.distributed._calls import (
    _as_real,
    _check_tensor,
    _coalescing_manager,
    _managers,
    _note,
    _peer,
)
from rushlight.distributed._world import (
    _group,
    _rank_not_in_group,
    _warn_not_in_group,
    get_global_rank,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from rushlight import Tensor
    from rushlight.distributed import ProcessGroup, Work

__all__ = [
    "P2POp",
    "batch_isend_irecv",
    "irecv",
    "isend",
    "recv",
    "send",
]


class P2POp:
    """A message of `batch_isend_irecv`: `isend` or `irecv`, a tensor, and the other process.

    For an example see the page distributed.

    Args:
        op: `isend` or `irecv`.
        tensor: what is sent, or written into.
        peer: the rank of the other process.
        group: the processes; all of them if None.
        tag: a number that both sides say.
        group_peer: the rank of the other process within the group, instead of `peer`.

    Raises:
        ValueError: `op` is another function, or no process is named.
    """

    def __init__(
        self,
        op: Any,
        tensor: Tensor,
        peer: int | None = None,
        group: ProcessGroup | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(f"Invalid ``op``: a P2POp does isend or irecv, not {op}")
        _check_tensor(tensor, "tensor")
        self.op = op
        self.tensor = tensor
        self.group = _group(group)
        self.tag = tag
        self.group_peer = _peer(self.group, peer, group_peer)
        self.peer = get_global_rank(self.group, self.group_peer) if peer is None else peer

    def __repr__(self):
        return f"P2POp({self.op.__name__}, peer={self.peer}, tag={self.tag})"


def _send(tensor, dst, group, tag, group_dst):
    group = _group(group)
    to = _peer(group, dst, group_dst)
    _check_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        _warn_not_in_group("isend")
        return None
    if to == group.rank():
        raise ValueError(
            f"destination rank should not be the same as the rank that sends: both are {to}"
        )
    return group.send([_as_real(tensor)], to, tag)


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Send a tensor to a process asynchronously.

    For an example see the page distributed.

    Args:
        tensor: what is sent.
        dst: the rank of the receiver.
        group: the processes; all of them if None.
        tag: a number that the receiver says, too.
        group_dst: the rank of the receiver within the group, instead of `dst`.

    Returns:
        A `Work` with `wait()`; until then the tensor must not change.

    Raises:
        ValueError: the receiver is this process, or is not named.
    """
    work = _send(tensor, dst, group, tag, group_dst)
    _note(work)
    return work


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Receive a tensor asynchronously; from any process if none is given.

    For an example see the page distributed.

    Args:
        tensor: is written into.
        src: the rank of the sender; None: any.
        group: the processes; all of them if None.
        tag: a number that the sender says, too.
        group_src: the rank of the sender within the group, instead of `src`.

    Returns:
        A `Work` with `wait()`; until then the tensor has no values.
    """
    _check_tensor(tensor, "tensor")
    group = _group(group)
    if _rank_not_in_group(group):
        _warn_not_in_group("irecv")
        return None
    if src is None and group_src is None:
        return group.recv_anysource([_as_real(tensor)], tag)
    work = group.recv([_as_real(tensor)], _peer(group, src, group_src), tag)
    _note(work)
    return work


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send a tensor to a process.

    For an example see the page distributed.

    Args:
        tensor: what is sent.
        dst: the rank of the receiver.
        group: the processes; all of them if None.
        tag: a number that the receiver says, too.
        group_dst: the rank of the receiver within the group, instead of `dst`.

    Raises:
        ValueError: the receiver is this process, or is not named.
    """
    work = _send(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive a tensor; returns the rank that sent it.

    For an example see the page distributed.

    Args:
        tensor: is written into.
        src: the rank of the sender; None: any.
        group: the processes; all of them if None.
        tag: a number that the sender says, too.
        group_src: the rank of the sender within the group, instead of `src`.
    """
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    if src is not None:
        return src
    if group_src is not None:
        return get_global_rank(_group(group), group_src)
    source = work._source_rank()
    return source if group is None else get_global_rank(group, source)


def batch_isend_irecv(p2p_op_list: Sequence[Any]) -> list[Work]:
    """Send and receive several tensors; returns their works.

    For an example see the page distributed.

    Args:
        p2p_op_list: the messages, a list of `P2POp` of one group.

    Raises:
        ValueError: the list is empty, has other things, or belongs to several groups.
    """
    if not isinstance(p2p_op_list, list) or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ValueError(
            f"Invalid ``p2p_op_list``: a list of P2POp is expected, but got {p2p_op_list!r}"
        )
    if not p2p_op_list:
        raise ValueError("p2p_op_list is empty")
    backend = p2p_op_list[0].group
    if any(op.group is not backend for op in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    device = p2p_op_list[0].tensor.device
    with _coalescing_manager(backend, device, async_ops=True) as manager:
        for op in p2p_op_list:
            op.op(op.tensor, op.peer, op.group, op.tag)
    if _managers:
        _managers[-1].extend(manager.works)
    return manager.works
