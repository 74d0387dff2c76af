"""Attention of several heads with its projections; `multi_head_attention_forward` is public in
`nn.functional`. Layers call `attend`, which takes either order of batch and length as it lies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import rushlight
from rushlight import Tensor
from rushlight._table import ops
from rushlight._warnings import warn

from ._arguments import _probability

_INFINITY = float("inf")


def _none_or_dtype(input: Tensor | None) -> rushlight.dtype | None:
    """The dtype of a tensor, None without one."""
    return None if input is None else input.dtype


def _canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: rushlight.dtype | None,
    other_name: str,
    target_type: rushlight.dtype,
    check_other: bool = True,
) -> Tensor | None:
    """A mask as numbers to be added: -inf where a boolean one is True."""
    if mask is None:
        return None
    if mask.dtype != rushlight.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated: they are "
            f"{mask.dtype} and {other_type}, make both the same",
        )
    if mask.is_floating_point():
        return mask
    return rushlight.zeros_like(mask, dtype=target_type).masked_fill_(mask, -_INFINITY)


def _mha_shape_check(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
    num_heads: int,
) -> bool:
    """True for a batch; AssertionError if the dimensions do not fit each other."""
    if query.dim() not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D, not of shape {query.shape}"
        )
    n = query.dim()
    kind = "batched" if n == 3 else "unbatched"
    if key.dim() != n or value.dim() != n:
        raise AssertionError(
            f"For {kind} ({n}-D) `query`, expected `key` and `value` to be {n}-D, not "
            f"{key.dim()}-D and {value.dim()}-D"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != n - 1:
        raise AssertionError(
            f"For {kind} ({n}-D) `query`, expected `key_padding_mask` to be `None` or {n - 1}-D "
            f"and not {key_padding_mask.dim()}-D"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"For {kind} ({n}-D) `query`, expected `attn_mask` to be 2-D or 3-D, not "
                f"{attn_mask.dim()}-D"
            )
        if n == 2 and attn_mask.dim() == 3:
            expected = (num_heads, query.shape[0], key.shape[0])
            if tuple(attn_mask.shape) != expected:
                raise AssertionError(
                    f"Expected `attn_mask` shape to be {expected} but got {tuple(attn_mask.shape)}"
                )
    return n == 3


def _in_projection_packed(q, k, v, w, b=None):
    """Query, key and value through the three parts of one weight (3 E, E)."""
    return _project_each((q, k, v), w.chunk(3), b)


def _in_projection(q, k, v, w_q, w_k, w_v, b_q=None, b_k=None, b_v=None):
    """Query (..., E), key and value through a weight each, to the width of the query.

    Raises:
        AssertionError: if a weight is not (E, width of its input), or a bias not (E,).
    """
    width = q.size(-1)
    projected = []
    for name, x, weight, bias in (
        ("query", q, w_q, b_q),
        ("key", k, w_k, b_k),
        ("value", v, w_v, b_v),
    ):
        if tuple(weight.shape) != (width, x.size(-1)):
            raise AssertionError(
                f"expecting {name} weights shape of {(width, x.size(-1))}, but got "
                f"{tuple(weight.shape)}"
            )
        if bias is not None and tuple(bias.shape) != (width,):
            raise AssertionError(
                f"expecting {name} bias shape of {(width,)}, but got {tuple(bias.shape)}"
            )
        projected.append(ops.linear(x, weight, bias))
    return tuple(projected)


class Heads(NamedTuple):
    """What is learnt, and how: everything about attention but the tensors of a call.

    Args:
        embed_dim: the width of the query and of the output.
        weight: one for all three inputs, or one for each.
        bias: for all three inputs, or None.
        out_weight, out_bias: of the last projection.
        bias_k, bias_v: a key and a value that are appended, or None.
        add_zero_attn: append a key and a value of zeros.
        dropout: the probability that a weight is zeroed.
    """

    embed_dim: int
    num_heads: int
    weight: Any
    bias: Tensor | None
    out_weight: Tensor
    out_bias: Tensor | None
    bias_k: Tensor | None = None
    bias_v: Tensor | None = None
    add_zero_attn: bool = False
    dropout: float = 0.0

    def project(self, query: Tensor, key: Tensor, value: Tensor) -> Sequence[Tensor]:
        """The three inputs through their weights."""
        if isinstance(self.weight, tuple):
            if any(w is None for w in self.weight):
                raise AssertionError("use_separate_proj_weight is True but a projection is None")
            if key.shape[:2] != value.shape[:2]:
                raise AssertionError(
                    f"key's sequence and batch dims differ from value's: {key.shape[:2]} and "
                    f"{value.shape[:2]}"
                )
            return _project_each((query, key, value), self.weight, self.bias)
        if self.weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        if key.shape != value.shape:
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        # One product where inputs are the same.
        if key is not value:
            return _project_each((query, key, value), self.weight.chunk(3), self.bias)
        if query is key:
            return ops.linear(query, self.weight, self.bias).chunk(3, -1)
        width = query.shape[-1]
        first, rest = (None, None) if self.bias is None else self.bias.tensor_split((width,))
        q = ops.linear(query, self.weight[:width], first)
        return (q, *ops.linear(key, self.weight[width:], rest).chunk(2, -1))

    def split(self, x: Tensor, batch_first: bool) -> Tensor:
        """(batch, heads, length, width of a head), as it lies."""
        x = x.unflatten(-1, (self.num_heads, x.shape[-1] // self.num_heads))
        return x.transpose(1, 2) if batch_first else x.permute(1, 2, 0, 3)


def _project_each(inputs, weights, bias):
    """Each input through its own weight."""
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return [ops.linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True)]


def _split_static_heads(name, x, batch, heads, width):
    """A key or value that was projected before, with a dimension for heads."""
    if x.shape[0] != batch * heads or x.shape[2] != width:
        raise AssertionError(
            f"expecting {name} of shape ({batch * heads}, *, {width}), but got {tuple(x.shape)}"
        )
    return x.unflatten(0, (batch, heads))


def _check_mask_shape(mask: Tensor | None, batch: int, heads: int, length: int, keys: int) -> None:
    if mask is not None:
        expected: tuple[int, ...] = (length, keys)
        if mask.dim() == 3:
            expected = (batch * heads, *expected)
        if tuple(mask.shape) != expected:
            raise RuntimeError(
                f"The shape of the {mask.dim()}D attn_mask is {tuple(mask.shape)}, where "
                f"{expected} is expected"
            )


def _masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """The softmax of scores plus a mask; rows that see no key are zeros."""
    nothing = mask.detach().eq(-math.inf).all(-1, True)
    return ops.softmax(scores + mask.masked_fill(nothing, 0.0), -1).masked_fill(nothing, 0.0)


def _attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float
) -> tuple[Tensor, Tensor]:
    """What the values of seen keys add up to, and the weights of all keys."""
    scores = (q * math.sqrt(1.0 / q.shape[-1])) @ k.transpose(-2, -1)
    weights = ops.softmax(scores, -1) if mask is None else _masked_softmax(scores, mask)
    if dropout > 0.0:
        weights = ops.dropout(weights, _probability(dropout), True)
    return weights @ v, weights


def _attend_in_float32(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float
) -> tuple[Tensor, Tensor]:
    """`_attend` of 16 bits, whose scores are not rounded before their softmax is taken."""
    autocast = rushlight.is_autocast_enabled(q.device.type)
    if autocast:
        with rushlight.autocast(q.device.type, enabled=False):
            joined, weights = _attend(q.float(), k.float(), v.float(), mask, dropout)
    else:
        joined, weights = _attend(q.float(), k.float(), v.float(), mask, dropout)
    return joined.to(q.dtype), weights if autocast else weights.to(q.dtype)


def _without_unseen(padding: Tensor, *tensors: Tensor) -> list[Tensor]:
    """Keys and values with zeros where padding hides them: what is there may be no number."""
    unseen = padding.detach().eq(-_INFINITY)[:, None, :, None]
    return [t.masked_fill(unseen, 0.0) for t in tensors]


def _joined_mask(
    mask: Tensor | None, padding: Tensor | None, batch: int, heads: int, keys: int
) -> Tensor | None:
    """Both masks as one that is added to scores (batch, heads, queries, keys), or None."""
    if mask is not None and mask.dim() == 3:
        mask = mask.unflatten(0, (batch, heads))
    if padding is None:
        return mask
    if tuple(padding.shape) != (batch, keys):
        raise AssertionError(
            f"expecting key_padding_mask shape of {(batch, keys)}, but got {tuple(padding.shape)}"
        )
    padding = padding[:, None, None, :]
    return padding if mask is None else mask + padding


def _seen_by_all(mask):
    """A mask for one key more, which every query may see."""
    return None if mask is None else ops.pad(mask, (0, 1))


def _with_learnt_key(layer, k, v, is_static, batch_first):
    """Keys and values, and behind them those that are parameters."""
    if layer.bias_k is None or layer.bias_v is None:
        raise AssertionError("bias_k and bias_v must be given together")
    if is_static:
        raise AssertionError("bias cannot be added to static key or value.")
    batch_dim, length_dim = (0, 1) if batch_first else (1, 0)
    one = [1, 1, k.shape[-1]]
    one[batch_dim] = k.shape[batch_dim]
    return (
        rushlight.cat([k, layer.bias_k.expand(one)], length_dim),
        rushlight.cat([v, layer.bias_v.expand(one)], length_dim),
    )


def _head_width(layer: Heads, width: int) -> int:
    if width != layer.embed_dim:
        raise AssertionError(
            f"was expecting embedding dimension of {layer.embed_dim}: the query has {width}"
        )
    if width % layer.num_heads:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {layer.num_heads}")
    return width // layer.num_heads


def attend(
    layer: Heads,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    key_padding_mask: Tensor | None = None,
    attn_mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    is_causal: bool = False,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    batch_first: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention and its weights (None unless needed).

    Inputs are (length, batch, width), with `batch_first` (batch, length, width), or (length,
    width).
    """
    if query.is_nested or key.is_nested or value.is_nested:
        if key_padding_mask is not None or attn_mask is not None or is_causal or need_weights:
            raise AssertionError(
                "MultiheadAttention does not support NestedTensor outside of its fast path: it "
                "takes no masks, and need_weights=False"
            )
        from rushlight.nested import _attention

        return _attention.attend(layer, query, key, value, batch_first), None
    batch_dim = 0 if batch_first else 1
    batched = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, layer.num_heads)
    if not batched:
        same = key is query, value is key
        query = query.unsqueeze(batch_dim)
        key = query if same[0] else key.unsqueeze(batch_dim)
        value = key if same[1] else value.unsqueeze(batch_dim)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    output, weights = _attend_batch(
        *(layer, query, key, value, key_padding_mask, attn_mask),
        *(need_weights, is_causal, static_k, static_v, batch_first),
    )
    if weights is not None and average_attn_weights:
        weights = weights.mean(1)
    if not batched:
        output = output.squeeze(batch_dim)
        weights = None if weights is None else weights.squeeze(0)
    return output, weights


def _attend_batch(
    layer: Heads,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
    need_weights: bool,
    is_causal: bool,
    static_k: Tensor | None,
    static_v: Tensor | None,
    batch_first: bool,
) -> tuple[Tensor, Tensor | None]:
    """`attend` of a batch; weights are those of each head."""
    batch_dim, length_dim = (0, 1) if batch_first else (1, 0)
    batch, length, heads = query.shape[batch_dim], query.shape[length_dim], layer.num_heads
    head_dim = _head_width(layer, query.shape[-1])
    padding = _canonical_mask(
        key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype
    )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint: is_causal=True only tells that it is "
            "the causal one, as Transformer.generate_square_subsequent_mask makes it"
        )
    if is_causal and padding is None and not need_weights:
        mask = None  # the kernel knows it
    else:
        mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype)
        is_causal = is_causal and padding is None and mask is None
    q, k, v = layer.project(query, key, value)
    _check_mask_shape(mask, batch, heads, length, key.shape[length_dim])
    if layer.bias_k is not None or layer.bias_v is not None:
        is_static = static_k is not None or static_v is not None
        k, v = _with_learnt_key(layer, k, v, is_static, batch_first)
        mask, padding = _seen_by_all(mask), _seen_by_all(padding)
    q, k, v = (layer.split(x, batch_first) for x in (q, k, v))
    if static_k is not None:
        k = _split_static_heads("static_k", static_k, batch, heads, head_dim)
    if static_v is not None:
        v = _split_static_heads("static_v", static_v, batch, heads, head_dim)
    if layer.add_zero_attn:
        nothing = k.new_zeros((batch, heads, 1, head_dim))
        k, v = rushlight.cat([k, nothing], 2), rushlight.cat([v, nothing], 2)
        mask, padding = _seen_by_all(mask), _seen_by_all(padding)
    mask = _joined_mask(mask, padding, batch, heads, k.shape[2])
    weights = None
    if need_weights:
        if padding is not None:
            k, v = _without_unseen(padding, k, v)
        compute = _attend_in_float32 if q.dtype.itemsize == 2 else _attend
        joined, weights = compute(q, k, v, mask, layer.dropout)
    else:
        joined = ops.scaled_dot_product_attention(q, k, v, mask, layer.dropout, is_causal)
    joined = joined.transpose(1, 2)
    if not batch_first:
        joined = joined.transpose(0, 1)
    return ops.linear(joined.flatten(2), layer.out_weight, layer.out_bias), weights


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """The function of `nn.MultiheadAttention`, with all its parameters as arguments.

    Inputs are (length, batch, width) or (length, width). Returns the output, of the query's shape,
    and the weights (batch, length, keys), one for each head unless averaged, or None.

    Args:
        query: what asks: (length, batch, width) or (length, width).
        key: what is compared with it: (keys, batch, width) or (keys, width).
        value: what is summed, a row for each key.
        embed_dim_to_check: the width.
        num_heads: how many heads share the width.
        in_proj_weight: (3 width, width), of query, key and value; None where each has its own.
        in_proj_bias: (3 width,), or None.
        bias_k, bias_v: (1, 1, width), one more key and its value; or None.
        add_zero_attn: whether there is one more key of zeros, with a value of zeros.
        dropout_p: the share of the weights that is dropped in training, 0 to 1.
        out_proj_weight: (width, width).
        out_proj_bias: (width,).
        training: whether dropout drops.
        key_padding_mask: (batch, keys): True, or minus infinity, for keys that no query sees.
        need_weights: whether the weights are returned.
        attn_mask: (length, keys), or one for each head: True for keys that are not seen, or numbers
            that are added to the scores.
        use_separate_proj_weight: whether the next three are used.
        q_proj_weight, k_proj_weight, v_proj_weight: each (width, its features).
        static_k, static_v: (batch * heads, keys, width of a head), in the place of computed ones.
        average_attn_weights: whether the weights are the mean over the heads.
        is_causal: says that the mask hides later keys; it must be given as well.

    Example:
        >>> layer, x = torch.nn.MultiheadAttention(4, num_heads=2), torch.ones(3, 1, 4)
        >>> output, weights = torch.nn.functional.multi_head_attention_forward(
        ...     *(x, x, x, 4, 2, layer.in_proj_weight, layer.in_proj_bias, None, None, False, 0.0),
        ...     *(layer.out_proj.weight, layer.out_proj.bias),
        ... )
        >>> output.shape, weights.sum(-1).shape
        (torch.Size([3, 1, 4]), torch.Size([1, 3]))
    """
    weight: Any = in_proj_weight
    if use_separate_proj_weight:
        weight = (q_proj_weight, k_proj_weight, v_proj_weight)
    layer = Heads(
        embed_dim_to_check,
        num_heads,
        weight,
        in_proj_bias,
        out_proj_weight,
        out_proj_bias,
        bias_k,
        bias_v,
        add_zero_attn,
        dropout_p if training else 0.0,
    )
    return attend(
        layer,
        query,
        key,
        value,
        key_padding_mask=key_padding_mask,
        attn_mask=attn_mask,
        need_weights=need_weights,
        average_attn_weights=average_attn_weights,
        is_causal=is_causal,
        static_k=static_k,
        static_v=static_v,
    )
