"""Attention of several heads with its projections; `multi_head_attention_forward` is public in
`nn.functional`. Layers call `attend`, which takes either order of batch and length as it lies."""

import math
import warnings

import rushlight
from rushlight._table import ops

from ._arguments import _probability

_INFINITY = float("inf")


def _additive(mask, name, other, other_name, dtype):
    """A mask as numbers to be added: -inf where a boolean one is True."""
    if mask is None:
        return None
    if mask.dtype != rushlight.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if other is not None and mask.dtype != other.dtype:
        warnings.warn(
            f"Support for mismatched {name} and {other_name} is deprecated. Use same type for "
            "both instead.",
            stacklevel=3,
        )
    if mask.is_floating_point():
        return mask
    return rushlight.zeros_like(mask, dtype=dtype).masked_fill_(mask, -_INFINITY)


def _check_dims(query, key, value, key_padding_mask, attn_mask, num_heads):
    """True for a batch; AssertionError where the dimensions do not fit each other."""
    if query.dim() not in (2, 3):
        raise AssertionError(
            "query should be unbatched 2D or batched 3D tensor but received "
            f"{query.dim()}-D query tensor"
        )
    n = query.dim()
    kind = "batched" if n == 3 else "unbatched"
    if key.dim() != n or value.dim() != n:
        raise AssertionError(
            f"For {kind} ({n}-D) `query`, expected `key` and `value` to be {n}-D but found "
            f"{key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != n - 1:
        raise AssertionError(
            f"For {kind} ({n}-D) `query`, expected `key_padding_mask` to be `None` or {n - 1}-D "
            f"but found {key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"For {kind} ({n}-D) `query`, expected `attn_mask` to be `None`, 2-D or 3-D but "
                f"found {attn_mask.dim()}-D tensor instead"
            )
        if n == 2 and attn_mask.dim() == 3:
            expected = (num_heads, query.shape[0], key.shape[0])
            if tuple(attn_mask.shape) != expected:
                raise AssertionError(
                    f"Expected `attn_mask` shape to be {expected} but got {tuple(attn_mask.shape)}"
                )
    return n == 3


def _project(query, key, value, weight, bias):
    """The three inputs through the rows of one weight; one product where they are the same."""
    width = query.shape[-1]
    if key is value:
        if query is key:
            return ops.linear(query, weight, bias).chunk(3, -1)
        q = ops.linear(query, weight[:width], None if bias is None else bias[:width])
        k, v = ops.linear(key, weight[width:], None if bias is None else bias[width:]).chunk(2, -1)
        return q, k, v
    weights = weight.chunk(3)
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    inputs = (query, key, value)
    return [ops.linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True)]


def attend(
    query,
    key,
    value,
    embed_dim,
    num_heads,
    in_proj,
    bias_k,
    bias_v,
    add_zero_attn,
    dropout_p,
    out_proj,
    training,
    key_padding_mask,
    need_weights,
    attn_mask,
    static_k,
    static_v,
    average_attn_weights,
    is_causal,
    batch_first,
):
    """Attention and its weights (None unless needed).

    `in_proj` is (weight, bias) for all three inputs or ((q, k, v weights), bias); `out_proj` is
    (weight, bias). Inputs are (length, batch, width), with `batch_first` (batch, length, width),
    or (length, width).
    """
    batched = _check_dims(query, key, value, key_padding_mask, attn_mask, num_heads)
    batch_dim = 0 if batch_first else 1
    if not batched:
        same = key is query, value is key
        query = query.unsqueeze(batch_dim)
        key = query if same[0] else key.unsqueeze(batch_dim)
        value = key if same[1] else value.unsqueeze(batch_dim)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length_dim = 1 - batch_dim
    batch, length = query.shape[batch_dim], query.shape[length_dim]
    width = query.shape[-1]
    if width != embed_dim:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim}, but got {width}")
    head_dim = width // num_heads
    if head_dim * num_heads != width:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {num_heads}")
    key_padding_mask = _additive(
        key_padding_mask, "key_padding_mask", attn_mask, "attn_mask", query.dtype
    )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method `generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None  # the kernel knows it
    else:
        attn_mask = _additive(attn_mask, "attn_mask", None, "", query.dtype)
        is_causal = is_causal and key_padding_mask is None and attn_mask is None
    weight, bias = in_proj
    if isinstance(weight, tuple):
        if any(w is None for w in weight):
            raise AssertionError("use_separate_proj_weight is True but a projection is None")
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's "
                f"{value.shape[:2]}"
            )
        biases = (None,) * 3 if bias is None else bias.chunk(3)
        parts = zip((query, key, value), weight, biases, strict=True)
        q, k, v = (ops.linear(x, w, b) for x, w, b in parts)
    else:
        if weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        if key.shape != value.shape:
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        q, k, v = _project(query, key, value, weight, bias)
    if attn_mask is not None:
        expected: tuple[int, ...] = (length, key.shape[length_dim])
        if attn_mask.dim() == 3:
            expected = (batch * num_heads, *expected)
        if tuple(attn_mask.shape) != expected:
            raise RuntimeError(
                f"The shape of the {attn_mask.dim()}D attn_mask is {tuple(attn_mask.shape)}, but "
                f"should be {expected}."
            )
    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("bias cannot be added to static key or value.")
        one = (batch, 1, width) if batch_first else (1, batch, width)
        k = rushlight.cat([k, bias_k.expand(one)], length_dim)
        v = rushlight.cat([v, bias_v.expand(one)], length_dim)
        attn_mask = None if attn_mask is None else ops.pad(attn_mask, (0, 1))
        key_padding_mask = None if key_padding_mask is None else ops.pad(key_padding_mask, (0, 1))
    elif bias_k is not None or bias_v is not None:
        raise AssertionError("bias_k and bias_v must be given together")

    def heads(x):
        """(batch, heads, length, head_dim), in place."""
        x = x.unflatten(-1, (num_heads, head_dim))
        return x.transpose(1, 2) if batch_first else x.permute(1, 2, 0, 3)

    def static(name, x):
        if x.shape[0] != batch * num_heads or x.shape[2] != head_dim:
            raise AssertionError(
                f"expecting {name} of shape ({batch * num_heads}, *, {head_dim}), but got "
                f"{tuple(x.shape)}"
            )
        return x.unflatten(0, (batch, num_heads))

    q = heads(q)
    k = heads(k) if static_k is None else static("static_k", static_k)
    v = heads(v) if static_v is None else static("static_v", static_v)
    if add_zero_attn:
        nothing = k.new_zeros((batch, num_heads, 1, head_dim))
        k, v = rushlight.cat([k, nothing], 2), rushlight.cat([v, nothing], 2)
        attn_mask = None if attn_mask is None else ops.pad(attn_mask, (0, 1))
        key_padding_mask = None if key_padding_mask is None else ops.pad(key_padding_mask, (0, 1))
    if attn_mask is not None and attn_mask.dim() == 3:
        attn_mask = attn_mask.unflatten(0, (batch, num_heads))
    if key_padding_mask is not None:
        if tuple(key_padding_mask.shape) != (batch, k.shape[2]):
            raise AssertionError(
                f"expecting key_padding_mask shape of {(batch, k.shape[2])}, but got "
                f"{tuple(key_padding_mask.shape)}"
            )
        padding = key_padding_mask[:, None, None, :]
        attn_mask = padding if attn_mask is None else attn_mask + padding
    if not training:
        dropout_p = 0.0
    weights = None
    if need_weights:
        scores = (q * math.sqrt(1.0 / head_dim)) @ k.transpose(-2, -1)
        weights = ops.softmax(scores if attn_mask is None else scores + attn_mask, -1)
        if dropout_p > 0.0:
            weights = ops.dropout(weights, _probability(dropout_p), True)
        joined = (weights @ v).transpose(1, 2)
        if average_attn_weights:
            weights = weights.mean(1)
    else:
        joined = ops.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal)
        joined = joined.transpose(1, 2)
    if not batch_first:
        joined = joined.transpose(0, 1)
    output = ops.linear(joined.reshape(*joined.shape[:2], width), *out_proj)
    if not batched:
        output = output.squeeze(batch_dim)
        weights = weights if weights is None else weights.squeeze(0)
    return output, weights


def multi_head_attention_forward(
    query,
    key,
    value,
    embed_dim_to_check,
    num_heads,
    in_proj_weight,
    in_proj_bias,
    bias_k,
    bias_v,
    add_zero_attn,
    dropout_p,
    out_proj_weight,
    out_proj_bias,
    training=True,
    key_padding_mask=None,
    need_weights=True,
    attn_mask=None,
    use_separate_proj_weight=False,
    q_proj_weight=None,
    k_proj_weight=None,
    v_proj_weight=None,
    static_k=None,
    static_v=None,
    average_attn_weights=True,
    is_causal=False,
):
    """What `nn.MultiheadAttention` computes, with all its parameters given.

    Inputs are (length, batch, width) or (length, width). Returns the output, of the query's shape,
    and the weights (batch, length, keys), one for each head unless averaged, or None.
    """
    weight = in_proj_weight
    if use_separate_proj_weight:
        weight = (q_proj_weight, k_proj_weight, v_proj_weight)
    return attend(
        query,
        key,
        value,
        embed_dim_to_check,
        num_heads,
        (weight, in_proj_bias),
        bias_k,
        bias_v,
        add_zero_attn,
        dropout_p,
        (out_proj_weight, out_proj_bias),
        training,
        key_padding_mask,
        need_weights,
        attn_mask,
        static_k,
        static_v,
        average_attn_weights,
        is_causal,
        False,
    )
