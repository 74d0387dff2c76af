"""Helpers of distributed modules, which give all processes the same parameters."""

from __future__ import annotations

import rushlight
from rushlight._utils import _flatten_dense_tensors, _unflatten_dense_tensors

__all__ = [
    "_sync_module_states",
    "_verify_param_shape_across_processes",
]

_BROADCAST_BYTES = 250 * 1024 * 1024


def _broadcast_coalesced(process_group, tensors, buffer_size=_BROADCAST_BYTES, src=0):
    """Give every process rank `src`'s tensors; those of a dtype travel together."""
    by_dtype: dict = {}
    for t in tensors:
        by_dtype.setdefault(t.dtype, []).append(t.detach())
    for same in by_dtype.values():
        begin = 0
        while begin < len(same):
            end, size = begin, 0
            while end < len(same) and (end == begin or size < buffer_size):
                size += same[end].numel() * same[end].element_size()
                end += 1
            part = same[begin:end]
            begin = end
            if len(part) == 1:
                process_group.broadcast(part, root=src).wait()
                continue
            flat = _flatten_dense_tensors(part)
            process_group.broadcast([flat], root=src).wait()
            if process_group.rank() != src:
                for t, piece in zip(part, _unflatten_dense_tensors(flat, part), strict=True):
                    t.copy_(piece)


def _sync_params_and_buffers(process_group, states, broadcast_bucket_size, src):
    if states:
        _broadcast_coalesced(process_group, states, broadcast_bucket_size, src)


def _sync_module_states(
    module,
    process_group,
    broadcast_bucket_size,
    src,
    params_and_buffers_to_ignore=(),
    broadcast_buffers=True,
):
    """Give every process the parameters, and buffers, of rank `src`'s module."""
    ignored = set(params_and_buffers_to_ignore)
    states = [p for name, p in module.named_parameters() if name not in ignored]
    if broadcast_buffers:
        states += [b for name, b in module.named_buffers() if name not in ignored]
    _sync_params_and_buffers(process_group, states, broadcast_bucket_size, src)


def _verify_param_shape_across_processes(process_group, tensors, logger=None):
    """RuntimeError if the processes' parameters differ in number or shape."""
    like = {"dtype": rushlight.int64, "device": process_group._note_device}
    own = rushlight.tensor([len(tensors)], **like)
    counts = rushlight.zeros(process_group.size(), **like)
    process_group._allgather_base(counts, own).wait()
    for rank, count in enumerate(counts.tolist()):
        if count != len(tensors):
            raise RuntimeError(
                "DDP expects same model across all ranks, but Rank "
                f"{process_group.rank()} has {len(tensors)} params, while rank {rank} has "
                f"inconsistent {count} params."
            )
    if not tensors:
        return
    # Rank 0's shapes: dimensions and sizes of one after the other, as many as this process has.
    shapes = [n for t in tensors for n in (t.dim(), *t.shape)]
    lengths = rushlight.zeros(process_group.size(), **like)
    process_group._allgather_base(lengths, rushlight.tensor([len(shapes)], **like)).wait()
    most = int(lengths.max())
    mine = rushlight.tensor(shapes + [-1] * (most - len(shapes)), **like)
    every = rushlight.empty(process_group.size() * most, **like)
    process_group._allgather_base(every, mine).wait()
    for rank, other in enumerate(every.reshape(-1, most).tolist()):
        at = 0
        for i, t in enumerate(tensors):
            shape = other[at + 1 : at + 1 + other[at]]
            at += 1 + other[at]
            if shape != list(t.shape):
                raise RuntimeError(
                    f"[{process_group.rank()}]: params[{i}] in this process with sizes "
                    f"{list(t.shape)} appears not to match sizes of the same param in process "
                    f"{rank}."
                )
