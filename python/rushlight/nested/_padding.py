"""Between jagged values and padded tensors, where components are rows of one length."""

from __future__ import annotations

import rushlight

__all__: list[str] = []


def rows_of(offsets: rushlight.Tensor, count: int) -> rushlight.Tensor:
    """For each of `count` places along the ragged dimension, the component that it is in."""
    places = rushlight.arange(count, dtype=offsets.dtype, device=offsets.device)
    rows = rushlight.bucketize(places, offsets[1:].contiguous(), right=True)
    return rows.clamp(0, max(offsets.shape[0] - 2, 0))


def element_mask(t: rushlight.Tensor, length: int) -> rushlight.Tensor:
    """A mask (B, length) of what is no padding."""
    places = rushlight.arange(length, device=t._offsets.device)
    return places < t._seq_lengths().unsqueeze(1)


def to_padded(t, padding, length=None):
    """The padded tensor of a jagged one; its ragged dimension has `length`, or the longest's."""
    values, ragged = t.values(), t._ragged_idx
    length = t._get_max_seqlen() if length is None else length
    rows = values.movedim(ragged - 1, 0)
    batch = t._offsets.shape[0] - 1
    if rows.shape[0] == 0 or batch == 0 or length == 0:
        return rows.new_full((batch, length, *rows.shape[1:]), padding).movedim(1, ragged)
    mask = element_mask(t, length)
    places = rushlight.arange(length, device=mask.device) + t._offsets[:-1].unsqueeze(1)
    places = places.masked_fill(~mask, 0)
    out = rows.index_select(0, places.flatten()).unflatten(0, (batch, length))
    gaps = ~mask.reshape(batch, length, *[1] * (rows.dim() - 1))
    return out.masked_fill(gaps, padding).movedim(1, ragged)


def from_padded(padded, offsets, count, ragged):
    """The `count` values (ragged dimension first after the batch's is gone) of a padded tensor."""
    rows = rows_of(offsets, count)
    length = padded.shape[ragged]
    places = rushlight.arange(count, device=offsets.device) - offsets[:-1].index_select(0, rows)
    places = rows * length + places.clamp(0, max(length - 1, 0))
    flat = padded.movedim(ragged, 1).flatten(0, 1)
    return flat.index_select(0, places).movedim(0, ragged - 1)


def like_padded(t, padded, ragged=None):
    """Of a padded tensor what belongs to the components of `t`, as one with its offsets."""
    ragged = t._ragged_idx if ragged is None else ragged
    count = t._values.shape[t._ragged_idx - 1]
    values = from_padded(padded, t._offsets, count, ragged)
    return t._with_values(values, ragged)
