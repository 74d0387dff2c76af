"""Transforms of geometry, for inputs of every kind.

Functions with the name of a kind are kernels: they take a plain tensor, those of images also a
picture of Pillow.
"""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import Tensor
from rushlight._warnings import warn
from rushlight.vision.tv_tensors import BoundingBoxes, KeyPoints, Mask

from ... import _measures as M
from ... import _pictures, _tensors
from ... import functional as F
from ..._modes import InterpolationMode, mode_of_name
from . import _places as P
from ._registry import IMAGES, Input, Still, call, kernel, rename_input
from ._warps import (  # noqa: F401  # torchvision has them here
    elastic,
    elastic_image,
    elastic_mask,
    elastic_transform,
    elastic_video,
    perspective,
    perspective_image,
    perspective_mask,
    perspective_video,
)

_NEAREST, _BILINEAR = InterpolationMode.NEAREST, InterpolationMode.BILINEAR


# ---- flips ----


def horizontal_flip(inpt: Input) -> Input:
    """Flip horizontally.

    Args:
        inpt: an input of any kind.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.horizontal_flip(torch.tensor([[[1, 2], [3, 4]]]))
        tensor([[[2, 1],
                 [4, 3]]])
    """
    return call(horizontal_flip, inpt)


@kernel(horizontal_flip, *IMAGES, Mask)
def horizontal_flip_image(image: Still) -> Still:
    """`horizontal_flip` of an image."""
    return F.hflip(image)


horizontal_flip_video = rename_input(horizontal_flip_image, "video")
horizontal_flip_mask = rename_input(horizontal_flip_image, "mask")
kernel(horizontal_flip, KeyPoints)(P.horizontal_flip_keypoints)
kernel(horizontal_flip, BoundingBoxes)(P.horizontal_flip_bounding_boxes)


def vertical_flip(inpt: Input) -> Input:
    """Flip vertically.

    Args:
        inpt: an input of any kind.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.vertical_flip(torch.tensor([[[1, 2], [3, 4]]]))
        tensor([[[3, 4],
                 [1, 2]]])
    """
    return call(vertical_flip, inpt)


@kernel(vertical_flip, *IMAGES, Mask)
def vertical_flip_image(image: Still) -> Still:
    """`vertical_flip` of an image."""
    return F.vflip(image)


vertical_flip_video = rename_input(vertical_flip_image, "video")
vertical_flip_mask = rename_input(vertical_flip_image, "mask")
kernel(vertical_flip, KeyPoints)(P.vertical_flip_keypoints)
kernel(vertical_flip, BoundingBoxes)(P.vertical_flip_bounding_boxes)

hflip, vflip = horizontal_flip, vertical_flip


# ---- sizes ----


def resize(
    inpt: Input,
    size: Any,
    interpolation: Any = _BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Input:
    """Resize the input.

    Args:
        inpt: an input of any kind.
        size: (height, width), the shorter edge, or None: the longer edge is `max_size` then.
        interpolation: a mode or its name; of masks, nearest or nearest-exact.
        max_size: the longer edge is never longer.
        antialias: whether tensors are smoothed where they get smaller.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.resize(torch.zeros(3, 100, 200), 50).shape  # the shorter edge
        torch.Size([3, 50, 100])
        >>> F.resize(torch.zeros(3, 100, 200), (64, 64)).shape
        torch.Size([3, 64, 64])
    """
    return call(
        resize,
        inpt,
        size=size,
        interpolation=interpolation,
        max_size=max_size,
        antialias=antialias,
    )


@kernel(resize, *IMAGES)
def resize_image(
    image: Still,
    size: Any,
    interpolation: Any = _BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Still:
    """`resize` of an image. Bytes are mixed by whole numbers."""
    mode = mode_of_name(interpolation)
    have = F.get_dimensions(image)[1:]
    wanted = M.resized_size(have, size, max_size)
    if not isinstance(image, Tensor) and antialias is False:
        warn(
            "Anti-alias option is always applied for PIL Image input, whatever antialias says",
        )
    if have == wanted:
        return image
    if not isinstance(image, Tensor):
        return _pictures.resize(image, wanted, mode, antialias)
    if image.numel() == 0:  # stays so, or there is nothing to take numbers from
        return image.reshape((*image.shape[:-2], *wanted))
    return _tensors.resize(image, wanted, mode, antialias, whole=True)


resize_video = rename_input(resize_image, "video")


@kernel(resize, Mask)
def resize_mask(
    mask: Tensor, size: Any, interpolation: Any = _BILINEAR, max_size: int | None = None
) -> Tensor:
    """`resize` of a mask: the nearest one, however else it is asked for."""
    mode = mode_of_name(interpolation)
    exact = mode is InterpolationMode.NEAREST_EXACT
    return resize_image(mask, size, mode if exact else _NEAREST, max_size)


kernel(resize, KeyPoints)(P.resize_keypoints)
kernel(resize, BoundingBoxes)(P.resize_bounding_boxes)


# ---- turns ----


def affine(
    inpt: Input,
    angle: float,
    translate: Any,
    scale: float,
    shear: Any,
    interpolation: Any = _NEAREST,
    fill: Any = None,
    center: Any = None,
) -> Input:
    """Rotate, translate, scale and shear the input around its centre; its size stays.

    Args:
        inpt: an input of any kind.
        angle: in degrees, clockwise.
        translate: pixels to the right and down.
        scale: more than 0.
        shear: degrees along x, or along x and y.
        interpolation: nearest or bilinear, a mode or its name; of masks it is nearest.
        fill: the value of pixels from outside: one, or one for each channel.
        center: (x, y) of the fixed point, from the top left corner; the middle if None.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.affine(torch.tensor([[[1, 2, 3]]]), angle=0, translate=[1, 0], scale=1, shear=0)
        tensor([[[0, 1, 2]]])
    """
    return call(
        affine,
        inpt,
        angle=angle,
        translate=translate,
        scale=scale,
        shear=shear,
        interpolation=interpolation,
        fill=fill,
        center=center,
    )


@kernel(affine, *IMAGES)
def affine_image(
    image: Still,
    angle: float,
    translate: Any,
    scale: float,
    shear: Any,
    interpolation: Any = _NEAREST,
    fill: Any = None,
    center: Any = None,
) -> Still:
    """`affine` of an image."""
    mode = mode_of_name(interpolation)
    return F.affine(image, angle, translate, scale, shear, mode, fill, center)


affine_video = rename_input(affine_image, "video")


@kernel(affine, Mask)
def affine_mask(
    mask: Tensor,
    angle: float,
    translate: Any,
    scale: float,
    shear: Any,
    fill: Any = None,
    center: Any = None,
) -> Tensor:
    """`affine` of a mask."""
    return affine_image(mask, angle, translate, scale, shear, _NEAREST, fill, center)


kernel(affine, KeyPoints)(P.affine_keypoints)
kernel(affine, BoundingBoxes)(P.affine_bounding_boxes)


def rotate(
    inpt: Input,
    angle: float,
    interpolation: Any = _NEAREST,
    expand: bool = False,
    center: Any = None,
    fill: Any = None,
) -> Input:
    """Rotate the input by an angle in degrees, counter-clockwise.

    Args:
        inpt: an input of any kind.
        angle: in degrees.
        interpolation: nearest or bilinear, a mode or its name; of masks it is nearest.
        expand: whether the result is as large as the turned image; else its size stays.
        center: (x, y) of the fixed point, from the top left corner; the middle if None.
        fill: the value of pixels from outside: one, or one for each channel.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.rotate(torch.tensor([[[1, 2], [3, 4]]]), 90)
        tensor([[[2, 4],
                 [1, 3]]])
    """
    return call(
        rotate,
        inpt,
        angle=angle,
        interpolation=interpolation,
        expand=expand,
        fill=fill,
        center=center,
    )


@kernel(rotate, *IMAGES)
def rotate_image(
    image: Still,
    angle: float,
    interpolation: Any = _NEAREST,
    expand: bool = False,
    center: Any = None,
    fill: Any = None,
) -> Still:
    """`rotate` of an image. A quarter turn of a tensor mixes no pixels if the result holds all."""
    if isinstance(image, Tensor):
        angle = angle % 360
        fits = expand or image.shape[-1] == image.shape[-2] or angle % 180 == 0
        if center is None and angle % 90 == 0 and fits:
            quarters = int(angle // 90)
            return rushlight.rot90(image, quarters, (-2, -1)) if quarters else image.clone()
    return F.rotate(image, angle, mode_of_name(interpolation), expand, center, fill)


rotate_video = rename_input(rotate_image, "video")


@kernel(rotate, Mask)
def rotate_mask(
    mask: Tensor, angle: float, expand: bool = False, center: Any = None, fill: Any = None
) -> Tensor:
    """`rotate` of a mask."""
    return rotate_image(mask, angle, _NEAREST, expand, center, fill)


kernel(rotate, KeyPoints)(P.rotate_keypoints)
kernel(rotate, BoundingBoxes)(P.rotate_bounding_boxes)


# ---- parts ----


def pad(inpt: Input, padding: Any, fill: Any = None, padding_mode: str = "constant") -> Input:
    """Pad the input with pixels, or crop it where numbers are negative.

    Args:
        inpt: an input of any kind.
        padding: one number; two, for left and right, and for top and bottom; or four: left, top,
            right, bottom.
        fill: the value of new pixels in mode "constant": one, or one for each channel of images.
        padding_mode: "constant", "edge", "reflect" or "symmetric"; of boxes and points "constant".

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.pad(torch.tensor([[[7, 8]]]), [1, 0], fill=3)
        tensor([[[3, 7, 8, 3]]])
    """
    return call(pad, inpt, padding=padding, fill=fill, padding_mode=padding_mode)


@kernel(pad, *IMAGES)
def pad_image(
    image: Still, padding: Any, fill: Any = None, padding_mode: str = "constant"
) -> Still:
    """Of an image."""
    if not isinstance(image, Tensor):
        return F.pad(image, padding, 0 if fill is None else fill, padding_mode)
    if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
        raise ValueError(
            "`padding_mode` should be either `'constant'`, `'edge'`, `'reflect'` or "
            f"`'symmetric'`, but got `'{padding_mode}'`."
        )
    if isinstance(fill, str):
        raise TypeError(f"Got inappropriate fill arg: of tensors it is numbers, not {fill!r}")
    M.check_padding(padding, padding_mode)
    return _tensors.pad(image, M.sides_of(padding), fill, padding_mode)


pad_video = rename_input(pad_image, "video")


@kernel(pad, Mask)
def pad_mask(
    mask: Tensor, padding: Any, fill: Any = None, padding_mode: str = "constant"
) -> Tensor:
    """Of a mask; ValueError for a fill of several numbers."""
    if isinstance(fill, tuple | list):
        raise ValueError("Non-scalar fill value is not supported")
    return pad_image(mask, padding, fill, padding_mode)


kernel(pad, KeyPoints)(P.pad_keypoints)
kernel(pad, BoundingBoxes)(P.pad_bounding_boxes)


def crop(inpt: Input, top: int, left: int, height: int, width: int) -> Input:
    """Crop the input at a position and to a size; pixels outside of the image are 0.

    Args:
        inpt: an input of any kind.
        top: the row of the top left corner.
        left: its column.
        height: that of the result.
        width: that of the result.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.crop(torch.arange(9).reshape(1, 3, 3), top=1, left=1, height=2, width=2)
        tensor([[[4, 5],
                 [7, 8]]])
    """
    return call(crop, inpt, top=top, left=left, height=height, width=width)


@kernel(crop, *IMAGES, Mask)
def crop_image(image: Still, top: int, left: int, height: int, width: int) -> Still:
    """`crop` of an image."""
    return F.crop(image, top, left, height, width)


crop_video = rename_input(crop_image, "video")
crop_mask = rename_input(crop_image, "mask")
kernel(crop, KeyPoints)(P.crop_keypoints)
kernel(crop, BoundingBoxes)(P.crop_bounding_boxes)


def center_crop(inpt: Input, output_size: Any) -> Input:
    """Crop the centre of the input; it is padded with zeros if it is smaller than (height,
    width).

    Args:
        inpt: an input of any kind.
        output_size: (height, width), or one number for both.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.center_crop(torch.arange(9).reshape(1, 3, 3), 1)
        tensor([[[4]]])
    """
    return call(center_crop, inpt, output_size=output_size)


@kernel(center_crop, *IMAGES, Mask)
def center_crop_image(image: Still, output_size: Any) -> Still:
    """`center_crop` of an image."""
    return F.center_crop(image, output_size)


center_crop_video = rename_input(center_crop_image, "video")
center_crop_mask = rename_input(center_crop_image, "mask")
kernel(center_crop, KeyPoints)(P.center_crop_keypoints)
kernel(center_crop, BoundingBoxes)(P.center_crop_bounding_boxes)


def resized_crop(
    inpt: Input,
    top: int,
    left: int,
    height: int,
    width: int,
    size: Any,
    interpolation: Any = _BILINEAR,
    antialias: bool | None = True,
) -> Input:
    """Crop the input and resize the result.

    Args:
        inpt: an input of any kind.
        top: the row of the top left corner.
        left: its column.
        height: that of the part.
        width: that of the part.
        size: (height, width) of the result, or its shorter edge.
        interpolation: a mode or its name; of masks, nearest.
        antialias: whether tensors are smoothed where they get smaller.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.resized_crop(torch.zeros(3, 100, 100), 10, 10, 50, 50, size=(32, 32)).shape
        torch.Size([3, 32, 32])
    """
    return call(
        resized_crop,
        inpt,
        top=top,
        left=left,
        height=height,
        width=width,
        size=size,
        interpolation=interpolation,
        antialias=antialias,
    )


@kernel(resized_crop, *IMAGES)
def resized_crop_image(
    image: Still,
    top: int,
    left: int,
    height: int,
    width: int,
    size: Any,
    interpolation: Any = _BILINEAR,
    antialias: bool | None = True,
) -> Still:
    """`resized_crop` of an image."""
    part = F.crop(image, top, left, height, width)
    return resize_image(part, size, interpolation, antialias=antialias)


resized_crop_video = rename_input(resized_crop_image, "video")


@kernel(resized_crop, Mask)
def resized_crop_mask(
    mask: Tensor, top: int, left: int, height: int, width: int, size: Any
) -> Tensor:
    """`resized_crop` of a mask."""
    return resize_mask(F.crop(mask, top, left, height, width), size)


kernel(resized_crop, KeyPoints)(P.resized_crop_keypoints)
kernel(resized_crop, BoundingBoxes)(P.resized_crop_bounding_boxes)


def five_crop(inpt: Any, size: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Crop the four corners, row by row, and then the centre.

    Args:
        inpt: an image or a video.
        size: (height, width) of each part, or one number for both.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> [part.item() for part in F.five_crop(torch.arange(9).reshape(1, 3, 3), 1)]
        [0, 2, 6, 8, 4]
    """
    return call(five_crop, inpt, size=size)


@kernel(five_crop, *IMAGES)
def five_crop_image(image: Still, size: Any) -> tuple[Still, Still, Still, Still, Still]:
    """`five_crop` of an image."""
    return F.five_crop(image, size)


five_crop_video = rename_input(five_crop_image, "video")


def ten_crop(inpt: Input, size: Any, vertical_flip: bool = False) -> tuple[Input, ...]:
    """`five_crop` of an image and of the flipped image.

    Args:
        inpt: an image or a video.
        size: (height, width) of each part, or one number for both.
        vertical_flip: flip top to bottom, not left to right.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> len(F.ten_crop(torch.zeros(3, 32, 32), 24))
        10
    """
    return call(ten_crop, inpt, size=size, vertical_flip=vertical_flip)


@kernel(ten_crop, *IMAGES)
def ten_crop_image(image: Still, size: Any, vertical_flip: bool = False) -> tuple[Still, ...]:
    """`ten_crop` of an image."""
    return F.ten_crop(image, size, vertical_flip)


ten_crop_video = rename_input(ten_crop_image, "video")
