"""Functions written over ops that take `out=`, as ops do."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import Tensor

# What unwrapping looks for.
_MARK = "_torch_decompositions_out_wrapper"


def out_wrapper(*out_names: str, exact_dtype: bool = False) -> Callable[[Callable], Callable]:
    """Give a function the keyword argument `out`, by the rules of ops.

    out_names: of the fields where several tensors are returned; `out` is then a tuple of as many.
    exact_dtype: RuntimeError if `out` has another dtype than the result.
    """
    names = out_names or ("out",)

    def write(result: Tensor, out: Tensor) -> Tensor:
        if not isinstance(out, Tensor):
            raise TypeError(f"out must be Tensor, not {type(out).__name__}")
        if exact_dtype and out.dtype != result.dtype:
            raise RuntimeError(
                f"Expected out tensor to have dtype {result.dtype} but got {out.dtype} instead"
            )
        return rushlight.alias_copy(result, out=out)

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapper(*args: Any, out: Any = None, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            if out is None:
                return result
            if len(names) == 1:
                return write(result, out)
            if not isinstance(out, (tuple, list)) or len(out) != len(names):
                raise TypeError(f"out must be a tuple of {len(names)} tensors: {', '.join(names)}")
            written = [write(r, o) for r, o in zip(result, out, strict=True)]
            return type(result)(*written) if hasattr(result, "_fields") else tuple(written)

        setattr(wrapper, _MARK, f"This function is wrapped by {__name__}.out_wrapper")
        return wrapper

    return decorate


def _maybe_remove_out_wrapper(fn: Callable) -> Callable:
    """The function that `out_wrapper` was given, or one that it was not."""
    return inspect.unwrap(fn, stop=lambda f: not hasattr(f, _MARK))
