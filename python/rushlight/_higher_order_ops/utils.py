"""Containers of tensors as lists of containers, one for each slice, and back."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import Tensor
from rushlight.utils import _pytree

tracer: Any = None  # set while a program is exported: it writes branches and loops into a graph


def _unstack_pytree(xs: Any) -> list[Any]:
    """A container for each slice along the first dimension, which all tensors of `xs` share.

    Raises:
        RuntimeError: there is something that is no tensor, or there are no slices.
    """
    leaves, form = _pytree.tree_flatten(xs)
    if not leaves or not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise RuntimeError(f"Mapped xs can only consist of tensors. Got xs {leaves}.")
    shapes = [leaf.shape for leaf in leaves]
    if any(not shape for shape in shapes):
        raise IndexError(f"Mapped xs need a leading dimension. Got shapes {shapes}.")
    if len({shape[0] for shape in shapes}) > 1:
        raise RuntimeError(f"Leading dimensions of mapped xs must be consistent. Got {shapes}.")
    if shapes[0][0] == 0:
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    slices = zip(*(leaf.unbind() for leaf in leaves), strict=True)
    return [_pytree.tree_unflatten(list(part), form) for part in slices]


def _stack_pytree(pytrees: list[Any]) -> Any:
    """The containers as one, of stacked tensors; None stays None.

    Raises:
        RuntimeError: there is something that is neither a tensor nor None.
    """

    def stack(*leaves: Any) -> Any:
        if all(isinstance(leaf, Tensor) for leaf in leaves):
            return rushlight.stack(leaves)
        if any(leaf is not None for leaf in leaves):
            raise RuntimeError(f"Cannot stack {leaves}: tensors are wanted, or None everywhere.")
        return None

    first, *others = pytrees
    return _pytree.tree_map(stack, first, *others)
