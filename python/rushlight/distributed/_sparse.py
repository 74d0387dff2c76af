"""Sums of sparse tensors over processes."""

from __future__ import annotations

from datetime import timedelta

import rushlight

__all__ = ["all_reduce"]


def all_reduce(pg, tensors, op, timeout: timedelta):
    """The sums, in the same order of ranks everywhere; the first tensor becomes the sum, too."""
    if op.name != "SUM":
        raise ValueError(f"unsupported reduction operation {op.name} of sparse tensors")
    own = tensors[0].detach()
    for t in tensors[1:]:
        own = own + t.detach()
    own = own.coalesce()
    if own.dense_dim() + own.sparse_dim() != own.dim():
        raise ValueError("a sparse tensor with dimensions left over")
    indices, values = own.indices(), own.values()
    size = pg.size()
    counts = rushlight.zeros(size, dtype=rushlight.int64, device=own.device)
    count = rushlight.tensor([indices.shape[1]], device=own.device)
    pg._engine.all_gather(list(counts.chunk(size)), count, timeout, True).wait()
    most = int(counts.max())

    def everybody(t, dim):
        shape = list(t.shape)
        shape[dim] = most
        padded = t.new_zeros(shape)
        padded.narrow(dim, 0, t.shape[dim]).copy_(t)
        parts = [rushlight.empty_like(padded) for _ in range(size)]
        pg._engine.all_gather(parts, padded, timeout, True).wait()
        return [p.narrow(dim, 0, n) for p, n in zip(parts, counts.tolist(), strict=True)]

    total = rushlight.sparse_coo_tensor(
        rushlight.cat(everybody(indices, 1), 1), rushlight.cat(everybody(values, 0)), own.shape
    ).coalesce()
    with rushlight.no_grad():  # what is detached has indices of its own
        for t in tensors:
            t.copy_(total)
    return list(tensors)
