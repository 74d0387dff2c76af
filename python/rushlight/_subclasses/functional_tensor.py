"""Tensors without writes in place, which PyTorch's compiler traces: there are none."""

from __future__ import annotations

import contextlib

from rushlight import _refused

__all__ = [
    "FunctionalTensor",
    "FunctionalTensorMode",
    "disable_functional_mode",
    "mb_unwrap_functional_tensor",
]

_WHY = "programs are not traced for a compiler"

FunctionalTensor = _refused.kind("FunctionalTensor", __name__, _WHY)
FunctionalTensorMode = _refused.kind("FunctionalTensorMode", __name__, _WHY)


@contextlib.contextmanager
def disable_functional_mode():
    """Accepted: there is no such mode."""
    yield


def mb_unwrap_functional_tensor(tensor):
    """The tensor itself: it is none."""
    return tensor
