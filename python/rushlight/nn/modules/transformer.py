"""Transformer, its encoder and decoder and their layers."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import _C

from .. import functional as F
from .. import init
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

if TYPE_CHECKING:
    from rushlight import Tensor
    from rushlight.types import Device

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]


def _generate_square_subsequent_mask(sz, device=None, dtype=None):
    """(sz, sz): 0 on and below the diagonal, -inf above."""
    return rushlight.triu(
        rushlight.full((sz, sz), float("-inf"), dtype=dtype, device=device), diagonal=1
    )


def _sequence_length(x, layer):
    """The length of a layer's input; None if that is neither a batch nor one sequence."""
    if x.is_nested:
        return None
    return _get_seq_len(x, getattr(getattr(layer, "self_attn", None), "batch_first", False))


def _get_seq_len(src, batch_first):
    """The length of one sequence or of a batch of them; None if it is neither."""
    if src.dim() == 2:
        return src.shape[0]
    return src.shape[1 if batch_first else 0] if src.dim() == 3 else None


def _detect_is_causal_mask(mask, is_causal=None, size=None):
    """What the caller says, or else whether the mask is the causal one."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    size = mask.shape[-2] if size is None else size
    if tuple(mask.shape) != (size, size):
        return False
    causal = _generate_square_subsequent_mask(size, mask.device, mask.dtype)
    return bool((mask == causal).all())


def _get_activation_fn(activation):
    if not isinstance(activation, str):
        return activation
    if activation in ("relu", "gelu"):
        return getattr(F, activation)
    raise RuntimeError(
        f"activation should be relu/gelu, not {activation}: for another give the function itself"
    )


def _get_clones(module, N):
    """That many copies of a module."""
    return ModuleList([copy.deepcopy(module) for _ in range(N)])


class _Layer(Module):
    """Attentions, then a network of two linear layers; a norm and a dropout for each of these."""

    _attentions: tuple[str, ...] = ("self_attn",)

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device = None,
        dtype: _C.dtype | None = None,
    ) -> None:
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        attention = {"dropout": dropout, "bias": bias, "batch_first": batch_first, **made}
        parts = range(1, len(self._attentions) + 2)
        super().__init__()
        for name in self._attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, **attention))
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **made)
        self.norm_first = norm_first
        for i in parts:
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made))
        for i in parts:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _get_activation_fn(activation)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if not hasattr(self, "activation"):
            self.activation = F.relu

    def _attend(self, attention, dropout, x, memory, attn_mask, key_padding_mask, is_causal):
        attended = attention(
            x,
            memory,
            memory,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            is_causal=is_causal,
            need_weights=False,
        )[0]
        drops = isinstance(dropout, Dropout) and dropout.training and dropout.p > 0
        if drops and attention.batch_first and attended.dim() == 3:
            # Masks are drawn in the order of memory, which in PyTorch is that of time here.
            attended = attended.transpose(0, 1).contiguous().transpose(0, 1)
        return dropout(attended)

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        mask = (attn_mask, key_padding_mask, is_causal)
        return self._attend(self.self_attn, self.dropout1, x, x, *mask)

    def _network(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def _residual(self, x, *blocks):
        """Each block's result added to its input, the next norm before the block or after that."""
        for i, block in enumerate(blocks, 1):
            norm = getattr(self, f"norm{i}")
            x = x + block(norm(x)) if self.norm_first else norm(x + block(x))
        return x


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward network, each with a residual connection and a layer norm.

    Args:
        d_model, nhead: width and number of heads.
        dim_feedforward: width between the linear layers.
        activation: the activation: "relu", "gelu" or a function.
        norm_first: normalise before attention and network, not after.
        batch_first: inputs are (batch, length, width), not (length, batch, width).
        dropout: the probability of dropout.
        layer_norm_eps: added to the variance in the norms.
        bias: whether linear layers and norms have biases.
        device: where parameters live, such as `"cpu"`; the default device if None.
        dtype: the dtype of the parameters; the default dtype if None.

    Shape: (length, batch, d_model) to the same, or as `batch_first` says.

    Example:
        >>> layer = torch.nn.TransformerEncoderLayer(
        ...     8, nhead=2, dim_feedforward=16, batch_first=True
        ... )
        >>> layer(torch.zeros(4, 5, 8)).shape
        torch.Size([4, 5, 8])
    """

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal: bool = False):
        """The layer's output, of the shape of src; masks as `MultiheadAttention` takes them."""
        masks = (src_mask, src_key_padding_mask, is_causal)
        return self._residual(src, lambda x: self._sa_block(x, *masks), self._ff_block)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self._network(x))


class TransformerDecoderLayer(_Layer):
    """`TransformerEncoderLayer` with attention to the encoder's output in between.

    Args:
        d_model: the width.
        nhead: the number of heads.
        dim_feedforward: width between the linear layers.
        dropout: the probability of dropout.
        activation: the activation: "relu", "gelu" or a function.
        layer_norm_eps: added to the variance in the norms.
        batch_first: inputs are (batch, length, width), not (length, batch, width).
        norm_first: normalise before attention and network, not after.
        bias: whether linear layers and norms have biases.
        device: where parameters live, such as `"cpu"`; the default device if None.
        dtype: the dtype of the parameters; the default dtype if None.

    Shape: tgt (T, N, d_model) and memory (S, N, d_model) to (T, N, d_model); N first with
        `batch_first`, or without N.

    Example:
        >>> layer = torch.nn.TransformerDecoderLayer(
        ...     8, nhead=2, dim_feedforward=16, batch_first=True
        ... )
        >>> layer(torch.zeros(4, 3, 8), torch.zeros(4, 5, 8)).shape
        torch.Size([4, 3, 8])
    """

    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ):
        """The layer's output, of the shape of tgt."""
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory_mask, memory_key_padding_mask, memory_is_causal)
        return self._residual(
            tgt,
            lambda x: self._sa_block(x, *own),
            lambda x: self._mha_block(x, memory, *other),
            self._ff_block,
        )

    def _mha_block(self, x, mem, attn_mask, key_padding_mask, is_causal=False):
        mask = (attn_mask, key_padding_mask, is_causal)
        return self._attend(self.multihead_attn, self.dropout2, x, mem, *mask)

    def _ff_block(self, x):
        return self.dropout3(self._network(x))


class _Stack(Module):
    """Copies of a layer, one after the other, then a norm if one is given."""

    def __init__(self, layer, num_layers: int, norm) -> None:
        super().__init__()
        self.layers = _get_clones(layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def _through(self, x, *args, **kwargs):
        for layer in self.layers:
            x = layer(x, *args, **kwargs)
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """`num_layers` copies of a layer, then a norm if one is given.

    `enable_nested_tensor` and `mask_check` are accepted and change nothing: padding is never cut
    out, so positions that `src_key_padding_mask` hides hold values without a meaning.

    Args:
        encoder_layer: the layer that is copied.
        num_layers: the number of copies.
        norm: a module that is called at the end, or None.
        enable_nested_tensor: accepted, without effect.
        mask_check: accepted, without effect.

    Shape: (S, N, d_model) to the same, or as the layers' `batch_first` says.

    Example:
        >>> layer = torch.nn.TransformerEncoderLayer(
        ...     8, nhead=2, dim_feedforward=16, batch_first=True
        ... )
        >>> torch.nn.TransformerEncoder(layer, num_layers=2)(torch.zeros(4, 5, 8)).shape
        torch.Size([4, 5, 8])
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__(encoder_layer, num_layers, norm)
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        """The encoded src. Without `is_causal` the mask is compared with the causal one."""
        causal = _detect_is_causal_mask(mask, is_causal, _sequence_length(src, self.layers[0]))
        return self._through(
            src, src_mask=mask, is_causal=causal, src_key_padding_mask=src_key_padding_mask
        )


class TransformerDecoder(_Stack):
    """`num_layers` copies of a decoder layer, then a norm if one is given.

    Args:
        decoder_layer: the layer that is copied.
        num_layers: the number of copies.
        norm: a module that is called at the end, or None.

    Shape: tgt (T, N, d_model) and memory (S, N, d_model) to (T, N, d_model), or as the layers'
        `batch_first` says.

    Example:
        >>> layer = torch.nn.TransformerDecoderLayer(
        ...     8, nhead=2, dim_feedforward=16, batch_first=True
        ... )
        >>> decoder = torch.nn.TransformerDecoder(layer, num_layers=2)
        >>> decoder(torch.zeros(4, 3, 8), torch.zeros(4, 5, 8)).shape
        torch.Size([4, 3, 8])
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        tgt_is_causal=None,
        memory_is_causal: bool = False,
    ):
        """The decoded tgt. Without `tgt_is_causal` its mask is compared with the causal one."""
        causal = _detect_is_causal_mask(
            tgt_mask, tgt_is_causal, _sequence_length(tgt, self.layers[0])
        )
        return self._through(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=causal,
            memory_is_causal=memory_is_causal,
        )


class Transformer(Module):
    """An encoder and a decoder.

    Args:
        d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, norm_first, bias: of
            every layer.
        num_encoder_layers, num_decoder_layers: the number of layers of each.
        custom_encoder, custom_decoder: modules to use instead.
        batch_first: inputs are (batch, length, width), not (length, batch, width).
        device: where parameters live, such as `"cpu"`; the default device if None.
        dtype: the dtype of the parameters; the default dtype if None.

    Shape: src (S, N, d_model) and tgt (T, N, d_model) to (T, N, d_model); N first with
        `batch_first`, or without N.

    Example:
        >>> net = torch.nn.Transformer(
        ...     8, nhead=2, num_encoder_layers=1, num_decoder_layers=1, batch_first=True
        ... )
        >>> net(torch.zeros(4, 5, 8), torch.zeros(4, 3, 8)).shape
        torch.Size([4, 3, 8])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str = "relu",
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device = None,
        dtype: _C.dtype | None = None,
    ) -> None:
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        layer = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        flags = (batch_first, norm_first, bias)
        super().__init__()
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            self.encoder = TransformerEncoder(
                TransformerEncoderLayer(*layer, *flags, **made),
                num_encoder_layers,
                LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made),
            )
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            self.decoder = TransformerDecoder(
                TransformerDecoderLayer(*layer, *flags, **made),
                num_decoder_layers,
                LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made),
            )
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src,
        tgt,
        src_mask=None,
        tgt_mask=None,
        memory_mask=None,
        src_key_padding_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        src_is_causal=None,
        tgt_is_causal=None,
        memory_is_causal: bool = False,
    ):
        """The decoder's output for tgt, of tgt's shape. RuntimeError for sizes that do not fit."""
        batch_dim = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch_dim) != tgt.size(batch_dim):
            raise RuntimeError(
                f"the batch number of src and tgt differ: {src.size(batch_dim)} and "
                f"{tgt.size(batch_dim)}"
            )
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError(
                f"the feature number of src and tgt is not d_model={self.d_model}, but "
                f"{src.size(-1)} and {tgt.size(-1)}"
            )
        of_src = {"src_key_padding_mask": src_key_padding_mask, "is_causal": src_is_causal}
        of_tgt = {
            "tgt_mask": tgt_mask,
            "tgt_key_padding_mask": tgt_key_padding_mask,
            "tgt_is_causal": tgt_is_causal,
        }
        of_memory = {
            "memory_mask": memory_mask,
            "memory_key_padding_mask": memory_key_padding_mask,
            "memory_is_causal": memory_is_causal,
        }
        return self.decoder(tgt, self.encoder(src, mask=src_mask, **of_src), **of_tgt, **of_memory)

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: Device = None, dtype: _C.dtype | None = None
    ) -> Tensor:
        """A causal mask (sz, sz): 0 on and below the diagonal, -inf above."""
        return _generate_square_subsequent_mask(sz, device, dtype)

    def _reset_parameters(self):
        for p in self.parameters():
            if p.dim() > 1:
                init.xavier_uniform_(p)
