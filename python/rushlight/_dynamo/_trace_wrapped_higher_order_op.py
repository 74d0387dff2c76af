"""What programs say around functions of indices that are mapped over tensors."""

from __future__ import annotations

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex:
    """Accepted around `vmap`: places given by tensors index as they do elsewhere."""

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        pass
