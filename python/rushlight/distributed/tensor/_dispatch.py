"""What an op does with distributed tensors: the cheapest placements that a rule allows, then the op
on local pieces; without a rule, on the whole.

A rule (`_rules.py`) says of one dimension of a mesh under which placements of the arguments the op
gives a result of which placement. Of its options that which moves the least is taken, for each
dimension of the mesh by itself. In place the tensor that is written keeps its placements.
"""

from __future__ import annotations

import math
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight.distributed.tensor import (
    _layer_rules,  # noqa: F401  # enters its rules
    _random,
)
from rushlight.distributed.tensor._dtensor import DTensor
from rushlight.distributed.tensor._handlers import HANDLERS
from rushlight.distributed.tensor._redistribute import (
    cost,
    redistribute,
    redistribute_local_tensor,
)
from rushlight.distributed.tensor._rules import Call, by_place, rule_of
from rushlight.distributed.tensor._spec import DTensorSpec, TensorMeta, all_replicate
from rushlight.distributed.tensor.placement_types import Replicate, Shard, _StridedShard

__all__ = ["dispatch", "implicit_replication"]

_replicating = 0  # how many `implicit_replication` are entered


class implicit_replication:
    """Within it plain tensors beside distributed ones count as replicated.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> mesh = torch.distributed.init_device_mesh("cpu", (1,))
        >>> shard = [torch.distributed.tensor.Shard(0)]
        >>> x = torch.distributed.tensor.distribute_tensor(torch.ones(2), mesh, shard)
        >>> with torch.distributed.tensor.experimental.implicit_replication():
        ...     print((x + torch.ones(2)).to_local())
        tensor([2., 2.])
        >>> torch.distributed.destroy_process_group()
    """

    def __enter__(self):
        global _replicating
        _replicating += 1

    def __exit__(self, *_):
        global _replicating
        _replicating -= 1


def _map_tensors(value, change):
    """A value, or a list of them, with its tensors changed."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_map_tensors(v, change) for v in value)
    return value


def _check_mesh(call, mesh):
    for t in call.tensors:
        if t._spec.mesh != mesh:
            raise RuntimeError(
                f"{call.func}: DTensors of different device meshes do not go together: {mesh} and "
                f"{t._spec.mesh}"
            )


def _as_distributed(func, t, mesh, alone):
    """A plain tensor beside distributed ones: a number is the same everywhere."""
    if isinstance(t, DTensor):
        return t
    # Derivatives make tensors of their own, the same everywhere.
    if t.ndim == 0 or alone or _replicating or rushlight._C._backward_run() != 0:
        meta = TensorMeta(t.shape, t.stride(), t.dtype)
        return DTensor(t, DTensorSpec(mesh, all_replicate(mesh), meta))
    raise RuntimeError(
        f"{func}: got mixed torch.Tensor and DTensor: `distribute_tensor` and `DTensor.from_local` "
        "make a DTensor of a plain tensor"
    )


def _draws(func) -> bool:
    names = {a.name for a in func._schema.arguments}
    return "generator" in names or "dropout" in func._opname or "bernoulli" in func._opname


def dispatch(func, args, kwargs):
    """An op below autograd, some of whose arguments are distributed."""
    found: list[Any] = []
    _map_tensors([*args, *kwargs.values()], found.append)
    mesh = next(t for t in found if isinstance(t, DTensor))._spec.mesh
    # Lists that go element by element may have plain tensors among them: those stay by themselves.
    mixed = func._opname.startswith("_foreach_") or func._schema.is_mutable
    listed = [t for a in args if mixed and isinstance(a, (list, tuple)) for t in _tensors(a)]
    alone = set(map(id, listed))
    given = [_as_distributed(func, t, mesh, id(t) in alone) for t in found]
    if mesh.get_coordinate() is None:
        return _absent(func, args, kwargs)
    call = Call(func, args, kwargs, given)
    for k in call.written:
        if getattr(given[k], "_moved", False):
            raise RuntimeError(
                f"{func}: this is a view whose pieces had to be moved, so that what is written "
                "into it would be lost to the tensor that it is a view of; redistribute that "
                "first, or use an op that gives a new tensor"
            )
    rule = rule_of(call)
    if rule is not by_place:
        _check_mesh(call, mesh)
    options = None if rule is None else rule(call)
    if options is None:
        return _on_whole(call, mesh)
    if callable(options):
        return options()
    return _on_pieces(call, mesh, options)


def _mark_moved_views(call, made):
    """Views are marked that do not lie in the memory of what they are views of."""
    if call.func.is_view:
        source = call.tensors[0]._local_tensor.untyped_storage()._cdata
        for t in made if isinstance(made, (list, tuple)) else [made]:
            t._moved = t._local_tensor.untyped_storage()._cdata != source
    return made


# ---- on pieces ----


def _can_place(placement, t, i):
    """Whether a tensor can be cut so, given how earlier mesh dimensions cut it."""
    return not isinstance(placement, Shard) or (
        placement.dim < t.ndim and t.shape[placement.dim] > 0
    )


def _choose(call, mesh, i, options):
    """The option for a mesh dimension that moves the least."""
    count = mesh.size(i)
    best, least = None, math.inf
    options = [*options, *_with_strided_shards(call, i, options)]
    for inputs, outputs in options:
        if not all(map(_can_place, inputs, call.tensors, [i] * len(inputs))):
            continue
        price = 0.0
        for k, (placement, t) in enumerate(zip(inputs, call.tensors, strict=True)):
            now = t._spec.placements[i]
            if k in call.written and now != placement:
                price = math.inf
            price += cost(now, placement, t.numel(), count)
        if price < least:
            best, least = (inputs, outputs), price
    return best


def _with_strided_shards(call, i, options):
    """Options that cut where an argument is cut by a strided cut, by strided cuts."""
    now = {t._spec.placements[i] for t in call.tensors}
    for factor in {p.split_factor for p in now if isinstance(p, _StridedShard)}:

        def as_strided_shards(placements, factor=factor):
            return tuple(
                _StridedShard(p.dim, split_factor=factor) if type(p) is Shard else p
                for p in placements
            )

        for inputs, outputs in options:
            if any(type(p) is Shard for p in inputs):
                yield as_strided_shards(inputs), as_strided_shards(outputs)


def _on_pieces(call, mesh, options):
    found = [_choose(call, mesh, i, options) for i in range(mesh.ndim)]
    chosen = [option for option in found if option is not None]
    if len(chosen) < mesh.ndim:
        return _on_whole(call, mesh)
    targets = [tuple(o[0][k] for o in chosen) for k in range(len(call.tensors))]
    locals_ = list(map(redistribute, call.tensors, targets))
    outputs = [tuple(option[1][k] for option in chosen) for k in range(len(chosen[0][1]))]
    with _random.drawing(mesh, outputs[0]) if _draws(call.func) else _random.nothing():
        results = call.run(locals_, mesh, targets, outputs)
    if call.written:
        return _written_tensors(call, results)
    metas = call.metas()
    single = isinstance(results, Tensor) or not isinstance(results, (list, tuple))
    made = []
    for k, r in enumerate([results] if single else results):
        if not isinstance(r, Tensor):
            made.append(r)
            continue
        placements = outputs[min(k, len(outputs) - 1)]
        made.append(DTensor(r, DTensorSpec(mesh, placements, metas[k])))
    return _mark_moved_views(call, made[0] if single else type(results)(made))


def _written_tensors(call, results):
    """What an op in place gives: the tensors that it wrote."""
    if results is None:
        return None
    given = [call.tensors[k] for k in sorted(call.written)]
    if isinstance(results, (list, tuple)):
        return type(results)(given)
    return given[0]


# ---- on the whole ----


def _on_whole(call, mesh):
    """Every process computes the whole; what is written in place is cut again."""
    _check_mesh(call, mesh)
    whole = all_replicate(mesh)
    locals_ = [
        redistribute_local_tensor(t._local_tensor, t._spec, whole).clone()
        if k in call.written
        else redistribute_local_tensor(t._local_tensor, t._spec, whole)
        for k, t in enumerate(call.tensors)
    ]
    with _random.drawing(mesh, whole) if _draws(call.func) else _random.nothing():
        results = call.run(locals_, mesh, None, None)
    if call.written:
        for k in call.written:
            t = call.tensors[k]
            spec = DTensorSpec(mesh, whole, t._spec.tensor_meta)
            if tuple(locals_[k].shape) != tuple(t.shape):
                raise RuntimeError(f"{call.func}: a distributed tensor cannot be resized in place")
            t._local_tensor.copy_(redistribute_local_tensor(locals_[k], spec, t._spec.placements))
        return _written_tensors(call, results)

    def wrap(r):
        meta = TensorMeta(r.shape, r.stride(), r.dtype)
        return DTensor(r, DTensorSpec(mesh, whole, meta))

    return _mark_moved_views(call, _map_tensors(results, wrap))


def _absent(func, args, kwargs):
    """In a process outside the mesh: pieces without elements of the right shapes of the whole."""
    meta_args = _map_tensors(list(args), _as_meta)
    meta_kwargs = {key: _map_tensors(value, _as_meta) for key, value in kwargs.items()}
    model = next(t for t in _tensors((args, tuple(kwargs.values()))) if isinstance(t, DTensor))
    if func._schema.is_mutable:
        return model
    results = func(*meta_args, **meta_kwargs)

    def wrap(r):
        mesh = model._spec.mesh
        meta = TensorMeta(r.shape, r.stride(), r.dtype)
        local = model._local_tensor.new_empty(0, dtype=r.dtype)
        return DTensor(local, DTensorSpec(mesh, (Replicate(),) * mesh.ndim, meta))

    return _map_tensors(results, wrap)


def _tensors(value):
    found: list[Any] = []
    _map_tensors(value, found.append)
    return found


def _as_meta(t):
    return rushlight.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")


HANDLERS["dispatch"] = dispatch
