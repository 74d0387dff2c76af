"""Lowerings of padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight.onnx._builder import Builder, Unsupported, Value
from rushlight.onnx._registry import lowers

__all__: list[str] = []  # lowerings are found by the names of their ops

_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def padded(g: Builder, x: Value, pad: Sequence[Any], mode: str, value: Any) -> Value:
    """A tensor with more, or fewer, elements at the ends of its last dimensions."""
    n = len(pad) // 2
    # Pairs begin with the last dimension.
    less, more = [list(pad[i::2])[::-1] for i in (0, 1)]
    dims = range(x.rank - n, x.rank)
    if mode == "circular":
        return _wrapped(g, x, list(dims), less, more)
    number = g.constant(0 if value is None else value, x.dtype) if mode == "constant" else None
    taken = g.cast(x, rushlight.int32) if x.dtype == rushlight.bool else x
    if taken is not x and number is not None:
        number = g.cast(number, rushlight.int32)
    sizes = g.vector([*less, *more])
    return g.cast(g.Pad(taken, sizes, number, g.int64(list(dims)), mode=_MODES[mode]), x.dtype)


def _wrapped(g: Builder, x: Value, dims: list[int], less: list[Any], more: list[Any]) -> Value:
    """Circular padding, which the op knows only from version 19 on."""
    for dim, a, b in zip(dims, less, more, strict=True):
        if not (isinstance(a, int) and isinstance(b, int)):
            raise Unsupported("circular padding by sizes that are not constant")
        if min(a, b) < 0:  # elements go first
            x = g.slice(x, dim, max(-a, 0), min(b, 0) or 2**62)
            a, b = max(a, 0), max(b, 0)
        parts = [g.slice(x, dim, -a, 2**62)] if a else []
        parts += [x, *([g.slice(x, dim, 0, b)] if b else [])]
        x = g.Concat(*parts, axis=dim) if len(parts) > 1 else x
    return x


@lowers("aten.pad.default")
def pad(g: Builder, self: Value, pad: Sequence[Any], mode: str, value: float | None) -> Value:
    return padded(g, self, pad, mode, value)


@lowers("aten.constant_pad_nd.default")
def constant_pad(g: Builder, self: Value, pad: Sequence[Any], value: Any) -> Value:
    return padded(g, self, pad, "constant", value)
