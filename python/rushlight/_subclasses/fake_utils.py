"""`CrossRefFakeMode`: whether fake tensors say what real ones turn out to be."""

from __future__ import annotations

import rushlight
from rushlight import Tensor
from rushlight._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    MetadataMismatchError,
    UnsupportedFakeTensorException,
)
from rushlight.utils import _pytree
from rushlight.utils._python_dispatch import TorchDispatchMode

_UNKNOWN = (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedFakeTensorException,
)


class CrossRefFakeMode(TorchDispatchMode):
    """Runs every op on fakes, too, and compares sizes, dtypes and devices, and strides if asked.

    Args:
        ignore_op_fn: takes an op and says whether it is left alone.
        check_strides: compares strides, too.

    Raises:
        MetadataMismatchError: a fake result differs from the real one.
    """

    def __init__(self, ignore_op_fn=None, *, check_strides=True):
        self._ignored = ignore_op_fn or (lambda func: False)
        self._checked = ["shape", "dtype", "device"]
        if check_strides:
            self._checked.append("stride")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        fakes = None
        if func is not rushlight.ops.aten.lift_fresh.default and not self._ignored(func):
            mode = FakeTensorMode()
            given = _pytree.tree_map_only(Tensor, mode.from_tensor, (args, kwargs))
            try:
                with mode:
                    fakes = func(*given[0], **given[1])
            except _UNKNOWN:
                fakes = None
        result = func(*args, **kwargs)
        if fakes is None:
            return result
        pairs = zip(_pytree.tree_leaves(result), _pytree.tree_leaves(fakes), strict=True)
        for real, fake in pairs:
            if not isinstance(real, Tensor):
                continue
            for what in self._checked:
                a, b = getattr(real, what), getattr(fake, what)
                a, b = (a(), b()) if callable(a) else (a, b)
                if a != b and not (what == "stride" and real.numel() < 2):
                    raise MetadataMismatchError(f"{func}: {what} is {a}, of the fake {b}")
        return result
