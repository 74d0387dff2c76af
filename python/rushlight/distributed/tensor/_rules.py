"""The rules of distributed tensors, by kind of op.

A rule gives options for one dimension of a mesh, each (a placement for each tensor argument, a
placement for each result), or a function that does everything itself, or None: then the op is
computed on the whole. What the table says of an op (whether it acts on elements, whether it is a
view, which dims it reduces) comes from the table; products and layers have theirs in
`_layer_rules.py`.
"""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import Tensor
from rushlight._rules import kinds
from rushlight.distributed.tensor._dtensor import DTensor
from rushlight.distributed.tensor._redistribute import redistribute
from rushlight.distributed.tensor._spec import (
    DTensorSpec,
    TensorMeta,
    contiguous_strides,
    local_shape_and_offset,
    partial_free,
)
from rushlight.distributed.tensor.placement_types import Partial, Replicate, Shard, _NormPartial

__all__ = ["REGISTERED", "RULES", "Call", "by_place", "rule_of"]

_R = Replicate()
RULES: dict[str, Any] = {}
REGISTERED: dict[str, Any] = {}  # by `experimental.register_sharding`: they come first


class Call:
    """An op and its arguments; `tensors` are the distributed ones in order, lists unfolded."""

    def __init__(self, func, args, kwargs, tensors):
        self.func, self.args, self.kwargs, self.tensors = func, args, kwargs, tensors
        self.name = func._opname.removesuffix("_") if func._schema.is_mutable else func._opname
        self.runner: Any = None  # runner(call, args, kwargs, mesh, targets, outputs): on pieces
        self.written: set[int] = set()
        place = 0
        for argument, value in self._arguments():
            count = _count(value)
            if count and argument.alias_info is not None and argument.alias_info.is_write:
                self.written.update(range(place, place + count))
            place += count
        self._metas: list[TensorMeta | None] | None = None

    def _arguments(self):
        schema = self.func._schema.arguments
        named = {a.name: a for a in schema}
        return [
            *zip(schema, self.args, strict=False),
            *((named[key], value) for key, value in self.kwargs.items()),
        ]

    def value(self, name, default=None):
        """The value of an argument."""
        for argument, value in self._arguments():
            if argument.name == name:
                return value
        for argument in self.func._schema.arguments:
            if argument.name == name and argument.has_default_value():
                return argument.default_value
        return default

    def index(self, name):
        """Where among `tensors` an argument that is one tensor stands, or None."""
        place = 0
        for argument, value in self._arguments():
            if argument.name == name:
                return place if isinstance(value, Tensor) else None
            place += _count(value)
        return None

    def with_tensors(self, tensors):
        """The arguments with other tensors."""
        rest = iter(tensors)

        def change(value):
            if isinstance(value, Tensor):
                return next(rest)
            if isinstance(value, (list, tuple)):
                return type(value)(change(v) for v in value)
            return value

        args = tuple(change(a) for a in self.args)
        return args, {key: change(value) for key, value in self.kwargs.items()}

    def run(self, locals_, mesh, targets, outputs):
        """The op on this process's pieces; without `outputs`, on the whole."""
        args, kwargs = self.with_tensors(locals_)
        if outputs is not None and self.runner is not None:
            return self.runner(self, args, kwargs, mesh, targets, outputs)
        return self.func(*args, **kwargs)

    def metas(self):
        """Shapes, strides and dtypes of the whole results; None for what is no tensor."""
        if self._metas is None:
            fakes = [
                rushlight.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")
                for t in self.tensors
            ]
            args, kwargs = self.with_tensors(fakes)
            results = self.func(*args, **kwargs)
            listed = results if isinstance(results, (list, tuple)) else [results]
            self._metas = [
                TensorMeta(r.shape, r.stride(), r.dtype) if isinstance(r, Tensor) else None
                for r in listed
            ]
        return self._metas


def _count(value) -> int:
    """How many tensors a value has."""
    if isinstance(value, Tensor):
        return 1
    return sum(map(_count, value)) if isinstance(value, (list, tuple)) else 0


def rule(names):
    """Enters a function as the rule of these ops."""

    def enter(function):
        RULES.update(dict.fromkeys(names.split(), function))
        return function

    return enter


def rule_of(call):
    """The rule of an op: its own, else that of its kind; None if it has none."""
    name = call.name
    if REGISTERED and call.func in REGISTERED:
        return REGISTERED[call.func]
    if name in RULES:
        return RULES[name]
    if any(isinstance(a, (list, tuple)) and _count(a) for a in call.args):
        return by_place if call.written or name.startswith("_foreach_") else None
    if call.func.is_view or name in ("view", "_unsafe_view", "reshape"):
        return _view
    if kinds.is_elementwise(call.func._opname) or name in ("copy", "_to_copy", "fill", "zero"):
        return _elementwise
    if kinds.is_reduction(name) and len(call.tensors) == 1:
        return _reduction
    return None


def everywhere(call, results: int = 1):
    """The option of replicated arguments and results."""
    return (_R,) * len(call.tensors), (_R,) * results


def _partials(call):
    """The kinds of values yet to be reduced among the arguments."""
    return {p for t in call.tensors for p in t._spec.placements if isinstance(p, Partial)}


# ---- elements ----

_LINEAR = {"neg", "clone", "_to_copy", "lift_fresh", "conj", "real", "imag"}


def _scales(call) -> bool:
    """Whether it multiplies its first argument by a number, or by a tensor."""
    return call.name in ("mul", "div") and call.value("rounding_mode") is None


def _elementwise(call):
    shape = rushlight.broadcast_shapes(*(t.shape for t in call.tensors))
    options: list[Any] = [everywhere(call)]
    for o in reversed(range(len(shape))):
        inputs = []
        for t in call.tensors:
            d = o - len(shape) + t.ndim
            inputs.append(Shard(d) if d >= 0 and t.shape[d] == shape[o] else _R)
        if any(p.is_shard() for p in inputs):
            options.insert(0, (tuple(inputs), (Shard(o),)))
    linear = [p for p in _partials(call) if p.reduce_op in ("sum", "avg")]
    tensors = len(call.tensors)
    for p in linear:
        if call.name in _LINEAR or (tensors == 1 and _scales(call)):
            options.append(((p,), (p,)))
        elif call.name in ("add", "sub") and tensors == 2:
            options.append(((p, p), (p,)))
        elif _scales(call) and tensors == 2:
            options.append(((p, _R), (p,)))
            if call.name == "mul":
                options.append(((_R, p), (p,)))
        elif call.name == "copy":
            options.append(((p, p), (p,)))
    if call.name in ("zero",):
        options += [((p,), (p,)) for p in _partials(call)]
    return options


@rule("zeros_like ones_like full_like empty_like rand_like randn_like randint_like")
def _like_rule(call):
    """What has the shape of its first argument and not its values."""
    rest = (_R,) * (len(call.tensors) - 1)
    options = [((Shard(d), *rest), (Shard(d),)) for d in range(call.tensors[0].ndim)]
    options += [((p, *rest), (_R,)) for p in _partials(call)]
    return [*options, everywhere(call)]


@rule("_dropout_noise")
def _noise(call):
    """Noise for a tensor, in its shape or the same along some dims."""
    size = call.args[1]
    placed = [((Shard(d),), (Shard(d) if size[d] > 1 else _R,)) for d in range(len(size))]
    call.runner = _noise_here
    return [*placed, *(((p,), (_R,)) for p in _partials(call)), everywhere(call)]


def _noise_here(call, args, kwargs, mesh, targets, outputs):
    shape, _ = local_shape_and_offset(args[1], mesh, outputs[0])
    return call.func(args[0], shape, *args[2:], **kwargs)


@rule("new_zeros new_ones new_empty new_full new_empty_strided")
def _new(call):
    """What has a shape of its own: cut as its argument is if that has the same, else whole."""
    if len(call.tensors) > 1:
        return None
    t = call.tensors[0]
    if tuple(call.value("size")) != tuple(t.shape):
        stay = [((p,), (_R,)) for p in set(t._spec.placements)]
        return [*stay, everywhere(call)]
    call.runner = _new_here
    return _like_rule(call)


def _new_here(call, args, kwargs, mesh, targets, outputs):
    shape, _ = local_shape_and_offset(args[1], mesh, outputs[0])
    if call.name != "new_empty_strided":
        return call.func(args[0], shape, *args[2:], **kwargs)
    order = sorted(range(len(shape)), key=lambda d: -args[2][d])
    return call.func(args[0], shape, contiguous_strides(shape, order), *args[3:], **kwargs)


def by_place(call):
    """Lists whose tensors of one place go together: foreach functions and steps of optimisers.

    Those of different places may lie on different meshes.
    """
    lists, wrote, leads = [], [], {}  # leads: by the place of a tensor among all
    place = 0
    for _, value in call._arguments():
        count = _count(value)
        if count and isinstance(value, (list, tuple)):
            lists.append((place, value))
            if place in call.written:
                wrote.append(value)
        place += count
    lead = wrote[0] if wrote else lists[0][1]
    if any(len(items) != len(lead) for _, items in lists):
        return None
    for place, items in lists:
        leads.update(zip(range(place, place + len(items)), lead, strict=True))

    def run():
        locals_ = []
        for k, t in enumerate(call.tensors):
            own = leads.get(k)
            target = (_R,) * t._spec.mesh.ndim
            if isinstance(own, DTensor) and t.shape == own.shape:
                if own._spec.mesh != t._spec.mesh:
                    raise RuntimeError(
                        f"{call.func}: DTensors of different device meshes do not go together: "
                        f"{own._spec.mesh} and {t._spec.mesh}"
                    )
                target = partial_free(own._spec.placements)
            if k in call.written and target != t._spec.placements:  # a buffer follows
                t._local_tensor = redistribute(t, target)
                t._spec = DTensorSpec(t._spec.mesh, target, t._spec.tensor_meta)
            locals_.append(redistribute(t, target))
        args, kwargs = call.with_tensors(locals_)
        results = call.func(*args, **kwargs)
        if results is None or not isinstance(results, (list, tuple)):
            return results
        made = []
        for own, r in zip(lead, results, strict=True):
            meta = TensorMeta(own.shape, own.stride(), r.dtype)
            placements = partial_free(own._spec.placements)
            made.append(DTensor(r, DTensorSpec(own._spec.mesh, placements, meta)))
        return type(results)(made)

    return run


def _is_tensor(value) -> bool:
    return isinstance(value, Tensor)


@rule("_foreach_norm _foreach_max")
def _compute_whole(call):
    """Computed on the whole."""
    return


# ---- views ----

_SIZED = {"view", "_unsafe_view", "reshape", "expand"}


@rule("as_strided view_as_real view_as_complex diagonal unfold _reshape_alias")
def _other_view(call):
    return None


def _views_of(call, shape):
    """A tensor of this shape without memory, and what the op makes of it."""
    model = rushlight.empty(shape, device="meta")
    args, kwargs = call.with_tensors([model])
    results = call.func(*args, **kwargs)
    return model, results if isinstance(results, (list, tuple)) else [results]


def _view(call):
    """Dims that stay, or become the outermost of those that they are merged with or cut into."""
    t = call.tensors[0]
    if len(call.tensors) != 1 or (call.func.is_view and t.dtype != call.metas()[0].dtype):
        return None
    mesh = t._spec.mesh
    real = _views_of(call, t.shape)
    options: list[Any] = [((p,), (p,)) for p in _partials(call)]
    for d, n in enumerate(t.shape):
        model, results = real
        if n <= 1:  # strides say nothing of it: where would it go if it were longer?
            try:
                model, results = _views_of(call, [*t.shape[:d], 2, *t.shape[d + 1 :]])
            except (RuntimeError, IndexError):
                continue  # sizes are among the arguments
        places = {_place(model, d, r, mesh.size()) for r in results}
        place = places.pop() if len(places) == 1 else None
        if place is None:
            continue
        if n > 1 or all(
            r.ndim == s.ndim and s.shape[place] == n for r, s in zip(results, real[1], strict=True)
        ):
            options.append(((Shard(d),), (Shard(place),)))
    if call.name in _SIZED:
        call.runner = _view_local
    return [*options, everywhere(call)]


def _place(model, d, result, count):
    """The dim of a view that begins where a dim of a dense tensor does and reaches as far."""
    n, step = model.shape[d], model.stride(d)
    for o, size in enumerate(result.shape):
        if size > 1 and result.stride(o) * size == n * step:
            even = size % count == 0 and n % count == 0
            if (size == n and result.stride(o) == step) or even:
                return o
    return None


def _view_local(call, args, kwargs, mesh, targets, outputs):
    """A view of a shape that is given: that of the piece."""
    shape, _ = local_shape_and_offset(call.metas()[0].shape, mesh, outputs[0])
    return args[0].expand(shape) if call.name == "expand" else args[0].reshape(shape)


# ---- reductions ----

_REDUCED = {"sum": "sum", "nansum": "sum", "mean": "avg", "amax": "max", "amin": "min"}
_REDUCED |= {"max": "max", "min": "min", "prod": "product"}


def _reduced_dims(call):
    """The dims that it reduces, and whether they are kept."""
    t = call.tensors[0]
    _, dim = kinds.place_of_dim(call.func._opname, call.args, call.kwargs)
    dims = range(t.ndim) if dim is None or dim == () or dim == [] else dim
    dims = {dims} if isinstance(dims, int) else set(dims)
    return {d % max(t.ndim, 1) for d in dims}, bool(call.value("keepdim", False))


def _reduction(call):
    t = call.tensors[0]
    if call.func._opname.startswith("_") or (
        "dim" not in {a.name for a in call.func._schema.arguments}
        and t.ndim
        and call.name not in _REDUCED
    ):
        return None
    dims, keep = _reduced_dims(call)
    results = len(call.func._schema.returns)
    options = []
    for d in range(t.ndim):
        if d not in dims:
            o = d if keep else d - sum(r < d for r in dims)
            options.append(((Shard(d),), (Shard(o),) * results))
            continue
        op = _REDUCED.get(call.name)
        even = call.name != "mean" or t.shape[d] % t._spec.mesh.size() == 0
        if op is not None and even and results == 1 and t.dtype != rushlight.bool:
            options.append(((Shard(d),), (Partial(op),)))
    if call.name in ("sum", "mean"):
        options += [((p,), (p,)) for p in _partials(call) if p.reduce_op in ("sum", "avg")]
    return [*options, everywhere(call, results)]


@rule("linalg_vector_norm")
def _norm(call):
    t = call.tensors[0]
    order = float(call.value("ord", 2))
    dims, keep = _reduced_dims(call)
    options = []
    for d in range(t.ndim):
        if d in dims:
            options.append(((Shard(d),), (_NormPartial("norm", order),)))
        else:
            o = d if keep else d - sum(r < d for r in dims)
            options.append(((Shard(d),), (Shard(o),)))
    return [*options, everywhere(call)]
