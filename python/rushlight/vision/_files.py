"""Pictures in files: Pillow opens them, and decodes those that are not plain JPEG files, or damaged
ones. The pixels of plain ones come sooner and are the same.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import rushlight
from rushlight import _C, Tensor

from .transforms import _pictures
from .transforms._parts import Part

# Of pictures that are decoded before they are asked for, bytes at most.
_AHEAD = 1 << 26


def _is_plain(picture: Any) -> bool:
    return picture.format == "JPEG" and picture.mode in ("L", "RGB")


def load(opened: Sequence[tuple[Any, bytes]]) -> None:
    """Loads pictures that Pillow opened, each beside its file's bytes, on all threads. What is
    left, as all damaged files are, Pillow loads when it is asked for pixels.
    """
    jobs, made = [], []
    for picture, data in opened:
        if _is_plain(picture):
            out, pixels = _pictures.new(picture.mode, picture.size)
            if pixels is not None:
                jobs.append((data, picture.height, picture.width, 0, 0, pixels))
                made.append((picture, out))
    for (picture, out), done in zip(made, _C._decode_jpegs(jobs), strict=True):
        if done:
            picture.im = out.im
            picture.tile = []


class _File:
    """A file, and the picture that Pillow opened in it; OSError names it where it is none."""

    def __init__(self, path: str | Path) -> None:
        self._path = path
        with open(path, "rb") as file:
            self.data = file.read()
        try:
            self.picture: Any = Image.open(io.BytesIO(self.data))
        except (OSError, SyntaxError, ValueError) as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> OSError:
        return OSError(f"{self._path} cannot be read as a picture: {error}")

    def in_colours(self) -> Any:
        """The picture in RGB; OSError if it cannot be decoded."""
        picture = self.picture
        try:
            if picture.mode != "RGB":
                return picture.convert("RGB")
            picture.load()
            return picture._new(picture.im)  # what `convert` gives, without a copy of the pixels
        except (OSError, SyntaxError, ValueError) as error:
            raise self._unreadable(error) from error

    def whole_part(self) -> Region | None:
        """All of it, where it is a plain JPEG file in colours."""
        picture = self.picture
        if picture.mode != "RGB" or not _is_plain(picture):
            return None
        return Region(self, (0, 0, picture.height, picture.width))


class Region:
    """A rectangle of a picture that is not decoded yet: top, left, height, width."""

    def __init__(self, file: _File, place: tuple[int, int, int, int]) -> None:
        self._file = file
        self._place = place

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of what `read` returns."""
        return *self._place[2:], 4

    def cut(self, top: int, left: int, height: int, width: int) -> Region:
        """A rectangle of it."""
        return Region(self._file, (self._place[0] + top, self._place[1] + left, height, width))

    def read(self) -> Tensor:
        """Its pixels: red, green, blue and one more byte, (height, width, 4)."""
        return next(_read([self]))

    def part(self, pixels: Region | Tensor) -> Part:
        """It as a Part, of pixels that are read or will be."""
        return Part(pixels, "RGB", self._file.picture.info, False, None)

    def job(self) -> tuple[Any, ...]:
        """What `_decode_jpegs` takes."""
        pixels = rushlight.empty(self.shape, dtype=rushlight.uint8)
        picture = self._file.picture
        return self._file.data, picture.height, picture.width, *self._place[:2], pixels

    def fill(self, pixels: Tensor) -> None:
        """Its pixels by Pillow."""
        top, left, height, width = self._place
        whole = np.asarray(self._file.in_colours())
        cut = whole[top : top + height, left : left + width]
        pixels[..., :3] = rushlight.from_numpy(cut.copy())


def _read(regions: list[Region]) -> Iterator[Tensor]:
    jobs = [region.job() for region in regions]
    for region, (*_, pixels), done in zip(regions, jobs, _C._decode_jpegs(jobs), strict=True):
        if not done:
            region.fill(pixels)
        yield pixels


def part(path: str | Path) -> Any:
    """The picture in a file, in RGB: of a plain JPEG file as a Part that is decoded when it is
    asked for pixels.
    """
    file = _File(path)
    region = file.whole_part()
    return file.in_colours() if region is None else region.part(region)


def pictures(paths: Iterable[str | Path], as_parts: bool = False) -> Iterator[Any]:
    """The picture in each file, in RGB, by Pillow, or Parts of plain JPEG files if asked for;
    OSError with the file's name for what is none.

    A few are decoded before they are asked for, on all threads.
    """
    decoded = _as_parts if as_parts else _as_pictures
    ahead: list[_File] = []
    size = 0
    for path in paths:
        try:
            file = _File(path)
        except OSError:
            yield from decoded(ahead)
            raise
        ahead.append(file)
        size += 4 * file.picture.width * file.picture.height
        if size >= _AHEAD:
            yield from decoded(ahead)
            ahead, size = [], 0
    yield from decoded(ahead)


def _as_pictures(files: list[_File]) -> Iterator[Any]:
    load([(file.picture, file.data) for file in files])
    for file in files:
        yield file.in_colours()


def _as_parts(files: list[_File]) -> Iterator[Any]:
    regions = [file.whole_part() for file in files]
    pixels = _read([region for region in regions if region is not None])
    for file, region in zip(files, regions, strict=True):
        yield file.in_colours() if region is None else region.part(next(pixels))
