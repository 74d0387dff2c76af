"""The rules of jagged nested tensors for ops that change shapes, and for joins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NoReturn

import rushlight
from rushlight import Tensor
from rushlight._checks import wrap_dim
from rushlight._rules.jagged import (
    _dense_dim,
    check_dim,
    elementwise,
)
from rushlight._rules.jagged_ops import rule
from rushlight.nested._internal.nested_tensor import values_of
from rushlight.nested._sizes import NestedInt


def _sizes(args: Sequence[int]) -> list[int]:
    return list(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else list(args)


@rule("view reshape _unsafe_view view_copy")
def _view(func, t, *args, **kwargs):
    given = kwargs.get("shape", kwargs.get("size"))
    if given is None and len(args) == 1 and isinstance(args[0], rushlight.dtype):
        raise NotImplementedError("aten.view.dtype: jagged nested tensors have no such view")
    sizes = _sizes(args) if given is None else list(given)
    ragged, values = t._ragged_idx, values_of(t)
    own, batch = t.shape[ragged], t._offsets.shape[0] - 1
    if sizes == list(t.shape):
        return t._with_values(values.view(values.shape)) if func.__name__ == "view" else t

    def refuse() -> NoReturn:
        raise RuntimeError(f"view(): cannot view shape {tuple(t.shape)} as {sizes}")

    if len(sizes) < 2 or (sizes[0] != batch and sizes[0] != -1):
        refuse()
    inner = sizes[1:]
    if own in inner:
        at = inner.index(own)
    elif -1 in inner:
        at = inner.index(-1)
    else:
        refuse()
    if any(isinstance(s, NestedInt) for i, s in enumerate(inner) if i != at):
        refuse()
    inner[at] = values.shape[ragged - 1]
    before, behind = inner[:at], inner[at + 1 :]
    if -1 not in before and math.prod(before) != math.prod(values.shape[: ragged - 1]):
        refuse()
    if -1 not in behind and math.prod(behind) != math.prod(values.shape[ragged:]):
        refuse()
    for part, old in ((before, values.shape[: ragged - 1]), (behind, values.shape[ragged:])):
        if -1 in part:
            known = math.prod(s for s in part if s != -1)
            if known == 0 or math.prod(old) % known:
                refuse()
            part[part.index(-1)] = math.prod(old) // known
    shape = [*before, values.shape[ragged - 1], *behind]
    made = values.reshape(shape) if func.__name__ == "reshape" else values.view(shape)
    return t._with_values(made, at + 1)


@rule("view_as reshape_as")
def _view_as(func, t, other):
    if t.is_nested and other.is_nested:
        return _view(getattr(Tensor, func.__name__.removesuffix("_as")), t, other.shape)
    raise RuntimeError(f"{func.__name__}(): both tensors must be nested")


@rule("flatten")
def _flatten(func, t, start_dim=0, end_dim=-1):
    start, end = check_dim(t, start_dim), check_dim(t, end_dim)
    if start == end:
        return t
    if start == 0:
        raise RuntimeError("flatten(): not supported for NestedTensor on dim=0")
    if start <= t._ragged_idx <= end:
        raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
    shift = end - start if end < t._ragged_idx else 0
    return t._with_values(values_of(t).flatten(start - 1, end - 1), t._ragged_idx - shift)


@rule("unflatten")
def _unflatten(func, t, dim, sizes):
    dim = check_dim(t, dim)
    if dim == 0:
        raise RuntimeError("unflatten(): not supported for NestedTensor on dim=0")
    if dim == t._ragged_idx:
        raise RuntimeError("unflatten(): not supported for NestedTensor on ragged dim")
    shift = len(sizes) - 1 if dim < t._ragged_idx else 0
    return t._with_values(values_of(t).unflatten(dim - 1, sizes), t._ragged_idx + shift)


@rule("transpose swapaxes swapdims")
def _transpose(func, t, dim0, dim1):
    a, b = check_dim(t, dim0), check_dim(t, dim1)
    if a == b:
        return t
    if 0 in (a, b):
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    ragged = {a: b, b: a}.get(t._ragged_idx, t._ragged_idx)
    return t._with_values(values_of(t).transpose(a - 1, b - 1), ragged)


@rule("permute")
def _permute(func, t, *dims, **kwargs):
    order = [check_dim(t, d) for d in (_sizes(dims) if dims else kwargs["dims"])]
    if sorted(order) != list(range(t.dim())):
        raise RuntimeError("permute(): dims must name each dimension of the tensor once")
    if order[0] != 0:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    inner = [d - 1 for d in order[1:]]
    return t._with_values(values_of(t).permute(inner), order.index(t._ragged_idx))


@rule("unsqueeze")
def _unsqueeze(func, t, dim):
    dim = wrap_dim(dim, t.dim() + 1)
    if dim == 0:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    return t._with_values(values_of(t).unsqueeze(dim - 1), t._ragged_idx + (dim <= t._ragged_idx))


@rule("squeeze")
def _squeeze(func, t, dim=None):
    if dim is None:
        raise RuntimeError(
            "squeeze(): without the dim it would be another one for each part; pass one"
        )
    dims = [dim] if isinstance(dim, int) else dim
    for d in sorted((check_dim(t, d) for d in dims), reverse=True):
        inner = _dense_dim(t, d, "squeeze")
        if t._values.shape[inner] == 1:
            t = t._with_values(values_of(t).squeeze(inner), t._ragged_idx - (d < t._ragged_idx))
        else:
            t = t._with_values(values_of(t).view_as(t._values))
    return t


@rule("expand expand_as broadcast_to")
def _expand(func, t, *args, **kwargs):
    given = kwargs.get("size") or (args[0].shape if isinstance(args[0], Tensor) else _sizes(args))
    if not t.is_nested:
        like = args[0]
        return elementwise(rushlight.add, (rushlight.zeros_like(like).to(t.dtype), t), {})
    sizes = [old if new == -1 else new for old, new in zip(t.shape, given, strict=False)]
    ragged = t._ragged_idx
    if len(given) != t.dim() or sizes[0] != t.shape[0] or sizes[ragged] != t.shape[ragged]:
        raise RuntimeError(f"expand(): cannot expand shape {tuple(t.shape)} -> {tuple(given)}")
    sizes[ragged] = t._values.shape[ragged - 1]
    return t._with_values(values_of(t).expand(sizes[1:]))


def _expect_equal_offsets(name, tensors):
    if not all(isinstance(t, Tensor) and t.is_nested for t in tensors):
        raise RuntimeError(f"{name}(): expected all of the tensors to be nested")
    first = tensors[0]
    ragged = first._ragged_idx
    for t in tensors[1:]:
        if (
            t.dim() != first.dim()
            or t._ragged_idx != ragged
            or t.shape[ragged] != first.shape[ragged]
        ):
            raise RuntimeError(
                f"{name}(): expected all nested tensors to have matching ragged sizes"
            )
    return first


@rule("cat concat concatenate")
def _cat(func, tensors, dim=0):
    first = _expect_equal_offsets("cat", tensors)
    inner = _dense_dim(first, dim, "cat")
    return first._with_values(func([values_of(t) for t in tensors], inner))


@rule("stack")
def _stack(func, tensors, dim=0):
    first = _expect_equal_offsets("stack", tensors)
    dim = dim % (first.dim() + 1)
    if dim == 0:
        raise RuntimeError("stack(): not supported for NestedTensor on dim=0")
    made = func([values_of(t) for t in tensors], dim - 1)
    return first._with_values(made, first._ragged_idx + (dim <= first._ragged_idx))
