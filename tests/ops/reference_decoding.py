"""Ops of language models over NumPy: blocks of GGUF, rotated rows, attention over a cache."""

import numpy as np

_BYTES = {"Q8_0": 34, "Q4_0": 18, "Q4_K": 144, "Q6_K": 210}
_NUMBERS = {"Q8_0": 32, "Q4_0": 32, "Q4_K": 256, "Q6_K": 256}
# By block: (bytes, units) of fields.
_FIELDS = {
    "Q8_0": [(2, 1), (4, 8)],
    "Q4_0": [(2, 1), (4, 4)],
    "Q4_K": [(2, 2), (1, 12), (4, 32)],
    "Q6_K": [(4, 32), (4, 16), (1, 16), (2, 1)],
}


def _halves(b):
    return b.copy().view(np.float16).astype(np.float32)


def _q8_0(b):
    return _halves(b[:, :2]) * b[:, 2:].view(np.int8)


def _q4_0(b):
    codes = np.concatenate([b[:, 2:] & 15, b[:, 2:] >> 4], 1)
    return _halves(b[:, :2]) * (codes.astype(np.float32) - 8)


def _q4_k(b):
    s = b[:, 4:16].astype(np.uint8)
    scales = np.concatenate([s[:, :4] & 63, s[:, 8:] & 15 | s[:, :4] >> 6 << 4], 1)
    minima = np.concatenate([s[:, 4:8] & 63, s[:, 8:] >> 4 | s[:, 4:8] >> 6 << 4], 1)
    codes = b[:, 16:].reshape(-1, 4, 1, 32)
    codes = np.concatenate([codes & 15, codes >> 4], 2).reshape(-1, 8, 32).astype(np.float32)
    step, low = _halves(b[:, :2]) * scales, _halves(b[:, 2:4]) * minima
    return (step[..., None] * codes - low[..., None]).reshape(-1, 256)


def _q6_k(b):
    lower = b[:, :128].reshape(-1, 2, 1, 64)
    lower = np.concatenate([lower & 15, lower >> 4], 2).reshape(-1, 2, 4, 32)
    upper = (
        b[:, 128:192].reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8).reshape(1, 1, 4, 1)
        & 3
    )
    codes = (lower | upper << 4).reshape(-1, 16, 16).astype(np.float32) - 32
    steps = _halves(b[:, 208:]) * b[:, 192:208].view(np.int8)
    return (steps[..., None] * codes).reshape(-1, 256)


_OF = {"Q8_0": _q8_0, "Q4_0": _q4_0, "Q4_K": _q4_k, "Q6_K": _q6_k}


def gguf_numbers(blocks, format):
    """What rows of blocks stand for."""
    flat = np.ascontiguousarray(blocks).astype(np.uint8).reshape(-1, _BYTES[format])
    numbers = _OF[format](flat).astype(np.float32)
    return numbers.reshape(
        *blocks.shape[:-1], blocks.shape[-1] // _BYTES[format] * _NUMBERS[format]
    )


def gguf_packed(blocks, format):
    """Panels of 16 rows, field by field, for all blocks and units of a field."""
    rows, panels = len(blocks), -(-len(blocks) // 16)
    whole = np.zeros((16 * panels, blocks.shape[1]), np.uint8)
    whole[:rows] = blocks
    parts = whole.reshape(panels, 16, blocks.shape[1] // _BYTES[format], _BYTES[format])
    fields, at = [], 0
    for unit, count in _FIELDS[format]:
        field = parts[..., at : at + unit * count].reshape(*parts.shape[:3], count, unit)
        fields.append(field.transpose(0, 2, 3, 1, 4).reshape(panels, field[0].size if panels else 16 * unit * count * parts.shape[2]))
        at += unit * count
    return np.concatenate(fields, 1)


def gguf_unpacked(panels, format, results):
    """The rows of packed panels: where each byte went is what numbers of bytes say when they are packed."""
    places = np.arange(panels.shape[1]).reshape(16, panels.shape[1] // 16)
    order = _packed_order(places, format)
    rows = np.zeros((len(panels), places.size), np.uint8)
    rows[:, order] = panels
    return rows.reshape(16 * len(panels), panels.shape[1] // 16)[:results]


def _packed_order(places, format):
    parts, fields, at = places.reshape(16, places.shape[1] // _BYTES[format], _BYTES[format]), [], 0
    for unit, count in _FIELDS[format]:
        field = parts[..., at : at + unit * count].reshape(*parts.shape[:2], count, unit)
        fields.append(field.transpose(1, 2, 0, 3).reshape(-1))
        at += unit * count
    return np.concatenate(fields)


def gguf_linear(x, panels, bias, format, results):
    """Rows rounded to 127 codes on either side of 0 in blocks, times the numbers of the weight."""
    weight = gguf_numbers(gguf_unpacked(panels, format, results), format).astype(np.float64)
    parts = x.reshape(*x.shape[:-1], x.shape[-1] // _NUMBERS[format], _NUMBERS[format])
    steps = abs(parts).max(-1, initial=0, keepdims=True) / 127
    rounded = np.rint(parts / np.where(steps, steps, 1)) * steps
    return rounded.reshape(x.shape) @ weight.T + (0 if bias is None else bias)


def rotary(x, cos, sin, position, adjacent):
    """Pairs of numbers as complex ones, turned."""
    angles = cos.shape[1]
    turned = x[..., : 2 * angles]
    left, right = (turned[..., ::2], turned[..., 1::2]) if adjacent else np.split(turned, 2, -1)
    firsts = np.ravel(position)
    turns = np.stack([(cos + 1j * sin)[first : first + x.shape[-2]] for first in firsts])
    turns = turns[0] if len(firsts) == 1 else turns.reshape(len(firsts), *[1] * (x.ndim - 3), *turns.shape[1:])
    pairs = (left + 1j * right) * turns
    both = (
        np.stack([pairs.real, pairs.imag], -1)
        if adjacent
        else np.concatenate([pairs.real, pairs.imag], -1)
    )
    return np.concatenate([both.reshape(turned.shape), x[..., 2 * angles :]], -1)


def _cached(cache, slot, before, new):
    """What a sequence of a cache has behind the rows that come, all as numbers; codes have a step for each row."""
    if cache.dtype != np.int8:
        return np.concatenate([cache[slot, :, :before], new], 1)
    rows = np.ascontiguousarray(cache[slot, :, :before])
    held = rows[..., :-4] * np.ascontiguousarray(rows[..., -4:]).view(np.float32)
    steps = abs(new).max(-1, initial=0, keepdims=True) / np.float32(127)
    return np.concatenate([held, np.rint(new / np.where(steps, steps, 1)) * steps], 1)


def cached_attention(query, key, value, keys, values, length, scale):
    """Softmax over the positions up to each query's own."""
    if length.ndim < 2:
        filled = np.broadcast_to(np.ravel(length), len(query))
        places = list(zip(filled, range(len(query)), strict=True))
    else:
        places = [tuple(row) for row in length]
    found = np.zeros((*query.shape[:3], value.shape[3]), np.float32)
    for i, (before, slot) in enumerate(places):
        found[i] = _attention(
            query[i], _cached(keys, slot, before, key[i]), _cached(values, slot, before, value[i]), before, scale
        )
    return found


def _attention(query, keys, values, before, scale):
    rows = query.shape[1]
    shared = len(query) // max(1, len(keys))
    keys, values = keys.repeat(shared, 0), values.repeat(shared, 0)
    scores = np.einsum("hqe,hke->hqk", query, keys) * scale
    hidden = np.arange(before + rows) > before + np.arange(rows)[:, None]
    scores = np.where(hidden, -np.inf, scores)
    weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-1e30))
    return np.einsum("hqk,hke->hqe", weights / weights.sum(-1, keepdims=True), values)
