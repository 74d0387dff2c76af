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
from ._registry import IMAGES, call, kernel, rename_input

_NEAREST, _BILINEAR = InterpolationMode.NEAREST, InterpolationMode.BILINEAR


def perspective(
    inpt: Any,
    startpoints: Any,
    endpoints: Any,
    interpolation: Any = _BILINEAR,
    fill: Any = None,
    coefficients: Any = None,
) -> Any:
    """The input seen from elsewhere: its points (x, y) `startpoints`, four of them, come to lie at
    `endpoints`; or by the eight `coefficients` of where pixels come from.
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
    image: Any,
    startpoints: Any,
    endpoints: Any,
    interpolation: Any = _BILINEAR,
    fill: Any = None,
    coefficients: Any = None,
) -> Any:
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
    inpt: Any, displacement: Tensor, interpolation: Any = _BILINEAR, fill: Any = None
) -> Any:
    """Move every pixel by `displacement`, (1, H, W, 2), where 2 is the size of the image."""
    return call(elastic, inpt, displacement=displacement, interpolation=interpolation, fill=fill)


elastic_transform = elastic


@kernel(elastic, *IMAGES)
def elastic_image(
    image: Any, displacement: Tensor, interpolation: Any = _BILINEAR, fill: Any = None
) -> Any:
    """`elastic` of an image."""
    return F.elastic_transform(image, displacement, mode_of_name(interpolation), fill)


elastic_video = rename_input(elastic_image, "video")


@kernel(elastic, Mask)
def elastic_mask(mask: Tensor, displacement: Tensor, fill: Any = None) -> Tensor:
    """`elastic` of a mask."""
    return elastic_image(mask, displacement, _NEAREST, fill)


kernel(elastic, KeyPoints)(P.elastic_keypoints)
kernel(elastic, BoundingBoxes)(P.elastic_bounding_boxes)
