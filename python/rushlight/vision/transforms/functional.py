"""Transforms as functions: each takes a Pillow image, or a tensor of shape (..., C, H, W), and
returns the same kind.

Pictures are left to Pillow (_pictures.py), tensors computed by ops (_tensors.py). TypeError for
anything else.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from rushlight import Tensor

from . import _pictures, _tensors
from ._colours import (
    adjust_brightness,
    adjust_contrast,
    adjust_gamma,
    adjust_hue,
    adjust_saturation,
    adjust_sharpness,
    autocontrast,
    equalize,
    gaussian_blur,
    invert,
    posterize,
    rgb_to_grayscale,
    solarize,
    to_grayscale,
)
from ._conversions import (
    convert_image_dtype,
    is_picture,
    normalize,
    pil_to_tensor,
    to_pil_image,
    to_tensor,
    want_tensor,
)
from ._kinds import place
from ._measures import (
    affine_matrix,
    check_affine,
    check_displacement,
    check_padding,
    check_turn,
    corner_coefficients,
    inverse_affine,
    middle,
    resized_size,
    sides_of,
    two,
)
from ._modes import InterpolationMode, as_mode
from ._modes import mode_of_code as _interpolation_modes_from_int  # noqa: F401  # torchvision's name

_Picture = TypeVar("_Picture")  # of PIL, or a tensor: what comes is of the same kind

__all__ = [
    "InterpolationMode",
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "adjust_hue",
    "adjust_saturation",
    "adjust_sharpness",
    "affine",
    "autocontrast",
    "center_crop",
    "convert_image_dtype",
    "crop",
    "elastic_transform",
    "equalize",
    "erase",
    "five_crop",
    "gaussian_blur",
    "get_dimensions",
    "get_image_num_channels",
    "get_image_size",
    "hflip",
    "invert",
    "normalize",
    "pad",
    "perspective",
    "pil_to_tensor",
    "posterize",
    "resize",
    "resized_crop",
    "rgb_to_grayscale",
    "rotate",
    "solarize",
    "ten_crop",
    "to_grayscale",
    "to_pil_image",
    "to_tensor",
    "vflip",
]

_BILINEAR, _NEAREST = InterpolationMode.BILINEAR, InterpolationMode.NEAREST


# ---- what others take from torchvision, beside its public names ----

_get_perspective_coeffs = corner_coefficients


def _is_numpy(img: Any) -> bool:
    return isinstance(img, np.ndarray)


def _is_numpy_image(img: Any) -> bool:
    return img.ndim in (2, 3)


def _get_inverse_affine_matrix(
    center: list[float],
    angle: float,
    translate: list[float],
    scale: float,
    shear: list[float],
    inverted: bool = True,
) -> list[float]:
    matrix = inverse_affine if inverted else affine_matrix
    return matrix(center, angle, translate, scale, shear)


def _compute_resized_output_size(
    image_size: tuple[int, int],
    size: list[int] | None,
    max_size: int | None = None,
    allow_size_none: bool = False,
) -> list[int]:
    if size is None and not allow_size_none:
        raise ValueError("size is None")
    return resized_size(image_size, size, max_size)


# ---- kinds of images ----


def get_dimensions(img: Any) -> list[int]:
    """The channels, height and width of an image.

    Args:
        img: picture or tensor (..., C, H, W).

    Example:
        >>> torch.vision.transforms.functional.get_dimensions(torch.zeros(3, 4, 6))
        [3, 4, 6]
    """
    return place(img).get_dimensions(img)


def get_image_size(img: Any) -> list[int]:
    """The width and height of an image.

    Args:
        img: picture or tensor (..., C, H, W).

    Example:
        >>> torch.vision.transforms.functional.get_image_size(torch.zeros(3, 4, 6))
        [6, 4]
    """
    return get_dimensions(img)[:0:-1]


def get_image_num_channels(img: Any) -> int:
    """The number of channels; 1 for a tensor of two dimensions.

    Args:
        img: picture or tensor (..., C, H, W).

    Example:
        >>> torch.vision.transforms.functional.get_image_num_channels(torch.zeros(3, 4, 6))
        3
    """
    return get_dimensions(img)[0]


# ---- sizes and places ----


def resize(
    img: _Picture,
    size: int | Sequence[int],
    interpolation: Any = _BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> _Picture:
    """Resize an image.

    Args:
        img: picture or tensor.
        size: (height, width), or one number for the shorter edge: the shape stays then.
        interpolation: a mode, or Pillow's number of one.
        max_size: the longer edge is never longer; with one number for `size`.
        antialias: whether tensors are smoothed where they get smaller (bilinear, bicubic); pictures
            always are.

    Example:
        >>> torch.vision.transforms.functional.resize(torch.zeros(3, 4, 6), 8).shape
        torch.Size([3, 8, 12])
    """
    interpolation = as_mode(interpolation)
    have = get_dimensions(img)[1:]
    wanted = resized_size(have, size, max_size)
    return img if have == wanted else place(img).resize(img, wanted, interpolation, antialias)


def pad(img: _Picture, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> _Picture:
    """Pad an image with pixels, or crop it where numbers are negative.

    Args:
        img: picture or tensor.
        padding: one number; two, for left and right, and for top and bottom; or four: left, top,
            right, bottom.
        fill: the value of new pixels in mode "constant"; of pictures also one for each channel.
        padding_mode: "constant", "edge" (the last pixel again), "reflect" (mirrored without the
            edge) or "symmetric" (with it).

    Example:
        >>> torch.vision.transforms.functional.pad(torch.ones(1, 1, 2), [1, 0], fill=5)
        tensor([[[5., 1., 1., 5.]]])
    """
    check_padding(padding, padding_mode)
    if not isinstance(fill, numbers.Number | tuple | list) and fill is not None:
        raise TypeError(f"Got inappropriate fill arg: {fill!r}")
    if isinstance(img, Tensor) and fill is not None and not isinstance(fill, int | float):
        raise TypeError(f"Got inappropriate fill arg: of tensors it is a number, not {fill!r}")
    return place(img).pad(img, sides_of(padding), fill, padding_mode)


def crop(img: _Picture, top: int, left: int, height: int, width: int) -> _Picture:
    """Crop an image at a position and to a size; pixels outside of the image are 0.

    Args:
        img: picture or tensor.
        top, left: the first row and the first column.
        height, width: the size of the result.

    Example:
        >>> torch.vision.transforms.functional.crop(torch.arange(12).view(1, 3, 4), 1, 1, 2, 2)
        tensor([[[ 5,  6],
                 [ 9, 10]]])
    """
    return place(img).crop(img, top, left, height, width)


def center_crop(img: _Picture, output_size: int | Sequence[int]) -> _Picture:
    """Crop the centre of an image; it is padded with zeros if it is smaller than (height,
    width).

    Args:
        img: picture or tensor.
        output_size: (height, width), or one number for both.

    Example:
        >>> torch.vision.transforms.functional.center_crop(torch.arange(12).view(1, 3, 4), (1, 2))
        tensor([[[5, 6]]])
    """
    height, width = two(output_size)
    _, h, w = get_dimensions(img)
    if width > w or height > h:
        more, below = max(width - w, 0), max(height - h, 0)
        img = pad(img, [more // 2, below // 2, (more + 1) // 2, (below + 1) // 2])
        _, h, w = get_dimensions(img)
        if (h, w) == (height, width):
            return img
    return crop(img, *middle((h, w), (height, width)))


def resized_crop(
    img: _Picture,
    top: int,
    left: int,
    height: int,
    width: int,
    size: int | Sequence[int],
    interpolation: Any = _BILINEAR,
    antialias: bool | None = True,
) -> _Picture:
    """Crop an image and resize the result.

    Args:
        img: picture or tensor.
        top, left: the first row and the first column.
        height, width: the size that is cropped to.
        size: the size of the result: (height, width), or one number for the shorter edge.
        interpolation: a mode, or Pillow's number of one.
        antialias: whether tensors are smoothed where they get smaller; pictures always are.

    Example:
        >>> torch.vision.transforms.functional.resized_crop(
        ...     torch.zeros(3, 8, 8), 0, 0, 4, 4, 6
        ... ).shape
        torch.Size([3, 6, 6])
    """
    part = crop(img, top, left, height, width)
    return resize(part, size, interpolation, antialias=antialias)


def hflip(img: _Picture) -> _Picture:
    """Flip an image horizontally.

    Args:
        img: picture or tensor.

    Example:
        >>> torch.vision.transforms.functional.hflip(torch.tensor([[[4, 5, 6]]]))
        tensor([[[6, 5, 4]]])
    """
    return place(img).hflip(img)


def vflip(img: _Picture) -> _Picture:
    """Flip an image vertically.

    Args:
        img: picture or tensor.

    Example:
        >>> torch.vision.transforms.functional.vflip(torch.tensor([[[4], [5]]]))
        tensor([[[5],
                 [4]]])
    """
    return place(img).vflip(img)


def five_crop(img: Any, size: int | Sequence[int]) -> tuple[Any, Any, Any, Any, Any]:
    """Crop the four corners, row by row, and then the centre, each to this size.

    Args:
        img: picture or tensor.
        size: (height, width), or one number for both.

    Returns:
        The five images, a tuple.

    Raises:
        ValueError: the size is larger than the image, or has other than two numbers.

    Example:
        >>> crops = torch.vision.transforms.functional.five_crop(torch.arange(9).view(1, 3, 3), 1)
        >>> [crop.item() for crop in crops]
        [0, 2, 6, 8, 4]
    """
    height, width = two(size)
    _, h, w = get_dimensions(img)
    if width > w or height > h:
        raise ValueError(f"Requested crop size {size} is bigger than the image: {(h, w)}")
    corners = [(top, left) for top in (0, h - height) for left in (0, w - width)]
    a, b, c, d = (crop(img, *corner, height, width) for corner in corners)
    return a, b, c, d, center_crop(img, [height, width])


def ten_crop(img: Any, size: int | Sequence[int], vertical_flip: bool = False) -> tuple[Any, ...]:
    """`five_crop` of an image and of the flipped image.

    Args:
        img: picture or tensor.
        size: (height, width), or one number for both.
        vertical_flip: whether the image is flipped from top to bottom, or from left to right.

    Returns:
        The ten images, a tuple.

    Example:
        >>> crops = torch.vision.transforms.functional.ten_crop(torch.arange(9).view(1, 3, 3), 1)
        >>> [crop.item() for crop in crops]
        [0, 2, 6, 8, 4, 2, 0, 8, 6, 4]
    """
    flipped = vflip(img) if vertical_flip else hflip(img)
    return five_crop(img, size) + five_crop(flipped, size)


def affine(
    img: _Picture,
    angle: float,
    translate: Sequence[int],
    scale: float,
    shear: float | Sequence[float],
    interpolation: Any = _NEAREST,
    fill: Any = None,
    center: Sequence[int] | None = None,
) -> _Picture:
    """Rotate, translate, scale and shear an image around its centre; its size stays.

    Args:
        img: picture or tensor.
        angle: in degrees, clockwise.
        translate: pixels to the right and down.
        scale: more than 0.
        shear: degrees along x, or along x and y.
        interpolation: nearest, bilinear, or bicubic for pictures.
        fill: the value of pixels from outside: one, or one for each channel.
        center: (x, y) of the fixed point, from the top left corner; the middle if None.

    Example:
        >>> x = torch.arange(1, 5).view(1, 2, 2)
        >>> torch.vision.transforms.functional.affine(
        ...     x, angle=90, translate=(0, 0), scale=1, shear=0
        ... )
        tensor([[[3, 1],
                 [4, 2]]])
    """
    interpolation = as_mode(interpolation)
    shears = check_affine(angle, translate, scale, shear, center)
    _, height, width = get_dimensions(img)
    half = [width * 0.5, height * 0.5]
    fixed = half if center is None else list(center)
    if not is_picture(img):  # coordinates of grids start in the middle
        fixed = [f - h for f, h in zip(fixed, half, strict=True)]
    matrix = inverse_affine(fixed, angle, translate, scale, shears)
    return place(img).affine(img, matrix, interpolation, fill)


def rotate(
    img: _Picture,
    angle: float,
    interpolation: Any = _NEAREST,
    expand: bool = False,
    center: Sequence[int] | None = None,
    fill: Any = None,
) -> _Picture:
    """Rotate an image by an angle in degrees, counter-clockwise.

    With `expand` the result is as large as the turned image. Other arguments are those of `affine`.

    Args:
        img: picture or tensor.
        angle: degrees, counter-clockwise.
        interpolation: nearest, bilinear, or bicubic for pictures.
        expand: whether the result is as large as the turned image.
        center: (x, y) of the fixed point, from the top left corner; the middle if None.
        fill: the value of pixels from outside: one, or one for each channel.

    Example:
        >>> torch.vision.transforms.functional.rotate(torch.arange(1, 5).view(1, 2, 2), 90)
        tensor([[[2, 4],
                 [1, 3]]])
    """
    interpolation = as_mode(interpolation)
    check_turn(angle, center)
    if is_picture(img):
        return _pictures.rotate(img, angle, interpolation, expand, center, fill)
    _, height, width = get_dimensions(img)
    half = width * 0.5, height * 0.5
    fixed = [0.0, 0.0] if center is None else [c - h for c, h in zip(center, half, strict=False)]
    matrix = inverse_affine(fixed, -angle, [0.0, 0.0], 1.0, [0.0, 0.0])
    return place(img).rotate(img, matrix, interpolation, expand, fill)


def perspective(
    img: _Picture,
    startpoints: Sequence[Sequence[int]],
    endpoints: Sequence[Sequence[int]],
    interpolation: Any = _BILINEAR,
    fill: Any = None,
) -> _Picture:
    """Transform the perspective of an image: the four points (x, y) `startpoints` move to
    `endpoints`.

    Args:
        img: picture or tensor.
        startpoints: four points (x, y) of the image.
        endpoints: where they go.
        interpolation: nearest, bilinear, or bicubic for pictures.
        fill: the value of pixels from outside: one, or one for each channel.

    Example:
        >>> corners = [[0, 0], [3, 0], [3, 3], [0, 3]]
        >>> narrow = [[1, 0], [2, 0], [3, 3], [0, 3]]
        >>> image = torch.ones(1, 4, 4)
        >>> torch.vision.transforms.functional.perspective(image, corners, narrow).shape
        torch.Size([1, 4, 4])
    """
    coefficients = corner_coefficients(startpoints, endpoints)
    return place(img).perspective(img, coefficients, as_mode(interpolation), fill)


def elastic_transform(
    img: Any, displacement: Tensor, interpolation: Any = _BILINEAR, fill: Any = None
) -> Any:
    """Move every pixel by `displacement`, (1, H, W, 2), where 2 is the size of the image.

    Args:
        img: picture or tensor.
        displacement: how far each pixel's value is taken from, (1, H, W, 2).
        interpolation: nearest, bilinear, or bicubic for pictures.
        fill: the value of pixels from outside: one, or one for each channel.

    Example:
        >>> image = torch.arange(4.0).view(1, 1, 4)
        >>> still = torch.zeros(1, 1, 4, 2)
        >>> torch.vision.transforms.functional.elastic_transform(image, still)
        tensor([[[0., 1., 2., 3.]]])
    """
    interpolation = as_mode(interpolation)
    image = pil_to_tensor(img) if is_picture(img) else img
    check_displacement(displacement, get_dimensions(image)[1:])
    out = _tensors.elastic_transform(image, displacement, interpolation, fill)
    return to_pil_image(out, mode=img.mode) if is_picture(img) else out


def erase(img: Tensor, i: int, j: int, h: int, w: int, v: Tensor, inplace: bool = False) -> Tensor:
    """Replace the region whose top left corner is (i, j) by v.

    Args:
        img: a tensor (..., C, H, W).
        i, j: the first row and the first column.
        h, w: height and width of the region.
        v: the new values, broadcast to (C, h, w).
        inplace: whether `img` itself is changed.

    Example:
        >>> torch.vision.transforms.functional.erase(
        ...     torch.ones(1, 2, 3), 0, 1, 2, 2, torch.tensor(0.0)
        ... )
        tensor([[[1., 0., 0.],
                 [1., 0., 0.]]])
    """
    want_tensor(img)
    _tensors.check(img)
    out = img if inplace else img.clone()
    out[..., i : i + h, j : j + w] = v
    return out
