"""Reading and writing of image files and bytes, with Pillow."""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import Any, TypeVar

from PIL import Image, ImageChops, UnidentifiedImageError, features

import rushlight
from rushlight import Tensor

from .. import _files
from ..transforms import functional as F

Some = TypeVar("Some", Tensor, list[Tensor])  # one, or each in a list

__all__ = [
    "ImageReadMode",
    "decode_avif",
    "decode_gif",
    "decode_heic",
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
    """The channels of a decoded image: those of the file, grey, grey and alpha, RGB, RGB and
    alpha.

    Example:
        >>> torch.vision.io.ImageReadMode.RGB
        <ImageReadMode.RGB: 3>
    """

    UNCHANGED = 0
    GRAY = 1
    GRAY_ALPHA = 2
    RGB = 3
    RGB_ALPHA = 4
    RGBA = RGB_ALPHA


_MODES = {
    ImageReadMode.GRAY: "L",
    ImageReadMode.GRAY_ALPHA: "LA",
    ImageReadMode.RGB: "RGB",
    ImageReadMode.RGB_ALPHA: "RGBA",
}


_WITH_ALPHA = (ImageReadMode.GRAY_ALPHA, ImageReadMode.RGB_ALPHA)


def read_file(path: str | os.PathLike[str]) -> Tensor:
    """The bytes of a file, (N), uint8; RuntimeError if it cannot be read.

    Args:
        path: the file.

    Returns:
        The bytes, uint8, of the shape (N).

    Raises:
        RuntimeError: it cannot be read.

    Example:
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "bytes")
        >>> torch.vision.io.write_file(path, torch.tensor([80, 54], dtype=torch.uint8))
        >>> torch.vision.io.read_file(path)
        tensor([80, 54], dtype=torch.uint8)
    """
    try:
        with open(os.fspath(path), "rb") as f:
            return _tensor(f.read())
    except (OSError, TypeError, ValueError) as e:
        raise RuntimeError(f"read_file: {path!r} cannot be read: {e}") from e


def write_file(filename: str | os.PathLike[str], data: Tensor) -> None:
    """Write bytes, (N), uint8, to a file; RuntimeError if it cannot be written.

    Args:
        filename: the file that is written.
        data: the bytes, uint8, of the shape (N).

    Raises:
        RuntimeError: the bytes are no such tensor, or cannot be written.

    Example:
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "bytes")
        >>> torch.vision.io.write_file(path, torch.arange(5, dtype=torch.uint8))
        >>> os.path.getsize(path)
        5
    """
    written = _bytes(data)
    try:
        with open(os.fspath(filename), "wb") as f:
            f.write(written)
    except (OSError, TypeError, ValueError) as e:
        raise RuntimeError(f"write_file: {filename!r} cannot be written: {e}") from e


def _bytes(data: Any) -> bytes:
    if not isinstance(data, Tensor) or data.dtype != rushlight.uint8 or data.dim() != 1:
        raise RuntimeError("Expected a non empty 1-dimensional tensor of bytes (uint8)")
    return data.cpu().numpy().tobytes()


def _tensor(data: bytes) -> Tensor:
    if not data:
        return rushlight.empty(0, dtype=rushlight.uint8)
    return rushlight.frombuffer(bytearray(data), dtype=rushlight.uint8)


def _as_mode(mode: Any) -> ImageReadMode:
    """The mode, also from its name (KeyError for another one); TypeError for anything else."""
    found = ImageReadMode[mode.upper()] if isinstance(mode, str) else mode
    if not isinstance(found, ImageReadMode):
        raise TypeError(f"mode should be an ImageReadMode or its name, not {mode!r}")
    return found


# Those that decode_image knows. Others of Pillow's, which may start programs, are never tried.
_FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "AVIF")


def _call_decoder(read: Callable[[], Any]) -> Any:
    """What `read` finds in a file: whatever a decoder of Pillow says of a damaged one is a
    RuntimeError.
    """
    try:
        return read()
    except MemoryError:
        raise
    except Exception as e:
        raise RuntimeError(f"the image file is damaged: {type(e).__name__}: {e}") from e


def _check_png(raw: memoryview) -> None:
    """RuntimeError if a chunk of pixels is cut off or is not what its sum says, which Pillow
    does not look at.
    """
    at = 8
    while at + 8 <= len(raw):
        end = at + 8 + int.from_bytes(raw[at : at + 4], "big")
        pixels = raw[at + 4 : at + 8] == b"IDAT"
        if pixels and zlib.crc32(raw[at + 4 : end]).to_bytes(4, "big") != raw[end : end + 4]:
            raise RuntimeError("the image file is damaged: the sum of a chunk of pixels is wrong")
        at = end + 4


def _open(data: Tensor, mode: ImageReadMode, formats: tuple[str, ...]) -> Any:
    raw = _bytes(data)
    if not raw:
        raise RuntimeError("Expected a non empty 1-dimensional tensor")

    def read() -> Any:
        try:
            picture = Image.open(io.BytesIO(raw), formats=formats)
        except UnidentifiedImageError:
            return None
        if picture.format == "JPEG" and mode is ImageReadMode.GRAY:
            picture.draft("L", None)  # as the file has it, not from red, green and blue
        # Pillow takes the pixels of a whole picture in blocks; where a row is longer than one, it
        # joins them in quadratic time.
        picture.decodermaxblock = max(picture.decodermaxblock, 4 * picture.width)
        _files.load([(picture, raw)])
        picture.load()
        return picture

    picture = _call_decoder(read)
    if picture is None:
        raise RuntimeError(
            f"Unsupported image file: these bytes are no {' or '.join(formats)} file"
        )
    if picture.format == "PNG":
        _check_png(memoryview(raw))
    return picture


_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_ORIENTATION = 0x0112  # of EXIF


def _upright(picture: Any) -> Any:
    """The picture turned as its EXIF data say, which count for nothing if they are damaged."""
    try:
        turn = _TURNS.get(picture.getexif().get(_ORIENTATION))
    except Exception:  # Pillow's parser has many ways to say that they are damaged
        turn = None
    return picture if turn is None else picture.transpose(turn)


def _pixels(picture: Any, mode: ImageReadMode) -> Tensor:
    wanted = _MODES.get(mode)
    if picture.mode.startswith("I;16"):
        grey = F.pil_to_tensor(picture)
        colours = grey if wanted in (None, "L", "LA") else grey.expand(3, -1, -1)
        opaque = [rushlight.full_like(grey, 65535)] if mode in _WITH_ALPHA else []
        return rushlight.cat([colours, *opaque])
    if wanted is not None and picture.mode != wanted:
        picture = picture.convert(wanted)
    elif picture.mode == "1":
        picture = picture.convert("L")
    elif picture.mode == "CMYK":  # Pillow turns it over
        picture = ImageChops.invert(picture)
    return F.pil_to_tensor(picture).contiguous()


def _decode(data: Tensor, mode: Any, turn: bool, formats: tuple[str, ...]) -> Tensor:
    mode = _as_mode(mode)
    picture = _open(data, mode, formats)
    if picture.format == "GIF":
        return _frames(picture)
    if picture.format == "JPEG" and mode in _WITH_ALPHA:
        raise RuntimeError(f"a JPEG file has no alpha, but mode is {mode.name}")
    return _call_decoder(lambda: _pixels(_upright(picture) if turn else picture, mode))


def _frames(picture: Any) -> Tensor:
    count = _call_decoder(lambda: getattr(picture, "n_frames", 1))
    most = 2 * (Image.MAX_IMAGE_PIXELS or float("inf"))
    if count * picture.width * picture.height > most:  # as Pillow says of one that is so large
        raise RuntimeError(f"{count} frames of {picture.width} x {picture.height} are too many")

    def read() -> list[Tensor]:
        frames = []
        for i in range(count):
            picture.seek(i)
            frames.append(F.pil_to_tensor(picture.convert("RGB")))
        return frames

    frames = _call_decoder(read)
    return frames[0].contiguous() if len(frames) == 1 else rushlight.stack(frames)


def _each(function: Callable[[Tensor], Tensor], items: list[Tensor]) -> list[Tensor]:
    """Of each item, on as many threads as ops take."""
    with ThreadPoolExecutor(min(len(items), rushlight.get_num_threads())) as threads:
        return list(threads.map(function, items))


def decode_image(
    input: Tensor | str | os.PathLike[str],
    mode: Any = ImageReadMode.UNCHANGED,
    apply_exif_orientation: bool = False,
) -> Tensor:
    """An image as a tensor of shape (C, H, W), bytes usually: JPEG, PNG, WebP and AVIF; of a GIF
    what `decode_gif` gives.

    Args:
        input: the file's bytes, (N), uint8, or its path.
        mode: an ImageReadMode or its name.
        apply_exif_orientation: whether it is turned as the camera noted.

    Raises:
        RuntimeError: it is no image file, or a damaged one.

    Example:
        >>> png = torch.vision.io.encode_png(torch.zeros(3, 4, 6, dtype=torch.uint8))
        >>> torch.vision.io.decode_image(png, mode="GRAY").shape
        torch.Size([1, 4, 6])
    """
    data = input if isinstance(input, Tensor) else read_file(input)
    return _decode(data, mode, apply_exif_orientation, _FORMATS)


def read_image(
    path: str | os.PathLike[str],
    mode: Any = ImageReadMode.UNCHANGED,
    apply_exif_orientation: bool = False,
) -> Tensor:
    """Decode an image file with `decode_image`.

    Args:
        path: the file.
        mode: an ImageReadMode or its name.
        apply_exif_orientation: whether the image is turned as the camera noted.

    Raises:
        RuntimeError: the file cannot be read, is no image, or is damaged.

    Example:
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "black.png")
        >>> torch.vision.io.write_png(torch.zeros(3, 4, 6, dtype=torch.uint8), path)
        >>> torch.vision.io.read_image(path).shape
        torch.Size([3, 4, 6])
    """
    return decode_image(read_file(path), mode, apply_exif_orientation)


def decode_png(
    input: Tensor, mode: Any = ImageReadMode.UNCHANGED, apply_exif_orientation: bool = False
) -> Tensor:
    """Decode the bytes of a PNG file with `decode_image`.

    Args:
        input: the file's bytes, (N), uint8.
        mode: an ImageReadMode or its name.
        apply_exif_orientation: whether the image is turned as the camera noted.

    Raises:
        RuntimeError: it is no PNG file, or a damaged one.

    Example:
        >>> png = torch.vision.io.encode_png(torch.full((1, 1, 2), 7, dtype=torch.uint8))
        >>> torch.vision.io.decode_png(png)
        tensor([[[7, 7]]], dtype=torch.uint8)
    """
    return _decode(input, mode, apply_exif_orientation, ("PNG",))


def decode_jpeg(
    input: Some,
    mode: Any = ImageReadMode.UNCHANGED,
    device: Any = "cpu",
    apply_exif_orientation: bool = False,
) -> Some:
    """Decode the bytes of a JPEG file, or of each in a list, on threads, with `decode_image`.

    Args:
        input: a file's bytes, (N), uint8, or a list of them.
        mode: an ImageReadMode or its name.
        device: where the image is to be; it is decoded on the CPU.
        apply_exif_orientation: whether the image is turned as the camera noted.

    Raises:
        RuntimeError: it is no JPEG file, or a damaged one.
        ValueError: the list is empty, or has something else than tensors on the CPU.

    Example:
        >>> jpeg = torch.vision.io.encode_jpeg(torch.zeros(3, 16, 16, dtype=torch.uint8))
        >>> torch.vision.io.decode_jpeg(jpeg).shape
        torch.Size([3, 16, 16])
    """
    to = rushlight.device(device)
    several = isinstance(input, list)
    items: Any = input if several else [input]
    if not items:
        raise ValueError("Input list must contain at least one element")
    if not all(isinstance(i, Tensor) for i in items):
        raise ValueError("All elements of the input list must be tensors.")
    if any(i.device.type != "cpu" for i in items):
        raise ValueError("Input tensor must be a CPU tensor, and lists must have tensors on CPU.")

    def decode(data: Tensor) -> Tensor:
        return _decode(data, mode, apply_exif_orientation, ("JPEG",)).to(to)

    made: Any = _each(decode, items) if several else decode(items[0])
    return made


def decode_webp(input: Tensor, mode: Any = ImageReadMode.UNCHANGED) -> Tensor:
    """Decode the bytes of a WebP file with `decode_image`.

    Args:
        input: the file's bytes, (N), uint8.
        mode: an ImageReadMode or its name.

    Raises:
        RuntimeError: it is no WebP file, or a damaged one.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> image = torch.zeros(3, 4, 6, dtype=torch.uint8)
        >>> torch.vision.transforms.functional.to_pil_image(image).save(file, "WEBP")
        >>> data = torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8)
        >>> torch.vision.io.decode_webp(data).shape
        torch.Size([3, 4, 6])
    """
    return _decode(input, mode, False, ("WEBP",))


def decode_avif(input: Tensor, mode: Any = ImageReadMode.UNCHANGED) -> Tensor:
    """Decode the bytes of an AVIF file with `decode_image`.

    Args:
        input: the file's bytes, (N), uint8.
        mode: an ImageReadMode or its name.

    Raises:
        RuntimeError: it is no AVIF file, a damaged one, or Pillow cannot read any.

    Example:
        >>> try:
        ...     torch.vision.io.decode_avif(torch.zeros(8, dtype=torch.uint8))
        ... except RuntimeError:
        ...     print("no AVIF file, or no decoder")
        no AVIF file, or no decoder
    """
    if not features.check("avif"):
        raise RuntimeError("this Pillow has no decoder of AVIF: please run pip install -U pillow")
    return _decode(input, mode, False, ("AVIF",))


def decode_heic(input: Tensor, mode: Any = ImageReadMode.UNCHANGED) -> Tensor:
    """Decode the bytes of a HEIC file with `decode_image`; needs pillow-heif.

    Args:
        input: the file's bytes, (N), uint8.
        mode: an ImageReadMode or its name.

    Raises:
        RuntimeError: it is no HEIC file, a damaged one, or pillow-heif is not there.

    Example:
        >>> try:
        ...     torch.vision.io.decode_heic(torch.zeros(8, dtype=torch.uint8))
        ... except RuntimeError:
        ...     print("no HEIC file, or no pillow-heif")
        no HEIC file, or no pillow-heif
    """
    try:
        from pillow_heif import register_heif_opener  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise RuntimeError(
            "pillow-heif is not installed, and is necessary to read HEIC files: please run "
            "pip install pillow-heif"
        ) from None
    register_heif_opener()
    return _decode(input, mode, False, ("HEIF",))


def decode_gif(input: Tensor) -> Tensor:
    """Decode a GIF file to (3, H, W), or to (frames, 3, H, W) if it has several frames.

    Args:
        input: the file's bytes, (N), uint8.

    Raises:
        RuntimeError: it is no GIF file, a damaged one, or has too many pixels.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> image = torch.zeros(3, 4, 6, dtype=torch.uint8)
        >>> torch.vision.transforms.functional.to_pil_image(image).save(file, "GIF")
        >>> data = torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8)
        >>> torch.vision.io.decode_gif(data).shape
        torch.Size([3, 4, 6])
    """
    return _decode(input, ImageReadMode.RGB, False, ("GIF",))


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
    """Encode an image, (1 or 3, H, W), uint8, as a PNG file; compression levels are 0 to 9.

    Args:
        input: the image, (1 or 3, H, W), uint8.
        compression_level: from 0, fast, to 9, small.

    Returns:
        The bytes of the file, (N), uint8.

    Raises:
        RuntimeError: the image or the level is another one.

    Example:
        >>> png = torch.vision.io.encode_png(torch.zeros(3, 4, 6, dtype=torch.uint8))
        >>> png[:4]
        tensor([137,  80,  78,  71], dtype=torch.uint8)
    """
    if not isinstance(compression_level, int) or not 0 <= compression_level <= 9:
        raise RuntimeError(f"compression_level is from 0 to 9, but got {compression_level!r}")
    return _encode(input, "PNG", compress_level=compression_level)


def write_png(input: Tensor, filename: str | os.PathLike[str], compression_level: int = 6) -> None:
    """Encode an image with `encode_png` and write it to a file.

    Args:
        input: the image, (1 or 3, H, W), uint8.
        filename: the file that is written.
        compression_level: from 0, fast, to 9, small.

    Example:
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "black.png")
        >>> torch.vision.io.write_png(torch.zeros(1, 4, 6, dtype=torch.uint8), path)
        >>> torch.vision.io.read_image(path).shape
        torch.Size([1, 4, 6])
    """
    write_file(filename, encode_png(input, compression_level))


def encode_jpeg(input: Some, quality: int = 75) -> Some:
    """The bytes of a JPEG file of an image, (1 or 3, H, W), uint8, or of each in a list, on
    threads; quality is 1 to 100.

    Args:
        input: an image, (1 or 3, H, W), uint8, or a list of them.
        quality: from 1, small, to 100.

    Raises:
        ValueError: the quality is out of range, or the list is empty.
        RuntimeError: an image has another shape or dtype.

    Example:
        >>> jpeg = torch.vision.io.encode_jpeg(
        ...     torch.zeros(3, 16, 16, dtype=torch.uint8), quality=90
        ... )
        >>> jpeg[:2]
        tensor([255, 216], dtype=torch.uint8)
    """
    if quality < 1 or quality > 100:
        raise ValueError("Image quality should be a positive number between 1 and 100")
    if not isinstance(quality, int):
        raise RuntimeError(f"quality is an int, but got {quality!r}")
    if not isinstance(input, list):
        return _encode(input, "JPEG", quality=quality)
    if not input:
        raise ValueError("encode_jpeg: the list is empty, and at least one tensor is wanted")
    return _each(lambda image: _encode(image, "JPEG", quality=quality), input)


def write_jpeg(input: Tensor, filename: str | os.PathLike[str], quality: int = 75) -> None:
    """Encode an image with `encode_jpeg` and write it to a file.

    Args:
        input: the image, (1 or 3, H, W), uint8.
        filename: the file that is written.
        quality: from 1, small, to 100.

    Example:
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "black.jpg")
        >>> torch.vision.io.write_jpeg(torch.zeros(3, 16, 16, dtype=torch.uint8), path)
        >>> torch.vision.io.read_image(path).shape
        torch.Size([3, 16, 16])
    """
    write_file(filename, encode_jpeg(input, quality))
