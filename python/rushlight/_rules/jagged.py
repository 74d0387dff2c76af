"""The rules of jagged nested tensors: elements, dims, reductions, shapes of all ops.

A dim of the nested tensor is that of its values less one: what acts along a dim other than the
batch's and the ragged one acts on the values.
"""

from __future__ import annotations

import math

import rushlight
from rushlight import Tensor
from rushlight._checks import wrap_dim
from rushlight._rules import kinds
from rushlight.nested._internal.nested_tensor import values_of, wrap
from rushlight.nested._padding import like_padded, rows_of, to_padded

__all__: list[str] = []

# What padding along the ragged dim does not change, of ops that act along one.
_PADDING = {
    "softmax": -math.inf, "log_softmax": -math.inf, "logsumexp": -math.inf,
    "cumsum": 0, "cumprod": 1, "logcumsumexp": -math.inf,
    "sum": 0, "nansum": 0, "count_nonzero": 0, "prod": 1, "any": False, "all": True,
    "max": "lowest", "amax": "lowest", "argmax": "lowest",
    "min": "highest", "amin": "highest", "argmin": "highest",
}  # fmt: skip


def check_dim(t: Tensor, dim: int) -> int:
    """A dim counted from the front."""
    return wrap_dim(dim, t.dim())


def _dense_dim(t, dim, name):
    """The dim of the values; it is neither the batch's nor ragged."""
    dim = check_dim(t, dim)
    if dim == 0:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    if dim == t._ragged_idx:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")
    return dim - 1


def without_holes(t):
    """The same components without holes between them."""
    count = t._values.shape[t._ragged_idx - 1]
    if t._lengths is None and int(t._offsets[0]) == 0 and int(t._offsets[-1]) == count:
        return t
    ragged, lengths = t._ragged_idx - 1, t._seq_lengths()
    rows = rows_of(t._offsets, count)
    places = rushlight.arange(count, device=rows.device)
    starts = t._offsets[:-1]
    kept = places >= starts.index_select(0, rows)
    kept &= places < (starts + lengths).index_select(0, rows)
    values = values_of(t).index_select(ragged, kept.nonzero().flatten())
    offsets = rushlight.nn.functional.pad(lengths.cumsum(0), (1, 0))
    return wrap(values, offsets, None, t._ragged_idx, dict(t._metadata_cache))


# ---- elements ----


def _refuse(name, args):
    shapes = " and ".join(str(tuple(a.shape)) for a in args if isinstance(a, Tensor))
    raise RuntimeError(
        f"cannot call binary pointwise function {name} with inputs of shapes {shapes}"
    )


def spread(dense, like, name, args):
    """A plain tensor as it meets the values of a nested one."""
    ragged, values = like._ragged_idx, like._values
    if dense.dim() == 0 or dense.dim() <= values.dim() - ragged:
        return dense
    if dense.dim() > like.dim():
        _refuse(name, args)
    dense = dense.reshape([1] * (like.dim() - dense.dim()) + list(dense.shape))
    batch, length = dense.shape[0], dense.shape[ragged]
    if batch == 1 and length == 1:
        return dense.squeeze(0)
    size = like._offsets.shape[0] - 1
    if batch not in (1, size):
        _refuse(name, args)
    count = values.shape[ragged - 1]
    if length == 1:
        rows = rows_of(like._offsets, count)
        return dense.select(ragged, 0).index_select(0, rows).movedim(0, ragged - 1)
    if length != like._get_max_seqlen():
        _refuse(name, args)
    dense = dense.expand(size, *dense.shape[1:])
    return like_padded(like, dense, ragged).values()


def meet(name, args):
    """The nested tensor whose raggedness an op of elements has; refuses what does not go."""
    nested = [a for a in args if isinstance(a, Tensor) and a.is_nested]
    like = nested[0]
    for t in nested[1:]:
        same = t._ragged_idx == like._ragged_idx and t.dim() == like.dim()
        if not same or t.shape[t._ragged_idx] != like.shape[like._ragged_idx]:
            _refuse(name, args)
    return like


def _in_values(like, name, args, kwargs):
    everything = [*args, *kwargs.values()]

    def convert(a):
        if not isinstance(a, Tensor):
            return a
        return values_of(a) if a.is_nested else spread(a, like, name, everything)

    return [convert(a) for a in args], {k: convert(v) for k, v in kwargs.items()}


def _wrap_like(like, made, ragged_idx=None):
    if isinstance(made, Tensor):
        return like._with_values(made, ragged_idx)
    return type(made)([_wrap_like(like, t, ragged_idx) for t in made])


def elementwise(func, args, kwargs):
    """An op of elements, of one tensor or several that go together."""
    name = _name(func)
    like = meet(name, [*args, *kwargs.values()])
    if isinstance(kwargs.get("out"), Tensor):
        raise NotImplementedError(f"{name}(): nested tensors have no out= form")
    args, kwargs = _in_values(like, name, args, kwargs)
    return _wrap_like(like, func(*args, **kwargs))


def _name(func):
    return str(func).removeprefix("aten.") if hasattr(func, "overloadpacket") else func.__name__


def in_place(func, name, args, kwargs):
    """An op that writes into its first argument."""
    target = args[0]
    if not target.is_nested:
        raise RuntimeError(f"{name}(): cannot write a nested tensor into one that is not nested")
    acts_on_elements = kinds.is_elementwise(name) or kinds.is_elementwise(name.rstrip("_"))
    if not acts_on_elements and len([a for a in args if isinstance(a, Tensor)]) > 1:
        raise NotImplementedError(f"{func}: nested tensors have no rule for it")
    like = meet(name, [target, *args[1:], *kwargs.values()])
    with rushlight.no_grad():
        rest, kwargs = _in_values(like, name, args[1:], kwargs)
        func(target._values, *rest, **kwargs)
    return target


def on_values(func, t, *args, **kwargs):
    """What acts on the values whatever their shape: copies, conversions, dropout, lookups."""
    return t._with_values(func(values_of(t), *args, **kwargs))


# ---- along dims ----


def call_along_dims(func, name, args, kwargs):
    """An op of one tensor along dims, by its schema; NotImplemented where it is none."""
    tensors = [a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)]
    if len(tensors) != 1 or not args or args[0] is not tensors[0]:
        return NotImplemented
    t = args[0]
    place, dims = kinds.place_of_dim(name, args, kwargs)
    if dims is None or dims == () or dims == []:
        dims = kinds.default_dim(name)
        if not isinstance(dims, int):
            return _of_all(func, name, t, args[1:], kwargs)
        place = "dim"
    single = isinstance(dims, int)
    dims = [check_dim(t, d) for d in ((dims,) if single else dims)]
    if 0 in dims or t._ragged_idx in dims:
        return _along_ragged(func, name, t, dims, place, args, kwargs)
    inner = [d - 1 for d in dims]
    args, kwargs = _with_dims(args, kwargs, place, inner[0] if single else inner)
    made = func(values_of(t), *args[1:], **kwargs)
    before = sum(d < t._ragged_idx for d in dims)

    def back(out: Tensor) -> Tensor:
        fewer = out.dim() < t._values.dim()
        return t._with_values(out, t._ragged_idx - before if fewer else None)

    if isinstance(made, Tensor):
        return back(made)
    return type(made)([back(out) for out in made])


def _with_dims(args, kwargs, place, dims):
    if isinstance(place, int):
        args = [*args[:place], dims, *args[place + 1 :]]
    else:
        kwargs = {**kwargs, place: dims}
    return args, kwargs


def _of_all(func, name, t, args, kwargs):
    """A reduction of all elements."""
    if not kinds.is_reduction(name):
        return NotImplemented
    made = func(values_of(without_holes(t)), *args, **kwargs)
    tensors = (made,) if isinstance(made, Tensor) else made
    if not all(isinstance(out, Tensor) and out.dim() == 0 for out in tensors):
        return NotImplemented
    return made


def _padding(name, dtype):
    padding = _PADDING[name]
    if not isinstance(padding, str):
        return padding
    if dtype == rushlight.bool:
        return padding == "highest"
    if dtype.is_floating_point:
        return math.inf if padding == "highest" else -math.inf
    limits = rushlight.iinfo(dtype)
    return limits.max if padding == "highest" else limits.min


def _along_ragged(func, name, t, dims, place, args, kwargs):
    if name not in (*_PADDING, "mean"):
        dim = 0 if 0 in dims else t._ragged_idx
        _dense_dim(t, dim, name)
    reduces = name not in ("softmax", "log_softmax", "cumsum", "cumprod", "logcumsumexp")
    if 0 in dims and not reduces:
        raise RuntimeError(
            f"{name}(): not supported when reducing across the batch dimension for NestedTensor"
        )
    if 0 in dims and t._ragged_idx not in dims:
        raise RuntimeError(
            f"{name}(): reducing along the batch dimension but not the ragged dimension, "
            f"{t._ragged_idx}, cannot be done: rows are of different lengths"
        )
    if 0 not in dims and len(dims) > 1:
        raise RuntimeError(
            f"{name}(): reducing along a ragged and non-batch dimension at once is not supported; "
            "do it one dimension after the other"
        )
    if 0 in dims:
        t = without_holes(t)
        inner = [d - 1 for d in dims if d > 0]
        args, kwargs = _with_dims(args, kwargs, place, inner[0] if len(inner) == 1 else inner)
        made = func(values_of(t), *args[1:], **kwargs)
        return made.unsqueeze(0) if made.dim() == t._values.dim() else made
    if name == "mean":
        args, kwargs = _with_dims(args, kwargs, place, t._ragged_idx)
        total = rushlight.sum(to_padded(t, 0), *args[1:], **kwargs)
        lengths = t._seq_lengths().to(total.device)
        if total.dim() == t.dim() - 1:
            return total / lengths.reshape(-1, *[1] * (total.dim() - 1))
        return total / lengths.reshape(-1, *[1] * (t.dim() - 1))
    args, kwargs = _with_dims(args, kwargs, place, t._ragged_idx)
    made = func(to_padded(t, _padding(name, t.dtype)), *args[1:], **kwargs)
    return made if reduces else like_padded(t, made)


def attribute(name, t):
    """An attribute that nested tensors answer themselves; NotImplemented for others."""
    if name == "shape":
        return t._nested_size()
    if name in ("mT", "mH"):
        return rushlight.transpose(t, -2, -1) if t.dim() > 2 else NotImplemented
    if name in ("T", "H"):
        return rushlight.permute(t, tuple(range(t.dim()))[::-1])
    if name == "nbytes":
        return t.numel() * t.itemsize
    return NotImplemented
