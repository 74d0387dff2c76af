"""What tests of programs that are compiled elsewhere use: tensors by strides, patched classes."""

from __future__ import annotations

import contextlib
import functools
import unittest
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

import rushlight
from rushlight import Tensor
from rushlight._dynamo._graphs import count_ops
from rushlight._prims_common import is_float_dtype
from rushlight.fx import GraphModule

__all__ = ["CompileCounter", "make_test_cls_with_patches", "rand_strided"]


def _with_patches(function: Callable, patches: Sequence[tuple[Any, str, Any]]) -> Callable:
    """A function that runs while attributes have other values."""

    @functools.wraps(function)
    def call_with_patches(*args, **kwargs):
        with contextlib.ExitStack() as stack:
            for place, name, value in patches:
                stack.enter_context(patch.object(place, name, value))
            return function(*args, **kwargs)

    return call_with_patches


class CompileCounter:
    """A backend that counts its graphs and the ops in them, and runs them as they are."""

    def __init__(self) -> None:
        self.clear()

    def __call__(self, gm: GraphModule, example_inputs: list[Tensor]) -> Callable[..., Any]:
        self.frame_count += 1
        self.op_count += count_ops(gm)
        return gm.forward

    def clear(self) -> None:
        """Begin to count again."""
        self.frame_count = 0
        self.op_count = 0


def make_test_cls_with_patches(
    cls: type,
    cls_prefix: str,
    fn_suffix: str,
    *patches: tuple[Any, str, Any],
    xfail_prop: str | None = None,
    decorator: Callable[[Callable], Callable] = lambda test: test,
) -> type:
    """A class of the tests of `cls`, each of which runs while attributes have other values.

    Args:
        cls_prefix: a prefix for the name of the class.
        fn_suffix: a suffix for the names of tests.
        patches: a module or another object, the name of an attribute, its value.
        xfail_prop: tests with an attribute of this name are expected to fail.
        decorator: is put around every test.
    """
    attributes = {name: getattr(cls, name) for name in dir(cls)}
    tests = {n: v for n, v in attributes.items() if n.startswith("test_") and callable(v)}
    made = type(cls_prefix + cls.__name__, cls.__bases__, {})
    made.__qualname__ = made.__name__
    for name in attributes.keys() - tests.keys() - set(dir(made)):
        setattr(made, name, attributes[name])
    for name, value in tests.items():
        test = _with_patches(value, patches)
        test.__name__ += fn_suffix
        if hasattr(value, xfail_prop or ""):
            test = unittest.expectedFailure(test)
        setattr(made, name + fn_suffix, decorator(test))
    return made


def rand_strided(
    size: Sequence[int],
    stride: Sequence[int],
    dtype: rushlight.dtype = rushlight.float32,
    device: str | rushlight.device = "cpu",
    extra_size: int = 0,
) -> Tensor:
    """Random floats, or zeros of another dtype, with the given strides.

    extra_size: how many elements the memory has behind the last one.
    """
    length = 1 + extra_size + sum((n - 1) * s for n, s in zip(size, stride, strict=False))
    if not is_float_dtype(dtype):
        memory = rushlight.zeros(length, dtype=dtype, device=device)
    elif dtype.itemsize == 1:
        memory = rushlight.randn(length, device=device).to(dtype)
    else:
        memory = rushlight.randn(length, dtype=dtype, device=device)
    return memory.as_strided(size, stride)
