"""A function along a dimension, which carries a value from step to step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight
from rushlight._higher_order_ops import utils
from rushlight.utils import _pytree

__all__ = ["scan"]


def scan(combine_fn: Callable[..., Any], init, xs, *, dim: int = 0, reverse=False):
    """The last carried value, and what each step gave, stacked along a dimension.

    Args:
        combine_fn: takes the carried value and a slice, gives the next value and a result.
        init: the value to begin with.
        xs: a tensor, or a container of tensors of one size along `dim`.
        dim: the dimension of the steps.
        reverse: begin at the end.
    """
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    leaves, form = _pytree.tree_flatten(xs)
    if not leaves:
        return init, []
    length = leaves[0].shape[dim]
    if any(leaf.shape[dim] != length for leaf in leaves):
        raise RuntimeError("All xs leaves must have the same size along dim")
    if utils.tracer is not None and dim == 0 and not reverse:
        return utils.tracer.scan(combine_fn, init, xs)
    outs = []
    carry = init
    steps = range(length - 1, -1, -1) if reverse else range(length)
    for i in steps:
        step = _pytree.tree_unflatten([leaf.select(dim, i) for leaf in leaves], form)
        carry, out = combine_fn(carry, step)
        outs.append(out)
    if reverse:
        outs.reverse()
    parts, kind = _pytree.tree_flatten(outs[0])
    columns = [_pytree.tree_leaves(out) for out in outs]
    stacked = [rushlight.stack([c[k] for c in columns], dim) for k in range(len(parts))]
    return carry, _pytree.tree_unflatten(stacked, kind)
