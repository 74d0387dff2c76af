"""What several examples draw: curves, and pictures with a line of text below."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from rushlight import Tensor
from rushlight.vision.transforms.functional import to_pil_image

Colour = tuple[int, int, int]
COLOURS: list[Colour] = [(59, 130, 214), (214, 91, 59), (46, 160, 90), (150, 90, 200)]
_BLACK, _GREY, _WHITE = (30, 30, 30), (200, 200, 200), (255, 255, 255)


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def curves(
    named: Mapping[str, Sequence[float]], title: str, size: tuple[int, int] = (420, 220)
) -> Image.Image:
    """Lines over the number of the value, with the least and the greatest value beside them."""
    width, height = size
    image = Image.new("RGB", size, _WHITE)
    draw = ImageDraw.Draw(image)
    every = [v for values in named.values() for v in values]
    low, high = min(every), max(every)
    left, top, right, bottom = 60, 28, width - 12, height - 28
    draw.text((left, 6), title, fill=_BLACK, font=_font(13))
    for y, value in ((top, high), (bottom, low)):
        draw.line((left, y, right, y), fill=_GREY)
        draw.text((6, y - 7), f"{value:.3g}", fill=_BLACK, font=_font(12))
    for i, (name, values) in enumerate(named.items()):
        colour = COLOURS[i % len(COLOURS)]
        points = [
            (
                left + k / max(1, len(values) - 1) * (right - left),
                bottom - (v - low) / ((high - low) or 1) * (bottom - top),
            )
            for k, v in enumerate(values)
        ]
        draw.line(points, fill=colour, width=2)
        draw.text((left + 110 * i, bottom + 8), name, fill=colour, font=_font(12))
    return image


def picture(values: Tensor, scale: int = 6) -> Image.Image:
    """An image (C, H, W) or (H, W) of numbers from 0 to 1, each pixel a square."""
    image = to_pil_image(values.detach().clamp(0, 1).cpu())
    return image.resize((image.width * scale, image.height * scale), Image.Resampling.NEAREST)


def captioned(image: Image.Image, text: str, colour: Colour = _BLACK) -> Image.Image:
    """The image with a line of text below."""
    width = max(image.width, int(ImageDraw.Draw(image).textlength(text, font=_font(12))) + 4)
    made = Image.new("RGB", (width, image.height + 18), _WHITE)
    made.paste(image, (0, 0))
    ImageDraw.Draw(made).text((2, image.height + 2), text, fill=colour, font=_font(12))
    return made


def sheet(images: Sequence[Image.Image], columns: int, gap: int = 6) -> Image.Image:
    """Images side by side, row by row, each in a place of the same size."""
    width, height = max(i.width for i in images), max(i.height for i in images)
    rows = -(-len(images) // columns)
    made = Image.new("RGB", (columns * (width + gap) + gap, rows * (height + gap) + gap), _WHITE)
    for k, image in enumerate(images):
        column, row = k % columns, k // columns
        made.paste(image, (gap + column * (width + gap), gap + row * (height + gap)))
    return made


def save(image: Image.Image, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path)
    print(f"the picture is in {path}")
