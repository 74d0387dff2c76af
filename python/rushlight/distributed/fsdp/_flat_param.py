"""The parameters of one wrapped module as one flat tensor, of which each process keeps a part.

Before a forward the parts are gathered; the module then computes with views of the whole
(`_unit.py`).
"""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import rushlight
from rushlight import nn
from rushlight.distributed._kinds import ReduceOp
from rushlight.distributed._traffic import Travelling, gathered, scattered, summed
from rushlight.distributed.fsdp._unit import Unit
from rushlight.distributed.fsdp.api import BackwardPrefetch

__all__ = ["FlatParamHandle", "FlatParameter"]

FLAT_PARAM = "_flat_param"


class FlatParameter(nn.Parameter):
    """A process's part of the parameters of a module, flat.

    Args:
        data: the numbers.
        requires_grad: whether gradients are computed.

    For an example see `distributed.fsdp.FullyShardedDataParallel`.
    """

    _mark_name = "_is_flat_param"

    def __new__(cls, data=None, requires_grad=True):
        flat = super().__new__(cls, data, requires_grad)
        flat._is_flat_param = True
        return flat


class _Slot(NamedTuple):
    """Where a module has a parameter, and its number among the unit's."""

    module: nn.Module
    name: str
    index: int


class FlatParamHandle(Unit):
    """The flat tensor of some parameters of a module, and this process's part of it.

    Args:
        module: the module that is wrapped.
        places: where each parameter is (`Place`); those that are shared have several places.
        group: the processes that share the parts.
        replicas: the processes that have the same part, or None.
        sharded: whether a process keeps a part alone.
        keep: whether the whole stays from forward to backward.
        use_orig_params: whether modules show each parameter's part instead of one flat parameter.
        mixed: the dtypes (`MixedPrecision`), or None.
        backward_prefetch: when backward gathers for the next unit (`BackwardPrefetch`), or None.
        forward_prefetch: whether forward gathers for the unit that came next last time.
    """

    def __init__(
        self,
        module,
        places,
        group,
        replicas,
        sharded,
        keep,
        use_orig_params,
        mixed,
        backward_prefetch,
        forward_prefetch,
    ):
        super().__init__()
        index: dict[int, int] = {}
        params, self.fqns = [], []
        for place in places:
            if index.setdefault(id(place.parameter), len(params)) == len(params):
                params.append(place.parameter)
                self.fqns.append(place.fqn)
        dtypes = {p.dtype for p in params}
        if len(dtypes) > 1:
            raise ValueError(f"Must flatten tensors with uniform dtype but got {dtypes}")
        if not dtypes.pop().is_floating_point:
            raise ValueError("Cannot flatten integer dtype tensors")
        if not use_orig_params and len({p.requires_grad for p in params}) > 1:
            raise ValueError(
                "Must flatten tensors with uniform `requires_grad` when `use_orig_params=False`"
            )
        self.module = module
        self.places = [_Slot(p.module, p.name, index[id(p.parameter)]) for p in places]
        self.group, self.replicas = group, replicas
        self.parts_of = group.size() if sharded else 1
        self.rank = group.rank() if sharded else 0
        self.sharded = self.travels = sharded
        self.keep = keep
        self.use_orig_params = use_orig_params
        self.forward_prefetch = forward_prefetch
        self.backward_prefetch = backward_prefetch
        self.prefetch_late = backward_prefetch is BackwardPrefetch.BACKWARD_POST
        self.compute_dtype = (mixed and mixed.param_dtype) or params[0].dtype
        self.reduce_dtype = (mixed and (mixed.reduce_dtype or mixed.param_dtype)) or params[0].dtype
        self.shapes = [p.shape for p in params]
        self.numels = [p.numel() for p in params]
        self.starts = [sum(self.numels[:i]) for i in range(len(params))]
        total = sum(self.numels)
        self.part_size = -(-total // self.parts_of)
        self.syncs = True
        self.held: Any = None  # gradients that no_sync has kept from being reduced
        self.summoned: Any = None
        self.hook: Any = None
        self.hook_state: Any = None
        with rushlight.no_grad():
            flat = params[0].new_zeros(self.part_size * self.parts_of)
            for p, start in zip(params, self.starts, strict=True):
                flat[start : start + p.numel()].copy_(p.detach().reshape(-1))
            begin = self.rank * self.part_size
            self.part = flat[begin : begin + self.part_size].clone() if sharded else flat
        self.spans = [self._span(i) for i in range(len(params))]
        if use_orig_params:
            self.leaves = list(params)
            self._show_parts()
        else:
            flat_param = FlatParameter(self.part, requires_grad=params[0].requires_grad)
            flat_param._fqns, flat_param._shapes = self.fqns, self.shapes
            self.leaves = [flat_param]
            for place in places:
                del place.module._parameters[place.name]
            self._show_flat()

    def _span(self, index):
        """Of this process's part, what belongs to a parameter."""
        begin = self.rank * self.part_size
        start = self.starts[index]
        first = min(max(start - begin, 0), self.part_size)
        last = min(max(start + self.numels[index] - begin, 0), self.part_size)
        return first, last

    @property
    def flat_param(self):
        """The part as a parameter; with `use_orig_params` a tensor that its parameters share."""
        return self.part if self.use_orig_params else self.leaves[0]

    def wants_grad(self):
        """For each parameter whether it wants a gradient."""
        if self.use_orig_params:
            return [p.requires_grad for p in self.leaves]
        return [self.leaves[0].requires_grad] * len(self.numels)

    # ---- what modules show ----

    def _show_flat(self):
        self.module._parameters[FLAT_PARAM] = self.leaves[0]
        for place in self.places:
            first, last = self.spans[place.index]
            place.module.__dict__[place.name] = self.part[first:last]

    def _show_parts(self):
        for p, (first, last) in zip(self.leaves, self.spans, strict=True):
            p.data = self.part[first:last]

    def use(self, views):
        """Let the modules compute with these tensors."""
        for place in self.places:
            place.module.__dict__[place.name] = views[place.index]

    def use_parts(self):
        """Let the modules show the parts again."""
        if self.summoned is not None:
            return
        for place in self.places:
            if self.use_orig_params:
                place.module.__dict__.pop(place.name, None)
            else:
                first, last = self.spans[place.index]
                place.module.__dict__[place.name] = self.part[first:last]

    # ---- gathering ----

    def _gather(self, part):
        part = part.detach()
        if not self.sharded:
            return part
        return (yield from gathered(self.group, part.contiguous()))

    def gather(self, part):
        """All processes' parts, one after the other."""
        return Travelling(self._gather(part)).arrive()

    def gather_whole(self):
        """All processes' parts, in the dtype that modules compute in."""
        return self._gather(self.part.to(self.compute_dtype))

    def next_forward(self, expected):
        """Who is gathered while this unit's forward computes."""
        return super().next_forward(expected if self.forward_prefetch else None)

    def next_backward(self, expected):
        """Who is gathered while this unit's backward computes."""
        return super().next_backward(expected if self.backward_prefetch else None)

    def views(self):
        """The parameters in the whole."""
        with rushlight.no_grad():
            return self.split(self.full)

    def split(self, flat):
        """The parameters in a flat tensor, in their shapes."""
        return [
            flat[start : start + n].view(shape)
            for start, n, shape in zip(self.starts, self.numels, self.shapes, strict=True)
        ]

    # ---- gradients ----

    def waits(self):
        """Whether gradients of earlier passes are to be reduced by this one."""
        return self.syncs and self.held is not None

    def reduce(self, grads):
        """The gradients of the leaves: the mean over processes, this process's part."""
        flat = self.part.new_zeros(self.part_size * self.parts_of, dtype=self.reduce_dtype)
        for slot, grad in zip(self.split(flat), grads, strict=True):
            if grad is not None:
                slot.copy_(grad)
        del grads
        if not self.syncs:
            self.held = flat if self.held is None else self.held.add_(flat)
            return [None] * len(self.leaves)
        if self.held is not None:
            flat, self.held = flat.add_(self.held), None
        part = (yield from self._reduce(flat)).to(self.part.dtype)
        if not self.use_orig_params:
            return [part]
        return [
            part[first:last] if p.requires_grad else None
            for p, (first, last) in zip(self.leaves, self.spans, strict=True)
        ]

    def _reduce(self, flat):
        if self.hook is not None:
            if self.sharded:
                part = flat.new_empty(self.part_size)
                self.hook(self.hook_state, flat, part)
                return part
            self.hook(self.hook_state, flat)
            return flat
        if self.sharded:
            flat = yield from scattered(self.group, flat, ReduceOp.AVG)
        over = self.replicas if self.sharded else self.group
        if over is not None and over.size() > 1:
            yield from summed(over, flat, ReduceOp.AVG)
        return flat

    # ---- whole parameters, for programs ----

    @contextlib.contextmanager
    def summon(self, writeback=True, here=True, offload_to_cpu=False, with_grads=False):
        """Within it, modules have their whole parameters; `here`: in this process."""
        if self.summoned is not None:
            yield
            return
        with rushlight.no_grad():
            full = self.gather(self.part)
            grad = self._gather_grads() if with_grads else None
            if not self.sharded and not writeback:
                full = full.clone()
            if offload_to_cpu:
                full = full.cpu()
        if not here:
            del full, grad
            yield
            return
        self.summoned = full
        kept = self._enter(full, grad)
        try:
            yield
        finally:
            self.summoned = None
            self._leave(kept, full, grad, writeback)

    def _enter(self, full, grad):
        views = self.split(full)
        if not self.use_orig_params:
            wanted = self.leaves[0].requires_grad
            params = [nn.Parameter(v, requires_grad=wanted) for v in views]
            self.module._parameters.pop(FLAT_PARAM, None)
            for place in self.places:
                place.module.__dict__.pop(place.name, None)
                place.module._parameters[place.name] = params[place.index]
            return None
        grads = self.split(grad) if grad is not None else [None] * len(views)
        kept = [p.grad for p in self.leaves]
        for place in self.places:
            place.module.__dict__.pop(place.name, None)
        for p, v, g in zip(self.leaves, views, grads, strict=True):
            p.grad = None
            p.data = v
            p.grad = g
        return kept

    def _leave(self, kept, full, grad, writeback):
        begin = self.rank * self.part_size
        if writeback:
            with rushlight.no_grad():
                self._write_back(full)
        if not self.use_orig_params:
            for place in self.places:
                place.module._parameters.pop(place.name, None)
            self._show_flat()
            return
        now = [p.grad for p in self.leaves]
        for p in self.leaves:
            p.grad = None
        self._show_parts()
        mine = None
        if grad is not None and writeback:
            flat = grad.new_zeros(self.part_size * self.parts_of)
            for slot, g in zip(self.split(flat), now, strict=True):
                if g is not None:
                    slot.copy_(g)
            mine = flat[begin : begin + self.part_size]
        for i, (p, (first, last)) in enumerate(zip(self.leaves, self.spans, strict=True)):
            p.grad = kept[i] if mine is None or now[i] is None else mine[first:last].clone()

    def _write_back(self, full):
        """Take this process's part of parameters that a program may have written or replaced."""
        whole = full.new_zeros(full.shape) if not self.sharded else full
        if not self.sharded:
            whole.copy_(full)
        seen = set()
        for place in self.places:
            if place.index in seen:
                continue
            seen.add(place.index)
            now = place.module._parameters.get(place.name)
            start, n = self.starts[place.index], self.numels[place.index]
            if now is not None and now.data_ptr() != whole[start : start + n].data_ptr():
                whole[start : start + n].copy_(now.detach().reshape(-1))
        begin = self.rank * self.part_size
        self.part.copy_(whole[begin : begin + self.part_size])

    def _gather_grads(self):
        if all(p.grad is None for p in self.leaves):
            return None
        return self.gather(self.flat_grad())

    def flat_grad(self):
        """This process's part of the gradients, flat."""
        if not self.use_orig_params:
            return self.leaves[0].grad
        return self.join([p.grad for p in self.leaves])

    def join(self, pieces):
        """The part of which each parameter's piece is given."""
        flat = self.part.new_zeros(self.part_size)
        for piece, (first, last) in zip(pieces, self.spans, strict=True):
            if piece is not None and first < last:
                if flat.dtype != piece.dtype:
                    flat = flat.to(piece.dtype)
                flat[first:last].copy_(piece.reshape(-1))
        return flat

    def adopt_leaves(self):
        """Take over what `Module._apply` made of the leaves (another dtype or device)."""
        with rushlight.no_grad():
            if self.use_orig_params:
                fresh = self.leaves[0].detach().new_zeros(self.part_size)
                for p, (first, last) in zip(self.leaves, self.spans, strict=True):
                    fresh[first:last].copy_(p.detach())
                old, self.part = self.part, fresh
                grads = [p.grad for p in self.leaves]
                for p in self.leaves:
                    p.grad = None
                self._show_parts()
                for p, grad in zip(self.leaves, grads, strict=True):
                    p.grad = grad
            else:
                old, self.part = self.part, self.leaves[0].data
                self.use_parts()
        if self.compute_dtype == old.dtype:
            self.compute_dtype = self.part.dtype
        if self.reduce_dtype == old.dtype:
            self.reduce_dtype = self.part.dtype
        self.release()
