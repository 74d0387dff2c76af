"""The rules of strided nested tensors for ops that change shapes, and for joins."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rushlight._checks import wrap_dim
from rushlight._rules.strided_ops import (
    _each,
    _size,
    _view_components,
    _wrap_dim,
    elementwise,
    rule,
)

if TYPE_CHECKING:
    from rushlight import Tensor


@rule("transpose swapaxes swapdims")
def _transpose(func, t, dim0, dim1):
    a, b = _wrap_dim(t, dim0), _wrap_dim(t, dim1)
    if a == b:
        return t
    if 0 in (a, b):
        raise RuntimeError("Nested tensor dimension 0 cannot be transposed")
    return _view_components(t, lambda part: part.transpose(a - 1, b - 1))


@rule("permute")
def _permute(func, t, *dims, **kwargs):
    given = kwargs.get("dims", dims[0] if dims and not isinstance(dims[0], int) else dims)
    order = [_wrap_dim(t, d) for d in given]
    if sorted(order) != list(range(t._windows.dim)) or order[0] != 0:
        raise RuntimeError("Nested tensor dimension 0 cannot be permuted, and each is named once")
    return _view_components(t, lambda part: part.permute([d - 1 for d in order[1:]]))


@rule("view reshape _unsafe_view")
def _view(func, t, *args, **kwargs):
    name = func.__name__
    sizes = kwargs.get("shape", kwargs.get("size"))
    if sizes is None:
        sizes = args[0] if args and isinstance(args[0], (tuple, list)) else args
    sizes = list(sizes)
    if not sizes:
        raise RuntimeError("shape '[]' is invalid for a nested tensor")
    shapes = t._windows.shapes
    if not shapes:
        raise RuntimeError("empty nested tensor cannot be reshaped")
    if sizes[0] != len(shapes):
        raise RuntimeError(
            f"{name}: For now nested {name} cannot change or infer the implicit batch dimension"
        )
    if len(sizes) > t._windows.dim and sizes[1:].count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")

    def view_component(part: Tensor) -> Tensor:
        inner = sizes[1:]
        # -1 keeps a size where the old shape has one at its place; one of them may be inferred.
        kept = [n if n != -1 or i >= part.dim() else part.shape[i] for i, n in enumerate(inner)]
        if math.prod(kept) != part.numel() or any(n < 0 for n in kept):
            if inner.count(-1) > 1:
                raise RuntimeError("only one dimension can be inferred")
            kept = inner
        return part.view(kept) if name != "reshape" else part.reshape(kept)

    try:
        return _view_components(
            t,
            lambda part: (
                view_component(part) if name != "reshape" else part.view(view_component(part).shape)
            ),
        )
    except RuntimeError:
        if name != "reshape":
            raise
    return _each(view_component, t)


@rule("unflatten")
def _unflatten(func, t, dim, sizes):
    dim = _wrap_dim(t, dim)
    if dim == 0:
        raise RuntimeError("unflatten(): not supported for nested tensors on dim=0")
    return _view_components(t, lambda part: part.unflatten(dim - 1, sizes))


@rule("squeeze")
def _squeeze(func, t, dim=None):
    if dim is None:
        raise RuntimeError(
            "squeeze(): without the dim it would be another one for each part; pass one"
        )
    dims = sorted({_wrap_dim(t, d) for d in ([dim] if isinstance(dim, int) else dim)}, reverse=True)
    if 0 in dims:
        raise RuntimeError(
            "squeeze(): For nested tensors, squeezing dimension 0, that of the parts, is refused"
        )
    if t._windows.dim - len(dims) < 2 and all(_size(None, t, d) == 1 for d in dims):
        raise RuntimeError(
            "squeeze(): For nested tensors, squeezing a nested tensor of singleton is not supported"
        )
    uniform = [d for d in dims if {s[d - 1] for s in t._windows.shapes} == {1}]
    return _view_components(t, lambda part: part.squeeze(tuple(d - 1 for d in uniform)))


@rule("unsqueeze")
def _unsqueeze(func, t, dim):
    dim = wrap_dim(dim, t._windows.dim + 1)
    if dim == 0:
        raise RuntimeError(
            "unsqueeze(): For nested tensors, unsqueezing dimension 0, that of the parts, is "
            "refused"
        )
    return _view_components(t, lambda part: part.unsqueeze(dim - 1))


@rule("masked_fill where")
def _where(func, *args, **kwargs):
    return elementwise(func, args, kwargs)
