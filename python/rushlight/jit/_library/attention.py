"""Attention of several heads, and transformers, as programs."""

# pyright: reportUndefinedVariable=false

from __future__ import annotations


def _added_mask(mask: Optional[Tensor], like: Tensor) -> Optional[Tensor]:
    if mask is None:
        return None
    if mask.is_floating_point():
        return mask
    return torch.zeros_like(mask, dtype=like.dtype).masked_fill_(mask, float("-inf"))


def _projected(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    weight: Optional[Tensor],
    q_weight: Optional[Tensor],
    k_weight: Optional[Tensor],
    v_weight: Optional[Tensor],
    bias: Optional[Tensor],
) -> Tuple[Tensor, Tensor, Tensor]:
    width = query.size(-1)
    if weight is not None and key is value:
        if query is key:
            parts = torch.linear(query, weight, bias).chunk(3, -1)
            return parts[0], parts[1], parts[2]
        first = bias[:width] if bias is not None else None
        rest = bias[width:] if bias is not None else None
        q = torch.linear(query, weight[:width], first)
        both = torch.linear(key, weight[width:], rest).chunk(2, -1)
        return q, both[0], both[1]
    if weight is not None:
        weights = weight.chunk(3)
        w_q, w_k, w_v = weights[0], weights[1], weights[2]
    else:
        assert q_weight is not None and k_weight is not None and v_weight is not None
        w_q, w_k, w_v = q_weight, k_weight, v_weight
    if bias is None:
        return torch.linear(query, w_q), torch.linear(key, w_k), torch.linear(value, w_v)
    biases = bias.chunk(3)
    return (
        torch.linear(query, w_q, biases[0]),
        torch.linear(key, w_k, biases[1]),
        torch.linear(value, w_v, biases[2]),
    )


def _weighted(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Optional[Tensor],
    padding: Optional[Tensor],
    dropout: float,
) -> Tuple[Tensor, Tensor]:
    if padding is not None:
        unseen = padding.detach().eq(float("-inf")).unsqueeze(1).unsqueeze(3)
        k = k.masked_fill(unseen, 0.0)
        v = v.masked_fill(unseen, 0.0)
    scores = torch.matmul(q * (1.0 / float(q.size(-1))) ** 0.5, k.transpose(-2, -1))
    if mask is None:
        weights = torch.softmax(scores, -1)
    else:
        nothing = mask.detach().eq(float("-inf")).all(-1, True)
        masked = scores + mask.masked_fill(nothing, 0.0)
        weights = torch.softmax(masked, -1).masked_fill(nothing, 0.0)
    if dropout > 0.0:
        weights = torch.dropout(weights, dropout, True)
    return torch.matmul(weights, v), weights


def _joined_mask(
    mask: Optional[Tensor], padding: Optional[Tensor], batch: int, heads: int
) -> Optional[Tensor]:
    out = mask
    if mask is not None and mask.dim() == 3:
        out = mask.view([batch, heads, mask.size(-2), mask.size(-1)])
    if padding is None:
        return out
    keys = padding.unsqueeze(1).unsqueeze(1)
    return keys if out is None else out + keys


def _split(x: Tensor, heads: int, batch_first: bool) -> Tensor:
    parts = x.unflatten(-1, [heads, x.size(-1) // heads])
    return parts.transpose(1, 2) if batch_first else parts.permute([1, 2, 0, 3])


def _for_batch(x: Tensor, batch: int, batch_first: bool) -> Tensor:
    width = x.size(-1)
    return x.expand([batch, 1, width]) if batch_first else x.expand([1, batch, width])


def _seen_by_all(mask: Optional[Tensor]) -> Optional[Tensor]:
    if mask is None:
        return None
    return torch.pad(mask, [0, 1])


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_heads: int,
    weight: Optional[Tensor],
    bias: Optional[Tensor],
    bias_k: Optional[Tensor],
    bias_v: Optional[Tensor],
    add_zero_attn: bool,
    dropout: float,
    out_weight: Tensor,
    out_bias: Optional[Tensor],
    key_padding_mask: Optional[Tensor],
    need_weights: bool,
    attn_mask: Optional[Tensor],
    q_weight: Optional[Tensor],
    k_weight: Optional[Tensor],
    v_weight: Optional[Tensor],
    average_attn_weights: bool,
    is_causal: bool,
    batch_first: bool,
) -> Tuple[Tensor, Optional[Tensor]]:
    batched = query.dim() == 3
    if query.dim() != 2 and query.dim() != 3:
        raise AssertionError("query should be unbatched 2D or batched 3D")
    if query.size(-1) != embed_dim:
        raise AssertionError(
            f"was expecting embedding dimension of {embed_dim}, but got {query.size(-1)}"
        )
    batch_dim = 0 if batch_first else 1
    length_dim = 1 - batch_dim
    padding_mask = key_padding_mask
    if not batched:
        alike = key is query
        value_alike = value is key
        query = query.unsqueeze(batch_dim)
        key = query if alike else key.unsqueeze(batch_dim)
        value = key if value_alike else value.unsqueeze(batch_dim)
        if padding_mask is not None:
            padding_mask = padding_mask.unsqueeze(0)
    batch = query.size(batch_dim)
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    padding = _added_mask(padding_mask, query)
    mask = _added_mask(attn_mask, query)
    causal = False
    if is_causal and padding is None and not need_weights:
        mask = None
        causal = True
    q, k, v = _projected(query, key, value, weight, q_weight, k_weight, v_weight, bias)
    if bias_k is not None and bias_v is not None:
        k = torch.cat([k, _for_batch(bias_k, batch, batch_first)], length_dim)
        v = torch.cat([v, _for_batch(bias_v, batch, batch_first)], length_dim)
        mask = _seen_by_all(mask)
        padding = _seen_by_all(padding)
    q = _split(q, num_heads, batch_first)
    k = _split(k, num_heads, batch_first)
    v = _split(v, num_heads, batch_first)
    if add_zero_attn:
        nothing = torch.zeros(
            [batch, num_heads, 1, embed_dim // num_heads], dtype=k.dtype, device=k.device
        )
        k = torch.cat([k, nothing], 2)
        v = torch.cat([v, nothing], 2)
        mask = _seen_by_all(mask)
        padding = _seen_by_all(padding)
    both = _joined_mask(mask, padding, batch, num_heads)
    weights = annotate(Optional[Tensor], None)
    if need_weights:
        joined, shares = _weighted(q, k, v, both, padding, dropout)
        weights = shares.mean(1) if average_attn_weights else shares
    else:
        joined = torch.scaled_dot_product_attention(q, k, v, both, dropout, causal)
    joined = joined.transpose(1, 2)
    if not batch_first:
        joined = joined.transpose(0, 1)
    output = torch.linear(joined.flatten(2), out_weight, out_bias)
    if not batched:
        output = output.squeeze(batch_dim)
        if weights is not None:
            weights = weights.squeeze(0)
    return output, weights


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Optional[Tensor],
    in_proj_bias: Optional[Tensor],
    bias_k: Optional[Tensor],
    bias_v: Optional[Tensor],
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Optional[Tensor],
    training: bool = True,
    key_padding_mask: Optional[Tensor] = None,
    need_weights: bool = True,
    attn_mask: Optional[Tensor] = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Optional[Tensor] = None,
    k_proj_weight: Optional[Tensor] = None,
    v_proj_weight: Optional[Tensor] = None,
    static_k: Optional[Tensor] = None,
    static_v: Optional[Tensor] = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> Tuple[Tensor, Optional[Tensor]]:
    if static_k is not None or static_v is not None:
        raise NotImplementedError("compiled code does not take static_k and static_v")
    return _attention(
        query,
        key,
        value,
        embed_dim_to_check,
        num_heads,
        None if use_separate_proj_weight else in_proj_weight,
        in_proj_bias,
        bias_k,
        bias_v,
        add_zero_attn,
        dropout_p if training else 0.0,
        out_proj_weight,
        out_proj_bias,
        key_padding_mask,
        need_weights,
        attn_mask,
        q_proj_weight,
        k_proj_weight,
        v_proj_weight,
        average_attn_weights,
        is_causal,
        False,
    )


class MultiheadAttention:
    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Optional[Tensor] = None,
        need_weights: bool = True,
        attn_mask: Optional[Tensor] = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> Tuple[Tensor, Optional[Tensor]]:
        return _attention(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout if self.training else 0.0,
            self.out_proj.weight,
            self.out_proj.bias,
            key_padding_mask,
            need_weights,
            attn_mask,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
            average_attn_weights,
            is_causal,
            self.batch_first,
        )
