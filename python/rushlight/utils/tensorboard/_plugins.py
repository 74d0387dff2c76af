"""What plugins of TensorBoard show: curves of precision, meshes, layouts, sounds, films."""

from __future__ import annotations

import io
import math
import wave
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight.utils.tensorboard._events import message
from rushlight.utils.tensorboard.summary import metadata, summary_of

_MOST_THRESHOLDS = 127


def _floats(values: Any) -> Tensor:
    return rushlight.as_tensor(values).detach().cpu().to(rushlight.float64).reshape(-1)


def _shape(sizes: Any) -> bytes:
    return message(*((2, "bytes", message((1, "int", size))) for size in sizes))


def _tensor(kind: int, sizes: Any, *fields: Any) -> bytes:
    return message((1, "int", kind), (2, "bytes", _shape(sizes)), *fields)


# ---- curves of precision over recall ----


def pr_curve(
    tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None
) -> bytes:
    """How many are found and how many of those rightly, at thresholds from 0 to 1.

    Args:
        tag: its name.
        labels: the true classes, 0 or 1.
        predictions: the predicted probabilities of class 1.
        num_thresholds: the number of thresholds.
        weights: the weight of each.
    """
    n = min(num_thresholds, _MOST_THRESHOLDS)
    labels, predictions = _floats(labels), _floats(predictions)
    counted = rushlight.ones_like(labels) if weights is None else _floats(weights)
    places = (predictions * (n - 1)).floor().long().clamp(0, n - 1)
    positive, negative = (
        rushlight.bincount(places, weights=w * counted, minlength=n).flip(0).cumsum(0).flip(0)
        for w in (labels, 1 - labels)
    )
    missed, passed = positive[0] - positive, negative[0] - negative
    precision = positive / (positive + negative).clamp(min=1e-7)
    recall = positive / (positive + missed).clamp(min=1e-7)
    return pr_curve_raw(tag, positive, negative, passed, missed, precision, recall, n)


def pr_curve_raw(
    tag: str,
    tp: Any,
    fp: Any,
    tn: Any,
    fn: Any,
    precision: Any,
    recall: Any,
    num_thresholds: int = 127,
    weights: Any = None,
) -> bytes:
    """The same from its six rows: counts of four kinds, precision and recall."""
    n = min(num_thresholds, _MOST_THRESHOLDS)
    rows = rushlight.stack([_floats(row) for row in (tp, fp, tn, fn, precision, recall)])
    if rows.shape[1] != n:
        raise ValueError(f"expected {n} numbers for each of the thresholds, got {rows.shape[1]}")
    tensor = _tensor(1, rows.shape, (5, "floats", rows.reshape(-1).tolist()))
    return summary_of(
        tag, (8, "bytes", tensor), (9, "bytes", metadata("pr_curves", message((2, "int", n))))
    )


# ---- meshes ----


def mesh(
    tag: str, vertices: Any, colors: Any = None, faces: Any = None, config: Any = None
) -> list[bytes]:
    """Points in space, as a summary for each of what they have.

    Args:
        tag: their name.
        vertices: (batch, points, 3).
        colors: the colors of the points, 0 to 255, (batch, points, 3).
        faces: numbers of the points at the corners of triangles, (batch, faces, 3).
        config: how to show them, as threejs has it: a dict.
    """
    import json

    given = [(vertices, 1, "VERTEX"), (faces, 2, "FACE"), (colors, 3, "COLOR")]
    given = [(rushlight.as_tensor(v), kind, name) for v, kind, name in given if v is not None]
    components = sum(1 << kind for _, kind, _ in given)
    text = json.dumps(config or {}, sort_keys=True)
    summaries = []
    for values, kind, name in given:
        if values.dim() != 3:
            raise ValueError(
                f"a mesh has tensors of shape (batch, count, 3), not {list(values.shape)}"
            )
        about = message(
            (2, "bytes", tag),
            (3, "int", kind),
            (5, "bytes", text),
            (6, "ints", values.shape),
            (7, "int", components),
        )
        tensor = _tensor(1, values.shape, (5, "floats", _floats(values).tolist()))
        summaries.append(
            summary_of(f"{tag}_{name}", (8, "bytes", tensor), (9, "bytes", metadata("mesh", about)))
        )
    return summaries


# ---- layouts of scalars ----


def custom_scalars(layout: dict[str, dict[str, list]]) -> bytes:
    """Charts of several tags: {category: {title: ["Multiline" or "Margin", tags]}}."""
    categories = []
    for category, charts in layout.items():
        shown = []
        for title, (kind, tags) in charts.items():
            if kind == "Margin":
                if len(tags) != 3:
                    raise ValueError(f"a margin has a value, a lower and an upper tag, not {tags}")
                series = message(*((i + 1, "bytes", tag) for i, tag in enumerate(tags)))
                content = (3, "bytes", message((1, "bytes", series)))
            else:
                content = (2, "bytes", message(*((1, "bytes", tag) for tag in tags)))
            shown.append((2, "bytes", message((1, "bytes", title), content)))
        categories.append((2, "bytes", message((1, "bytes", category), *shown)))
    tensor = _tensor(7, (), (8, "bytes", message(*categories)))
    about = metadata("custom_scalars")
    return summary_of("custom_scalars__config__", (8, "bytes", tensor), (9, "bytes", about))


# ---- sounds, films ----


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> bytes:
    """A sound of one channel, numbers from -1 to 1."""
    samples = rushlight.as_tensor(tensor).detach().cpu().squeeze()
    if samples.dim() != 1:
        raise ValueError(f"input tensor should be 1 dimensional, not {list(samples.shape)}")
    if samples.abs().max() > 1:
        samples = samples.clamp(-1, 1)
    stream = io.BytesIO()
    with wave.open(stream, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(sample_rate)
        out.writeframes(bytes((samples.double() * 32767).to(rushlight.int16).numpy()))
    content = message(
        (1, "float", float(sample_rate)),
        (2, "int", 1),
        (3, "int", samples.numel()),
        (4, "bytes", stream.getvalue()),
        (5, "bytes", "audio/wav"),
    )
    return summary_of(tag, (6, "bytes", content))


def frames(videos: Any) -> Tensor:
    """Films (N, T, C, H, W) beside and below each other, as uint8 (T, H, W, C)."""
    pixels = rushlight.as_tensor(videos).detach().cpu()
    if pixels.dim() != 5:
        raise ValueError(f"expected films (N, T, C, H, W), not {list(pixels.shape)}")
    if pixels.dtype is not rushlight.uint8:
        pixels = (pixels.float() * 255).clamp(0, 255).to(rushlight.uint8)
    count, steps, channels, height, width = pixels.shape
    whole = 1 << max(count - 1, 0).bit_length()
    pixels = rushlight.cat([pixels, pixels.new_zeros(whole - count, *pixels.shape[1:])])
    rows = 1 << (whole.bit_length() - 1) // 2
    grid = pixels.reshape(rows, whole // rows, steps, channels, height, width)
    return grid.permute(2, 0, 4, 1, 5, 3).reshape(
        steps, rows * height, whole // rows * width, channels
    )


def video(tag: str, tensor: Any, fps: float = 4) -> bytes:
    """Films (N, T, C, H, W) side by side, as a GIF that Pillow writes."""
    from PIL import Image

    pixels = frames(tensor)
    pictures = [Image.fromarray(f.squeeze(-1).numpy()) for f in pixels]
    stream = io.BytesIO()
    pictures[0].save(
        stream,
        "GIF",
        save_all=True,
        append_images=pictures[1:],
        duration=math.ceil(1000 / fps),
        loop=0,
    )
    _, height, width, channels = pixels.shape
    content = message(
        (1, "int", height),
        (2, "int", width),
        (3, "int", channels),
        (4, "bytes", stream.getvalue()),
    )
    return summary_of(tag, (4, "bytes", content))


# ---- tensors ----

# By dtype: its number, and the field of its numbers, with how they are written.
_KINDS = {
    rushlight.float32: (1, 5, "floats"),
    rushlight.float64: (2, 6, "doubles"),
    rushlight.int32: (3, 7, "ints"),
    rushlight.uint8: (4, 7, "ints"),
    rushlight.int16: (5, 7, "ints"),
    rushlight.int8: (6, 7, "ints"),
    rushlight.int64: (9, 10, "ints"),
    rushlight.bool: (10, 11, "ints"),
}


def tensor(tag: str, values: Tensor) -> bytes:
    """All numbers of a tensor."""
    if values.dtype not in _KINDS:
        raise ValueError(f"tensors of {values.dtype} cannot be written")
    number, field, kind = _KINDS[values.dtype]
    numbers = values.detach().cpu().reshape(-1).tolist()
    content = _tensor(number, values.shape, (field, kind, numbers))
    return summary_of(tag, (8, "bytes", content), (9, "bytes", metadata("tensor")))
