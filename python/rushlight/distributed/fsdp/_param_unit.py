"""The parameters that `fully_shard` spreads: each one is cut, all of a unit travel together."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import rushlight
from rushlight import nn
from rushlight.distributed._kinds import ReduceOp
from rushlight.distributed._traffic import gathered, scattered, summed
from rushlight.distributed.fsdp._unit import Unit
from rushlight.distributed.tensor import DTensor, Shard
from rushlight.distributed.tensor._redistribute import shard_local
from rushlight.distributed.tensor._spec import DTensorSpec, TensorMeta, contiguous_strides
from rushlight.distributed.tensor.placement_types import Replicate, _StridedShard

__all__ = ["ParamUnit", "Settings", "cut"]


@dataclasses.dataclass
class Settings:
    """How the units of one call of `fully_shard` work; the methods of `FSDPModule` change it."""

    mesh: Any  # of one dimension, or of replicas and shards
    policy: Any
    syncs: bool = True
    all_reduces: bool = True
    keeps_after_backward: bool = False
    all_grads: bool = False  # zeros where a parameter was not used
    divisor: float | None = None
    sums: bool = False
    all_reduce_hook: Any = None
    all_gather: Any = None
    reduce_scatter: Any = None
    reduce_group: Any = None  # of gradients alone
    reductions_at_once: int = 1
    gathers_for_backward: bool = True
    forward_next: list | None = None  # states that are gathered while this one computes
    backward_next: list | None = None

    @property
    def group(self):
        """Those who share the parts."""
        return self.mesh.get_group(self.mesh.ndim - 1)

    @property
    def replicas(self):
        """Those who have the same part, or None."""
        return self.mesh.get_group(0) if self.mesh.ndim == 2 else None


@dataclasses.dataclass
class _Part:
    """One parameter: where modules have it, and how it is cut."""

    places: list[tuple[nn.Module, str]]
    fqn: str
    shape: Any  # of the whole that modules compute with, in this process
    dim: int
    spec: DTensorSpec
    inner: DTensorSpec | None  # of the whole, where that is a distributed tensor itself
    begin: int = 0  # where it begins in a process's share of what travels
    start: int = 0  # where the whole begins in all wholes

    def rows(self, world: int) -> int:
        """How many rows of the cut dimension travel for each process."""
        return -(-self.shape[self.dim] // world)

    def transposed_shape(self) -> list[int]:
        """The shape with the cut dimension first."""
        rest = list(self.shape)
        return [rest.pop(self.dim), *rest]


def cut(param, name, settings: Settings, dim: int, places) -> tuple[_Part, nn.Parameter]:
    """How a parameter is cut, and this process's piece of it."""
    mesh = settings.mesh
    whole, inner = param.detach(), None
    placements: list[Any] = [Replicate()] * (mesh.ndim - 1) + [Shard(dim)]
    if isinstance(param, DTensor):
        inner = param._spec
        whole = param._local_tensor.detach()
        others = inner.mesh
        root = mesh._get_root_mesh()
        names = mesh.mesh_dim_names, others.mesh_dim_names
        if root != others._get_root_mesh() or None in names:
            raise AssertionError(
                "FSDP requires the DP and model parallel TP/EP mesh to have the same parent mesh "
                f"but got: \nDP's mesh: {mesh}\nTP/EP's mesh: {others}"
            )
        pieces = math.prod(
            others.size(i) for i, p in enumerate(inner.placements) if p.is_shard(dim)
        )
        if pieces > 1:
            placements[-1] = _StridedShard(dim, split_factor=pieces)
        mesh = root[names[0] + names[1]]
        placements += inner.placements
        meta = inner.tensor_meta
    else:
        meta = TensorMeta(whole.shape, contiguous_strides(whole.shape), whole.dtype)
    if not whole.is_contiguous():
        raise NotImplementedError(
            f"FSDP does not support non-contiguous parameters yet: {name} has shape "
            f"{tuple(whole.shape)} and strides {whole.stride()}"
        )
    group = settings.group
    local = shard_local(whole, dim, group.size(), group.rank())
    if local.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr():
        local = local.clone()
    spec = DTensorSpec(mesh, tuple(placements), meta)
    leaf = nn.Parameter(DTensor(local, spec), requires_grad=param.requires_grad)
    return _Part(places, name, whole.shape, dim, spec, inner), leaf


def _units(states, expected):
    """The units of the states that a program named, or those that are expected."""
    return expected if states is None else [unit for state in states for unit in state.units]


class ParamUnit(Unit):
    """Parameters of one dtype that are gathered in one call, each cut along a dimension of its own.

    Modules show the parts, distributed tensors, and in forward the wholes. Programs may put other
    parts into the modules (`to`, loading with `assign=True`): whatever is there counts.
    """

    def __init__(self, settings: Settings, parts: list[_Part], leaves: list[Any]):
        super().__init__()
        self.settings, self.parts, self.leaves = settings, parts, leaves
        self.fqns = [part.fqn for part in parts]
        self.keep = False
        self.world = settings.group.size()
        self.shown = True  # whether modules show the parts
        self.held: list | None = None  # gradients of wholes that wait
        self.waiting: Any = None  # reduced ones that replicas have not seen
        self.part_size = self.whole_size = 0
        for part in parts:
            part.begin, part.start = self.part_size, self.whole_size
            self.part_size += part.rows(self.world) * math.prod(part.transposed_shape()[1:])
            self.whole_size += math.prod(part.shape)
        self._put(leaves)

    # ---- what modules show ----

    def use_parts(self):
        """Let the modules show the parts."""
        if not self.shown:
            self.shown = True
            self._put(self.leaves)

    def use(self, views):
        """Let the modules compute with these tensors."""
        self._take_parts()
        self.shown = False
        self._put([self._around(p, view) for p, view in zip(self.parts, views, strict=True)])

    def show_whole(self):
        """Let the modules show whole parameters until `use_parts`."""
        self.unshard()
        self._take_parts()
        self.shown = False
        with rushlight.no_grad():
            views = zip(self.parts, self.leaves, self.views(), strict=True)
            wholes = [(self._around(part, view), leaf) for part, leaf, view in views]
        self._put([nn.Parameter(whole, leaf.requires_grad) for whole, leaf in wholes])

    def _put(self, tensors):
        for part, tensor in zip(self.parts, tensors, strict=True):
            for module, name in part.places:
                module._parameters[name] = tensor

    def _around(self, part, view):
        if part.inner is None:
            return view
        spec = part.inner
        return DTensor.from_local(
            view, spec.mesh, spec.placements, shape=spec.shape, stride=spec.tensor_meta.stride
        )

    def _take_parts(self):
        """The parts are what modules show, as long as they do."""
        if not self.shown:
            return
        for i, part in enumerate(self.parts):
            module, name = part.places[0]
            leaf = module._parameters[name]
            if not isinstance(leaf, DTensor):
                raise RuntimeError(
                    f"FSDP expects the parameter {part.fqn} to be a DTensor, as fully_shard made "
                    f"it, but it is a {type(leaf).__name__}"
                )
            if leaf is not self.leaves[i]:
                self.leaves[i] = leaf
                for module, name in part.places:
                    module._parameters[name] = leaf
        for_real = [p.fqn for p, leaf in zip(self.parts, self.leaves, strict=True) if leaf.is_meta]
        if for_real:
            raise RuntimeError(
                "parameters on the meta device have no numbers to train: "
                f"{for_real}\nmodule.to_empty(device=...) gives them memory, and "
                "reset_parameters() of each module values"
            )

    def wants_grad(self):
        """For each parameter whether it wants a gradient."""
        return [leaf.requires_grad for leaf in self.leaves]

    def version(self):
        """A number that grows when a part is written."""
        return sum(leaf._local_tensor._version for leaf in self.leaves)

    # ---- gathering ----

    @property
    def _compute_dtype(self):
        dtype = self.leaves[0].dtype
        asked = self.settings.policy.param_dtype
        return asked if asked is not None and dtype.is_floating_point else dtype

    def begin(self, traffic):
        """A forward of the outermost module begins."""
        self._take_parts()
        super().begin(traffic)

    def prefetch(self):
        """Start to gather the whole."""
        self._take_parts()
        super().prefetch()

    def unshard(self):
        """Have the whole, of the parts as they are now."""
        self._take_parts()
        super().unshard()

    def next_forward(self, expected):
        """Who is gathered while this unit's forward computes."""
        return _units(self.settings.forward_next, super().next_forward(expected))

    def next_backward(self, expected):
        """Who is gathered while this unit's backward computes."""
        return _units(self.settings.backward_next, super().next_backward(expected))

    @property
    def gathers_for_backward(self):
        """Whether backward gathers the whole before it is asked for."""
        return self.settings.gathers_for_backward

    @property
    def reductions_at_once(self):
        """How many units' whole gradients may travel."""
        return self.settings.reductions_at_once

    def gather_whole(self):
        """The whole parameters one after the other, in the dtype that modules compute in."""
        settings, dtype = self.settings, self._compute_dtype
        first = self.leaves[0]._local_tensor
        own = first.new_zeros(self.part_size, dtype=dtype)
        for part, leaf in zip(self.parts, self.leaves, strict=True):
            local = leaf._local_tensor.detach()
            turned = local.movedim(part.dim, 0)
            own[part.begin : part.begin + local.numel()].view(turned.shape).copy_(turned)
        if settings.all_gather is not None:
            size = (self.part_size * self.world,)
            everyone = settings.all_gather.allocate(size, dtype=dtype, device=first.device)
            work = settings.all_gather(
                output_tensor=everyone, input_tensor=own, group=settings.group, async_op=False
            )
            if work is not None:
                yield work
        elif self.world == 1:
            everyone = own
        else:
            everyone = yield from gathered(settings.group, own)
        return self._put_together(everyone.view(self.world, self.part_size))

    def _put_together(self, shares):
        full = shares.new_empty(self.whole_size)
        for part, view in zip(self.parts, self._split(full), strict=True):
            rows, shape = part.rows(self.world), part.transposed_shape()
            rest = shape[1:]
            pieces = shares[:, part.begin : part.begin + rows * math.prod(rest)]
            if shape[0] == rows * self.world:
                view.movedim(part.dim, 0).unflatten(0, (self.world, rows)).copy_(
                    pieces.unflatten(1, (rows, *rest))
                )
            else:
                whole = pieces.reshape(self.world * rows, *rest)[: shape[0]]
                view.copy_(whole.movedim(0, part.dim))
        return full

    def _split(self, full):
        return [
            full[part.start : part.start + math.prod(part.shape)].view(part.shape)
            for part in self.parts
        ]

    def views(self):
        """The parameters in the whole."""
        with rushlight.no_grad():
            return self._split(self.full)

    def after_backward(self):
        """Nobody needs the whole any more, unless it is to stay."""
        self.use_parts()
        if not self.settings.keeps_after_backward:
            self.release()

    # ---- gradients ----

    def waits(self):
        """Whether gradients of earlier passes are to be reduced by this one."""
        settings = self.settings
        kept = self.held is not None or (self.waiting is not None and settings.all_reduces)
        return settings.syncs and kept

    def reduce(self, grads):
        """The gradients of the parts: the mean over processes, this process's piece."""
        if self.held is not None:
            both = zip(self.held, grads, strict=True)
            grads = [g if h is None else h if g is None else h + g for h, g in both]
            self.held = None
        dtype = self.settings.policy.reduce_dtype or self._compute_dtype
        if not self.settings.syncs:
            self.held = [None if g is None else g.to(dtype) for g in grads]
            return [None] * len(self.leaves)
        flat = self._flatten_gradients(grads, dtype)
        del grads
        return self._parts_of((yield from self._reduce(flat)))

    def _flatten_gradients(self, grads, dtype):
        """Each process's share of the gradients, and behind it a number for each parameter: above
        zero where this process used it."""
        flat = self.leaves[0]._local_tensor.new_zeros(
            (self.world, self.part_size + len(self.parts)), dtype=dtype
        )
        for part, grad in zip(self.parts, grads, strict=True):
            if grad is not None:
                self._spread(part, grad.movedim(part.dim, 0), flat)
        used = [float(self.settings.all_grads or grad is not None) for grad in grads]
        flat[:, self.part_size :] = rushlight.tensor(used, dtype=dtype, device=flat.device)
        return flat

    def _reduce(self, flat):
        """This process's share of the mean."""
        settings = self.settings
        sums = settings.sums or settings.divisor is not None
        op = ReduceOp.SUM if sums else ReduceOp.AVG
        share = yield from self._reduce_scatter(flat, op)
        if self.waiting is not None:
            share, self.waiting = share.add_(self.waiting), None
        replicas = settings.replicas
        if replicas is not None and replicas.size() > 1:
            if not settings.all_reduces:
                self.waiting = share
                return None
            yield from summed(replicas, share, op)
        if sums:
            copies = 1 if replicas is None else replicas.size()
            share.div_(settings.divisor or self.world * copies)
        if settings.all_reduce_hook is not None:
            settings.all_reduce_hook(share[: self.part_size])
        return share

    def _spread(self, part, turned, flat):
        """Each process's rows of a gradient into its share."""
        rows, rest = part.rows(self.world), part.transposed_shape()[1:]
        width = rows * math.prod(rest)
        target = flat[:, part.begin : part.begin + width].unflatten(1, (rows, *rest))
        if turned.shape[0] == rows * self.world:
            target.copy_(turned.reshape(self.world, rows, *rest))
            return
        for r in range(self.world):
            count, begin = Shard.local_shard_size_and_offset(turned.shape[0], self.world, r)
            target[r, :count].copy_(turned[begin : begin + count])

    def _reduce_scatter(self, flat, op):
        settings = self.settings
        custom, group = settings.reduce_scatter, settings.reduce_group or settings.group
        if custom is None and self.world == 1:
            return flat[0]
        if custom is not None:
            share = custom.allocate((flat.shape[1],), dtype=flat.dtype, device=flat.device)
            work = custom(
                output_tensor=share, input_tensor=flat.view(-1), group=group, op=op, async_op=False
            )
            if work is not None:
                yield work
            return share
        return (yield from scattered(group, flat.view(-1), op))

    def _parts_of(self, share):
        """The gradients of the leaves in this process's share."""
        if share is None:
            return [None] * len(self.leaves)
        used = (share[self.part_size :] != 0).tolist()
        grads: list[Any] = []
        for part, leaf, wanted in zip(self.parts, self.leaves, used, strict=True):
            if not wanted or not leaf.requires_grad:
                grads.append(None)
                continue
            shape = list(leaf._local_tensor.shape)
            turned = [shape.pop(part.dim), *shape]
            piece = share[part.begin : part.begin + math.prod(turned)].view(turned)
            piece = piece.movedim(0, part.dim).contiguous().to(leaf.dtype)
            grads.append(DTensor(piece, leaf._spec))
        return grads
