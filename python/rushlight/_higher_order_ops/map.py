"""A function of each slice of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight import Tensor
from rushlight._higher_order_ops import utils
from rushlight._higher_order_ops.utils import _stack_pytree, _unstack_pytree
from rushlight.utils import _pytree

__all__ = ["map"]


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """What `f(slice, *args)` gives for each slice of `xs` along the first dimension, stacked.

    Args:
        f: a function whose result is a tensor, None, or a container of them.
        xs: a tensor, or a container of tensors of one length.
        args: further arguments of each call.
    """
    if utils.tracer is not None:
        return utils.tracer.map(f, xs, args)
    results = [f(part, *args) for part in _unstack_pytree(xs)]
    for leaf in _pytree.tree_leaves(results):
        if leaf is not None and not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"Expect outputs of map only contains tensors or None. Got {type(leaf)}."
            )
    return _stack_pytree(results)
