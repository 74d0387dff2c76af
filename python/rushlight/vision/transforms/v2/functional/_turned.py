"""Turned boxes, as the four corners (x1, y1) … (x4, y4): rectangles again after a transform, and
within their image.
"""

from __future__ import annotations

import math

import rushlight
from rushlight import Tensor


def rectangles(corners: Tensor) -> Tensor:
    """The rectangles around parallelograms, (..., 8), along the longer one of their sides."""
    wide = corners if corners.dtype in (rushlight.float32, rushlight.float64) else corners.float()
    p1, p2, p3, p4 = (wide[..., i : i + 2] for i in range(0, 8, 2))
    centre = (p1 + p3) / 2
    side, other = p2 - p1, p4 - p1
    w, h = side.pow(2).sum(-1).sqrt(), other.pow(2).sum(-1).sqrt()
    along = rushlight.atan2(-side[..., 1], side[..., 0])
    down = rushlight.atan2(-other[..., 1], other[..., 0])
    between = along - down
    cos, sin = between.cos(), between.sin()
    cos = rushlight.where(between > math.pi / 2, -cos, cos)
    width = rushlight.where(w < h, w * sin, w + h * cos)
    height = rushlight.where(w > h, h * sin, h + w * cos)
    angle = rushlight.where(h > w, down + math.pi / 2, along)
    cos, sin = angle.cos(), angle.sin()
    u = rushlight.stack((cos, -sin), -1) * (width / 2)[..., None]
    v = rushlight.stack((sin, cos), -1) * (height / 2)[..., None]
    made = (centre - u - v, centre + u - v, centre + u + v, centre - u + v)
    return rushlight.cat(made, -1).to(corners.dtype)


def _leftmost(corners: Tensor) -> Tensor:
    """Where the numbers of boxes come from if their leftmost corner is to be the first one; of two
    such corners the upper one.
    """
    x, y = corners[:, 0::2], corners[:, 1::2]
    y_most, x_most = y.abs().amax(1, keepdim=True), x.abs().amax(1, keepdim=True)
    first = (y / y_most + x / x_most * 100).argmin(1, keepdim=True)
    return (rushlight.arange(8, device=corners.device) + 2 * first) % 8


def _lines(corners: Tensor) -> tuple[Tensor, Tensor]:
    """Slopes and heights at x = 0 of the lines through the sides, from each corner to the next."""
    x, y = corners[:, 0::2], corners[:, 1::2]
    slope = (y.roll(-1, 1) - y) / (x.roll(-1, 1) - x)
    return slope, y - slope * x


def _crossings(slope: Tensor, at: Tensor) -> Tensor:
    """Where each line meets the one before it."""
    x = -(at - at.roll(1, 1)) / (slope - slope.roll(1, 1))
    return rushlight.stack((x, slope * x + at), -1).flatten(1)


def _kept_lines(corners: Tensor, before: Tensor, canvas: tuple[int, int], mode: str) -> Tensor:
    """Heights at x = 0 of the sides after the left edge of the canvas has cut boxes.

    Soft: the smallest box around what is left; hard: a box within it, as large as may be.
    """
    height, width = canvas
    a1, a2, a3, a4 = _lines(corners)[0].unbind(1)
    b1, b2, b3, b4 = _lines(corners)[1].unbind(1)
    first, second, third, fourth = _lines(before)[1].unbind(1)
    b1 = b2.clamp(b1, b3).clamp(0, height)
    b4 = b3.clamp(b2, b4).clamp(0, height)
    if mode == "hard":
        b1 = b4 = (b1 + b4) / 2
        top = (b1 * a2 / a1, b3 * a2 / a3)
        right = ((a1 - a2) * width + b1, (a3 - a2) * width + b3)
        b2 = rushlight.stack((*top, *right), 1).amax(1).clamp(max=b2)
        bottom = tuple(height * (1 - a3 / a) + b * a3 / a for a, b in ((a4, b4), (a2, b2)))
        right = ((a2 - a3) * width + b2, (a4 - a3) * width + b4)
        b3 = rushlight.stack((*bottom, *right), 1).amin(1).clamp(min=b3)
        b1 = b4 = b1.clamp(first, third).clamp(second, fourth)
    b1, b3 = b1.clamp(first, third), b3.clamp(first, third)
    b2, b4 = b2.clamp(second, fourth), b4.clamp(second, fourth)
    if mode == "hard":
        b1 = b4
    return rushlight.stack((b1, b2, b3, b4), 1)


def _cut_left(corners: Tensor, before: Tensor, canvas: tuple[int, int], mode: str) -> Tensor:
    """Boxes, their leftmost corner first, cut by the left edge of the canvas."""
    x1, y1, x2, y2, x3, y3, x4, y4 = corners.unbind(1)
    moved = _crossings(_lines(corners)[0], _kept_lines(corners, before, canvas, mode))
    upright = corners.clone()  # sides that have no slope
    upright[:, 0].clamp_(min=0)
    upright[:, 6].clamp_(min=0)
    steep = y1.isclose(y2) | y3.isclose(y4)
    outside = (x1 <= 0) & (x2 <= 0) & (x3 <= 0) & (x4 <= 0)
    gone = outside | y1.isclose(y4) | y2.isclose(y3) | (steep & x1.isclose(x2))
    cases = (
        ((x1 < 0) & ~moved.isnan().any(1), moved),
        (steep, upright),
        (gone, rushlight.zeros_like(corners)),
    )
    for condition, case in cases:
        corners = rushlight.where(condition[:, None], case, corners)
    return corners


def clamp_corners(corners: Tensor, canvas_size: tuple[int, int], mode: str) -> Tensor:
    """Turned boxes, (N, 8), within the canvas: cut on the left four times, turned in between."""
    before = corners
    height, width = canvas_size
    for _ in range(4):
        order = _leftmost(corners)
        corners, before = corners.gather(1, order), before.gather(1, order)
        corners = _cut_left(corners, before, (height, width), mode)
        turned = []
        for boxes in (corners, before):
            boxes = boxes.gather(1, order)
            turned.append(rushlight.stack((boxes[:, 1::2], width - boxes[:, 0::2]), -1).flatten(1))
        corners, before = turned
        height, width = width, height
    return corners
