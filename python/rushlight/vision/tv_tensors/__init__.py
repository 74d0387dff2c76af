"""Tensor subclasses for kinds of data: images, videos, masks, boxes, points."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor

from ._base import TVTensor, set_return_type
from ._images import Image, Mask, Video
from ._places import BoundingBoxes, BoundingBoxFormat, KeyPoints, is_rotated_bounding_format

__all__ = [
    "BoundingBoxFormat",
    "BoundingBoxes",
    "Image",
    "KeyPoints",
    "Mask",
    "TVTensor",
    "Video",
    "is_rotated_bounding_format",
    "set_return_type",
    "wrap",
]


def wrap(wrappee: Tensor, *, like: Any, **kwargs: Any) -> Any:
    """Convert a tensor to the class of `like`.

    Args:
        wrappee: the numbers.
        like: of a class that derives from TVTensor; its fields (format, canvas_size …) are kept.
        kwargs: fields that are other ones.

    Example:
        >>> from rushlight.vision import tv_tensors
        >>> image = tv_tensors.Image(torch.zeros(3, 4, 4))
        >>> type(tv_tensors.wrap(torch.ones(3, 4, 4), like=image)).__name__
        'Image'
    """
    made = getattr(type(like), "wrap", None)
    return wrappee.as_subclass(type(like)) if made is None else made(wrappee, like, **kwargs)
