"""`KVCache`: keys and values of the positions that an attention layer has seen."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import _C, Tensor, nn

__all__ = ["KVCache"]

_FEW = 8  # queries that one op attends for


class KVCache(nn.Module):
    """Keys and values of an attention layer, which grow with each call.

    Its tensors are buffers: they move with the module, and a state dict leaves them out.

    Args:
        batch: sequences side by side.
        heads: heads of keys and values.
        max_len: positions that there is room for.
        width: numbers of a key; of a value, too.
        dtype: float32, float16 or bfloat16.

    Example:
        >>> cache = torch.language.KVCache(1, 2, 16, 8)
        >>> key = value = torch.ones(1, 2, 3, 8)
        >>> cache(torch.ones(1, 4, 3, 8), key, value).shape
        torch.Size([1, 4, 3, 8])
        >>> len(cache)
        3
    """

    keys: Tensor
    values: Tensor
    length: Tensor

    def __init__(
        self, batch: int, heads: int, max_len: int, width: int, dtype: Any = rushlight.float32
    ) -> None:
        super().__init__()
        if dtype not in (rushlight.float32, rushlight.float16, rushlight.bfloat16):
            raise ValueError(f"KVCache: dtype must be float32, float16 or bfloat16, not {dtype}")
        for name in ("keys", "values"):
            made = rushlight.zeros(batch, heads, max_len, width, dtype=dtype)
            self.register_buffer(name, made, persistent=False)
        length = rushlight.zeros(1, dtype=rushlight.int64)
        self.register_buffer("length", length, persistent=False)

    def __len__(self) -> int:
        return int(self.length)

    @property
    def room(self) -> int:
        """Positions that can still be appended."""
        return self.keys.shape[2] - len(self)

    def truncate(self, length: int) -> None:
        """Forget all positions from `length` on."""
        if not 0 <= length <= len(self):
            raise ValueError(f"KVCache: {len(self)} positions cannot be cut to {length}")
        self.length.fill_(length)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
    ) -> Tensor:
        """Append keys and values, and attend to all positions up to each query's own.

        Equal groups of heads of queries share a head of the cache. Gradients end here.

        Args:
            query: (batch, heads, rows, width) of float32.
            key: (batch, heads of the cache, rows, width) of float32.
            value: the same.
            scale: what products of queries and keys are multiplied by; by default width ** -0.5.

        Raises:
            IndexError: the cache has no room for so many rows.
        """
        rows = query.shape[2]
        factor: float = query.shape[3] ** -0.5 if scale is None else scale
        with rushlight.no_grad():
            if rows <= _FEW:
                return _C.ops._cached_attention(
                    query, key, value, self.keys, self.values, self.length, factor
                )
            return self._many(query, key, value, factor)

    def _many(self, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        before, rows = len(self), query.shape[2]
        end = before + rows
        if rows > self.room:
            raise IndexError(
                f"KVCache: a cache of {self.keys.shape[2]} positions, of which {before} are "
                f"filled, has no room for {rows}"
            )
        self.keys[:, :, before:end].copy_(key)
        self.values[:, :, before:end].copy_(value)
        self.length.fill_(end)
        mask = None
        if before:
            mask = rushlight.ones(rows, end, dtype=rushlight.bool).tril_(before)
        return nn.functional.scaled_dot_product_attention(
            query,
            self.keys[:, :, :end].to(query.dtype),
            self.values[:, :, :end].to(query.dtype),
            attn_mask=mask,
            is_causal=mask is None,
            scale=scale,
            enable_gqa=query.shape[1] != key.shape[1],
        )

    def extra_repr(self) -> str:
        """What `repr` shows."""
        batch, heads, most, width = self.keys.shape
        return f"{batch}, {heads}, {most}, {width}, dtype={self.keys.dtype}"
