"""Running sums, products and the like by any associative function."""

from __future__ import annotations

import rushlight
from rushlight.utils import _pytree

__all__ = ["associative_scan"]


def associative_scan(combine_fn, xs, dim, reverse=False, combine_mode="pointwise"):
    """What `combine_fn` makes of all slices up to each one, in a logarithmic number of steps.

    Args:
        combine_fn: an associative function of two slices, which gives one of the same form.
        xs: a tensor, or a container of tensors of one size along `dim`.
        dim: the dimension of the slices.
        reverse: from each slice to the last one.
        combine_mode: "pointwise", a function of elements, which may see several slices at once; or
            "generic", any function of slices.
    """
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(
            f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}"
        )
    leaves, form = _pytree.tree_flatten(xs)
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    if not all(isinstance(leaf, rushlight.Tensor) for leaf in leaves):
        raise ValueError("xs leaves must be a Tensor")
    dims = {leaf.dim() for leaf in leaves}
    if min(dims) == 0 or not all(-d <= dim < d for d in dims):
        raise ValueError("xs leaves must have a dimension dim")
    rows = [leaf.movedim(dim, 0) for leaf in leaves]
    length = rows[0].shape[0]
    if length == 0 or any(row.shape[0] != length for row in rows):
        raise ValueError("xs leaves must have the same size along dim, which is not 0")

    def both(a, b):
        return combine_fn(_pytree.tree_unflatten(a, form), _pytree.tree_unflatten(b, form))

    # Functions of slices see slices: one call for each pair, mapped over the first dimension.
    call = rushlight.vmap(both) if combine_mode == "generic" else both
    if reverse:
        rows = [row.flip(0) for row in rows]

    def combine(a, b):
        out = _pytree.tree_leaves(call(a, b))
        if len(out) != len(a):
            raise RuntimeError("The combine_fn must give as many leaves as it takes")
        return out

    def scan(rows):
        count = rows[0].shape[0]
        if count == 1:
            return rows
        pairs = combine([r[0 : count - 1 : 2] for r in rows], [r[1::2] for r in rows])
        odd = scan(pairs)
        out = []
        even = [r[:1] for r in rows]
        if count > 2:
            last = (count - 1) // 2
            later = combine([o[:last] for o in odd], [r[2::2] for r in rows])
            even = [rushlight.cat(parts) for parts in zip(even, later, strict=True)]
        for e, o in zip(even, odd, strict=True):
            woven = rushlight.stack([e[: o.shape[0]], o], 1).flatten(0, 1)
            out.append(rushlight.cat([woven, e[o.shape[0] :]]))
        return out

    result = scan(rows)
    if reverse:
        result = [row.flip(0) for row in result]
    return _pytree.tree_unflatten([row.movedim(0, dim) for row in result], form)
