"""What notebooks show: tensors, modules, data sets, summaries and histories as pieces of HTML.

Each piece is of bounded size, whatever it shows, and what comes from programs is escaped. Pieces
take the colours of the page: text is of its colour, lines are of that colour and faint, so that
they are at home on a light page and on a dark one. There are no scripts.
"""

from __future__ import annotations

import base64
import html
import math
import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import rushlight

_MOST_TEXT = 4000  # characters of a text
_MOST_SIDE = 64  # rows and columns of a picture
_MOST_ELEMENTS = 1 << 24  # that are looked at for a range
_FEW_ELEMENTS = 50  # whose text is shown at once
_MOST_MODULES = 300
_MOST_ROWS = 100  # of a table
_MOST_POINTS = 300  # of a curve

_FRAME = "font-family:ui-monospace,monospace;font-size:13px;line-height:1.5;color:inherit"
_FAINT = "opacity:.65"
_CELL = "text-align:left;padding:1px 12px 1px 0;border:0;background:none"


def text(value: Any) -> str:
    """A text, cut where it is long, and escaped."""
    said = str(value)
    return html.escape(said if len(said) <= _MOST_TEXT else said[:_MOST_TEXT] + " …")


def frame(*parts: str) -> str:
    """A piece for a notebook."""
    return f'<div style="{_FRAME}">{"".join(parts)}</div>'


def faint(said: str) -> str:
    return f'<span style="{_FAINT}">{said}</span>'


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table of texts; what is beyond the limit is counted."""

    def line(kind: str, cells: Iterable[Any]) -> str:
        made = (f'<{kind} style="{_CELL}">{text(cell)}</{kind}>' for cell in cells)
        return f"<tr>{''.join(made)}</tr>"

    listed = [list(row) for row in rows]
    lines = [line("td", row) for row in listed[:_MOST_ROWS]]
    rest = len(listed) - len(lines)
    left = line("td", [f"… and {rest} more"]) if rest > 0 else ""
    top = line("th", head) if head else ""
    return f'<table style="border-collapse:collapse;{_FRAME}">{top}{"".join(lines)}{left}</table>'


def dtype_name(tensor: Any) -> str:
    return str(tensor.dtype).rpartition(".")[2]


# ---- pictures of values ----


def _between(stops: Sequence[tuple[int, int, int]], count: int) -> bytes:
    """`count` colours from the first stop to the last."""
    made = []
    for i in range(count):
        place = i / (count - 1) * (len(stops) - 1)
        k = min(int(place), len(stops) - 2)
        pairs = zip(stops[k], stops[k + 1], strict=True)
        made += [round(a + (b - a) * (place - k)) for a, b in pairs]
    return bytes(made)


# Colour 255 is that of NaN. With both signs the middle is 0.
_NAN = bytes((230, 0, 230))
_ONE_SIGN = _between([(27, 20, 70), (32, 110, 140), (80, 180, 110), (250, 230, 90)], 255) + _NAN
_COLD, _WARM = [(40, 80, 200), (150, 185, 240)], [(240, 165, 130), (190, 30, 40)]
_BOTH_SIGNS = _between([*_COLD, (235, 235, 235), *_WARM], 255) + _NAN


def _png(rows: list[list[int]], palette: bytes) -> bytes:
    """A PNG file of numbers of colours."""

    def chunk(name: bytes, body: bytes) -> bytes:
        tail = struct.pack(">I", zlib.crc32(name + body))
        return struct.pack(">I", len(body)) + name + body + tail

    size = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 3, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    chunks = chunk(b"IHDR", size) + chunk(b"PLTE", palette) + chunk(b"IDAT", pixels)
    return b"\x89PNG\r\n\x1a\n" + chunks + chunk(b"IEND", b"")


def picture(values: Any) -> str:
    """Values (rows, columns) as coloured squares: some of them where there are many."""
    steps = [math.ceil(n / _MOST_SIDE) for n in values.shape]
    part = values[:: steps[0], :: steps[1]].double().cpu()
    known = part[part.isfinite()]
    low, high = (known.min().item(), known.max().item()) if known.numel() else (0.0, 0.0)
    if low < 0 < high:
        palette, high = _BOTH_SIGNS, max(-low, high)
        low = -high
    else:
        palette = _ONE_SIGN
    scaled = (part - low) / ((high - low) or 1.0) * 254
    numbers = scaled.clamp(0, 254).nan_to_num(255.0).round().long().tolist()
    data = base64.b64encode(_png(numbers, palette)).decode()
    scale = max(4, min(14, 256 // max(part.shape)))
    height, width = (scale * n for n in part.shape)
    return (
        f'<img alt="the values as colours" width="{width}" height="{height}" '
        f'style="image-rendering:pixelated;margin:4px 0" src="data:image/png;base64,{data}">'
    )


def _number(value: float) -> str:
    return f"{value:.{rushlight._tensor_str.PRINT_OPTS.precision}g}"


def _range(values: Any) -> str:
    """Least, mean and greatest value, and how many are none."""
    step = math.ceil(values.numel() / _MOST_ELEMENTS)
    flat = values.reshape(-1)[::step]
    flat = flat.double() if flat.dtype not in (rushlight.float32, rushlight.float64) else flat
    known = flat[flat.isfinite()]
    said = "no finite value"
    if known.numel():
        low, high = known.min().item(), known.max().item()
        said = f"{_number(low)} … {_number(high)}, mean {_number(known.double().mean().item())}"
    for name, count in (("NaN", flat.isnan().sum().item()), ("inf", flat.isinf().sum().item())):
        said += f", {count} {name}" if count else ""
    return said + (f" (of every {step}th element)" if step > 1 else "")


def _can_be_drawn(tensor: Any) -> bool:
    """Whether values lie in memory as a plain tensor's do."""
    levels = rushlight._C._batch_level(tensor) or rushlight._C._forward_level_of(tensor)
    plain = tensor.layout is rushlight.strided and not tensor.is_quantized and not levels
    special = (
        tensor.is_nested
        or tensor.is_meta
        or type(tensor).__torch_dispatch__ is not (rushlight.Tensor.__torch_dispatch__)
    )
    return plain and not special and tensor.numel() > 0


def of_tensor(tensor: Any) -> str:
    """Shape, dtype, device, range, a picture of the values, and the values as text."""
    said = [f"{tuple(tensor.shape)}", dtype_name(tensor)]
    said += [str(tensor.device)] if tensor.device.type != "cpu" else []
    said += ["requires grad"] if tensor.requires_grad else []
    head = f"<b>{text(type(tensor).__name__)}</b> {text(', '.join(said))}"
    body = ""
    if _can_be_drawn(tensor):
        with rushlight.no_grad():
            values = tensor.detach()
            values = values.abs() if values.is_complex() else values
            body = f"<br>{faint(text(_range(values)))}"
            place = [0] * max(0, values.dim() - 2)
            if values.dim() > 0:
                rows = values[tuple(place)] if place else values
                body += f"<br>{picture(rows.reshape(-1, rows.shape[-1]))}"
            if place:
                body += f"<br>{faint(text(f'the picture is of {place}'))}"
    shown = f"<pre style='margin:4px 0;{_FRAME};background:none'>{text(repr(tensor))}</pre>"
    opened = " open" if tensor.numel() <= _FEW_ELEMENTS else ""
    return frame(head, body, f"<details{opened}><summary>values</summary>{shown}</details>")


# ---- modules ----


def counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _parameters(module: Any) -> str:
    total = sum(p.numel() for p in module.parameters() if _has_size(p))
    frozen = sum(p.numel() for p in module.parameters() if _has_size(p) and not p.requires_grad)
    said = counted(total, "parameter") if total else ""
    return said + (f", {frozen:,} of them frozen" if frozen else "")


def _has_size(parameter: Any) -> bool:
    return not isinstance(parameter, rushlight.nn.parameter.UninitializedTensorMixin)


def _own(module: Any) -> list[tuple[str, str]]:
    """Names and shapes of the parameters and buffers that a module itself has."""
    named = [(n, p, "") for n, p in module._parameters.items() if p is not None]
    named += [(n, b, " buffer") for n, b in module._buffers.items() if b is not None]
    made = []
    for name, value, kind in named:
        shape = tuple(value.shape) if _has_size(value) else "no size yet"
        made.append((name, f"{shape} {dtype_name(value)}{kind}"))
    return made


def _branch(name: str, module: Any, left: list[int], depth: int) -> str:
    """A module and those in it; `left[0]` counts down how many more are shown."""
    left[0] -= 1
    label = f"{text(name)}: " if name else ""
    extra = " ".join(module.extra_repr().split())
    head = f"{label}<b>{text(module._get_name())}</b>({text(extra)}) {faint(_parameters(module))}"
    own = "".join(f"<div>{text(n)} {faint(text(said))}</div>" for n, said in _own(module))
    inner, children = [], list(module._modules.items())
    for i, (child_name, child) in enumerate(children):
        if left[0] <= 0 or depth > 50:
            inner.append(f"<div>… and {len(children) - i} more</div>")
            break
        if child is not None:
            inner.append(_branch(child_name, child, left, depth + 1))
    if not own and not inner:
        return f"<div>{head}</div>"
    opened = " open" if depth == 0 else ""
    body = f'<div style="margin-left:18px">{own}{"".join(inner)}</div>'
    return f"<details{opened}><summary>{head}</summary>{body}</details>"


def of_module(module: Any) -> str:
    """A tree that folds: each module with its settings, its tensors and how many numbers it has."""
    return frame(_branch("", module, [_MOST_MODULES], 0))


# ---- data sets, histories ----


def of_dataset(dataset: Any) -> str:
    """Its class, its length, its tensors or parts, and what it says of itself. No item is made."""
    length = f" {faint(counted(len(dataset), 'item'))}" if hasattr(type(dataset), "__len__") else ""
    head = f"<b>{text(type(dataset).__name__)}</b>{length}"
    parts = getattr(dataset, "tensors", None)
    if isinstance(parts, tuple):
        kinds = (dtype_name(t) for t in parts)
        rows = [(i, tuple(t.shape), k) for i, (t, k) in enumerate(zip(parts, kinds, strict=True))]
        return frame(head, table(("tensor", "shape", "dtype"), rows))
    parts = getattr(dataset, "datasets", None)
    if isinstance(parts, (list, tuple)):
        lengths = [len(p) if hasattr(type(p), "__len__") else "" for p in parts]
        names = [type(p).__name__ for p in parts]
        return frame(head, table(("part", "items"), zip(names, lengths, strict=True)))
    said = repr(dataset)
    plain = said.startswith("<") and " object at 0x" in said
    return frame(head, "" if plain else f"<pre style='background:none'>{text(said)}</pre>")


def curve(points: Sequence[tuple[int, float]], width: int = 320, height: int = 90) -> str:
    """A line through points from left to right; values that are not finite leave a gap."""
    step = max(1, math.ceil(len(points) / _MOST_POINTS))
    chosen = [p for i, p in enumerate(points) if i % step == 0 or i == len(points) - 1]
    known = [v for _, v in chosen if math.isfinite(v)]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    begin, length = chosen[0][0], (chosen[-1][0] - chosen[0][0]) or 1
    parts: list[list[str]] = [[]]
    for place, v in chosen:
        if not math.isfinite(v):
            parts.append([])
            continue
        x = 2 + (place - begin) / length * (width - 4)
        y = height - 3 - (v - low) / ((high - low) or 1.0) * (height - 6)
        parts[-1].append(f"{x:.1f},{y:.1f}")
    lines = "".join(
        f'<polyline fill="none" stroke="#3b82d6" stroke-width="1.5" points="{" ".join(part)}"/>'
        for part in parts
        if part
    )
    edge = f"M1 1V{height - 1}H{width - 1}"
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">'
        f'<path d="{edge}" fill="none" stroke="currentColor" opacity=".3"/>{lines}</svg>'
    )


def of_history(history: Any) -> str:
    """A curve for each quantity, with its first, best and last value."""
    cells = []
    for name in history.names()[:_MOST_ROWS]:
        points = history.points(name)
        values = [value for _, value in points]
        known = [v for v in values if math.isfinite(v)]
        said = f"{_number(values[0])} → {_number(values[-1])}"
        said += f", {_number(min(known))} … {_number(max(known))}" if known else ""
        label = f"<b>{text(name)}</b> {faint(text(said))}"
        cells.append(
            '<div style="display:inline-block;margin:4px 16px 4px 0">'
            f"{label}<br>{curve(points)}</div>"
        )
    head = f"<b>{text(type(history).__name__)}</b> {faint(counted(len(history), 'step'))}"
    return frame(head, "<br>", *cells)
