"""Transforms of tensors alone, which other packages take from torchvision under this name."""

from typing import TYPE_CHECKING, Any

from rushlight import Tensor

from . import _tensors
from ._modes import mode_of_name
from .functional import (
    get_image_num_channels,
)

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [
        *[
            "adjust_brightness",
            "adjust_contrast",
            "adjust_gamma",
            "adjust_hue",
            "adjust_saturation",
        ],
        *["adjust_sharpness", "affine", "autocontrast", "convert_image_dtype", "crop"],
        *["elastic_transform", "equalize", "erase", "gaussian_blur", "get_dimensions"],
        *["get_image_num_channels", "get_image_size", "hflip", "invert", "normalize", "pad"],
        *["perspective", "posterize", "resize", "rgb_to_grayscale", "rotate", "solarize", "vflip"],
        *["_assert_channels", "_assert_image_tensor", "_is_tensor_a_torch_image", "_max_value"],
    ]


def _is_tensor_a_torch_image(x: Tensor) -> bool:
    return x.ndim >= 2


def _assert_image_tensor(img: Tensor) -> None:
    if not _is_tensor_a_torch_image(img):
        raise TypeError("Tensor is not a torch image.")


def _assert_channels(img: Tensor, permitted: list[int]) -> None:
    channels = get_image_num_channels(img)
    if channels not in permitted:
        raise TypeError(
            f"permitted channel values are {permitted}: this image has {channels} channels"
        )


def resize(
    img: Tensor, size: list[int], interpolation: str = "bilinear", antialias: bool | None = True
) -> Tensor:
    """The image at a size (height, width)."""
    return _tensors.resize(img, size, mode_of_name(interpolation), antialias)


def affine(
    img: Tensor, matrix: list[float], interpolation: str = "nearest", fill: Any = None
) -> Tensor:
    """Pixels from where a matrix says, row after row, seen from the middle."""
    return _tensors.affine(img, matrix, mode_of_name(interpolation), fill)


def rotate(
    img: Tensor,
    matrix: list[float],
    interpolation: str = "nearest",
    expand: bool = False,
    fill: Any = None,
) -> Tensor:
    """`affine`, with `expand` as large as the turned image."""
    return _tensors.rotate(img, matrix, mode_of_name(interpolation), expand, fill)


def perspective(
    img: Tensor, perspective_coeffs: list[float], interpolation: str = "bilinear", fill: Any = None
) -> Tensor:
    """Pixels from where eight coefficients say."""
    return _tensors.perspective(img, perspective_coeffs, mode_of_name(interpolation), fill)


def elastic_transform(
    img: Tensor, displacement: Tensor, interpolation: str = "bilinear", fill: Any = None
) -> Tensor:
    """Every pixel from a position moved by `displacement`."""
    return _tensors.elastic_transform(img, displacement, mode_of_name(interpolation), fill)
