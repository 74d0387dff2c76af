"""`KVCache`: keys and values of the positions that an attention layer has seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight import _C, Tensor, nn

__all__ = ["KVCache"]

_FEW = 8  # queries that one op attends for
_DTYPES = (rushlight.float32, rushlight.float16, rushlight.bfloat16, rushlight.int8)
_SCALE = 4  # bytes behind the codes of a row


class KVCache(nn.Module):
    """Keys and values of an attention layer, which grow with each call.

    Sequences are side by side, each as long as it is. With int8 a row of a head has codes from
    -127 to 127 and a scale of its own. The tensors are buffers: they move with the module, and a
    state dict leaves them out.

    Args:
        batch: sequences that there is room for.
        heads: heads of keys and values.
        max_len: positions of each that there is room for.
        width: numbers of a key; of a value, too.
        dtype: float32, float16, bfloat16 or int8.

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
        if dtype not in _DTYPES:
            raise ValueError(
                f"KVCache: dtype must be float32, float16, bfloat16 or int8, not {dtype}"
            )
        self.width = width
        row = width + (_SCALE if dtype == rushlight.int8 else 0)
        for name in ("keys", "values"):
            made = rushlight.zeros(batch, heads, max_len, row, dtype=dtype)
            self.register_buffer(name, made, persistent=False)
        length = rushlight.zeros(batch, dtype=rushlight.int64)
        self.register_buffer("length", length, persistent=False)

    def __len__(self) -> int:
        """Positions of the longest sequence."""
        return int(self.length.max()) if len(self.length) else 0

    @property
    def room(self) -> int:
        """Positions that can still be appended to every sequence."""
        return self.keys.shape[2] - len(self)

    def truncate(self, length: int, sequence: int | None = None) -> None:
        """Forget all positions from `length` on.

        Args:
            length: of what stays.
            sequence: where; None: in all sequences, which must be so long.
        """
        mine = self.length if sequence is None else self.length[sequence]
        if length < 0 or (mine < length).any():
            raise ValueError(f"KVCache: {mine.tolist()} positions cannot be cut to {length}")
        mine.fill_(length)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        scale: float | None = None,
        sequences: Tensor | None = None,
    ) -> Tensor:
        """Append keys and values, and attend to all positions up to each query's own.

        Equal groups of heads of queries share a head of the cache. Gradients end here. Where
        `use_batch_invariant` is on, a query's bits do not depend on how many come at a time.

        Args:
            query: (batch, heads, rows, width) of float32.
            key: (batch, heads of the cache, rows, width) of float32.
            value: the same.
            scale: what products of queries and keys are multiplied by; by default width ** -0.5.
            sequences: which sequences of the cache these are, integers of int64; None: all.

        Raises:
            IndexError: the cache has no room for so many rows.
        """
        rows = query.shape[2]
        factor: float = query.shape[3] ** -0.5 if scale is None else scale
        with rushlight.no_grad():
            if rows > _FEW and rushlight.is_batch_invariant():
                parts = zip(*(t.split(_FEW, 2) for t in (query, key, value)), strict=True)
                return rushlight.cat([self(*part, scale, sequences) for part in parts], 2)
            if rows > _FEW:
                which = range(len(self.length)) if sequences is None else sequences.tolist()
                return self._many(query, key, value, factor, which)
            if sequences is None:
                places = self.length
            else:
                places = rushlight.stack([self.length[sequences], sequences], 1)
            found = _C.ops._cached_attention(
                query, key, value, self.keys, self.values, places, factor
            )
            if sequences is not None:
                self.length[sequences] = places[:, 0]
            return found

    def _many(
        self, query: Tensor, key: Tensor, value: Tensor, scale: float, which: Sequence[int]
    ) -> Tensor:
        rows, most = query.shape[2], self.keys.shape[2]
        before = [int(self.length[i]) for i in which]
        if max(before, default=0) + rows > most:
            raise IndexError(
                f"KVCache: a cache of {most} positions, of which {max(before)} are filled, has no "
                f"room for {rows}"
            )
        found = []
        for at, (i, begin) in enumerate(zip(which, before, strict=True)):
            one, end = slice(at, at + 1), begin + rows
            self.keys[i, :, begin:end].copy_(self._stored(key[at]))
            self.values[i, :, begin:end].copy_(self._stored(value[at]))
            self.length[i] = end
            mask = None
            if begin:
                mask = rushlight.ones(rows, end, dtype=rushlight.bool).tril_(begin)
            found.append(
                nn.functional.scaled_dot_product_attention(
                    query[one],
                    self._numbers(self.keys[i : i + 1, :, :end]),
                    self._numbers(self.values[i : i + 1, :, :end]),
                    attn_mask=mask,
                    is_causal=mask is None,
                    scale=scale,
                    enable_gqa=query.shape[1] != key.shape[1],
                )
            )
        return rushlight.cat(found) if len(found) != 1 else found[0]

    def _stored(self, x: Tensor) -> Tensor:
        """Rows as the cache has them, as `_cached_attention` makes them."""
        if self.keys.dtype != rushlight.int8:
            return x
        scales = x.abs().amax(-1, keepdim=True) / 127
        good = (scales > 0) & (scales < float("inf"))
        codes = rushlight.where(good, x / scales, 0).round().clamp(-127, 127).to(rushlight.int8)
        return rushlight.cat([codes, scales.view(rushlight.int8)], -1)

    def _numbers(self, rows: Tensor) -> Tensor:
        """What rows of the cache stand for."""
        if self.keys.dtype != rushlight.int8:
            return rows.to(rushlight.float32)
        scales = rows[..., self.width :].contiguous().view(rushlight.float32)
        return rows[..., : self.width] * scales

    def extra_repr(self) -> str:
        """What `repr` shows."""
        batch, heads, most, _ = self.keys.shape
        return f"{batch}, {heads}, {most}, {self.width}, dtype={self.keys.dtype}"
