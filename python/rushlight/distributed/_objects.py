"""Objects between processes, by pickle; the barrier that names who is missing."""

from __future__ import annotations

import io
import pickle
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight.distributed import _calls, _collectives, _messages, _monitored
from rushlight.distributed._world import (
    _group,
    _rank_not_in_group,
    _warn_not_in_group,
    get_process_group_ranks,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from rushlight.distributed import ProcessGroup
    from rushlight.types import Device

__all__ = [
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "monitored_barrier",
    "recv_object_list",
    "scatter_object_list",
    "send_object_list",
]


def _place(group, device=None):
    """Where objects of a group become tensors."""
    return rushlight.device(group._note_device if device is None else device)


def _object_to_tensor(obj, device=None, group=None):
    """(The bytes of an object, how many they are)."""
    place = device if device is not None or group is None else _place(group)
    stream = io.BytesIO()
    pickle.Pickler(stream).dump(obj)
    data = rushlight.frombuffer(bytearray(stream.getvalue()), dtype=rushlight.uint8)
    return data.to(place or "cpu"), rushlight.tensor([data.numel()], device=place)


def _tensor_to_object(tensor, tensor_size, group=None):
    """The object of some bytes; run by pickle, so only from processes that are trusted."""
    return pickle.loads(tensor.cpu().numpy().tobytes()[: int(tensor_size)])


def _of_one_length(obj, group):
    """An object's bytes, as many as the longest of all processes has; how many each has."""
    place = _place(group)
    data, size = _object_to_tensor(obj, place)
    sizes = rushlight.zeros(group.size(), dtype=rushlight.int64, device=place)
    _collectives.all_gather_into_tensor(sizes, size, group)
    padded = data.new_zeros(int(sizes.max()))
    padded[: data.numel()] = data
    return padded, sizes


def _rows_for(group, row):
    """What processes' rows are received in."""
    return list(row.new_empty(group.size(), row.numel()).unbind())


def _put_objects(objects, rows, sizes):
    for i, (row, size) in enumerate(zip(rows, sizes.tolist(), strict=True)):
        objects[i] = _tensor_to_object(row, size)


def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """Gather every process's object in a list. Objects are pickled.

    Args:
        object_list: a list to write into, as long as there are processes.
        obj: the object of this process.
        group: the processes; all of them if None.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> results = [None]
        >>> torch.distributed.all_gather_object(results, {"a": 1})
        >>> results
        [{'a': 1}]
        >>> torch.distributed.destroy_process_group()
    """
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather_object")
    group = _group(group)
    own, sizes = _of_one_length(obj, group)
    rows = _rows_for(group, own)
    _collectives.all_gather(rows, own, group)
    _put_objects(object_list, rows, sizes)
    return None


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
) -> None:
    """Gather every process's object in a list of one process. Objects are pickled.

    Args:
        obj: the object of this process.
        object_gather_list: at `dst` a list to write into, as long as there are processes.
        dst: the rank of the process that gets them; by default 0.
        group: the processes; all of them if None.
        group_dst: that rank within the group, instead of `dst`.

    Raises:
        ValueError: there is a list elsewhere, or none at `dst`.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> results = [None]
        >>> torch.distributed.gather_object({"loss": 0.5}, results)
        >>> results
        [{'loss': 0.5}]
        >>> torch.distributed.destroy_process_group()
    """
    group = _group(group)
    if _rank_not_in_group(group):
        return _warn_not_in_group("gather_object")
    to = _calls._peer(group, dst, group_dst, 0)
    here = group.rank() == to
    if here and not object_gather_list:
        raise ValueError("Argument ``object_gather_list`` must be specified on destination rank.")
    if not here and object_gather_list:
        raise ValueError(
            "Argument ``object_gather_list`` must NOT be specified on non-destination ranks."
        )
    own, sizes = _of_one_length(obj, group)
    rows = _rows_for(group, own) if here else None
    _collectives.gather(own, rows, group=group, group_dst=to)
    if rows is not None:
        _put_objects(object_gather_list, rows, sizes)
    return None


def _pack(object_list, place):
    pairs = [_object_to_tensor(obj, place) for obj in object_list]
    sizes = rushlight.cat([size for _, size in pairs])
    return sizes, rushlight.cat([data for data, _ in pairs])


def _unpack(object_list, sizes, data):
    begin = 0
    for i, length in enumerate(sizes.tolist()):
        object_list[i] = _tensor_to_object(data[begin : begin + length], length)
        begin += length


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Device | None = None,
    group_src: int | None = None,
) -> None:
    """Send one process's objects to all processes. Objects are pickled.

    Args:
        object_list: the objects at `src`, places for them elsewhere.
        src: the rank of the sender.
        group: the processes; all of them if None.
        device: where the bytes of the objects go; that of the backend if None.
        group_src: the rank of the sender within the group.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> torch.distributed.broadcast_object_list(["a"], src=0)
        >>> torch.distributed.destroy_process_group()
    """
    group = _group(group)
    if _rank_not_in_group(group):
        return _warn_not_in_group("broadcast_object_list")
    source = _calls._peer(group, src, group_src, 0)
    here = group.rank() == source
    place = _place(group, device)
    if here:
        sizes, data = _pack(object_list, place)
    else:
        sizes = rushlight.empty(len(object_list), dtype=rushlight.int64, device=place)
    _collectives.broadcast(sizes, group=group, group_src=source)
    if not here:
        data = rushlight.empty(int(sizes.sum()), dtype=rushlight.uint8, device=place)
    _collectives.broadcast(data, group=group, group_src=source)
    if not here:
        _unpack(object_list, sizes, data)
    return None


def scatter_object_list(
    scatter_object_output_list: Sequence[Any],
    scatter_object_input_list: Sequence[Any] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    group_src: int | None = None,
) -> None:
    """Send each process its object of one process's list. Objects are pickled.

    Args:
        scatter_object_output_list: a list whose first item is written.
        scatter_object_input_list: at `src` the objects, one for each process.
        src: the rank of the sender; by default 0.
        group: the processes; all of them if None.
        group_src: that rank within the group, instead of `src`.

    Raises:
        ValueError: the first list is empty, or there is no second one at `src`.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> result = [None]
        >>> torch.distributed.scatter_object_list(result, [{"lr": 0.1}])
        >>> result
        [{'lr': 0.1}]
        >>> torch.distributed.destroy_process_group()
    """
    group = _group(group)
    if _rank_not_in_group(group):
        return _warn_not_in_group("scatter_object_list")
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError(
            "scatter_object_output_list is expected to be a list of size at least 1, whose first "
            "item is set"
        )
    source = _calls._peer(group, src, group_src, 0)
    here = group.rank() == source
    place = _place(group)
    most = rushlight.zeros(1, dtype=rushlight.int64, device=place)
    length = rushlight.zeros(1, dtype=rushlight.int64, device=place)
    pairs: list[Any] = []
    if here:
        if scatter_object_input_list is None:
            raise ValueError("source rank must provide non-None scatter_object_input_list")
        pairs = [_object_to_tensor(obj, place) for obj in scatter_object_input_list]
        most = rushlight.cat([size for _, size in pairs]).max().reshape(1)
    _collectives.broadcast(most, group=group, group_src=source)
    data = rushlight.empty(int(most), dtype=rushlight.uint8, device=place)
    padded = [rushlight.nn.functional.pad(part, (0, int(most) - len(part))) for part, _ in pairs]
    _collectives.scatter(data, padded if here else None, group=group, group_src=source)
    sizes = [size for _, size in pairs] if here else None
    _collectives.scatter(length, sizes, group=group, group_src=source)
    scatter_object_output_list[0] = _tensor_to_object(data, length)
    return None


def _pass_on(way, message, other, group, group_other, use_batch):
    """A message sent, or received, alone or as a batch of one; the rank of the other process."""
    if use_batch:
        op = _messages.P2POp(way, message, other, group, group_peer=group_other)
        for work in _messages.batch_isend_irecv([op]):
            work.wait()
        return op.peer
    if way is _messages.irecv:
        return _messages.recv(message, other, group, group_src=group_other)
    return _messages.send(message, other, group, group_dst=group_other)


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: ProcessGroup | None = None,
    device: Device | None = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send a list of objects to a process. Objects are pickled.

    For an example see the page distributed.

    Args:
        object_list: the objects.
        dst: the rank of the receiver.
        group: the processes; all of them if None.
        device: where the bytes of the objects go; that of the backend if None.
        group_dst: the rank of the receiver within the group, instead of `dst`.
        use_batch: whether messages go by `batch_isend_irecv`.
    """
    if _rank_not_in_group(group):
        return _warn_not_in_group("send_object_list")
    for message in _pack(object_list, _place(_group(group), device)):
        _pass_on(_collectives.isend, message, dst, group, group_dst, use_batch)
    return None


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Device | None = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int | None:
    """Receive a list of objects; returns the rank that sent it. Objects are pickled.

    For an example see the page distributed.

    Args:
        object_list: a list to write into, as long as the one that is sent.
        src: the rank of the sender; None: any.
        group: the processes; all of them if None.
        device: where the bytes of the objects go; that of the backend if None.
        group_src: the rank of the sender within the group, instead of `src`.
        use_batch: whether messages go by `batch_isend_irecv`.
    """
    if _rank_not_in_group(group):
        _warn_not_in_group("recv_object_list")
        return -1
    place = _place(_group(group), device)
    way = _messages.irecv
    sizes = rushlight.empty(len(object_list), dtype=rushlight.int64, device=place)
    sender = _pass_on(way, sizes, src, group, group_src, use_batch)
    data = rushlight.empty(int(sizes.sum()), dtype=rushlight.uint8, device=place)
    _pass_on(way, data, sender, group, None, use_batch)
    _unpack(object_list, sizes, data)
    return sender


def monitored_barrier(
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    wait_all_ranks: bool = False,
) -> None:
    """A barrier that names, on rank 0, the processes that are missing.

    Args:
        group: the processes; all of them if None.
        timeout: how long rank 0 waits, a `datetime.timedelta`; None: as the group does.
        wait_all_ranks: whether all that are missing are named, or the first one.

    Raises:
        ValueError: the group has no engine gloo.
        RuntimeError: processes did not come in time.
        ValueError: the group has no engine gloo.
        RuntimeError: processes did not come in time.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> torch.distributed.monitored_barrier()
        >>> torch.distributed.destroy_process_group()
    """
    if _rank_not_in_group(group):
        return _warn_not_in_group("monitored_barrier")
    group = _group(group)
    if not any(b.name() == "gloo" for b in group._backends.values()):
        raise ValueError("monitored_barrier is only implemented for GLOO backend.")
    return _monitored.barrier(
        group,
        get_process_group_ranks(group),
        group._timeout if timeout is None else timeout,
        wait_all_ranks,
    )
