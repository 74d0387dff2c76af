"""Contact sheets: the images of files and folders as one picture, each with its name and size."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageOps, UnidentifiedImageError

from rushlight.vision.datasets.folder import IMG_EXTENSIONS

_EDGE, _LINE = 8, 14  # pixels between images, and of a line of text
_PAPER, _INK = (250, 250, 250), (40, 40, 40)


def images_of(target: str | Path) -> list[Path]:
    """A file, or the files of images in a folder and the folders in it, by their names.

    Raises:
        FileNotFoundError: there is no such file or folder, or no image in it.
    """
    path = Path(target)
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise FileNotFoundError(f"{target}: no such file or folder")
    found = sorted(
        file for file in path.rglob("*") if file.suffix.lower() in IMG_EXTENSIONS and file.is_file()
    )
    if not found:
        raise FileNotFoundError(f"{target}: no images in it")
    return found


def _caption(draw: ImageDraw.ImageDraw, place: tuple[int, int], text: str, width: int) -> None:
    """A line of text, cut in the middle where it is too long."""
    whole = text
    while draw.textlength(text) > width and len(whole) > 2:
        keep = (len(whole) - 1) // 2
        whole = whole[:keep] + whole[-keep:]
        text = whole[:keep] + "…" + whole[keep:]
    draw.text(place, text, fill=_INK)


def sheet(files: Sequence[str | Path], width: int = 160, columns: int | None = None) -> Image.Image:
    """The images of files on one sheet; those that cannot be read say so in their place.

    Args:
        files: their paths.
        width: of the square that each gets, in pixels.
        columns: the number of images in a row; if None, about as many as there are rows.
    """
    columns = columns or min(len(files), max(1, round((len(files) * 1.5) ** 0.5)))
    rows = -(-len(files) // columns)
    step = (width + _EDGE, width + 2 * _LINE + _EDGE)
    paper = Image.new("RGB", (columns * step[0] + _EDGE, rows * step[1] + _EDGE), _PAPER)
    draw = ImageDraw.Draw(paper)
    for i, file in enumerate(files):
        left, top = _EDGE + i % columns * step[0], _EDGE + i // columns * step[1]
        try:
            with Image.open(file) as opened:
                size = f"{opened.width} × {opened.height}, {opened.mode}"
                # Of JPEG files only as much is decoded as is shown.
                opened.draft("RGB", (width, width))
                picture = ImageOps.exif_transpose(opened).convert("RGBA")
        except (
            UnidentifiedImageError,
            OSError,
            SyntaxError,
            Image.DecompressionBombError,
        ) as error:
            draw.rectangle((left, top, left + width - 1, top + width - 1), outline=_INK)
            size = f"{type(error).__name__}"
        else:
            picture.thumbnail((width, width))
            at = (left + (width - picture.width) // 2, top + (width - picture.height) // 2)
            paper.paste(picture, at, picture)
        _caption(draw, (left, top + width), Path(file).name, width)
        _caption(draw, (left, top + width + _LINE), size, width)
    return paper


def main(arguments: Sequence[str]) -> int:
    """`show TARGET...`: writes the sheet and says where; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m rushlight vision")
    show = parser.add_subparsers(dest="command", required=True).add_parser(
        "show", help="the images of files and folders on one sheet"
    )
    show.add_argument("target", nargs="+", help="a file or a folder")
    show.add_argument("--out", default="sheet.png", help="the file that is written")
    show.add_argument("--width", type=int, default=160, help="pixels of each image")
    show.add_argument("--columns", type=int, help="images beside each other")
    show.add_argument("--most", type=int, default=200, help="images at most")
    try:
        asked = parser.parse_args(arguments)
    except SystemExit as exit:
        return int(exit.code or 0)
    try:
        files = [file for target in asked.target for file in images_of(target)]
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    if asked.width < 16 or asked.most < 1 or (asked.columns is not None and asked.columns < 1):
        print("--width is 16 at least, --columns and --most 1", file=sys.stderr)
        return 2
    sheet(files[: asked.most], asked.width, asked.columns).save(asked.out)
    left = len(files) - asked.most
    more = f", {left} more are not on it" if left > 0 else ""
    print(f"{min(len(files), asked.most)} images on {asked.out}{more}")
    return 0
