"""Lowerings of softmax and its kin."""

from __future__ import annotations

from rushlight.onnx._builder import Builder, Value
from rushlight.onnx._registry import lowers

__all__: list[str] = []  # lowerings are found by the names of their ops


def softmax(g: Builder, x: Value, dim: int, kind: str = "Softmax") -> Value:
    """Shares that sum to 1 along a dimension, or their logarithms."""
    if x.rank == 0:
        return g.squeeze(g.op(kind, g.unsqueeze(x, 0), axis=0), 0)
    return g.op(kind, x, axis=dim)


@lowers("aten.softmax.int", "aten._softmax.default", "aten.special_softmax.default")
def softmax_int(g: Builder, self: Value, dim: int) -> Value:
    return softmax(g, g.cast(self, g.result.dtype), dim)


@lowers("aten.log_softmax.int", "aten._log_softmax.default", "aten.special_log_softmax.default")
def log_softmax(g: Builder, self: Value, dim: int) -> Value:
    return softmax(g, g.cast(self, g.result.dtype), dim, "LogSoftmax")
