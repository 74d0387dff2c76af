"""Transforms of boxes' and points' own fields."""

from __future__ import annotations

from typing import Any

from rushlight.vision.tv_tensors import BoundingBoxes, KeyPoints

from . import functional as F
from ._transform import Transform


class ConvertBoundingBoxFormat(Transform):
    """Converts boxes to another format: a BoundingBoxFormat or its name.

    Args:
        format: a `BoundingBoxFormat`, or its name.

    Example:
        >>> from rushlight.vision import tv_tensors
        >>> from rushlight.vision.transforms import v2
        >>> boxes = tv_tensors.BoundingBoxes([[2, 3, 6, 5]], format="XYXY", canvas_size=(8, 8))
        >>> v2.ConvertBoundingBoxFormat("XYWH")(boxes).tolist()
        [[2, 3, 4, 2]]
    """

    _transformed_types = (BoundingBoxes,)

    def __init__(self, format: Any) -> None:
        super().__init__()
        self.format = format

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.convert_bounding_box_format(inpt, new_format=self.format)


class ClampBoundingBoxes(Transform):
    """Clamps boxes to their image; by their own `clamping_mode` with "auto".

    Args:
        clamping_mode: "soft", "hard" or None, as `BoundingBoxes` has it; "auto": that of
            the boxes.

    Example:
        >>> from rushlight.vision import tv_tensors
        >>> from rushlight.vision.transforms import v2
        >>> boxes = tv_tensors.BoundingBoxes([[2, 3, 9, 9]], format="XYXY", canvas_size=(8, 8))
        >>> v2.ClampBoundingBoxes()(boxes).tolist()
        [[2, 3, 8, 8]]
    """

    _transformed_types = (BoundingBoxes,)

    def __init__(self, clamping_mode: str | None = "auto") -> None:
        super().__init__()
        self.clamping_mode = clamping_mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.clamp_bounding_boxes(inpt, clamping_mode=self.clamping_mode)


class ClampKeyPoints(Transform):
    """Clamps points to the nearest pixel of their image.

    Example:
        >>> from rushlight.vision import tv_tensors
        >>> from rushlight.vision.transforms import v2
        >>> points = tv_tensors.KeyPoints([[9, 3]], canvas_size=(8, 8))
        >>> v2.ClampKeyPoints()(points).tolist()
        [[7, 3]]
    """

    _transformed_types = (KeyPoints,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.clamp_keypoints(inpt)


class SetClampingMode(Transform):
    """Sets the `clamping_mode` of boxes: "soft", "hard" or None (else ValueError).

    Args:
        clamping_mode: "soft", "hard" or None, as `BoundingBoxes` has it; "auto": that of
            the boxes.

    Example:
        >>> from rushlight.vision import tv_tensors
        >>> from rushlight.vision.transforms import v2
        >>> boxes = tv_tensors.BoundingBoxes([[2, 3, 6, 5]], format="XYXY", canvas_size=(8, 8))
        >>> v2.SetClampingMode("hard")(boxes).clamping_mode
        'hard'
    """

    _transformed_types = (BoundingBoxes,)

    def __init__(self, clamping_mode: str | None) -> None:
        super().__init__()
        if clamping_mode not in (None, "soft", "hard"):
            raise ValueError(f"clamping_mode is 'soft', 'hard' or None, not {clamping_mode!r}")
        self.clamping_mode = clamping_mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        out = inpt.clone()
        out.clamping_mode = self.clamping_mode
        return out
