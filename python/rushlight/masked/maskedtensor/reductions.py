"""Reductions of masked tensors over their valid elements."""

# ruff: noqa: SIM905

from __future__ import annotations

import rushlight
from rushlight.masked import _ops as masked

__all__: list[str] = []

REDUCE_NAMES = ("sum mean amin amax argmin argmax prod all norm var std").split()


def reduce(name, data, mask, args, kwargs):
    """The result of the named reduction for strided data, and its mask.

    Arguments are those of the op: dimensions first, then `keepdim`.
    """
    dim, keepdim, rest = _arguments(name, args, dict(kwargs))
    if name == "all":
        out = _all(data.masked_fill(~mask, True), dim, keepdim)
    elif name == "norm":
        order = rest.pop("p", 2)
        order = 2.0 if order in (None, "fro") else order
        out = masked.norm(data, order, dim, keepdim=keepdim, mask=mask, **rest)
    else:
        out = getattr(masked, name)(data, dim=dim, keepdim=keepdim, mask=mask, **rest)
    return out, _any(mask, dim, keepdim)


def _arguments(name, args, kwargs):
    names = ["dim", "keepdim"]
    if name in ("var", "std"):
        boolean = bool(args) and isinstance(args[0], bool)
        names = ["unbiased", "keepdim"] if boolean else ["dim", "unbiased", "keepdim"]
    elif name == "norm":
        names = ["p", "dim", "keepdim"]
    for key, value in zip(names, args, strict=False):
        if key in kwargs:
            raise TypeError(f"{name}() got multiple values for argument '{key}'")
        kwargs[key] = value
    if len(args) > len(names):
        raise TypeError(f"{name}() takes at most {len(names)} arguments but {len(args)} were given")
    for other, key in (("axis", "dim"), ("keepdims", "keepdim")):
        if other in kwargs:
            kwargs[key] = kwargs.pop(other)
    return kwargs.pop("dim", None), kwargs.pop("keepdim", False), kwargs


def _all(data: rushlight.Tensor, dim: int | None, keepdim: bool) -> rushlight.Tensor:
    return ~_any(~data.bool(), dim, keepdim)


def _any(mask: rushlight.Tensor, dim: int | None, keepdim: bool) -> rushlight.Tensor:
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return mask.any() if not keepdim else mask.any().reshape([1] * mask.dim())
    return rushlight.any(mask, dim=dim, keepdim=keepdim)
