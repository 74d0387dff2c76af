"""Lowering of attention."""

from __future__ import annotations

import math
from typing import Any

import rushlight
from rushlight.onnx._builder import Builder, Unsupported, Value
from rushlight.onnx._registry import lowers

__all__: list[str] = []  # lowerings are found by the names of their ops


def _causal_mask(g: Builder, rows: Any, columns: Any) -> Value:
    """True at and below the diagonal."""
    if isinstance(rows, int) and isinstance(columns, int):
        return g.constant(rushlight.ones(rows, columns, dtype=rushlight.bool).tril())
    ones = g.full([rows, columns], 1, rushlight.int32)
    return g.cast(g.Trilu(ones, g.int64(0), upper=0), rushlight.bool)


def _heads_repeated(g: Builder, x: Value, heads: int) -> Value:
    """Keys or values with as many heads as queries have, each head for a group of those."""
    *batch, own, length, size = x.sizes
    if own == heads:
        return x
    x = g.unsqueeze(x, len(batch) + 1)
    x = g.Expand(x, g.vector([*batch, own, heads // own, length, size]))
    return g.reshape(x, [*batch, heads, length, size])


@lowers("aten.scaled_dot_product_attention.default")
def attention(
    g: Builder,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> Value:
    if dropout_p:
        raise Unsupported("attention with dropout (call eval() before the export)")
    if enable_gqa:
        heads = g.size(query, -3)
        key, value = _heads_repeated(g, key, heads), _heads_repeated(g, value, heads)
    size = g.size(query, -1)
    if scale is None:
        if not isinstance(size, int):
            raise Unsupported("attention over features of which the number is not constant")
        scale = 1 / math.sqrt(size)
    scores = g.MatMul(g.Mul(query, scale), g.swap(key, -1, -2))
    if is_causal:
        attn_mask = _causal_mask(g, g.size(query, -2), g.size(key, -2))
    if attn_mask is None:
        shares = g.Softmax(scores, axis=-1)
    elif attn_mask.dtype == rushlight.bool:
        lowest = g.constant(-math.inf, query.dtype)
        shares = g.Softmax(g.Where(attn_mask, scores, lowest), axis=-1)
    else:
        shares = g.Softmax(g.Add(scores, attn_mask), axis=-1)
    if attn_mask is not None and not is_causal:
        # A query without any key gives zeros.
        shares = g.Where(g.IsNaN(shares), g.constant(0.0, query.dtype), shares)
    return g.MatMul(shares, value)
