"""The transforms, and `vmap` by a number of chunks."""

from __future__ import annotations

import functools
from typing import Any

from rushlight._transforms.vmap import _process_batched_inputs
from rushlight.func import grad, grad_and_value, vmap

__all__ = ["chunk_vmap", "grad", "grad_and_value", "vmap"]


def chunk_vmap(
    func, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", chunks: int = 2
):
    """`vmap` that computes the slices in a number of chunks, one after the other."""

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        batch = _process_batched_inputs(in_dims, args, func)[0]
        size = max(-(-batch // chunks), 1)
        mapped = vmap(func, in_dims, out_dims, randomness, chunk_size=size)
        return mapped(*args, **kwargs)

    return wrapper
