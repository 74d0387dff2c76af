"""`vmap` under the names that it had before `func`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from rushlight._transforms.vmap import vmap as _mapped
from rushlight._warnings import warn


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """`rushlight.vmap`, which new code takes."""
    warn("Please use torch.vmap instead of torch._vmap_internals.vmap.", FutureWarning)
    return _vmap(func, in_dims, out_dims)


def _vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    allow_none_pass_through: bool = False,
) -> Callable[..., Any]:
    """A function mapped over a batch.

    Args:
        allow_none_pass_through: a result may be None, and is None then.
    """
    if not allow_none_pass_through:
        return _mapped(func, in_dims, out_dims)

    @functools.wraps(func)
    def wrapper(*args):
        forms: list[tuple[bool, list[bool]]] = []

        def without_nones(*given):
            made = func(*given)
            results = made if isinstance(made, tuple) else (made,)
            forms.append((isinstance(made, tuple), [r is None for r in results]))
            return tuple(r for r in results if r is not None)

        # Which results are None is known only when the function has run.
        dims = out_dims if isinstance(out_dims, int) else None
        if dims is None:
            raise ValueError("vmap: out_dims must be one int where results may be None")
        found = iter(_mapped(without_nones, in_dims, dims)(*args))
        several, absent = forms[-1]
        results = tuple(None if a else next(found) for a in absent)
        return results if several else results[0]

    return wrapper
