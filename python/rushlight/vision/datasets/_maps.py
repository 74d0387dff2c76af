"""Files of numbers by pixel: flow (.flo), floats (.pfm), PNG of 16 bits."""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

from .utils import parsing

_MOST_SIDE = 1 << 16


def _check_size(width: int, height: int) -> None:
    if not (0 < width <= _MOST_SIDE and 0 < height <= _MOST_SIDE):
        raise ValueError(f"a size of {width} x {height}")


def read_flo(path: str | Path) -> np.ndarray:
    """Flow (2, H, W), float32, of a file in Middlebury's format."""
    content = Path(path).read_bytes()
    with parsing(path):
        if content[:4] != b"PIEH":
            raise ValueError(f"it begins with {content[:4]!r}")
        width, height = struct.unpack_from("<ii", content, 4)
        _check_size(width, height)
        values = np.frombuffer(content, "<f4", 2 * height * width, 12)
    return values.reshape(height, width, 2).transpose(2, 0, 1).astype(np.float32)


def read_pfm(path: str | Path, channels: int) -> np.ndarray:
    """The first channels (channels, H, W), float32, of a portable float map, whose last row comes
    first.
    """
    content = Path(path).read_bytes()
    with parsing(path):
        kind, size, scale, body = content.split(b"\n", 3)
        every = {b"PF": 3, b"Pf": 1}[kind.strip()]
        width, height = (int(n) for n in size.split())
        _check_size(width, height)
        order = "<f4" if float(scale) < 0 else ">f4"
        values = np.frombuffer(body, order, width * height * every)
    rows = values.reshape(height, width, every).transpose(2, 0, 1)
    return rows[:channels, ::-1].astype(np.float32)


def read_png16(path: str | Path) -> np.ndarray:
    """The colours (H, W, 3), uint16, of a PNG of 16 bits, of which Pillow keeps 8 alone."""
    content = Path(path).read_bytes()
    with parsing(path):
        if content[:8] != b"\x89PNG\r\n\x1a\n":
            raise ValueError("it is no PNG")
        place, packed, header = 8, [], b""
        while place < len(content):
            length, name = struct.unpack_from(">I4s", content, place)
            body = content[place + 8 : place + 8 + length]
            if name == b"IHDR":
                header = body
            elif name == b"IDAT":
                packed.append(body)
            elif name == b"IEND":
                break
            place += length + 12
        width, height, depth, colours, *rest = struct.unpack(">IIBBBBB", header)
        _check_size(width, height)
        if (depth, colours, rest[-1]) != (16, 2, 0):
            raise ValueError(f"colours of 16 bits, not interlaced, are wanted; it has {header!r}")
        try:
            wanted = height * (1 + 6 * width)
            raw = zlib.decompressobj().decompress(b"".join(packed), wanted)
        except zlib.error as error:
            raise ValueError(str(error)) from error
        lines = np.frombuffer(raw, np.uint8, wanted).reshape(height, 1 + 6 * width)
        rows = _unfilter(lines[:, 0], lines[:, 1:].reshape(height, width, 6))
    return rows.reshape(height, width * 6).view(">u2").reshape(height, width, 3).astype(np.uint16)


def _unfilter(kinds: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Bytes (H, W, 6) of differences from what is left, above, or both, as the bytes themselves."""
    out = np.zeros_like(rows)
    above = np.zeros_like(rows[0])
    for i, kind in enumerate(kinds.tolist()):
        row = rows[i]
        if kind == 1:
            row = np.cumsum(row, axis=0, dtype=np.uint8)
        elif kind == 2:
            row = row + above
        elif kind in (3, 4):
            row = _from_neighbours(kind, row.astype(np.int32), above.astype(np.int32))
        elif kind != 0:
            raise ValueError(f"an unknown filter {kind}")
        out[i] = above = row.astype(np.uint8)
    return out


def _from_neighbours(kind: int, row: np.ndarray, above: np.ndarray) -> np.ndarray:
    left = corner = np.zeros(row.shape[1], np.int32)
    for x in range(len(row)):
        up = above[x]
        if kind == 3:
            guess = (left + up) // 2
        else:  # of left, above and the corner, that nearest to left + above - corner
            to_left, to_up = abs(up - corner), abs(left - corner)
            to_corner = abs(left + up - 2 * corner)
            nearest = np.where(to_up <= to_corner, up, corner)
            guess = np.where((to_left <= to_up) & (to_left <= to_corner), left, nearest)
        row[x] = left = (row[x] + guess) & 255
        corner = up
    return row


def read_grey(path: str | Path) -> np.ndarray:
    """Numbers (1, H, W), float32, of a picture of one channel, also of 16 bits."""
    return picture(path).astype(np.float32)[None]


def picture(path: str | Path) -> np.ndarray:
    """The array of a picture; RuntimeError with its name where it is none."""
    content = io.BytesIO(Path(path).read_bytes())  # Pillow believes lengths that a file claims
    try:
        with Image.open(content) as image:
            return np.asarray(image)
    except Exception as error:  # Pillow's decoders have many ways to say that it is damaged
        raise RuntimeError(f"{path} is damaged: {error}") from error
