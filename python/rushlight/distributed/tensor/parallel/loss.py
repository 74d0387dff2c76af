"""Cross entropy of logits that are sharded by classes, without gathering them."""

from __future__ import annotations

import contextlib

import rushlight
from rushlight.distributed.tensor._dispatch import implicit_replication
from rushlight.distributed.tensor._dtensor import DTensor
from rushlight.distributed.tensor._redistribute import redistribute_local_tensor
from rushlight.distributed.tensor._rules import rule
from rushlight.distributed.tensor._spec import (
    DTensorSpec,
    TensorMeta,
    all_replicate,
    local_shape_and_offset,
)
from rushlight.distributed.tensor.placement_types import Partial, Shard

__all__ = ["loss_parallel"]

_entered = 0


@contextlib.contextmanager
def loss_parallel():
    """A context manager in which `cross_entropy` computes on logits that are sharded by classes.

    Backward has to be called within it, too. The mesh has one dimension, the target is whole on
    every process (a plain tensor may be), and labels are not smoothed.

    For an example see `distributed.tensor.parallel.parallelize_module`.
    """
    global _entered
    _entered += 1
    try:
        with implicit_replication():
            yield
    finally:
        _entered -= 1


def _reduce(values, op, mesh):
    """A plain tensor reduced over the mesh."""
    meta = TensorMeta(values.shape, values.stride(), values.dtype)
    spec = DTensorSpec(mesh, (Partial(op),), meta)
    return redistribute_local_tensor(values, spec, all_replicate(mesh))


def _replicate(values, mesh):
    meta = TensorMeta(values.shape, values.stride(), values.dtype)
    return DTensor(values, DTensorSpec(mesh, all_replicate(mesh), meta))


class _Samples:
    """The samples of a call: which class of each lies here, and what it weighs."""

    def __init__(self, call, logits):
        self.mesh = logits.device_mesh
        self.dim = 1 if logits.ndim > 1 else 0
        self.local = logits._local_tensor
        target = call.tensors[call.index("target")]
        self.target = redistribute_local_tensor(
            target._local_tensor, target._spec, all_replicate(self.mesh)
        )
        _, begin = local_shape_and_offset(logits.shape, self.mesh, logits.placements)
        self.ignored = self.target == call.value("ignore_index")
        safe = self.target.masked_fill(self.ignored, 0)
        places = (safe - begin[self.dim]).unsqueeze(self.dim)
        self.absent = (places < 0) | (places >= self.local.shape[self.dim])
        self.places = places.masked_fill(self.absent, 0)
        weights = call.index("weight")
        if weights is None:
            self.weight = self.ignored.logical_not().to(self.local.dtype)
        else:
            w = call.tensors[weights]
            table = redistribute_local_tensor(w._local_tensor, w._spec, all_replicate(self.mesh))
            self.weight = table[safe].masked_fill(self.ignored, 0)


def _parallel(call):
    """Whether a call is for logits that are cut by classes within `loss_parallel`."""
    logits = call.tensors[call.index("self")]
    dim = 1 if logits.ndim > 1 else 0
    if not _entered or logits.device_mesh.ndim != 1 or logits.placements != (Shard(dim),):
        return False
    if call.value("label_smoothing", 0.0) != 0:
        raise RuntimeError("loss_parallel: labels cannot be smoothed")
    return call.tensors[call.index("target")].dtype == rushlight.int64


@rule("_cross_entropy")
def _forward(call):
    if not _parallel(call):
        return None

    def run():
        logits = call.tensors[call.index("self")]
        s = _Samples(call, logits)
        if s.local.shape[s.dim] == 0:
            shape = list(s.local.shape)
            shape[s.dim] = 1
            s.local = s.local.new_full(shape, -rushlight.inf)
        top = _reduce(s.local.amax(s.dim, keepdim=True), "max", s.mesh)
        total = _reduce((s.local - top).exp().sum(s.dim, keepdim=True), "sum", s.mesh)
        log_sum = total.log().squeeze(s.dim)
        own = (s.local - top).gather(s.dim, s.places).masked_fill(s.absent, 0).squeeze(s.dim)
        losses = (log_sum - _reduce(own, "sum", s.mesh)).masked_fill(s.ignored, 0) * s.weight
        pairs = rushlight.stack((top.squeeze(s.dim), log_sum))
        reduction = call.value("reduction")
        weight = s.weight.sum()
        loss = losses if reduction == 0 else losses.sum()
        loss = loss / weight if reduction == 1 else loss
        metas = call.metas()
        return tuple(
            _replicate(r.reshape(meta.shape).to(meta.dtype), s.mesh)
            for r, meta in zip((loss, pairs, weight), metas, strict=True)
        )

    return run


@rule("_cross_entropy_backward")
def _backward(call):
    if not _parallel(call):
        return None

    def run():
        logits = call.tensors[call.index("self")]
        s = _Samples(call, logits)

        def full_local(name):
            t = call.tensors[call.index(name)]
            return redistribute_local_tensor(t._local_tensor, t._spec, all_replicate(s.mesh))

        grad = full_local("grad_output")
        if call.value("reduction") == 1:
            grad = grad / s.weight.sum()
        top, log_sum = full_local("log_sum").reshape(2, *s.target.shape).unsqueeze(s.dim + 1)
        slope = (s.local - top - log_sum).exp()
        hit = s.absent.logical_not().to(slope.dtype)
        if slope.shape[s.dim] > 0:
            slope = slope.scatter_add(s.dim, s.places, -hit)
        made = slope * (grad * s.weight).unsqueeze(s.dim)
        return logits._with_local(made.to(s.local.dtype), logits.placements)

    return run
