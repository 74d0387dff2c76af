"""Causal masks with a corner at which they start, as `attn_mask` of attention."""

from __future__ import annotations

import enum

import rushlight
from rushlight import _C
from rushlight._warnings import warn
from rushlight.nn.functional import scaled_dot_product_attention

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """The corner at which the diagonal of a mask that is not square starts or ends.

    Example:
        >>> from rushlight.nn.attention.bias import CausalVariant
        >>> CausalVariant.UPPER_LEFT.name
        'UPPER_LEFT'
    """

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(rushlight.Tensor):
    """A causal mask of `seq_len_q` rows and `seq_len_kv` columns, which is computed when needed.

    Args:
        variant: the corner of the mask through which its diagonal goes.
        seq_len_q: the number of queries.
        seq_len_kv: the number of keys.

    Example:
        >>> from rushlight.nn.attention.bias import CausalBias, CausalVariant
        >>> mask = CausalBias(CausalVariant.UPPER_LEFT, 2, 3)
        >>> q, k, v = torch.ones(1, 2, 4), torch.ones(1, 3, 4), torch.ones(1, 3, 4)
        >>> torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask).shape
        torch.Size([1, 2, 4])
    """

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    @staticmethod
    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int):
        assert isinstance(variant, CausalVariant), (
            f"variant must be a CausalVariant, got {type(variant).__name__}"
        )
        place = rushlight.zeros(()).expand(seq_len_q, seq_len_kv)  # one element is its memory
        return rushlight.Tensor._make_subclass(cls, place)

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if variant is CausalVariant.LOWER_RIGHT and seq_len_q > seq_len_kv:
            warn(
                "A lower right causal mask leaves queries without keys, whose results are NaN, "
                "where seq_len_q > seq_len_kv.",
            )

    def _materialize(self, device: rushlight.device | None = None) -> rushlight.Tensor:
        """The mask as a tensor of bools."""
        lower = self.variant is CausalVariant.LOWER_RIGHT
        ones = rushlight.ones(self.seq_len_q, self.seq_len_kv, device=device, dtype=rushlight.bool)
        return ones.tril(self.seq_len_kv - self.seq_len_q if lower else 0)

    def __repr__(self, *, tensor_contents=None) -> str:
        return repr(self._materialize())

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is not scaled_dot_product_attention:
            return super().__torch_function__(func, types, args, kwargs)
        return cls._attend(*args, **(kwargs or {}))

    @staticmethod
    def _attend(query, key, value, attn_mask, dropout_p=0.0, is_causal=False, **keywords):
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        square = attn_mask.seq_len_q == attn_mask.seq_len_kv
        plain = square or attn_mask.variant is CausalVariant.UPPER_LEFT
        # The kernel's own causal order is that of the upper left corner.
        fits = (query.size(-2), key.size(-2)) == (attn_mask.seq_len_q, attn_mask.seq_len_kv)
        with _C.DisableTorchFunctionSubclass():
            mask = None if plain and fits else attn_mask._materialize(query.device)
            return scaled_dot_product_attention(
                query, key, value, mask, dropout_p, mask is None, **keywords
            )


def causal_upper_left(*size: int) -> CausalBias:
    """The mask (queries, keys) whose diagonal starts in the upper left corner.

    Args:
        size: the numbers of queries and of keys.

    For an example see `nn.attention.bias.causal_lower_right`.
    """
    assert len(size) == 2, "causal_upper_left only supports 2D tensors"
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size: int) -> CausalBias:
    """The mask (queries, keys) whose diagonal ends in the lower right corner.

    Args:
        size: the numbers of queries and of keys.

    Example:
        >>> from rushlight.nn.attention.bias import causal_lower_right
        >>> causal_lower_right(2, 3).shape
        torch.Size([2, 3])
    """
    assert len(size) == 2, "causal_lower_right only supports 2D tensors"
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)
