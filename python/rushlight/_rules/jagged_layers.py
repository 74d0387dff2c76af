"""The rules of jagged nested tensors for products and neural networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import rushlight
from rushlight._rules import jagged_ops as layout
from rushlight._rules import jagged_shapes  # noqa: F401  # enters its rules
from rushlight._rules.attention import check_attention
from rushlight._rules.jagged import meet
from rushlight._rules.jagged_ops import components, rule
from rushlight.nested._internal.nested_tensor import values_of, wrap
from rushlight.nested._padding import like_padded, to_padded

__all__ = ["layout"]

# ---- products ----


@rule("linear")
def _linear(
    func: Callable[..., Any],
    t: rushlight.Tensor,
    weight: rushlight.Tensor,
    bias: rushlight.Tensor | None = None,
) -> rushlight.Tensor:
    if not t.is_nested or any(p is not None and p.is_nested for p in (weight, bias)):
        raise RuntimeError("linear(): only the input may be nested")
    if t._ragged_idx == t.dim() - 1:
        raise ValueError(
            "linear(): expected input to be a contiguous jagged layout NestedTensor, whose last "
            "dimension is not ragged"
        )
    return t._with_values(func(values_of(t), weight, bias))


@rule("matmul bmm __matmul__ __rmatmul__")
def _matmul(func, a, b):
    def refuse() -> NoReturn:
        shapes = " and ".join(str(tuple(t.shape)) for t in (a, b))
        raise RuntimeError(f"matmul(): not supported between inputs of shapes {shapes}")

    if func.__name__ == "bmm" and (a.dim() != 3 or b.dim() != 3):
        raise RuntimeError("bmm(): both matrices must be 3-D")
    if a.is_nested and b.is_nested:
        same = a.shape[a._ragged_idx] == b.shape[b._ragged_idx] and a.dim() == b.dim()
        summed = a._ragged_idx == a.dim() - 1 and b._ragged_idx == b.dim() - 2
        beside = a._ragged_idx == b._ragged_idx < a.dim() - 2
        if not same or not (summed or beside):
            refuse()
        if beside:
            return a._with_values(rushlight.matmul(values_of(a), values_of(b)))
        return rushlight.matmul(to_padded(a, 0), to_padded(b, 0))
    if a.is_nested:
        if b.dim() == 2 and a._ragged_idx < a.dim() - 1:
            return a._with_values(rushlight.matmul(values_of(a), b))
        if b.dim() != a.dim() or a._ragged_idx == a.dim() - 1 or b.shape[0] != a.shape[0]:
            refuse()
        return like_padded(a, rushlight.matmul(to_padded(a, 0), b))
    if b._ragged_idx == b.dim() - 2 or a.dim() not in (2, b.dim()):
        refuse()
    return like_padded(b, rushlight.matmul(a, to_padded(b, 0)))


# ---- neural networks ----


def _behind_ragged(t, shape, name):
    shape = [shape] if isinstance(shape, int) else list(shape)
    if len(shape) > t._values.dim() - t._ragged_idx:
        raise RuntimeError(
            f"{name}(): normalizing over ragged dim not supported for nested tensors"
        )


@rule("layer_norm rms_norm native_layer_norm")
def _layer_norm(func, t, normalized_shape, *args, **kwargs):
    _behind_ragged(t, normalized_shape, func.__name__)
    return t._with_values(func(values_of(t), normalized_shape, *args, **kwargs))


@rule("scaled_dot_product_attention")
def _attention(
    func, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
    enable_gqa=False,
):  # fmt: skip
    check_attention(query, key, value, attn_mask)
    dims = {t.dim() for t in (query, key, value)}
    if len(dims) > 1 or dims.pop() not in (3, 4):
        raise ValueError(
            "scaled_dot_product_attention(): expected query, key and value of 3 or 4 dimensions"
        )
    if all(t._ragged_idx < t.dim() - 2 for t in (query, key, value)):
        meet("scaled_dot_product_attention", (query, key, value))
        rows = [values_of(t) for t in (query, key, value)]
        made = func(*rows, None, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
        return query._with_values(made)
    if any(t._ragged_idx != t.dim() - 2 for t in (query, key, value)):
        raise RuntimeError(
            "scaled_dot_product_attention(): the ragged dimension must be the last but one"
        )
    parts = [components(t) for t in (query, key, value)]
    out = [
        func(*(p.unsqueeze(0) for p in each), None, dropout_p, is_causal, scale=scale,
             enable_gqa=enable_gqa).squeeze(0)
        for each in zip(*parts, strict=True)
    ]  # fmt: skip
    ragged = query._ragged_idx
    if query._lengths is None:
        return wrap(rushlight.cat(out, ragged - 1), *query._about())
    lengths = rushlight.nn.functional.pad(query._lengths.cumsum(0), (1, 0))
    return wrap(rushlight.cat(out, ragged - 1), lengths, None, ragged)
