"""TensorBoard's summaries as messages: scalars, histograms, images, texts, hyperparameters."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import rushlight
from rushlight.utils.tensorboard._events import message

__all__ = ["histogram", "histogram_raw", "hparams", "image", "scalar", "text"]


def summary_of(tag, *fields):
    """A summary of one value."""
    return message((1, "bytes", message((1, "bytes", tag), *fields)))


def _number(value):
    if isinstance(value, rushlight.Tensor):
        if value.numel() != 1:
            raise AssertionError("scalar should be 0D")
        return float(value.item())
    return float(value)


def scalar(name: str, scalar_value: Any):
    """A summary of a number.

    Args:
        name: of the summary.
        scalar_value: a number, or a tensor of one element.

    Example:
        >>> from rushlight.utils.tensorboard import summary
        >>> isinstance(summary.scalar("loss", 0.5), bytes)  # as it stands in a file of events
        True
    """
    return summary_of(name, (2, "float", _number(scalar_value)))


def _flatten(values):
    return rushlight.as_tensor(values).detach().cpu().reshape(-1).to(rushlight.float64)


def default_bins():
    """Edges of bins that grow by a tenth, on both sides of zero."""
    edges = []
    v = 1e-12
    while v < 1e20:
        edges.append(v)
        v *= 1.1
    return [-e for e in reversed(edges)] + [0.0] + edges


def histogram(name: str, values: Any, bins: str = "tensorflow", max_bins: int | None = None):
    """A histogram of values: with TensorBoard's bins, a number of equal bins, or given edges.

    Args:
        name: of the summary.
        values: a tensor or an array.
        bins: "tensorflow", the number of bins, or their edges.
        max_bins: join bins until there are so many at most.

    For an example see `utils.tensorboard.summary.scalar`.
    """
    values = _flatten(values)
    if values.numel() == 0:
        raise ValueError("The input has no element.")
    low, high = values.min().item(), values.max().item()
    if bins == "tensorflow":
        edges = rushlight.tensor(default_bins(), dtype=rushlight.float64)
    elif isinstance(bins, (str, int)):
        count = bins if isinstance(bins, int) else min(512, max(1, int(values.numel() ** 0.5)))
        top = high if high > low else low + 1
        edges = rushlight.linspace(low, top, count + 1, dtype=rushlight.float64)
    else:
        edges = _flatten(bins)
    places = rushlight.searchsorted(edges, values, right=True) - 1
    places = places.clamp(0, edges.numel() - 2)
    counts = rushlight.bincount(places, minlength=edges.numel() - 1)
    used = counts.nonzero().reshape(-1)
    first, last = int(used[0]), int(used[-1])
    counts = counts[first : last + 1].tolist()
    limits = edges[first + 1 : last + 2].tolist()
    return histogram_raw(
        name,
        low,
        high,
        values.numel(),
        values.sum().item(),
        (values * values).sum().item(),
        [limits[0] - 1e-12 if first == 0 else edges[first].item(), *limits],
        [0, *counts],
    )


def histogram_raw(
    name: str,
    min: float,
    max: float,
    num: float,
    sum: float,
    sum_squares: float,
    bucket_limits: Sequence[float],
    bucket_counts: Sequence[float],
):
    """A histogram from its numbers: the upper limits of the bins and their counts.

    Args:
        name: of the summary.
        min, max, num, sum, sum_squares: of the values.
        bucket_limits: the upper limits of the bins.
        bucket_counts: how many values lie in each.

    For an example see `utils.tensorboard.summary.scalar`.
    """
    spread = message(
        (1, "double", float(min)),
        (2, "double", float(max)),
        (3, "double", float(num)),
        (4, "double", float(sum)),
        (5, "double", float(sum_squares)),
        (6, "doubles", [float(x) for x in bucket_limits]),
        (7, "doubles", [float(x) for x in bucket_counts]),
    )
    return summary_of(name, (5, "bytes", spread))


def png(pixels):
    """A PNG of a uint8 tensor (height, width, 1, 3 or 4)."""
    height, width, channels = pixels.shape
    kind = {1: 0, 3: 2, 4: 6}[channels]
    data = bytes(pixels.contiguous().reshape(-1).numpy())
    row = width * channels
    raw = b"".join(b"\0" + data[i * row : (i + 1) * row] for i in range(height))

    def chunk(name, content):
        body = name + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    parts = (chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(raw)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def image_boxes(
    tag: str,
    tensor,
    boxes,
    rescale: float = 1,
    dataformats: str = "CHW",
    labels: list[str] | None = None,
):
    """An image with boxes (x0, y0, x1, y1), which Pillow draws."""
    from PIL import Image, ImageDraw

    pixels = _pixels(tensor, rescale, dataformats)
    pixels = pixels.expand(-1, -1, 3) if pixels.shape[-1] == 1 else pixels[..., :3]
    picture = Image.fromarray(pixels.numpy())
    draw = ImageDraw.Draw(picture)
    for i, box in enumerate(rushlight.as_tensor(boxes).reshape(-1, 4).tolist()):
        draw.rectangle(box, outline="red", width=2)
        if labels is not None:
            draw.text((box[0] + 3, box[1]), labels[i], fill="black")
    flat = rushlight.frombuffer(bytearray(picture.tobytes()), dtype=rushlight.uint8)
    return _image(tag, flat.reshape(pixels.shape))


def image(tag: str, tensor: rushlight.Tensor, rescale: float = 1, dataformats: str = "CHW"):
    """A summary of an image: floats from 0 to 1, or uint8, with the dimensions of `dataformats`.

    Args:
        tag: the name of the summary.
        tensor: the image.
        rescale: a factor for its values.
        dataformats: what the dimensions are: "CHW", "HWC", "HW", "NCHW" or "NHWC".

    For an example see `utils.tensorboard.summary.scalar`.
    """
    return _image(tag, _pixels(tensor, rescale, dataformats))


def _pixels(tensor, rescale, dataformats):
    """An image as uint8 (height, width, channels)."""
    pixels = rushlight.as_tensor(tensor).detach().cpu()
    names = dataformats.upper()
    if len(names) != pixels.dim() or set(names) not in ({*"CHW"}, {*"HW"}):
        raise AssertionError(
            f"size of input tensor and input format are different: {tuple(pixels.shape)}, {names}"
        )
    if "C" not in names:
        pixels, names = pixels.unsqueeze(-1), names + "C"
    pixels = pixels.permute(*(names.index(n) for n in "HWC"))
    if pixels.dtype is not rushlight.uint8:
        pixels = (pixels.to(rushlight.float32) * (255 * rescale)).clamp(0, 255).to(rushlight.uint8)
    if pixels.shape[-1] not in (1, 3, 4):
        raise AssertionError(f"an image has 1, 3 or 4 channels, not {pixels.shape[-1]}")
    return pixels


def _image(tag, pixels):
    height, width, channels = pixels.shape
    fields = message(
        (1, "int", height), (2, "int", width), (3, "int", channels), (4, "bytes", png(pixels))
    )
    return summary_of(tag, (4, "bytes", fields))


def metadata(plugin, content=b""):
    """The plugin that shows a value, with the plugin's data."""
    return message((1, "bytes", message((1, "bytes", plugin), (2, "bytes", content))))


def text(tag: str, text_string: str):
    """A summary of a text, which may use Markdown.

    Args:
        tag: the name of the summary.
        text_string: the text.

    For an example see `utils.tensorboard.summary.scalar`.
    """
    shape = message((2, "bytes", message((1, "int", 1))))
    tensor = message((1, "int", 7), (2, "bytes", shape), (8, "bytes", text_string))
    return summary_of(f"{tag}/text_summary", (8, "bytes", tensor), (9, "bytes", metadata("text")))


def _value(value):
    """A google.protobuf.Value and the number of its type."""
    if isinstance(value, bool):
        return message((4, "int", value)), 2
    if isinstance(value, (int, float)):
        return message((2, "double", float(value))), 3
    if isinstance(value, str):
        return message((3, "bytes", value)), 1
    if isinstance(value, rushlight.Tensor):
        return message((2, "double", float(value.item()))), 3
    raise ValueError(f"value should be one of a number, a string or a tensor, not {type(value)}")


def hparams(
    hparam_dict: Mapping[str, Any] | None = None,
    metric_dict: Mapping[str, Any] | None = None,
    hparam_domain_discrete: Mapping[str, Sequence[Any]] | None = None,
):
    """The hyperparameters and metrics of a run: three summaries that belong together.

    Args:
        hparam_dict: hyperparameters by name.
        metric_dict: metrics by name.
        hparam_domain_discrete: all values that a hyperparameter may have, by name.

    Raises:
        TypeError: one of the arguments is no dict.
        ValueError: for a value that is neither number, text, bool nor tensor.

    For an example see `utils.tensorboard.summary.scalar`.
    """
    if not isinstance(hparam_dict, dict) or not isinstance(metric_dict, dict):
        raise TypeError("hparam_dict and metric_dict should be dictionary.")
    infos, entries = [], []
    for name, value in hparam_dict.items():
        if value is None:
            continue
        encoded, kind = _value(value)
        infos.append((4, "bytes", message((1, "bytes", name), (4, "int", kind))))
        entries.append((1, "bytes", message((1, "bytes", name), (2, "bytes", encoded))))
    metrics = [
        (5, "bytes", message((1, "bytes", message((2, "bytes", tag))))) for tag in metric_dict
    ]
    contents = {
        "experiment": message((2, "bytes", message(*infos, *metrics))),
        "session_start_info": message((3, "bytes", message(*entries))),
        "session_end_info": message((4, "bytes", message((1, "int", 1)))),
    }
    return tuple(
        summary_of(f"_hparams_/{name}", (9, "bytes", metadata("hparams", content)))
        for name, content in contents.items()
    )
