"""Points moved one by one, for inputs of every kind; `_geometry.py` says what kernels are."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor
from rushlight.vision.tv_tensors import BoundingBoxes, KeyPoints, Mask

from ... import _measures as M
from ... import functional as F
from ..._kinds import place
from ..._modes import InterpolationMode, mode_of_name
from . import _places as P
from ._registry import IMAGES, Input, Still, call, kernel, rename_input

_NEAREST, _BILINEAR = InterpolationMode.NEAREST, InterpolationMode.BILINEAR


def perspective(
    inpt: Input,
    startpoints: Any,
    endpoints: Any,
    interpolation: Any = _BILINEAR,
    fill: Any = None,
    coefficients: Any = None,
) -> Input:
    """Show the input from elsewhere: four of its points come to lie at four others.

    Args:
        inpt: an input of any kind.
        startpoints: four points (x, y) of the input.
        endpoints: where they come to lie.
        interpolation: a mode or its name; of masks, nearest.
        fill: the value of pixels from outside: one, or one for each channel.
        coefficients: in the place of points: the eight numbers that say where pixels come from.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> corners = [[0, 0], [31, 0], [31, 31], [0, 31]]
        >>> F.perspective(torch.rand(3, 32, 32), corners, [[4, 4], *corners[1:]]).shape
        torch.Size([3, 32, 32])
    """
    return call(
        perspective,
        inpt,
        startpoints=startpoints,
        endpoints=endpoints,
        interpolation=interpolation,
        fill=fill,
        coefficients=coefficients,
    )


@kernel(perspective, *IMAGES)
def perspective_image(
    image: Still,
    startpoints: Any,
    endpoints: Any,
    interpolation: Any = _BILINEAR,
    fill: Any = None,
    coefficients: Any = None,
) -> Still:
    """`perspective` of an image."""
    found = M.perspective_coefficients(startpoints, endpoints, coefficients)
    return place(image).perspective(image, found, mode_of_name(interpolation), fill)


perspective_video = rename_input(perspective_image, "video")


@kernel(perspective, Mask)
def perspective_mask(
    mask: Tensor, startpoints: Any, endpoints: Any, fill: Any = None, coefficients: Any = None
) -> Tensor:
    """`perspective` of a mask."""
    return perspective_image(mask, startpoints, endpoints, _NEAREST, fill, coefficients)


kernel(perspective, KeyPoints)(P.perspective_keypoints)
kernel(perspective, BoundingBoxes)(P.perspective_bounding_boxes)


def elastic(
    inpt: Input, displacement: Tensor, interpolation: Any = _BILINEAR, fill: Any = None
) -> Input:
    """Move every pixel by its own displacement.

    Args:
        inpt: an input of any kind.
        displacement: (1, H, W, 2): how far along x and y pixels come from, where 2 is the size of
            the image.
        interpolation: a mode or its name; of masks, nearest.
        fill: the value of pixels from outside: one, or one for each channel.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> shift = torch.zeros(1, 1, 2, 2)
        >>> shift[..., 0] = 1
        >>> F.elastic(torch.tensor([[[5.0, 8.0]]]), shift)
        tensor([[[8., 0.]]])
    """
    return call(elastic, inpt, displacement=displacement, interpolation=interpolation, fill=fill)


elastic_transform = elastic


@kernel(elastic, *IMAGES)
def elastic_image(
    image: Still, displacement: Tensor, interpolation: Any = _BILINEAR, fill: Any = None
) -> Still:
    """`elastic` of an image."""
    return F.elastic_transform(image, displacement, mode_of_name(interpolation), fill)


elastic_video = rename_input(elastic_image, "video")


@kernel(elastic, Mask)
def elastic_mask(mask: Tensor, displacement: Tensor, fill: Any = None) -> Tensor:
    """`elastic` of a mask."""
    return elastic_image(mask, displacement, _NEAREST, fill)


kernel(elastic, KeyPoints)(P.elastic_keypoints)
kernel(elastic, BoundingBoxes)(P.elastic_bounding_boxes)
