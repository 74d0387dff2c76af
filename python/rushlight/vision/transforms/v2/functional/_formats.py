"""Formats of boxes, and boxes and points kept within their image."""

from __future__ import annotations

import math
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight.vision import tv_tensors
from rushlight.vision.tv_tensors import (
    BoundingBoxes,
    BoundingBoxFormat,
    KeyPoints,
    is_rotated_bounding_format,
)

from ._registry import is_pure_tensor
from ._turned import clamp_corners

_Format = BoundingBoxFormat


def _halves(sizes: Tensor) -> Tensor:
    return sizes.div(2, rounding_mode=None if sizes.is_floating_point() else "floor")


def _from_centre(boxes: Tensor) -> Tensor:
    wide = boxes if boxes.is_floating_point() else boxes.float()
    first = wide[..., :2] - wide[..., 2:] / 2
    return rushlight.cat((first, first + wide[..., 2:]), -1).to(boxes.dtype)


def _corners_to_centred(boxes: Tensor) -> Tensor:
    sizes = boxes[..., 2:] - boxes[..., :2]
    return rushlight.cat((_halves(boxes[..., :2] * 2 + sizes), sizes), -1)


def _axes(boxes: Tensor) -> tuple[Tensor, Tensor]:
    """Steps along the width and along the height of boxes (…, w, h, angle)."""
    angle = boxes[..., 4:5].mul(math.pi).div(180.0)
    cos, sin = angle.cos(), angle.sin()
    across = rushlight.cat((cos, -sin), -1) * boxes[..., 2:3]
    down = rushlight.cat((sin, cos), -1) * boxes[..., 3:4]
    return across, down


def _corners_of_rotated(boxes: Tensor) -> Tensor:
    across, down = _axes(boxes)
    first = boxes[..., :2]
    return rushlight.cat((first, first + across, first + across + down, first + down), -1)


def _corners_to_turned(boxes: Tensor) -> Tensor:
    wide = boxes if boxes.dtype in (rushlight.float32, rushlight.float64) else boxes.float()
    across = wide[..., 2:4] - wide[..., :2]
    down = wide[..., 4:6] - wide[..., 2:4]
    sizes = [side.pow(2).sum(-1, keepdim=True).sqrt() for side in (across, down)]
    angle = rushlight.atan2(-across[..., 1:], across[..., :1]).div(math.pi).mul(180.0)
    return rushlight.cat((wide[..., :2], *sizes, angle), -1).to(boxes.dtype)


def _shift_by_half_diagonal(boxes: Tensor, way: float) -> Tensor:
    """Boxes whose position goes by half their diagonal: from the corner to the centre, or back."""
    across, down = _axes(boxes)
    return rushlight.cat((boxes[..., :2] + (across + down) * (0.5 * way), boxes[..., 2:]), -1)


def _to_xywh(boxes: Tensor) -> Tensor:
    return rushlight.cat((boxes[..., :2], boxes[..., 2:] - boxes[..., :2]), -1)


def _from_xywh(boxes: Tensor) -> Tensor:
    return rushlight.cat((boxes[..., :2], boxes[..., 2:] + boxes[..., :2]), -1)


# To and from the format in the middle: XYXY, and XYWHR for those that can be turned.
_TO_MIDDLE = {
    _Format.XYWH: _from_xywh,
    _Format.CXCYWH: _from_centre,
    _Format.CXCYWHR: lambda boxes: _shift_by_half_diagonal(boxes, -1),
    _Format.XYXYXYXY: _corners_to_turned,
}
_FROM_MIDDLE = {
    _Format.XYWH: _to_xywh,
    _Format.CXCYWH: _corners_to_centred,
    _Format.CXCYWHR: lambda boxes: _shift_by_half_diagonal(boxes, 1),
    _Format.XYXYXYXY: _corners_of_rotated,
}


def as_format(format: Any) -> Any:
    """The format, also from its name; ValueError for what is neither."""
    found = BoundingBoxFormat[format.upper()] if isinstance(format, str) else format
    if not isinstance(found, BoundingBoxFormat):
        raise ValueError(f"format should be str or BoundingBoxFormat, not {format!r}")
    return found


def check_columns(boxes: Tensor, format: Any) -> None:
    """RuntimeError unless boxes have as many numbers as the format."""
    columns = 8 if format == _Format.XYXYXYXY else 5 if is_rotated_bounding_format(format) else 4
    if boxes.shape[-1:] != (columns,):
        raise RuntimeError(
            f"boxes {format.value} have {columns} numbers, but got shape {tuple(boxes.shape)}"
        )


def convert(boxes: Tensor, old: Any, new: Any) -> Tensor:
    """Plain boxes in another format; themselves where it is the same."""
    old, new = as_format(old), as_format(new)
    if old == new:
        return boxes
    if is_rotated_bounding_format(old) != is_rotated_bounding_format(new):
        raise ValueError("Cannot convert between rotated and unrotated bounding boxes.")
    check_columns(boxes, old)
    if old == _Format.XYWH and new == _Format.CXCYWH:  # the sizes stay as they are
        sizes = boxes[..., 2:]
        return rushlight.cat((boxes[..., :2] + _halves(sizes), sizes), -1)
    if old == _Format.CXCYWH and new == _Format.XYWH and boxes.is_floating_point():
        return rushlight.cat((boxes[..., :2] - boxes[..., 2:] / 2, boxes[..., 2:]), -1)
    middle = _TO_MIDDLE[old](boxes) if old in _TO_MIDDLE else boxes
    return _FROM_MIDDLE[new](middle) if new in _FROM_MIDDLE else middle


def working_format(format: Any) -> Any:
    """The format that consists of corners, for boxes of this one."""
    return _Format.XYXYXYXY if is_rotated_bounding_format(format) else _Format.XYXY


def convert_bounding_box_format(
    inpt: Tensor, old_format: Any = None, new_format: Any = None, inplace: bool = False
) -> Tensor:
    """Convert boxes to another format.

    Args:
        inpt: BoundingBoxes, or a tensor.
        old_format: the old format of a plain tensor.
        new_format: a BoundingBoxFormat or its name; turned boxes stay turned boxes (ValueError).
        inplace: whether numbers may be written into the tensor, where as many are needed.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.convert_bounding_box_format(torch.tensor([[1, 2, 11, 22]]), "xyxy", "xywh")
        tensor([[ 1,  2, 10, 20]])
    """
    if new_format is None:
        raise TypeError("convert_bounding_box_format() missing 1 required argument: 'new_format'")
    kept = isinstance(inpt, BoundingBoxes)
    if not isinstance(inpt, Tensor) or not (kept or is_pure_tensor(inpt)):
        raise TypeError(
            f"Input can either be BoundingBoxes or a plain tensor, not {type(inpt).__name__}"
        )
    if kept and old_format is not None:
        raise ValueError("For bounding box tv_tensor inputs, `old_format` must not be passed.")
    if not kept and old_format is None:
        raise ValueError(
            "For pure tensor inputs, pass old_format: plain numbers do not know their format"
        )
    plain = inpt.as_subclass(Tensor)
    output = convert(
        plain, inpt.format if isinstance(inpt, BoundingBoxes) else old_format, new_format
    )
    if inplace and output.shape == plain.shape:
        output = plain.copy_(output)
    return tv_tensors.wrap(output, like=inpt, format=as_format(new_format)) if kept else output


# ---- within the image ----


def clamp(boxes: Tensor, format: Any, canvas_size: Any, clamping_mode: str | None) -> Tensor:
    """Plain boxes that do not leave the canvas; ValueError for an unknown mode."""
    if clamping_mode is None:
        return boxes.clone()
    if clamping_mode not in ("soft", "hard"):
        raise ValueError(f"clamping_mode is 'soft', 'hard' or None, not {clamping_mode!r}")
    working = working_format(format)
    if working == _Format.XYXYXYXY:
        corners = convert(boxes, format, working).reshape(-1, 8).clone()
        kept = clamp_corners(corners, tuple(canvas_size), clamping_mode)
        return convert(kept, working, format).reshape(boxes.shape)
    wide = boxes.clone() if boxes.is_floating_point() else boxes.float()
    corners = convert(wide, format, working)
    height, width = canvas_size
    corners = rushlight.stack(
        [corners[..., i].clamp(0, height if i % 2 else width) for i in range(4)], -1
    )
    return convert(corners, working, format).to(boxes.dtype)


def clamp_bounding_boxes(
    inpt: Tensor, format: Any = None, canvas_size: Any = None, clamping_mode: Any = "auto"
) -> Tensor:
    """Clamp boxes to their image.

    Args:
        inpt: BoundingBoxes, or a tensor.
        format, canvas_size: of a plain tensor.
        clamping_mode: "soft", "hard", None for no change, or "auto": the one of BoundingBoxes.

    Example:
        >>> from rushlight.vision import tv_tensors
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> boxes = tv_tensors.BoundingBoxes([[-5, 2, 11, 40]], format="XYXY", canvas_size=(32, 32))
        >>> F.clamp_bounding_boxes(boxes).tolist()
        [[0, 2, 11, 32]]
    """
    if clamping_mode not in (None, "soft", "hard", "auto"):
        raise ValueError(f"clamping_mode is 'soft', 'hard', 'auto' or None, not {clamping_mode!r}")
    if is_pure_tensor(inpt):
        if format is None or canvas_size is None or clamping_mode == "auto":
            raise ValueError(
                "For pure tensor inputs, `format`, `canvas_size` and `clamping_mode` are all needed"
            )
        return clamp(inpt, as_format(format), canvas_size, clamping_mode)
    if not isinstance(inpt, BoundingBoxes):
        raise TypeError(
            f"Input can either be BoundingBoxes or a plain tensor, not {type(inpt).__name__}"
        )
    if format is not None or canvas_size is not None:
        raise ValueError(
            "BoundingBoxes have their own `format` and `canvas_size`, so these must not be passed"
        )
    mode = inpt.clamping_mode if clamping_mode == "auto" else clamping_mode
    plain = clamp(inpt.as_subclass(Tensor), inpt.format, inpt.canvas_size, mode)
    return tv_tensors.wrap(plain, like=inpt)


def clamp_keypoints(inpt: Tensor, canvas_size: Any = None) -> Tensor:
    """Clamp points to the nearest pixel of their image.

    Args:
        inpt: KeyPoints, or a tensor.
        canvas_size: the canvas size of a plain tensor.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.clamp_keypoints(torch.tensor([[-5, 40]]), canvas_size=(32, 32))
        tensor([[ 0, 31]])
    """
    kept = isinstance(inpt, KeyPoints)
    if not kept and not is_pure_tensor(inpt):
        raise TypeError(
            f"Input can either be KeyPoints or a plain tensor, not {type(inpt).__name__}"
        )
    if isinstance(inpt, KeyPoints):
        if canvas_size is not None:
            raise ValueError("For keypoints tv_tensor inputs, `canvas_size` must not be passed.")
        canvas_size = inpt.canvas_size
    if canvas_size is None:
        raise ValueError(
            "For pure tensor inputs, pass canvas_size: plain numbers do not know their canvas"
        )
    height, width = canvas_size
    points = inpt.as_subclass(Tensor)
    wide = points if points.is_floating_point() else points.float()
    x, y = wide[..., 0].clamp(0, width - 1), wide[..., 1].clamp(0, height - 1)
    output = rushlight.stack((x, y), -1).to(points.dtype)
    return tv_tensors.wrap(output, like=inpt) if kept else output


# ---- which are worth keeping ----


def valid_boxes(
    boxes: Tensor, format: Any, canvas_size: Any, min_size: float = 1.0, min_area: float = 1.0
) -> Tensor:
    """Which of plain boxes are large enough and within the canvas."""
    working = working_format(format)
    corners = convert(boxes, format, working)
    x, y = corners[..., 0::2], corners[..., 1::2]
    if working == _Format.XYXYXYXY:
        w = ((x[..., 0] - x[..., 1]).pow(2) + (y[..., 0] - y[..., 1]).pow(2)).sqrt()
        # As torchvision measures it: across the numbers 3 to 6, which are not one corner's.
        h = ((y[..., 1] - y[..., 2]).pow(2) + (x[..., 2] - x[..., 3]).pow(2)).sqrt()
    else:
        w, h = x[..., 1] - x[..., 0], y[..., 1] - y[..., 0]
    height, width = canvas_size
    large = (w >= min_size) & (h >= min_size) & (w * h >= min_area)
    inside = (corners >= 0).all(-1) & (x <= width).all(-1) & (y <= height).all(-1)
    return large & inside


def valid_points(points: Tensor, canvas_size: Any) -> Tensor:
    """Which of plain points, or groups of them, are within the canvas."""
    height, width = canvas_size
    x, y = points[..., 0], points[..., 1]
    inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    return inside.flatten(1).all(1) if inside.ndim > 1 else inside


def sanitize_bounding_boxes(
    bounding_boxes: Tensor,
    format: Any = None,
    canvas_size: Any = None,
    min_size: float = 1.0,
    min_area: float = 1.0,
) -> tuple[Tensor, Tensor]:
    """Remove boxes that are too small or leave their image; also returns which ones stay.

    Args:
        bounding_boxes: BoundingBoxes, or a tensor.
        format, canvas_size: of a plain tensor.
        min_size: the least width and height.
        min_area: the least area.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> boxes = torch.tensor([[0, 0, 10, 10], [5, 5, 5, 9]])
        >>> F.sanitize_bounding_boxes(boxes, format="XYXY", canvas_size=(32, 32))
        (tensor([[ 0,  0, 10, 10]]), tensor([ True, False]))
    """
    if isinstance(bounding_boxes, Tensor) and bounding_boxes.ndim != 2:
        raise ValueError(f"expected boxes (N, K), but got shape {tuple(bounding_boxes.shape)}")
    if is_pure_tensor(bounding_boxes):
        if format is None or canvas_size is None:
            raise ValueError(
                "format and canvas_size cannot be None for a plain tensor of boxes, but are "
                f"{format} and {canvas_size}"
            )
        valid = valid_boxes(bounding_boxes, as_format(format), canvas_size, min_size, min_area)
        return bounding_boxes[valid], valid
    if not isinstance(bounding_boxes, BoundingBoxes):
        raise ValueError(
            f"bounding_boxes must be BoundingBoxes or a plain tensor, not "
            f"{type(bounding_boxes).__name__}"
        )
    if format is not None or canvas_size is not None:
        raise ValueError(
            "format and canvas_size must be None for BoundingBoxes, which have their own, but are "
            f"{format} and {canvas_size}"
        )
    plain = bounding_boxes.as_subclass(Tensor)
    of = (bounding_boxes.format, bounding_boxes.canvas_size)
    valid = valid_boxes(plain, *of, min_size, min_area)
    return tv_tensors.wrap(plain[valid], like=bounding_boxes), valid


def sanitize_keypoints(key_points: Tensor, canvas_size: Any = None) -> tuple[Tensor, Tensor]:
    """Remove points, or groups of them, that leave their image; also returns which ones stay.

    Args:
        key_points: KeyPoints, or a tensor.
        canvas_size: the canvas size of a plain tensor.

    Example:
        >>> from rushlight.vision.transforms.v2 import functional as F
        >>> F.sanitize_keypoints(torch.tensor([[1, 1], [40, 1]]), canvas_size=(32, 32))
        (tensor([[1, 1]]), tensor([ True, False]))
    """
    if is_pure_tensor(key_points):
        if canvas_size is None:
            raise ValueError("canvas_size cannot be None where key_points is a plain tensor")
        valid = valid_points(key_points, canvas_size)
        return key_points[valid], valid
    if not isinstance(key_points, KeyPoints):
        raise ValueError(
            f"key_points must be KeyPoints or a plain tensor, not {type(key_points).__name__}"
        )
    if canvas_size is not None:
        raise ValueError(
            f"canvas_size must be None for KeyPoints, which have their own, but is {canvas_size}"
        )
    plain = key_points.as_subclass(Tensor)
    valid = valid_points(plain, key_points.canvas_size)
    return tv_tensors.wrap(plain[valid], like=key_points), valid
