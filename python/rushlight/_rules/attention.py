"""What attention asks of nested tensors, whatever their layout."""

from __future__ import annotations

__all__ = ["check_attention"]


def check_attention(query, key, value, attn_mask) -> None:
    """Refuses operands that are not all nested, and masks."""
    if not all(t.is_nested for t in (query, key, value)):
        raise ValueError(
            "scaled_dot_product_attention(): expected query, key and value to be nested, all three"
        )
    if attn_mask is not None:
        raise RuntimeError(
            "Nested tensors for query / key / value are not supported when an explicit attn_mask "
            "is set"
        )
