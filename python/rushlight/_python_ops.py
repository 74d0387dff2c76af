"""`rushlight.ops`, with those ops of PyTorch's that are Python here: `ops.aten._pin_memory`."""

from __future__ import annotations

import rushlight
from rushlight import _C
from rushlight._library import registry
from rushlight._library import schema as schemas
from rushlight._ops import ops

__all__ = ["ops"]


def _op(schema: str):
    """Decorates what an op of that schema does, made of other ops."""

    def define(function):
        registry.define(schemas.parse(schema, "aten")).composite = function
        return function

    return define


@_op("_pin_memory(Tensor self, Device? device=None) -> Tensor")
def _pin_memory(self, device=None):
    return _C._pin_memory(self)


@_op(
    "_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> "
    "Tensor"
)
def _sparse_addmm(self, mat1, mat2, beta=1, alpha=1):
    return rushlight.addmm(self, mat1, mat2, beta=beta, alpha=alpha)
