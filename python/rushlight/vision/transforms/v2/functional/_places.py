"""Where transforms of geometry move boxes and points to."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight.vision.tv_tensors import BoundingBoxFormat, is_rotated_bounding_format

from ... import _measures as M
from ... import _tensors
from ._formats import as_format, check_columns, clamp, convert, working_format
from ._turned import rectangles

_Format = BoundingBoxFormat
_Size = tuple[int, int]


def _floating(places: Tensor) -> Any:
    return places.dtype if places.is_floating_point() else rushlight.float32


# ---- flips ----


def horizontal_flip_keypoints(keypoints: Tensor, canvas_size: _Size) -> Tensor:
    """Points mirrored left to right."""
    x, y = keypoints.unbind(-1)
    return rushlight.stack((canvas_size[1] - 1 - x, y), -1)


def vertical_flip_keypoints(keypoints: Tensor, canvas_size: _Size) -> Tensor:
    """Points mirrored top to bottom."""
    x, y = keypoints.unbind(-1)
    return rushlight.stack((x, canvas_size[0] - 1 - y), -1)


def _flip(boxes: Tensor, format: Any, size: int, axis: int) -> Tensor:
    """Boxes mirrored along an axis: 0 for x, 1 for y."""
    format = as_format(format)
    check_columns(boxes, format)
    parts = list(boxes.unbind(-1))
    if format == _Format.XYXY:
        parts[axis], parts[axis + 2] = size - parts[axis + 2], size - parts[axis]
    elif format == _Format.XYXYXYXY:
        for i in range(axis, 8, 2):
            parts[i] = size - parts[i]
        parts = [parts[i] for i in (2, 3, 0, 1, 6, 7, 4, 5)]  # the corners turn the other way
    elif format == _Format.XYWH:
        parts[axis] = size - (parts[axis] + parts[axis + 2])
    else:
        if format == _Format.XYWHR:  # the other end of the upper side comes first
            angle = parts[4].mul(math.pi).div(180)
            parts[0] = parts[0] + parts[2] * angle.cos()
            parts[1] = parts[1] - parts[2] * angle.sin()
        parts[axis] = size - parts[axis]
        if format != _Format.CXCYWH:
            parts[4] = -parts[4] if axis == 0 else 180 - parts[4]
    return rushlight.stack(parts, -1)


def horizontal_flip_bounding_boxes(
    bounding_boxes: Tensor, format: Any, canvas_size: _Size
) -> Tensor:
    """Boxes mirrored left to right."""
    return _flip(bounding_boxes, format, canvas_size[1], 0)


def vertical_flip_bounding_boxes(bounding_boxes: Tensor, format: Any, canvas_size: _Size) -> Tensor:
    """Boxes mirrored top to bottom."""
    return _flip(bounding_boxes, format, canvas_size[0], 1)


# ---- sizes ----


def resize_keypoints(
    keypoints: Tensor, size: Any, canvas_size: _Size, max_size: int | None = None
) -> tuple[Tensor, _Size]:
    """Points of an image that is resized, and its new size."""
    height, width = M.resized_size(canvas_size, size, max_size)
    if (height, width) == tuple(canvas_size):
        return keypoints, canvas_size
    ratios = rushlight.tensor(
        [width / canvas_size[1], height / canvas_size[0]], device=keypoints.device
    )
    return (keypoints * ratios).to(keypoints.dtype), (height, width)


def resize_bounding_boxes(
    bounding_boxes: Tensor,
    canvas_size: _Size,
    size: Any,
    max_size: int | None = None,
    format: Any = BoundingBoxFormat.XYXY,
    clamping_mode: str | None = "soft",
) -> tuple[Tensor, _Size]:
    """Boxes of an image that is resized, and its new size."""
    if not is_rotated_bounding_format(format):
        flat = bounding_boxes.unflatten(-1, (2, 2))
        points, new = resize_keypoints(flat, size, canvas_size, max_size)
        return points.flatten(-2), new
    corners = convert(bounding_boxes, format, _Format.XYXYXYXY).reshape(-1, 4, 2)
    points, new = resize_keypoints(corners, size, canvas_size, max_size)
    if points is corners:
        return bounding_boxes, canvas_size
    made = clamp(rectangles(points.flatten(1)), _Format.XYXYXYXY, new, clamping_mode)
    out = convert(made, _Format.XYXYXYXY, format).to(bounding_boxes.dtype)
    return out.reshape(bounding_boxes.shape), new


# ---- parts ----


def _translate(boxes: Tensor, format: Any, x: int, y: int) -> Tensor:
    """Boxes moved to the right and down."""
    format = as_format(format)
    check_columns(boxes, format)
    corners = {_Format.XYXY: 2, _Format.XYXYXYXY: 4}.get(format, 1)
    steps = [x, y] * corners
    steps += [0] * (boxes.shape[-1] - len(steps))
    return boxes + rushlight.tensor(steps, dtype=boxes.dtype, device=boxes.device)


def _sides(padding: Any) -> list[int]:
    """Left, top, right and bottom; TypeError or ValueError for what is no padding."""
    if not isinstance(padding, int | tuple | list):
        raise TypeError(f"padding should be an int or a sequence of them, not {padding!r}")
    M.check_padding(padding, "constant")
    return M.sides_of(padding)


def _check_constant(padding_mode: Any, what: str) -> None:
    if padding_mode != "constant":
        raise ValueError(
            f"{what} can be padded by padding_mode='constant' alone, not {padding_mode!r}"
        )


def pad_keypoints(
    keypoints: Tensor, canvas_size: _Size, padding: Any, padding_mode: str = "constant"
) -> tuple[Tensor, _Size]:
    """Points of an image with more pixels around it, and its new size."""
    _check_constant(padding_mode, "points")
    left, top, right, bottom = _sides(padding)
    height, width = canvas_size
    moved = keypoints + keypoints.new_tensor([left, top])
    return moved, (height + top + bottom, width + left + right)


def pad_bounding_boxes(
    bounding_boxes: Tensor,
    format: Any,
    canvas_size: _Size,
    padding: Any,
    padding_mode: str = "constant",
    clamping_mode: str | None = "soft",
) -> tuple[Tensor, _Size]:
    """Boxes of an image with more pixels around it, and its new size."""
    _check_constant(padding_mode, "bounding boxes")
    left, top, right, bottom = _sides(padding)
    new = (canvas_size[0] + top + bottom, canvas_size[1] + left + right)
    moved = _translate(bounding_boxes, format, left, top)
    return clamp(moved, format, new, clamping_mode), new


def crop_keypoints(
    keypoints: Tensor, top: int, left: int, height: int, width: int
) -> tuple[Tensor, _Size]:
    """Points of a part of an image, and its size."""
    step = rushlight.tensor([left, top], dtype=keypoints.dtype, device=keypoints.device)
    return keypoints - step, (height, width)


def crop_bounding_boxes(
    bounding_boxes: Tensor,
    format: Any,
    top: int,
    left: int,
    height: int,
    width: int,
    clamping_mode: str | None = "soft",
) -> tuple[Tensor, _Size]:
    """Boxes of a part of an image, and its size."""
    moved = _translate(bounding_boxes, format, -left, -top)
    if format == _Format.XYXYXYXY:
        moved = rectangles(moved)
    return clamp(moved, format, (height, width), clamping_mode), (height, width)


def center_crop_keypoints(
    inpt: Tensor, canvas_size: _Size, output_size: Any
) -> tuple[Tensor, _Size]:
    """Points of the middle of an image, and its size."""
    return crop_keypoints(inpt, *M.middle(canvas_size, output_size))


def center_crop_bounding_boxes(
    bounding_boxes: Tensor,
    format: Any,
    canvas_size: _Size,
    output_size: Any,
    clamping_mode: str | None = "soft",
) -> tuple[Tensor, _Size]:
    """Boxes of the middle of an image, and its size."""
    part = M.middle(canvas_size, output_size)
    return crop_bounding_boxes(bounding_boxes, format, *part, clamping_mode=clamping_mode)


def resized_crop_keypoints(
    keypoints: Tensor, top: int, left: int, height: int, width: int, size: Any
) -> tuple[Tensor, _Size]:
    """Points of a part of an image at another size, and that size."""
    points, canvas = crop_keypoints(keypoints, top, left, height, width)
    return resize_keypoints(points, size, canvas)


def resized_crop_bounding_boxes(
    bounding_boxes: Tensor,
    format: Any,
    top: int,
    left: int,
    height: int,
    width: int,
    size: Any,
    clamping_mode: str | None = "soft",
) -> tuple[Tensor, _Size]:
    """Boxes of a part of an image at another size, and that size."""
    boxes, canvas = crop_bounding_boxes(
        bounding_boxes, format, top, left, height, width, clamping_mode
    )
    return resize_bounding_boxes(boxes, canvas, size, format=format, clamping_mode=clamping_mode)


# ---- points moved one by one ----

_Move = Callable[[Tensor], Tensor]


def _around(points: Tensor) -> Tensor:
    """The boxes around points, (N, 4, 2)."""
    return rushlight.cat((points.amin(1), points.amax(1)), 1)


def _by_corners(
    boxes: Tensor,
    format: Any,
    clamping_mode: str | None,
    move: Callable[[Tensor], tuple[Tensor, Tensor | None, _Size]],
) -> tuple[Tensor, _Size]:
    """Boxes around their moved corners. `move` gives points, how much further they all go after the
    boxes around them are found, and the size of the canvas.
    """
    working = working_format(format)
    corners = convert(boxes, format, working)
    turned = working == _Format.XYXYXYXY
    if not turned:
        corners = corners.reshape(-1, 4)[:, [0, 1, 2, 1, 2, 3, 0, 3]]
    points, further, canvas = move(corners.reshape(-1, 2))
    out = rectangles(points.reshape(-1, 8)) if turned else _around(points.reshape(-1, 4, 2))
    if further is not None:
        out = out + further.repeat(out.shape[1] // 2)
    kept = clamp(out, working, canvas, clamping_mode)
    return convert(kept, working, format).reshape(boxes.shape).to(boxes.dtype), canvas


def _affine_move(
    canvas_size: _Size,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Any,
    center: Any,
    expand: bool = False,
) -> Callable[[Tensor], tuple[Tensor, Tensor | None, _Size]]:
    """Where points go in `affine`."""
    shears = M.check_affine(angle, translate, scale, shear, center)
    height, width = canvas_size
    fixed = [width * 0.5, height * 0.5] if center is None else [float(c) for c in center]

    def move(points: Tensor) -> tuple[Tensor, Tensor | None, _Size]:
        rows = M.affine_matrix(fixed, angle, translate, scale, shears)
        matrix = rushlight.tensor(rows, dtype=points.dtype, device=points.device).view(2, 3).T

        def transform_points(at: Tensor) -> Tensor:
            return rushlight.cat((at, at.new_ones(at.shape[0], 1)), 1) @ matrix

        if not expand:
            return transform_points(points), None, canvas_size
        frame = points.new_tensor([[0, 0], [0, height], [width, height], [width, 0]])
        back = M.inverse_affine(fixed, angle, translate, scale, shears)
        new_width, new_height = _tensors.expanded_size(back, width, height)
        return transform_points(points), -transform_points(frame).amin(0), (new_height, new_width)

    return move


def _affine_points(points: Tensor, canvas_size: _Size, *how: Any) -> tuple[Tensor, _Size]:
    if points.numel() == 0:
        return points, canvas_size
    flat = points.to(_floating(points)).reshape(-1, 2)
    moved, further, canvas = _affine_move(canvas_size, *how)(flat)
    out = moved if further is None else moved + further
    return out.reshape(points.shape).to(points.dtype), canvas


def _affine_boxes(
    boxes: Tensor, format: Any, canvas_size: _Size, clamping_mode: str | None, *how: Any
) -> tuple[Tensor, _Size]:
    if boxes.numel() == 0:
        return boxes, canvas_size
    out, canvas = _by_corners(
        boxes.to(_floating(boxes)), format, clamping_mode, _affine_move(canvas_size, *how)
    )
    return out.to(boxes.dtype), canvas


def affine_keypoints(
    keypoints: Tensor,
    canvas_size: _Size,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Any,
    center: Any = None,
) -> tuple[Tensor, _Size]:
    """Points of an image that is turned, moved, scaled and sheared."""
    return _affine_points(keypoints, canvas_size, angle, translate, scale, shear, center)


def affine_bounding_boxes(
    bounding_boxes: Tensor,
    format: Any,
    canvas_size: _Size,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Any,
    center: Any = None,
    clamping_mode: str | None = "soft",
) -> Tensor:
    """Boxes of an image that is turned, moved, scaled and sheared."""
    how = (angle, translate, scale, shear, center)
    return _affine_boxes(bounding_boxes, format, canvas_size, clamping_mode, *how)[0]


_STILL = ([0.0, 0.0], 1.0, [0.0, 0.0])  # no translation, scale or shear


def rotate_keypoints(
    keypoints: Tensor,
    canvas_size: _Size,
    angle: float,
    expand: bool = False,
    center: Any = None,
) -> tuple[Tensor, _Size]:
    """Points of an image that is turned, and its new size."""
    return _affine_points(keypoints, canvas_size, -angle, *_STILL, center, expand)


def rotate_bounding_boxes(
    bounding_boxes: Tensor,
    format: Any,
    canvas_size: _Size,
    angle: float,
    expand: bool = False,
    center: Any = None,
    clamping_mode: str | None = "soft",
) -> tuple[Tensor, _Size]:
    """Boxes of an image that is turned, and its new size."""
    how = (-angle, *_STILL, center, expand)
    return _affine_boxes(bounding_boxes, format, canvas_size, clamping_mode, *how)


def _perspective_move(coefficients: Sequence[float], dtype: Any) -> _Move:
    """Where points go in `perspective`, whose coefficients say where pixels come from."""
    a, b, c, d, e, f, g, h = coefficients
    determinant = a * e - b * d
    if determinant == 0:
        raise RuntimeError(
            f"Provided perspective_coeffs {list(coefficients)} can not be inverted. Denominator is "
            f"zero, denom={determinant}"
        )
    over = [[e - f * h, c * h - b, b * f - c * e], [f * g - d, a - c * g, c * d - a * f]]
    under = [d * h - e * g, b * g - a * h, determinant]
    rows = [[value / determinant for value in row] for row in (*over, under)]

    def move(points: Tensor) -> Tensor:
        matrix = rushlight.tensor(rows, dtype=dtype, device=points.device)
        wide = points.to(dtype)
        moved = rushlight.cat((wide, wide.new_ones(wide.shape[0], 1)), 1) @ matrix.T
        return moved[:, :2] / moved[:, 2:]

    return move


def perspective_keypoints(
    keypoints: Tensor,
    canvas_size: _Size,
    startpoints: Any,
    endpoints: Any,
    coefficients: Any = None,
) -> Tensor:
    """Points of an image seen from elsewhere."""
    del canvas_size
    if keypoints.numel() == 0:
        return keypoints
    found = M.perspective_coefficients(startpoints, endpoints, coefficients)
    moved = _perspective_move(found, _floating(keypoints))(keypoints.reshape(-1, 2))
    return moved.to(keypoints.dtype).reshape(keypoints.shape)


def perspective_bounding_boxes(
    bounding_boxes: Tensor,
    format: Any,
    canvas_size: _Size,
    startpoints: Any,
    endpoints: Any,
    coefficients: Any = None,
    clamping_mode: str | None = "soft",
) -> Tensor:
    """Boxes of an image seen from elsewhere."""
    if bounding_boxes.numel() == 0:
        return bounding_boxes
    found = M.perspective_coefficients(startpoints, endpoints, coefficients)
    move = _perspective_move(found, _floating(bounding_boxes))
    return _by_corners(
        bounding_boxes, format, clamping_mode, lambda points: (move(points), None, canvas_size)
    )[0]


def _elastic_move(canvas_size: _Size, displacement: Tensor, dtype: Any) -> _Move:
    """About where points go in `elastic`, whose displacement says where pixels come from."""
    M.check_displacement(displacement, canvas_size)
    height, width = canvas_size

    def move(points: Tensor) -> Tensor:
        moves = displacement.to(points.device, dtype)
        still = _tensors.identity_grid(height, width, dtype, points.device)
        x = points[:, 0].long().clamp(0, width - 1)
        y = points[:, 1].long().clamp(0, height - 1)
        half = rushlight.tensor([0.5 * width, 0.5 * height], dtype=dtype, device=points.device)
        return ((still - moves)[0, y, x] + 1) * half - 0.5

    return move


def elastic_keypoints(keypoints: Tensor, canvas_size: _Size, displacement: Tensor) -> Tensor:
    """Points of an image whose pixels are displaced; about, for the way back is not known."""
    move = _elastic_move(canvas_size, displacement, _floating(keypoints))
    if keypoints.numel() == 0:
        return keypoints
    return move(keypoints.reshape(-1, 2)).to(keypoints.dtype).reshape(keypoints.shape)


def elastic_bounding_boxes(
    bounding_boxes: Tensor,
    format: Any,
    canvas_size: _Size,
    displacement: Tensor,
    clamping_mode: str | None = "soft",
) -> Tensor:
    """Boxes of an image whose pixels are displaced; turned ones keep their angle and sizes."""
    move = _elastic_move(canvas_size, displacement, _floating(bounding_boxes))
    if bounding_boxes.numel() == 0:
        return bounding_boxes
    if is_rotated_bounding_format(format):
        boxes = convert(bounding_boxes, format, _Format.CXCYWHR).reshape(-1, 5)
        centres = move(boxes[:, :2].ceil()).to(boxes.dtype)
        moved = rushlight.cat((centres, boxes[:, 2:]), 1)
        kept = clamp(moved, _Format.CXCYWHR, canvas_size, clamping_mode)
        return convert(kept, _Format.CXCYWHR, format).reshape(bounding_boxes.shape)
    dtype = bounding_boxes.dtype
    return _by_corners(
        bounding_boxes,
        format,
        clamping_mode,
        lambda points: (
            # Whole pixels, as the boxes around them are.
            move(points.ceil() if points.is_floating_point() else points).to(points.dtype),
            None,
            canvas_size,
        ),
    )[0].to(dtype)
