"""Transforms of Pillow's pictures alone, which others take from torchvision under this name."""

from typing import TYPE_CHECKING, Any

from . import _pictures
from ._modes import mode_of_code

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [
        *[
            "adjust_brightness",
            "adjust_contrast",
            "adjust_gamma",
            "adjust_hue",
            "adjust_saturation",
        ],
        *["adjust_sharpness", "affine", "autocontrast", "crop", "equalize", "get_dimensions"],
        *["get_image_num_channels", "get_image_size", "hflip", "invert", "pad", "perspective"],
        *["posterize", "resize", "rotate", "solarize", "to_grayscale", "vflip", "_is_pil_image"],
    ]


def resize(img: Any, size: list[int] | int, interpolation: int = 2) -> Any:
    """The picture at a size (height, width)."""
    if not (isinstance(size, list) and len(size) == 2):
        raise TypeError(f"Got inappropriate size arg: {size}")
    return _pictures.resize(img, size, mode_of_code(interpolation), True)


def affine(img: Any, matrix: list[float], interpolation: int = 0, fill: Any = None) -> Any:
    """Pixels from where a matrix says, row after row, seen from the top left corner."""
    return _pictures.affine(img, matrix, mode_of_code(interpolation), fill)


def perspective(
    img: Any, perspective_coeffs: list[float], interpolation: int = 3, fill: Any = None
) -> Any:
    """Pixels from where eight coefficients say."""
    return _pictures.perspective(img, perspective_coeffs, mode_of_code(interpolation), fill)
