"""The rules of jagged nested tensors, op by op: questions, copies, components, shapes."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import Tensor
from rushlight._rules import Rules, jagged
from rushlight._rules.jagged import (
    _dense_dim,
    attribute,
    call_along_dims,
    check_dim,
    elementwise,
    in_place,
    meet,
    on_values,
    without_holes,
)
from rushlight.nested._internal.nested_tensor import values_of, wrap
from rushlight.nested._padding import to_padded

__all__ = [
    "RULES",
    "SAFE",
    "attribute",
    "call_along_dims",
    "elementwise",
    "in_place",
    "memory",
    "same_places",
]

RULES = Rules()
rule = RULES.rule
# What the table's derivatives are right for although it does not act on elements.
SAFE = {"new_empty_strided", "clone", "detach", "alias", "_to_copy", "lift_fresh", "view_as"}


def memory(t):
    """The tensor that holds the elements."""
    return t._values


def same_places(func, tensors):
    """Refuses tensors whose elements do not lie at the same places."""
    meet(str(func), tensors)


# ---- questions ----


@rule("size")
def _size(func, t, dim=None):
    sizes = t._nested_size()
    return sizes if dim is None else sizes[check_dim(t, dim)]


@rule("stride")
def _stride(func, t, dim=None):
    strides = t._nested_strides()
    return strides if dim is None else strides[check_dim(t, dim)]


@rule("numel")
def _numel(func, t):
    return without_holes(t)._values.numel()


@rule("is_contiguous")
def _is_contiguous(func, t, memory_format=rushlight.contiguous_format):
    return t._lengths is None and t._values.is_contiguous()


@rule("is_same_size")
def _is_same_size(func, t, other):
    return t.shape == other.shape


@rule("tolist numpy __array__ __dlpack__")
def _refuse_call(func, t, *args, **kwargs):
    raise RuntimeError(
        f".{func.__name__}() is not supported for tensor subclasses, got NestedTensor"
    )


@rule("item __bool__ __int__ __float__ __index__ _local_scalar_dense")
def _one_number(func, t):
    count = t.numel()
    if count != 1:
        if func.__name__ == "__bool__":
            raise RuntimeError("Boolean value of Tensor of several elements is ambiguous")
        raise RuntimeError(f"a Tensor with {count} elements cannot be converted to Scalar")
    return func(without_holes(t)._values.reshape(()))


@rule("equal allclose")
def _compare(func, t, other, *args, **kwargs):
    if not (isinstance(other, Tensor) and other.is_nested) or t.dim() != other.dim():
        return False
    t, other = without_holes(t), without_holes(other)
    same = t._ragged_idx == other._ragged_idx and rushlight.equal(t._offsets, other._offsets)
    return same and func(t._values, other._values, *args, **kwargs)


# ---- copies, conversions, factories ----


@rule("clone")
def _clone(func, t, **kwargs):
    return on_values(func, t, **kwargs)


@rule("detach alias lift_fresh")
def _detach(func, t):
    if getattr(func, "__name__", "") == "detach":
        return jagged.wrap(t._values.detach(), *t._about())
    return t._with_values(values_of(t).view_as(t._values))


@rule("contiguous")
def _contiguous(func, t, memory_format=rushlight.contiguous_format):
    if _is_contiguous(func, t):
        return t
    t = without_holes(t)
    return t._with_values(values_of(t).contiguous())


@rule(
    "to _to_copy double float half bfloat16 long int short char byte bool cfloat cdouble type "
    "type_as cpu cuda pin_memory"
)
def _convert(func, t, *args, **kwargs):
    if not t.is_nested:  # type_as(nested)
        return func(t, args[0]._values)
    args = [a._values if isinstance(a, Tensor) and a.is_nested else a for a in args]
    kwargs = {k: v for k, v in kwargs.items() if k != "layout"}
    if func.__name__ == "type" and not args and not kwargs:
        return func(t._values)
    before = values_of(t)
    values = func(before, *args, **kwargs)
    if values is before:
        return t
    offsets, lengths, ragged, cache = t._about()
    if values.device != offsets.device:
        offsets = _move(offsets, values.device)
        lengths = None if lengths is None else _move(lengths, values.device)
    return wrap(values, offsets, lengths, ragged, cache)


def _move(t, device):
    return t.to(device)


@rule(
    "zeros_like ones_like empty_like full_like rand_like randn_like randint_like bernoulli "
    "dropout alpha_dropout feature_alpha_dropout embedding one_hot native_dropout _dropout_noise"
)
def _shapeless(func, t, *args, **kwargs):
    kwargs = {k: v for k, v in kwargs.items() if k != "layout"}
    if not t.is_nested:
        raise NotImplementedError(f"{func.__name__}(): only its first tensor may be nested")
    made = func(values_of(t), *args, **kwargs)
    if isinstance(made, Tensor):
        return t._with_values(made)
    return type(made)([t._with_values(v) for v in made])


@rule("new_empty_strided")
def _new_empty_strided(func, t, size, stride, **kwargs):
    if tuple(size) != (t._offsets.shape[0] - 1, *t._values.shape):
        return func(t._values, size, stride, **kwargs)
    return t._with_values(
        rushlight.empty_like(t._values, **kwargs)
    )  # as the engine copies gradients


@rule("new_empty new_zeros new_ones new_full new_tensor")
def _new(func, t, *args, **kwargs):
    return func(t._values, *args, **kwargs)


@rule("to_padded_tensor")
def _to_padded_tensor(func, t, padding, output_size=None):
    if t._values.dim() > 1 and t._ragged_idx != 1:
        return _to_padded_tensor(func, _with_ragged_first(t), padding, None).movedim(
            1, t._ragged_idx
        )
    if output_size is None:
        return to_padded(t, padding)
    inner = [*t._values.shape[: t._ragged_idx - 1], t._get_max_seqlen()]
    wanted = (t._offsets.shape[0] - 1, *inner, *t._values.shape[t._ragged_idx :])
    if len(output_size) != len(wanted):
        raise RuntimeError(
            f"Length of output_size does not match NestedTensor dims: {len(output_size)} and "
            f"{len(wanted)}"
        )
    if any(asked < size for asked, size in zip(output_size, wanted, strict=True)):
        raise RuntimeError(
            f"Value in output_size is less than NestedTensor padded size: {tuple(output_size)}, "
            f"where {wanted} holds all rows"
        )
    out = to_padded(t, padding)
    missing = [a - b for a, b in zip(output_size, out.shape, strict=True)]
    return rushlight.nn.functional.pad(
        out, [n for gap in reversed(missing) for n in (0, gap)], value=padding
    )


def _with_ragged_first(t):
    return t._with_values(values_of(t).movedim(t._ragged_idx - 1, 0), 1)


# ---- components ----


def components(t):
    """The components as views of the values, recorded."""
    ragged = t._ragged_idx - 1
    count = t._values.shape[ragged]
    offsets = t._offsets.tolist()
    lengths = t._seq_lengths().tolist()
    values = values_of(t)
    for start, length in zip(offsets, lengths, strict=False):
        if start < 0 or length < 0 or start + length > count:
            raise RuntimeError(
                "unbind(): nested tensor offsets and lengths do not match ragged_idx dimension"
            )
    return [values.narrow(ragged, s, n) for s, n in zip(offsets, lengths, strict=False)]


@rule("unbind")
def _unbind(func, t, dim=0):
    if check_dim(t, dim) != 0:
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    return tuple(components(t))


@rule("select")
def _select(func, t, dim, index):
    dim = check_dim(t, dim)
    if dim == 0:
        count = t._offsets.shape[0] - 1
        if not -count <= index < count:
            raise IndexError(f"index {index} is out of bounds for dimension 0 with size {count}")
        return components(t)[index]
    inner = _dense_dim(t, dim, "select")
    return t._with_values(values_of(t).select(inner, index), t._ragged_idx - (dim < t._ragged_idx))


@rule("__getitem__")
def _getitem(func, t, index):
    index = index if isinstance(index, tuple) else (index,)
    if any(isinstance(i, (Tensor, list)) for i in index):
        raise NotImplementedError("aten.index.Tensor: jagged nested tensors are not indexed by it")
    if ... in index:
        at = index.index(...)
        taken = sum(i is not None for i in index) - 1
        index = (*index[:at], *[slice(None)] * (t.dim() - taken), *index[at + 1 :])
    if sum(i is not None for i in index) > t.dim():
        raise IndexError(f"too many indices for tensor of dimension {t.dim()}")
    if index and isinstance(index[0], int):
        first = _select(func, t, 0, index[0])
        return first[index[1:]] if len(index) > 1 else first
    dim = 0
    for i in index:
        if i is None:
            t = rushlight.unsqueeze(t, dim)
        elif isinstance(i, int):
            t = _select(func, t, dim, i)
            continue
        elif i != slice(None):
            inner = _dense_dim(t, dim, "slice")
            values: Any = values_of(t)
            t = t._with_values(values[(*[slice(None)] * inner, i)])
        dim += 1
    return t


@rule("narrow slice")
def _narrow(func, t, dim, *args, **kwargs):
    return t._with_values(func(values_of(t), _dense_dim(t, dim, func.__name__), *args, **kwargs))


@rule("split split_with_sizes chunk tensor_split")
def _split(func, t, sections, dim=0):
    name = func.__name__
    if check_dim(t, dim) == 0 and name == "chunk":
        return _chunks(t, sections)
    inner = _dense_dim(t, dim, name)
    return tuple(t._with_values(v) for v in func(values_of(t), sections, inner))


def _chunks(t, count):
    t = without_holes(t)
    batch = t._offsets.shape[0] - 1
    step = -(-batch // count)
    values, ends = values_of(t), t._offsets.tolist()
    out = []
    for first in range(0, batch, step):
        offsets = t._offsets[first : first + step + 1]
        last = first + offsets.shape[0] - 1
        part = values.narrow(t._ragged_idx - 1, ends[first], ends[last] - ends[first])
        out.append(wrap(part, offsets - offsets[0], None, t._ragged_idx))
    return tuple(out)


# ---- elements that the table does not know as such ----


@rule("where")
def _where(func, condition, input=None, other=None):
    if input is None:
        raise NotImplementedError("where(condition): nested tensors have no indices")
    return elementwise(func, (condition, input, other), {})


@rule("tile repeat renorm unique_consecutive unique_dim")
def _across(func, t, *args, **kwargs):  # their dims are no dims to act along
    raise NotImplementedError(f"aten.{func.__name__}: jagged nested tensors have no rule for it")
