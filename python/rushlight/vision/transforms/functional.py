"""Transforms as functions: each takes a Pillow image, or a tensor of shape (..., C, H, W), and
returns the same kind.

Pictures are left to Pillow (_pictures.py), tensors computed by ops (_tensors.py). TypeError for
anything else.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

import rushlight
from rushlight import Tensor

from . import _parts, _pictures, _tensors
from ._conversions import (
    convert_image_dtype,
    is_picture,
    normalize,
    pil_to_tensor,
    to_pil_image,
    to_tensor,
    want_tensor,
)
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


def _place(img: Any) -> Any:
    """The module that has the operations on this kind of image."""
    if isinstance(img, Tensor):
        return _tensors
    if is_picture(img):
        return _pictures
    if isinstance(img, _parts.Part):
        return _parts
    raise TypeError(f"Unexpected type {type(img)}")


def _check_tensor(img: Any, check: Any) -> None:
    if isinstance(img, Tensor):
        check(img)


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
    return _place(img).get_dimensions(img)


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
    img: Any,
    size: int | Sequence[int],
    interpolation: Any = _BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
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
    return img if have == wanted else _place(img).resize(img, wanted, interpolation, antialias)


def pad(img: Any, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> Any:
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
    return _place(img).pad(img, sides_of(padding), fill, padding_mode)


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
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
    return _place(img).crop(img, top, left, height, width)


def center_crop(img: Any, output_size: int | Sequence[int]) -> Any:
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
    img: Any,
    top: int,
    left: int,
    height: int,
    width: int,
    size: int | Sequence[int],
    interpolation: Any = _BILINEAR,
    antialias: bool | None = True,
) -> Any:
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


def hflip(img: Any) -> Any:
    """Flip an image horizontally.

    Args:
        img: picture or tensor.

    Example:
        >>> torch.vision.transforms.functional.hflip(torch.tensor([[[4, 5, 6]]]))
        tensor([[[6, 5, 4]]])
    """
    return _place(img).hflip(img)


def vflip(img: Any) -> Any:
    """Flip an image vertically.

    Args:
        img: picture or tensor.

    Example:
        >>> torch.vision.transforms.functional.vflip(torch.tensor([[[4], [5]]]))
        tensor([[[5],
                 [4]]])
    """
    return _place(img).vflip(img)


def five_crop(img: Any, size: int | Sequence[int]) -> tuple[Any, Any, Any, Any, Any]:
    """Crop the four corners, row by row, and then the centre, each to this size.

    Args:
        img: picture or tensor.
        size: (height, width), or one number for both.

    Returns:
        The five images, a tuple.
        The five images, a tuple.

    Raises:
        ValueError: the size is larger than the image, or has other than two numbers.
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


def ten_crop(img: Any, size: int | Sequence[int], vertical_flip: bool = False) -> tuple:
    """`five_crop` of an image and of the flipped image.

    Args:
        img: picture or tensor.
        size: (height, width), or one number for both.
        vertical_flip: whether the image is flipped from top to bottom, or from left to right.

    Returns:
        The ten images, a tuple.
        The ten images, a tuple.

    Example:
        >>> crops = torch.vision.transforms.functional.ten_crop(torch.arange(9).view(1, 3, 3), 1)
        >>> [crop.item() for crop in crops]
        [0, 2, 6, 8, 4, 2, 0, 8, 6, 4]
    """
    flipped = vflip(img) if vertical_flip else hflip(img)
    return five_crop(img, size) + five_crop(flipped, size)


def affine(
    img: Any,
    angle: float,
    translate: Sequence[int],
    scale: float,
    shear: float | Sequence[float],
    interpolation: Any = _NEAREST,
    fill: Any = None,
    center: Sequence[int] | None = None,
) -> Any:
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
    return _place(img).affine(img, matrix, interpolation, fill)


def rotate(
    img: Any,
    angle: float,
    interpolation: Any = _NEAREST,
    expand: bool = False,
    center: Sequence[int] | None = None,
    fill: Any = None,
) -> Any:
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
    return _place(img).rotate(img, matrix, interpolation, expand, fill)


def perspective(
    img: Any,
    startpoints: Sequence[Sequence[int]],
    endpoints: Sequence[Sequence[int]],
    interpolation: Any = _BILINEAR,
    fill: Any = None,
) -> Any:
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
    return _place(img).perspective(img, coefficients, as_mode(interpolation), fill)


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


# ---- colours ----


def adjust_brightness(img: Any, brightness_factor: float) -> Any:
    """Change the brightness: 0 gives black, 1 the image, 2 twice its brightness.

    Args:
        img: picture or tensor.
        brightness_factor: the factor, not negative.

    Example:
        >>> torch.vision.transforms.functional.adjust_brightness(torch.tensor([[[0.2, 0.6]]]), 2)
        tensor([[[0.4000, 1.0000]]])
    """
    return _place(img).adjust_brightness(img, brightness_factor)


def adjust_contrast(img: Any, contrast_factor: float) -> Any:
    """Change the contrast: 0 gives the mean grey, 1 the image.

    Args:
        img: picture or tensor.
        contrast_factor: the factor, not negative.

    Example:
        >>> torch.vision.transforms.functional.adjust_contrast(torch.tensor([[[0.2, 0.6]]]), 0.5)
        tensor([[[0.3000, 0.5000]]])
    """
    return _place(img).adjust_contrast(img, contrast_factor)


def adjust_saturation(img: Any, saturation_factor: float) -> Any:
    """Change the saturation: 0 gives grey, 1 the image.

    Args:
        img: picture or tensor of three channels.
        saturation_factor: the factor, not negative.

    Example:
        >>> red = torch.tensor([1.0, 0.0, 0.0]).view(3, 1, 1)
        >>> torch.vision.transforms.functional.adjust_saturation(red, 0).flatten()
        tensor([0.2989, 0.2989, 0.2989])
    """
    return _place(img).adjust_saturation(img, saturation_factor)


def adjust_hue(img: Any, hue_factor: float) -> Any:
    """Rotate the hue by a share of the circle from -0.5 to 0.5 (else ValueError).

    Args:
        img: picture or tensor of three channels.
        hue_factor: the share of the circle.

    Example:
        >>> red = torch.tensor([1.0, 0.0, 0.0]).view(3, 1, 1)
        >>> torch.vision.transforms.functional.adjust_hue(red, 0.5).flatten()
        tensor([0., 1., 1.])
    """
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"hue_factor ({hue_factor}) is not in [-0.5, 0.5].")
    return _place(img).adjust_hue(img, hue_factor)


def adjust_gamma(img: Any, gamma: float, gain: float = 1) -> Any:
    """Gamma correction: gain * img ** gamma, with white at 1; ValueError for a negative gamma.

    Args:
        img: picture or tensor.
        gamma: the power: more than 1 makes shadows darker.
        gain: the factor.

    Example:
        >>> torch.vision.transforms.functional.adjust_gamma(torch.tensor([[[0.5, 1.0]]]), 2)
        tensor([[[0.2500, 1.0000]]])
    """
    if gamma < 0:
        raise ValueError("Gamma should be a non-negative real number")
    _check_tensor(img, _tensors.check_colours)
    return _place(img).adjust_gamma(img, gamma, gain)


def adjust_sharpness(img: Any, sharpness_factor: float) -> Any:
    """Change the sharpness: 0 gives a blurred image, 1 the image, 2 twice its sharpness.

    Args:
        img: picture or tensor.
        sharpness_factor: the factor, not negative.

    Example:
        >>> image = torch.zeros(1, 3, 3)
        >>> image[0, 1, 1] = 1
        >>> torch.vision.transforms.functional.adjust_sharpness(image, 0)[0, 1]
        tensor([0.0000, 0.3846, 0.0000])
    """
    return _place(img).adjust_sharpness(img, sharpness_factor)


def _grey(img: Any, num_output_channels: int) -> Any:
    if isinstance(img, Tensor):
        _tensors.check_planes(img)
        _tensors.check_colours(img)
    if num_output_channels not in (1, 3):
        raise ValueError("num_output_channels should be either 1 or 3")
    if isinstance(img, Tensor) and img.shape[-3] == 1:  # stays a channel, as in torchvision
        return img.clone()
    return _place(img).to_grayscale(img, num_output_channels)


def to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """Convert a Pillow image to grey, with one channel or three equal ones; TypeError for a
    tensor.

    Args:
        img: a Pillow image.
        num_output_channels: 1 or 3.

    Example:
        >>> from PIL import Image
        >>> torch.vision.transforms.functional.to_grayscale(Image.new("RGB", (4, 4))).mode
        'L'
    """
    if not is_picture(img):
        raise TypeError("Input should be PIL Image")
    return _grey(img, num_output_channels)


def rgb_to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """Convert to grey: 0.2989 red + 0.587 green + 0.114 blue, with one channel or three equal
    ones.

    Args:
        img: picture or tensor of three channels.
        num_output_channels: 1 or 3.

    Example:
        >>> red = torch.tensor([1.0, 0.0, 0.0]).view(3, 1, 1)
        >>> torch.vision.transforms.functional.rgb_to_grayscale(red)
        tensor([[[0.2989]]])
    """
    return _grey(img, num_output_channels)


def invert(img: Any) -> Any:
    """Invert the colours: white less the image.

    Args:
        img: picture or tensor.

    Example:
        >>> torch.vision.transforms.functional.invert(torch.tensor([[[0.25, 1.0]]]))
        tensor([[[0.7500, 0.0000]]])
    """
    _check_tensor(img, _tensors.check_planes)
    _check_tensor(img, _tensors.check_colours)
    return _place(img).invert(img)


def posterize(img: Any, bits: int) -> Any:
    """Keep only the highest bits, 0 to 8, of bytes.

    Args:
        img: picture or tensor of bytes.
        bits: how many bits are kept.

    Example:
        >>> image = torch.tensor([[[100, 200]]], dtype=torch.uint8)
        >>> torch.vision.transforms.functional.posterize(image, 2)
        tensor([[[ 64, 192]]], dtype=torch.uint8)
    """
    if not 0 <= bits <= 8:
        raise ValueError(f"bits should be between 0 and 8, and is {bits}")
    _check_tensor(img, _tensors.check_planes)
    _check_tensor(img, _tensors.check_bytes)
    return _place(img).posterize(img, bits)


def solarize(img: Any, threshold: float) -> Any:
    """Invert the pixels at or above the threshold.

    Args:
        img: picture or tensor.
        threshold: the least value that is inverted.

    Example:
        >>> torch.vision.transforms.functional.solarize(torch.tensor([[[0.2, 0.9]]]), 0.5)
        tensor([[[0.2000, 0.1000]]])
    """
    _check_tensor(img, _tensors.check_planes)
    _check_tensor(img, _tensors.check_colours)
    return _place(img).solarize(img, threshold)


def autocontrast(img: Any) -> Any:
    """Stretch each channel from black to white.

    Args:
        img: picture or tensor.

    Example:
        >>> torch.vision.transforms.functional.autocontrast(torch.tensor([[[0.2, 0.4, 0.6]]]))
        tensor([[[0.0000, 0.5000, 1.0000]]])
    """
    _check_tensor(img, _tensors.check_planes)
    if isinstance(img, Tensor) and img.dtype == rushlight.bool:
        _tensors.check_colours(img)
        raise RuntimeError("autocontrast: bools have no differences; convert the image first")
    return _place(img).autocontrast(img)


def equalize(img: Any) -> Any:
    """Equalise the histogram of each channel of bytes.

    Args:
        img: picture or tensor of bytes.

    Example:
        >>> image = torch.tensor([[[100, 101, 102, 103]]], dtype=torch.uint8)
        >>> torch.vision.transforms.functional.equalize(image)
        tensor([[[100, 101, 102, 103]]], dtype=torch.uint8)
    """
    _check_tensor(img, _tensors.check_bytes)
    return _place(img).equalize(img)


def gaussian_blur(
    img: Any, kernel_size: int | Sequence[int], sigma: float | Sequence[float] | None = None
) -> Any:
    """Blur an image with a Gaussian; its edges are mirrored.

    Args:
        img: picture or tensor.
        kernel_size: odd width, or (width, height), in pixels.
        sigma: deviation in pixels, one or (x, y); 0.15 times the kernel's size + 0.35 if None.

    Example:
        >>> image = torch.zeros(1, 3, 3)
        >>> image[0, 1, 1] = 1
        >>> torch.vision.transforms.functional.gaussian_blur(image, 3).shape
        torch.Size([1, 3, 3])
    """
    if not isinstance(kernel_size, int | list | tuple):
        raise TypeError(f"kernel_size should be an int or two of them, not {kernel_size!r}")
    kernel = [kernel_size] * 2 if isinstance(kernel_size, int) else list(kernel_size)
    if len(kernel) != 2:
        raise ValueError(f"kernel_size should be one length or (x, y), not {len(kernel)} of them")
    if any(k % 2 == 0 or k < 0 for k in kernel):
        raise ValueError(f"kernel_size should have odd and positive integers. Got {kernel_size}")
    if sigma is not None and not isinstance(sigma, int | float | list | tuple):
        raise TypeError(f"sigma should be a float or two of them, not {sigma!r}")
    if sigma is None:
        sigmas = [k * 0.15 + 0.35 for k in kernel]
    else:
        sigmas = list(sigma) if isinstance(sigma, list | tuple) else [float(sigma)]
        sigmas = sigmas * (2 if len(sigmas) == 1 else 1)
    if len(sigmas) != 2:
        raise ValueError(f"sigma should be one number or (x, y), not {len(sigmas)} of them")
    if any(s <= 0.0 for s in sigmas):
        raise ValueError(f"sigma should have positive values. Got {sigma}")
    image = img if isinstance(img, Tensor) else pil_to_tensor(_expect_picture(img))
    out = _tensors.gaussian_blur(image, kernel, sigmas)
    return out if isinstance(img, Tensor) else to_pil_image(out, mode=img.mode)


def _expect_picture(img: Any) -> Any:
    if not is_picture(img):
        raise TypeError(f"img should be a tensor or a picture of PIL, not {type(img).__name__}")
    return img
