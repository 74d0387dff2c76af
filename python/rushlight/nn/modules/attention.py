"""MultiheadAttention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight import _C, Tensor

from .. import init
from .._attention import Heads, attend
from ..parameter import new_parameter
from .linear import NonDynamicallyQuantizableLinear
from .module import Module

if TYPE_CHECKING:
    from rushlight.types import Device

__all__ = ["MultiheadAttention"]


_SEPARATE = ("q_proj_weight", "k_proj_weight", "v_proj_weight")


class MultiheadAttention(Module):
    """Attention of `num_heads` heads, each over its slice of the projected inputs.

    Formula: softmax(Q Kᵀ / sqrt(d)) V for each head of d = embed_dim / num_heads, then a linear
        layer (Vaswani et al. 2017).

    Args:
        embed_dim: width of the query and of the output; num_heads must divide it.
        dropout: probability that a weight is zeroed in training.
        add_bias_kv, add_zero_attn: append a learnt, or a zero, key and value.
        kdim, vdim: widths of key and value where they differ.
        batch_first: inputs are (batch, length, width), not (length, batch, width).
        num_heads: the number of heads.
        bias: whether the projections have biases.
        device: where parameters live, such as `"cpu"`; the default device if None.
        dtype: the dtype of the parameters; the default dtype if None.

    Parameters: `in_proj_weight` (3 embed_dim, embed_dim), or `q_proj_weight`, `k_proj_weight` and
    `v_proj_weight`; `in_proj_bias`; `bias_k`, `bias_v`; `out_proj`.

    Shape: query (L, N, embed_dim), key (S, N, kdim), value (S, N, vdim), or N first with
        `batch_first`, or without N; output (L, N, embed_dim), weights (N, L, S).

    Example:
        >>> attention = torch.nn.MultiheadAttention(8, num_heads=2, batch_first=True)
        >>> x = torch.zeros(4, 5, 8)
        >>> output, weights = attention(x, x, x)
        >>> output.shape, weights.shape
        (torch.Size([4, 5, 8]), torch.Size([4, 5, 5]))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Device = None,
        dtype: _C.dtype | None = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, but are "
                f"{embed_dim} and {num_heads}"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError(
                f"embed_dim must be divisible by num_heads, but {embed_dim} is not by {num_heads}"
            )

        made = {"device": device, "dtype": dtype}
        if self._qkv_same_embed_dim:
            self.in_proj_weight = new_parameter((3 * embed_dim, embed_dim), **made)
            for name in _SEPARATE:
                self.register_parameter(name, None)
        else:
            for name, width in zip(_SEPARATE, (embed_dim, self.kdim, self.vdim), strict=True):
                setattr(self, name, new_parameter((embed_dim, width), **made))
            self.register_parameter("in_proj_weight", None)
        self.register_parameter("in_proj_bias", new_parameter(3 * embed_dim, bias, **made))
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **made)
        self.bias_k = new_parameter((1, 1, embed_dim), add_bias_kv, **made)
        self.bias_v = new_parameter((1, 1, embed_dim), add_bias_kv, **made)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        biases = () if self.in_proj_bias is None else (self.in_proj_bias, self.out_proj.bias)
        projections = (self.in_proj_weight, *(getattr(self, name) for name in _SEPARATE))
        for fill, parameters in (
            (init.xavier_uniform_, projections),
            (init.zeros_, biases),
            (init.xavier_normal_, (self.bias_k, self.bias_v)),
        ):
            for parameter in parameters:
                if parameter is not None:
                    fill(parameter)

    def __setstate__(self, state):
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The output and the weights (None without `need_weights`).

        Args:
            query, key, value: (length, batch, width), or as `batch_first` says, or (length, width).
            key_padding_mask: (batch, keys); True or -inf hides a key.
            attn_mask: (queries, keys) or (batch * num_heads, queries, keys); True or -inf hides.
            average_attn_weights: give the mean of the heads' weights.
            is_causal: a hint that `attn_mask` is the causal one.
        """
        if self._qkv_same_embed_dim:
            weight = self.in_proj_weight
        else:
            weight = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        layer = Heads(
            self.embed_dim,
            self.num_heads,
            weight,
            self.in_proj_bias,
            self.out_proj.weight,
            self.out_proj.bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout if self.training else 0.0,
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
            batch_first=self.batch_first,
        )
