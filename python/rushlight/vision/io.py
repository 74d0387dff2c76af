"""Image files and bytes as tensors, by Pillow."""

from __future__ import annotations

import io
import os
from enum import Enum
from typing import Any

from PIL import Image, ImageOps, UnidentifiedImageError

import rushlight
from rushlight import Tensor

from .transforms import functional as F

__all__ = [
    "ImageReadMode",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "decode_webp",
    "encode_jpeg",
    "encode_png",
    "read_file",
    "read_image",
    "write_file",
    "write_jpeg",
    "write_png",
]


class ImageReadMode(Enum):
    """What channels an image gets: those of the file, grey, grey and alpha, RGB, RGB and alpha."""

    UNCHANGED = 0
    GRAY = 1
    GRAY_ALPHA = 2
    RGB = 3
    RGB_ALPHA = 4


_MODES = {
    ImageReadMode.GRAY: "L",
    ImageReadMode.GRAY_ALPHA: "LA",
    ImageReadMode.RGB: "RGB",
    ImageReadMode.RGB_ALPHA: "RGBA",
}


def read_file(path: str | os.PathLike[str]) -> Tensor:
    """The bytes of a file, (N), uint8."""
    with open(path, "rb") as f:
        return _tensor(f.read())


def write_file(filename: str | os.PathLike[str], data: Tensor) -> None:
    """Writes bytes, (N), uint8, to a file."""
    with open(filename, "wb") as f:
        f.write(_bytes(data))


def _bytes(data: Any) -> bytes:
    if not isinstance(data, Tensor) or data.dtype != rushlight.uint8 or data.dim() != 1:
        raise RuntimeError("Expected a non empty 1-dimensional tensor of bytes (uint8)")
    return data.cpu().numpy().tobytes()


def _tensor(data: bytes) -> Tensor:
    if not data:
        return rushlight.empty(0, dtype=rushlight.uint8)
    return rushlight.frombuffer(bytearray(data), dtype=rushlight.uint8)


def _as_mode(mode: Any) -> ImageReadMode:
    return ImageReadMode[mode.upper()] if isinstance(mode, str) else mode


def _open(data: Tensor, formats: tuple[str, ...] | None) -> Any:
    raw = _bytes(data)
    if not raw:
        raise RuntimeError("Expected a non empty 1-dimensional tensor")
    try:
        picture = Image.open(io.BytesIO(raw), formats=formats)
        picture.load()
    except UnidentifiedImageError:
        said = " or ".join(formats) if formats else "known image"
        raise RuntimeError(f"these bytes are no {said} file") from None
    except (OSError, SyntaxError, ValueError) as e:
        raise RuntimeError(f"the image file is damaged: {e}") from e
    return picture


def _decode(data: Tensor, mode: Any, turn: bool, formats: tuple[str, ...] | None) -> Tensor:
    picture = _open(data, formats)
    if turn:
        picture = ImageOps.exif_transpose(picture)
    wanted = _MODES.get(_as_mode(mode))
    if wanted is not None and picture.mode != wanted:
        picture = picture.convert(wanted)
    elif picture.mode == "P":  # a palette is no channel
        picture = picture.convert("RGBA" if "transparency" in picture.info else "RGB")
    elif picture.mode == "1":
        picture = picture.convert("L")
    return F.pil_to_tensor(picture).contiguous()


def decode_image(
    input: Tensor | str | os.PathLike[str],
    mode: Any = ImageReadMode.UNCHANGED,
    apply_exif_orientation: bool = False,
) -> Tensor:
    """An image as a tensor of shape (C, H, W), bytes as a rule.

    Args:
        input: the file's bytes, (N), uint8, or its path.
        mode: an ImageReadMode or its name.
        apply_exif_orientation: whether it is turned as the camera noted.

    Raises:
        RuntimeError: it is no image file, or a damaged one.
    """
    data = input if isinstance(input, Tensor) else read_file(input)
    return _decode(data, mode, apply_exif_orientation, None)


def read_image(
    path: str | os.PathLike[str],
    mode: Any = ImageReadMode.UNCHANGED,
    apply_exif_orientation: bool = False,
) -> Tensor:
    """`decode_image` of a file."""
    return decode_image(read_file(path), mode, apply_exif_orientation)


def decode_png(
    input: Tensor, mode: Any = ImageReadMode.UNCHANGED, apply_exif_orientation: bool = False
) -> Tensor:
    """`decode_image` of the bytes of a PNG file."""
    return _decode(input, mode, apply_exif_orientation, ("PNG",))


def decode_jpeg(
    input: Tensor | list[Tensor],
    mode: Any = ImageReadMode.UNCHANGED,
    device: Any = "cpu",
    apply_exif_orientation: bool = False,
) -> Any:
    """`decode_image` of the bytes of a JPEG file, or of each in a list."""
    if isinstance(input, list):
        return [decode_jpeg(i, mode, device, apply_exif_orientation) for i in input]
    return _decode(input, mode, apply_exif_orientation, ("JPEG",)).to(device)


def decode_webp(input: Tensor, mode: Any = ImageReadMode.UNCHANGED) -> Tensor:
    """`decode_image` of the bytes of a WebP file."""
    return _decode(input, mode, False, ("WEBP",))


def decode_gif(input: Tensor) -> Tensor:
    """A GIF file as (3, H, W), or (frames, 3, H, W) where it has several."""
    picture = _open(input, ("GIF",))
    frames = []
    for i in range(getattr(picture, "n_frames", 1)):
        picture.seek(i)
        frames.append(F.pil_to_tensor(picture.convert("RGB")))
    return frames[0].contiguous() if len(frames) == 1 else rushlight.stack(frames)


def _encode(input: Tensor, format: str, **settings: Any) -> Tensor:
    if not isinstance(input, Tensor) or input.dtype != rushlight.uint8:
        raise RuntimeError("Input tensor dtype should be uint8")
    if input.dim() != 3 or input.size(0) not in (1, 3):
        raise RuntimeError(
            f"The number of channels should be 1 or 3, got a tensor of shape {tuple(input.shape)}"
        )
    out = io.BytesIO()
    F.to_pil_image(input).save(out, format=format, **settings)
    return _tensor(out.getvalue())


def encode_png(input: Tensor, compression_level: int = 6) -> Tensor:
    """The bytes of a PNG file of an image, (1 or 3, H, W), uint8; levels are 0 to 9."""
    if not 0 <= compression_level <= 9:
        raise RuntimeError("Compression level should be between 0 and 9")
    return _encode(input, "PNG", compress_level=compression_level)


def write_png(input: Tensor, filename: str | os.PathLike[str], compression_level: int = 6) -> None:
    """`encode_png` to a file."""
    write_file(filename, encode_png(input, compression_level))


def encode_jpeg(input: Tensor | list[Tensor], quality: int = 75) -> Any:
    """The bytes of a JPEG file of an image, (1 or 3, H, W), uint8, or of each in a list; quality is
    1 to 100.
    """
    if not 1 <= quality <= 100:
        raise ValueError("Image quality should be a positive number between 1 and 100")
    if isinstance(input, list):
        return [encode_jpeg(i, quality) for i in input]
    return _encode(input, "JPEG", quality=quality)


def write_jpeg(input: Tensor, filename: str | os.PathLike[str], quality: int = 75) -> None:
    """`encode_jpeg` to a file."""
    write_file(filename, encode_jpeg(input, quality))
