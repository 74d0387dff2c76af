"""From one placement to another: which collectives carry a tensor there, and their gradients."""

from __future__ import annotations

import rushlight
from rushlight.autograd import Function
from rushlight.distributed import _collectives
from rushlight.distributed._kinds import ReduceOp
from rushlight.distributed.tensor._spec import (
    DTensorSpec,
    cut_order,
    local_shape_and_offset,
    partial_free,
)
from rushlight.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
    _NormPartial,
)

__all__ = ["Redistribute", "cost", "redistribute", "redistribute_local_tensor", "shard_local"]

# What a collective is said to have done: `debug.CommDebugMode` counts.
LISTENERS: list = []
_R = Replicate()


def _notify(name):
    for listener in LISTENERS:
        listener(name)


def _pad(piece, dim, width):
    """A piece with as many rows as the first one has."""
    if piece.shape[dim] == width:
        return piece.contiguous()
    shape = list(piece.shape)
    shape[dim] = width
    whole = piece.new_zeros(shape)
    whole.narrow(dim, 0, piece.shape[dim]).copy_(piece)
    return whole


def shard_local(whole, dim, count, index):
    """The piece `index` of `count` of a tensor that this process has, in memory of its own."""
    size, begin = Shard.local_shard_size_and_offset(whole.shape[dim], count, index)
    return whole.narrow(dim, begin, size).contiguous()


def _gather(local, dim, size, mesh, i):
    """The whole of pieces along a dimension that has `size` rows."""
    count = mesh.size(i)
    if count == 1:
        return local
    _notify("all_gather_into_tensor")
    width = -(-size // count)
    own = _pad(local, dim, width)
    parts = [rushlight.empty_like(own) for _ in range(count)]
    _collectives.all_gather(parts, own, mesh.get_group(i))
    return rushlight.cat(parts, dim).narrow(dim, 0, size).contiguous()


def _reduce(local, placement, mesh, i):
    """The whole of what processes have parts of."""
    count = mesh.size(i)
    if isinstance(placement, _NormPartial):
        p = placement.norm_type
        if p in (float("inf"), float("-inf")):
            op = "max" if p > 0 else "min"
            return _reduce(local, Partial(op), mesh, i)
        powers = local.ne(0).to(local.dtype) if p == 0 else local.abs().pow(p)
        total = _reduce(powers, Partial("sum"), mesh, i)
        return total if p == 0 else total.pow(1 / p)
    if count == 1:
        return local
    _notify("all_reduce")
    out = local.clone(memory_format=rushlight.contiguous_format)
    _collectives.all_reduce(
        out, ReduceOp.__members__[placement.reduce_op.upper()], mesh.get_group(i)
    )
    return out


def _reduce_scatter(local, placement, dim, mesh, i):
    """This process's piece of the whole of what processes have parts of."""
    count, index = mesh.size(i), mesh.get_coordinate()[i]
    if isinstance(placement, _NormPartial) or count == 1:
        return shard_local(_reduce(local, placement, mesh, i), dim, count, index)
    _notify("reduce_scatter_tensor")
    size = local.shape[dim]
    width = -(-size // count)
    parts = [_pad(shard_local(local, dim, count, k), dim, width) for k in range(count)]
    out = rushlight.empty_like(parts[0])
    op = ReduceOp.__members__[placement.reduce_op.upper()]
    _collectives.reduce_scatter(out, parts, op, mesh.get_group(i))
    return out.narrow(dim, 0, Shard.local_shard_size_and_offset(size, count, index)[0]).contiguous()


def _exchange(local, old, new, size, mesh, i):
    """Pieces along another dimension; the old one has `size` rows in all."""
    count, index = mesh.size(i), mesh.get_coordinate()[i]
    if count == 1:
        return local
    _notify("all_to_all_single")
    sends = [shard_local(local, new, count, k) for k in range(count)]
    rows = sends[index].shape[new]
    shape = list(local.shape)
    shape[new] = rows
    takes = []
    for k in range(count):
        shape[old] = Shard.local_shard_size_and_offset(size, count, k)[0]
        takes.append(local.new_empty(shape))
    _collectives.all_to_all(takes, sends, mesh.get_group(i))
    return rushlight.cat(takes, old)


def _part_of(whole, placement, count, index):
    """A process's part of a value whose reduction is `whole`."""
    if placement.reduce_op == "sum":
        return whole / count
    if placement.reduce_op == "product" and index > 0:
        return rushlight.ones_like(whole)
    if placement.reduce_op in ("avg", "min", "max", "product"):
        return whole.clone()
    if isinstance(placement, _NormPartial) and placement.norm_type != 0 and (whole >= 0).all():
        only = index == 0 or abs(placement.norm_type) == float("inf")
        return whole.clone() if only else rushlight.zeros_like(whole)
    raise NotImplementedError(f"from Replicate to {placement} there is no way")


def _dims_to_change(source, target):
    """The mesh dimensions whose placement changes, with those that cut what they cut."""
    changed = {i for i, (a, b) in enumerate(zip(source, target, strict=True)) if a != b}
    found = -1
    while found != len(changed):
        found = len(changed)
        for placements in (source, target):
            cut = set()
            for i in cut_order(placements):
                if isinstance(placements[i], Shard):
                    if i not in changed and placements[i].dim in cut:
                        changed.add(i)
                    if i in changed:
                        cut.add(placements[i].dim)
    return changed


def redistribute_local_tensor(local, spec: DTensorSpec, target: tuple[Placement, ...]):
    """This process's piece under other placements.

    Values that are yet to be reduced are reduced, pieces gathered from the mesh dimension that cut
    last to the one that cut first, then cut again. Where a single dimension of the mesh
    changes, sums are reduced and cut at once, and pieces are exchanged.
    """
    mesh, source = spec.mesh, spec.placements
    coordinate = mesh.get_coordinate()
    if source == target or coordinate is None:
        return local
    changed = _dims_to_change(source, target)
    alone = len(changed) == 1
    placements = list(source)
    order = cut_order(source)
    for place, i in reversed([*enumerate(order)]):
        if i not in changed:
            continue
        a, b = source[i], target[i]
        if isinstance(a, Partial) and isinstance(b, Shard) and alone:
            return _reduce_scatter(local, a, b.dim, mesh, i)
        if isinstance(a, Shard):
            earlier = [p if k in order[:place] else _R for k, p in enumerate(placements)]
            before = local_shape_and_offset(spec.shape, mesh, earlier)[0]
            if isinstance(b, Shard) and alone and local.shape[b.dim] == before[b.dim]:
                return _exchange(local, a.dim, b.dim, before[a.dim], mesh, i)
            local = _gather(local, a.dim, before[a.dim], mesh, i)
        elif isinstance(a, Partial) and a != b:
            local = _reduce(local, a, mesh, i)
        placements[i] = a if a == b and isinstance(a, Partial) else Replicate()
    for i in cut_order(target):
        b = target[i]
        if i not in changed:
            continue
        if isinstance(b, Shard):
            local = shard_local(local, b.dim, mesh.size(i), coordinate[i])
        elif isinstance(b, Partial) and placements[i] != b:
            local = _part_of(local, b, mesh.size(i), coordinate[i])
        placements[i] = b
    return local


def redistribute(t, target):
    """A tensor's piece here under other placements."""
    return redistribute_local_tensor(t._local_tensor, t._spec, target)


def cost(old: Placement, new: Placement, elements: int, count: int) -> float:
    """About how many elements a process sends to get there; infinite where nobody goes.

    What is whole is not cut, and what is reduced not at once, unless another argument is cut so.
    """
    if old == new:
        return 0.0
    if isinstance(old, Replicate):
        return 0.5 if isinstance(new, Shard) else float(elements)
    if isinstance(old, Shard):
        if isinstance(new, Partial):
            return float("inf")
        share = elements / count if isinstance(new, Shard) else float(elements)
        return 1.0 + share
    if isinstance(new, Partial):
        return float("inf")
    return 1.0 + 2.0 * elements + (0.5 if isinstance(new, Shard) else 0.0)


class Redistribute(Function):
    """The distributed tensor under other placements; gradients go the way back."""

    @staticmethod
    def forward(ctx, tensor, target, async_op):
        ctx.spec = tensor._spec
        local = redistribute_local_tensor(tensor._local_tensor, tensor._spec, target)
        ctx.async_op = async_op
        if local is tensor._local_tensor:
            local = local.view_as(local)
        return tensor._with_local(local, target)

    @staticmethod
    def backward(ctx, grad):
        # A part has the gradient of the whole.
        target = list(partial_free(ctx.spec.placements))
        for i, (back, now) in enumerate(zip(target, grad._spec.placements, strict=True)):
            if back.is_replicate() and now.is_partial() and ctx.spec.placements[i].is_replicate():
                target[i] = Replicate()
        local = redistribute_local_tensor(grad._local_tensor, grad._spec, tuple(target))
        return grad._with_local(local, tuple(target)), None, None
