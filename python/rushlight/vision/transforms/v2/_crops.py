"""Transforms that cut parts out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from PIL.Image import Image as Picture

import rushlight
from rushlight import Tensor
from rushlight._warnings import warn
from rushlight.vision import transforms as v1
from rushlight.vision.ops import box_iou
from rushlight.vision.tv_tensors import BoundingBoxes, BoundingBoxFormat, Image, KeyPoints, Mask

from .. import _measures
from .._drawn import integer, part, size_of
from . import functional as F
from ._transform import Transform
from ._utils import (
    check_padding,
    fill_for,
    fills_by_kind,
    get_bounding_boxes,
    has_all,
    has_any,
    passes,
    query_size,
)
from .functional._registry import is_pure_tensor


class CenterCrop(Transform):
    """The middle of a size: (height, width), or one number for both.

    Args:
        size: height and width, or one number for both.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.CenterCrop(4)(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 4, 4])
    """

    _v1_transform_cls = v1.CenterCrop

    def __init__(self, size: int | Sequence[int]) -> None:
        super().__init__()
        self.size = size_of(size)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.center_crop, inpt, output_size=self.size)


class RandomCrop(Transform):
    """A part of a given size, from anywhere.

    Args:
        size: height and width, or one number for both.
        padding: pixels that are put around before, as `functional.pad` takes them.
        pad_if_needed: whether inputs that are too small get more pixels; else ValueError.
        fill: the value of such pixels: one, or one for each channel, or a dict of these by kind.
        padding_mode: the way to make the new pixels.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.RandomCrop(4)(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 4, 4])
    """

    _v1_transform_cls = v1.RandomCrop

    def __init__(
        self,
        size: int | Sequence[int],
        padding: Any = None,
        pad_if_needed: bool = False,
        fill: Any = 0,
        padding_mode: str = "constant",
    ) -> None:
        super().__init__()
        self.size = size_of(size)
        if pad_if_needed or padding is not None:
            check_padding(0 if padding is None else padding, padding_mode)
        sides = _measures.sides_of(padding) if padding else None
        # Left, right, top, bottom, as torchvision shows them.
        self.padding = sides and [sides[0], sides[2], sides[1], sides[3]]
        self.pad_if_needed = pad_if_needed
        self.fill = fill
        self._fill = fills_by_kind(fill)
        self.padding_mode = padding_mode

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        left, right, top, bottom = self.padding or (0, 0, 0, 0)
        if self.pad_if_needed:
            more = max(self.size[0] - (height + top + bottom), 0)
            top, bottom = top + more, bottom + more
            more = max(self.size[1] - (width + left + right), 0)
            left, right = left + more, right + more
        height, width = height + top + bottom, width + left + right
        if height < self.size[0] or width < self.size[1]:
            padded = "padded " if self.padding is not None else ""
            raise ValueError(
                f"Required crop size {tuple(self.size)} is larger than the {padded}image: "
                f"{(height, width)}."
            )
        place = [
            integer(0, have - want + 1) if have > want else 0
            for have, want in zip((height, width), self.size, strict=True)
        ]
        return {
            "padding": [left, top, right, bottom],
            "cut": (height, width) != tuple(self.size),
            "part": (*place, *self.size),
        }

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if any(params["padding"]):
            inpt = self._call_kernel(
                F.pad,
                inpt,
                padding=params["padding"],
                fill=fill_for(self._fill, inpt),
                padding_mode=self.padding_mode,
            )
        if params["cut"]:
            top, left, height, width = params["part"]
            inpt = self._call_kernel(F.crop, inpt, top=top, left=left, height=height, width=width)
        return inpt


class RandomResizedCrop(Transform):
    """A part of a drawn size and shape, from anywhere, resized: the usual one for training on
    ImageNet.

    Args:
        size: height and width of the result, or one number for both.
        scale: range of the part's share of the area.
        ratio: range of its width by its height.
        interpolation, antialias: those of `functional.resize`.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.RandomResizedCrop(4)(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 4, 4])
    """

    _v1_transform_cls = v1.RandomResizedCrop

    def __init__(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Any = "bilinear",
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.size = size_of(size)
        ranges = {"Scale": scale, "Ratio": ratio}
        for name, pair in ranges.items():
            if not isinstance(pair, Sequence) or len(pair) != 2:
                raise TypeError(f"{name} should be a sequence (smallest, largest), not {pair!r}")
        if any(low > high for low, high in ranges.values()):
            warn("Scale and ratio should be of kind (min, max)")
        self.scale, self.ratio = scale, ratio
        self.interpolation, self.antialias = interpolation, antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        found = part(*query_size(flat_inputs), self.scale, self.ratio)
        return dict(zip(("top", "left", "height", "width"), found, strict=True))

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.resized_crop,
            inpt,
            **params,
            size=self.size,
            interpolation=self.interpolation,
            antialias=self.antialias,
        )


class FiveCrop(Transform):
    """The corners and the middle of images, each of a size: a tuple. Boxes and masks are refused
    (TypeError).

    Args:
        size: height and width, or one number for both.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> len(v2.FiveCrop(4)(torch.zeros(3, 8, 8)))
        5
    """

    _v1_transform_cls = v1.FiveCrop

    def __init__(self, size: int | Sequence[int]) -> None:
        super().__init__()
        self.size = size_of(size)

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        if has_any(flat_inputs, BoundingBoxes, Mask):
            raise TypeError(
                f"BoundingBoxes'es and Mask's are not supported by {type(self).__name__}()"
            )

    def _call_kernel(self, functional: Callable, inpt: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(inpt, KeyPoints):
            warn(passes(self, inpt))
        return super()._call_kernel(functional, inpt, *args, **kwargs)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.five_crop, inpt, self.size)


class TenCrop(FiveCrop):
    """Those of FiveCrop, and those of the image flipped: left to right, or top to bottom with
    `vertical_flip`.

    Args:
        size: height and width, or one number for both.
        vertical_flip: whether to mirror top and bottom instead of left and right.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> len(v2.TenCrop(4)(torch.zeros(3, 8, 8)))
        10
    """

    _v1_transform_cls = v1.TenCrop

    def __init__(self, size: int | Sequence[int], vertical_flip: bool = False) -> None:
        super().__init__(size)
        self.vertical_flip = vertical_flip

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.ten_crop, inpt, self.size, vertical_flip=self.vertical_flip)


_SHARES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)  # of a box that a part overlaps


class RandomIoUCrop(Transform):
    """Crops so that at least one box overlaps by a random share, as for training SSD (arXiv
    1512.02325).

    Boxes whose centre is outside become 0; SanitizeBoundingBoxes takes them away. A sample wants an
    image and boxes (else TypeError).

    Args:
        min_scale, max_scale: range of the part's share of height and of width.
        min_aspect_ratio, max_aspect_ratio: range of its width by its height.
        sampler_options: minimum IoUs to draw from; with 1 or more the sample is not changed.
        trials: parts that are tried for one share.

    Example:
        >>> from rushlight.vision import tv_tensors
        >>> from rushlight.vision.transforms import v2
        >>> boxes = tv_tensors.BoundingBoxes([[2, 3, 6, 5]], format="XYXY", canvas_size=(8, 8))
        >>> image, kept = v2.RandomIoUCrop()(tv_tensors.Image(torch.zeros(3, 8, 8)), boxes)
        >>> image.shape[0], kept.shape[1]
        (3, 4)
    """

    def __init__(
        self,
        min_scale: float = 0.3,
        max_scale: float = 1.0,
        min_aspect_ratio: float = 0.5,
        max_aspect_ratio: float = 2.0,
        sampler_options: list[float] | None = None,
        trials: int = 40,
    ) -> None:
        super().__init__()
        self.min_scale, self.max_scale = min_scale, max_scale
        self.min_aspect_ratio, self.max_aspect_ratio = min_aspect_ratio, max_aspect_ratio
        self.options = list(_SHARES) if sampler_options is None else sampler_options
        self.trials = trials

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        image = has_any(flat_inputs, Picture, Image, is_pure_tensor)
        if not image or not has_all(flat_inputs, BoundingBoxes):
            raise TypeError(
                f"{type(self).__name__}() requires input sample to contain an image (tensor or "
                "picture) with its BoundingBoxes"
            )

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        size = query_size(flat_inputs)
        boxes = get_bounding_boxes(flat_inputs)
        corners = F.convert_bounding_box_format(
            boxes.as_subclass(Tensor), boxes.format, BoundingBoxFormat.XYXY
        )
        while True:
            least = self.options[integer(0, len(self.options))]
            if least >= 1.0:
                return {}
            for _ in range(self.trials):
                found = self._part(size, corners, least)
                if found is not None:
                    return found

    def _part(self, size: tuple[int, int], boxes: Tensor, least: float) -> dict[str, Any] | None:
        """A drawn part and which boxes are in it, None if it does not do."""
        height, width = size
        r = self.min_scale + (self.max_scale - self.min_scale) * rushlight.rand(2)
        w, h = int(width * r[0]), int(height * r[1])
        if not self.min_aspect_ratio <= w / h <= self.max_aspect_ratio:
            return None
        r = rushlight.rand(2)
        left, top = int((width - w) * r[0]), int((height - h) * r[1])
        if w == 0 or h == 0:
            return None
        x = 0.5 * (boxes[..., 0] + boxes[..., 2])
        y = 0.5 * (boxes[..., 1] + boxes[..., 3])
        within = (left < x) & (x < left + w) & (top < y) & (y < top + h)
        if not within.any():
            return None
        window = rushlight.tensor(
            [[left, top, left + w, top + h]], dtype=boxes.dtype, device=boxes.device
        )
        if box_iou(boxes[within], window).max() < least:
            return None
        return {"part": (top, left, h, w), "within": within}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if not params:
            return inpt
        top, left, height, width = params["part"]
        output = self._call_kernel(F.crop, inpt, top=top, left=left, height=height, width=width)
        if isinstance(output, BoundingBoxes):
            output[~params["within"]] = 0
        return output
