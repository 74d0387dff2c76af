"""Multi-head attention of nested tensors: each sequence attends to its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rushlight

if TYPE_CHECKING:
    from rushlight.nn._attention import Heads

__all__: list[str] = []


def attend(
    layer: Heads,
    query: rushlight.Tensor,
    key: rushlight.Tensor,
    value: rushlight.Tensor,
    batch_first: bool,
) -> rushlight.Tensor:
    """The output of attention, nested as the query is, (batch, length, width).

    Args:
        layer: the weights, `nn._attention.Heads`.
    """
    inputs = (query, key, value)
    if not all(t.is_nested for t in inputs):
        raise AssertionError(
            "MultiheadAttention does not support NestedTensor outside of its fast path: query, key "
            "and value must all be nested"
        )
    if not batch_first or any(t.dim() != 3 for t in inputs):
        raise AssertionError(
            "MultiheadAttention does not support NestedTensor outside of its fast path: it takes "
            "3-D ones (batch, length, width), with batch_first=True"
        )
    if layer.bias_k is not None or layer.add_zero_attn:
        raise AssertionError(
            "MultiheadAttention does not support NestedTensor outside of its fast path: "
            "add_bias_kv and add_zero_attn are for plain tensors"
        )
    functional = rushlight.nn.functional
    weights = layer.weight if isinstance(layer.weight, tuple) else layer.weight.chunk(3)
    biases = (None,) * 3 if layer.bias is None else layer.bias.chunk(3)
    heads = [
        functional.linear(t, w, b).unflatten(-1, (layer.num_heads, -1)).transpose(1, 2)
        for t, w, b in zip(inputs, weights, biases, strict=True)
    ]
    out = functional.scaled_dot_product_attention(*heads, dropout_p=layer.dropout)
    joined = out.transpose(1, 2).reshape(query.size(0), -1, layer.embed_dim)
    return functional.linear(joined, layer.out_weight, layer.out_bias)
