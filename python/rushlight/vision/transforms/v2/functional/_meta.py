"""Sizes of inputs."""

from __future__ import annotations

from typing import Any

from PIL.Image import Image as Picture

from rushlight import Tensor
from rushlight.vision.tv_tensors import BoundingBoxes, Image, KeyPoints, Mask, Video

from ... import functional as F
from ._registry import IMAGES, call, kernel, rename_input


def get_dimensions(inpt: Any) -> list[int]:
    """The channels, height and width of an image or a video.

    Args:
        inpt: an image or a video.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.get_dimensions(torch.zeros(3, 32, 64))
        [3, 32, 64]
    """
    return call(get_dimensions, inpt)


@kernel(get_dimensions, Tensor, Image, Video)
def get_dimensions_image(image: Tensor) -> list[int]:
    """Those of a tensor; one channel if it has two dimensions, TypeError for fewer."""
    sizes = list(image.shape[-3:])
    if len(sizes) < 2:
        raise TypeError(
            f"Input tensor should have at least height and width, but has {len(sizes)} dimensions"
        )
    return sizes if len(sizes) == 3 else [1, *sizes]


get_dimensions_video = rename_input(get_dimensions_image, "video")
kernel(get_dimensions, Picture)(F.get_dimensions)


def get_num_channels(inpt: Any) -> int:
    """The number of channels of an image or a video.

    Args:
        inpt: an image or a video.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.get_num_channels(torch.zeros(3, 32, 64))
        3
    """
    return call(get_num_channels, inpt)


@kernel(get_num_channels, *IMAGES)
def get_num_channels_image(image: Any) -> int:
    """Those of a tensor or a picture."""
    return get_dimensions(image)[0]


get_num_channels_video = rename_input(get_num_channels_image, "video")
get_image_num_channels = get_num_channels


def get_size(inpt: Any) -> list[int]:
    """The height and width of an input; for boxes and points, those of their image.

    Args:
        inpt: an input of any kind.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.get_size(torch.zeros(3, 32, 64))
        [32, 64]
    """
    return call(get_size, inpt)


@kernel(get_size, *IMAGES, Mask)
def get_size_image(image: Any) -> list[int]:
    """Those of a tensor or a picture."""
    return get_dimensions(image)[1:]


get_size_video = rename_input(get_size_image, "video")
get_size_mask = rename_input(get_size_image, "mask")


def get_size_bounding_boxes(bounding_box: BoundingBoxes) -> list[int]:
    """Those of the boxes' image.

    Args:
        bounding_box: boxes, which know the size of their image.

    For an example see `get_size`.
    """
    return list(bounding_box.canvas_size)


def get_size_keypoints(keypoints: KeyPoints) -> list[int]:
    """Those of the points' image.

    Args:
        keypoints: points, which know the size of their image.

    For an example see `get_size`.
    """
    return list(keypoints.canvas_size)


@kernel(get_size, BoundingBoxes, KeyPoints)
def _canvas(places: Tensor, canvas_size: tuple[int, int]) -> list[int]:
    del places
    return list(canvas_size)


def get_num_frames(inpt: Any) -> int:
    """The number of frames of a video.

    Args:
        inpt: a video, (..., T, C, H, W).

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.get_num_frames(torch.zeros(16, 3, 32, 64))
        16
    """
    return call(get_num_frames, inpt)


@kernel(get_num_frames, Tensor, Video)
def get_num_frames_video(video: Tensor) -> int:
    """Those of a tensor of shape (..., T, C, H, W)."""
    return video.shape[-4]
