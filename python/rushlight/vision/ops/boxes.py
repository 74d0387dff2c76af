"""Boxes: formats, areas, overlaps, and non-maximum suppression.

Boxes are tensors (..., 4), usually (N, 4), of any real dtype. Formats: "xyxy" (two corners),
"xywh" (a corner and the size), "cxcywh" (the centre and the size); turned by degrees,
counterclockwise: "xywhr", "cxcywhr", and "xyxyxyxy" (four corners).
"""

import math

import rushlight as torch
from rushlight import Tensor
from rushlight._table import ops as _ops

from ._shared import register, widen

__all__ = [
    "batched_nms",
    "box_area",
    "box_convert",
    "box_iou",
    "clip_boxes_to_image",
    "complete_box_iou",
    "distance_box_iou",
    "generalized_box_iou",
    "masks_to_boxes",
    "nms",
    "remove_small_boxes",
]

_nms = register(_ops.nms)
_UPRIGHT = ("xyxy", "xywh", "cxcywh")
_TURNED = ("xywhr", "cxcywhr", "xyxyxyxy")


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Non-maximum suppression: indices (int64) of the boxes (N, 4) that remain, by descending
    scores (N).

    The box with the highest score is kept and all that overlap it by an IoU above the threshold are
    dropped, then the next, and so on. RuntimeError for other shapes, or dtypes that differ.

    Args:
        boxes: the boxes (N, 4) by two corners (x1, y1, x2, y2).
        scores: the score of each box, (N).
        iou_threshold: boxes that overlap a kept one by more are dropped, from 0 to 1.

    Raises:
        RuntimeError: the shapes do not fit, or the dtypes differ.

    Example:
        >>> boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30]])
        >>> torch.vision.ops.nms(boxes, torch.tensor([0.9, 0.8, 0.7]), iou_threshold=0.5)
        tensor([0, 2])
    """
    return _nms(boxes, scores, iou_threshold)


def batched_nms(boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float) -> Tensor:
    """`nms` among boxes (N, 4) of equal classes idxs (N): indices by descending scores.

    Args:
        boxes: the boxes (N, 4) by two corners.
        scores: the score of each box, (N).
        idxs: the class of each box, (N); boxes of different classes do not drop each other.
        iou_threshold: boxes that overlap a kept one of their class by more are dropped.

    Example:
        >>> boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [0, 0, 9, 9]])
        >>> scores, classes = torch.tensor([0.9, 0.8, 0.7]), torch.tensor([0, 1, 0])
        >>> torch.vision.ops.batched_nms(boxes, scores, classes, iou_threshold=0.5)
        tensor([0, 1])
    """
    if boxes.numel() == 0:
        return torch.empty((0,), dtype=torch.int64, device=boxes.device)
    if boxes.numel() > 4000:
        parts = []
        for group in torch.unique(idxs):
            members = (idxs == group).nonzero().squeeze(1)
            parts.append(members[nms(boxes[members], scores[members], iou_threshold)])
        kept = torch.cat(parts).sort().values
        return kept[scores[kept].sort(descending=True).indices]
    # Classes are moved apart, so that boxes of different ones do not meet.
    apart = boxes.max() + torch.tensor(1).to(boxes)
    return nms(boxes + (idxs.to(boxes) * apart)[:, None], scores, iou_threshold)


def remove_small_boxes(boxes: Tensor, min_size: float) -> Tensor:
    """Indices of the boxes (N, 4) whose sides are both at least min_size.

    Args:
        boxes: the boxes (N, 4) by two corners.
        min_size: the least width and height that remain, in the units of the boxes.

    Example:
        >>> boxes = torch.tensor([[0.0, 0, 10, 10], [5, 5, 6, 20]])
        >>> torch.vision.ops.remove_small_boxes(boxes, 2)
        tensor([0])
    """
    width, height = boxes[..., 2] - boxes[..., 0], boxes[..., 3] - boxes[..., 1]
    return torch.where((width >= min_size) & (height >= min_size))[0]


def clip_boxes_to_image(boxes: Tensor, size: tuple[int, int]) -> Tensor:
    """Clip boxes (..., 4), given by corners, to an image of size (height, width).

    Args:
        boxes: the boxes (..., 4) by two corners.
        size: height and width of the image.

    Example:
        >>> torch.vision.ops.clip_boxes_to_image(torch.tensor([[-3.0, 2, 40, 8]]), (16, 32))
        tensor([[ 0.,  2., 32.,  8.]])
    """
    height, width = size
    x, y = boxes[..., 0::2].clamp(0, width), boxes[..., 1::2].clamp(0, height)
    return torch.stack((x, y), -1).reshape(boxes.shape)


# ---- formats ----


def _from_corners(boxes: Tensor, fmt: str) -> Tensor:
    x1, y1, x2, y2 = boxes.unbind(-1)
    w, h = x2 - x1, y2 - y1
    if fmt == "xywh":
        return torch.stack((x1, y1, w, h), -1)
    return torch.stack(((x1 + x2) / 2, (y1 + y2) / 2, w, h), -1)


def _to_corners(boxes: Tensor, fmt: str) -> Tensor:
    x, y, w, h = boxes.unbind(-1)
    if fmt == "cxcywh":
        return torch.stack((x - 0.5 * w, y - 0.5 * h, x + 0.5 * w, y + 0.5 * h), -1)
    return torch.stack((x, y, x + w, y + h), -1)


def _move_along_axes(x: Tensor, y: Tensor, along: Tensor, down: Tensor, degrees: Tensor):
    """The position `along` and `down` the turned axes from (x, y)."""
    angle = degrees * math.pi / 180.0
    cos, sin = angle.cos(), angle.sin()
    return x + along * cos + down * sin, y - along * sin + down * cos


def _from_turned_corner(boxes: Tensor, fmt: str) -> Tensor:
    x, y, w, h, r = boxes.unbind(-1)
    if fmt == "cxcywhr":
        return torch.stack((*_move_along_axes(x, y, w / 2, h / 2, r), w, h, r), -1)
    zero = torch.zeros_like(w)
    corners = [(x, y)] + [
        _move_along_axes(x, y, a, d, r) for a, d in ((w, zero), (w, h), (zero, h))
    ]
    return torch.stack([coordinate for corner in corners for coordinate in corner], -1)


def _to_turned_corner(boxes: Tensor, fmt: str) -> Tensor:
    if fmt == "cxcywhr":
        x, y, w, h, r = boxes.unbind(-1)
        return torch.stack((*_move_along_axes(x, y, -w / 2, -h / 2, r), w, h, r), -1)
    x1, y1, x2, y2, x3, y3 = boxes.unbind(-1)[:6]
    degrees = torch.atan2(y1 - y2, x2 - x1) * 180 / math.pi
    width, height = (
        ((x2 - x1) ** 2 + (y1 - y2) ** 2).sqrt(),
        ((x3 - x2) ** 2 + (y3 - y2) ** 2).sqrt(),
    )
    return torch.stack((x1, y1, width, height, degrees), -1)


def _restore_dtype(boxes: Tensor, like: Tensor) -> Tensor:
    """Whole numbers remain whole."""
    return boxes if like.is_floating_point() else boxes.round().to(like.dtype)


def box_convert(boxes: Tensor, in_fmt: str, out_fmt: str) -> Tensor:
    """Convert boxes (..., 4), or rotated ones (..., 5) or (..., 8), to another format; a copy if
    they are equal.

    ValueError for an unknown format, NotImplementedError between upright and turned ones.

    Args:
        boxes: the boxes, (..., 4), (..., 5) or (..., 8) by their format.
        in_fmt: the format that they have: "xyxy", "xywh", "cxcywh", "xywhr", "cxcywhr" or
            "xyxyxyxy".
        out_fmt: the format that is wanted, of the same names.

    Example:
        >>> torch.vision.ops.box_convert(torch.tensor([[2.0, 3, 6, 11]]), "xyxy", "cxcywh")
        tensor([[4., 7., 4., 8.]])
    """
    known = (*_UPRIGHT, *_TURNED)
    if in_fmt not in known or out_fmt not in known:
        raise ValueError(
            f"Unsupported Bounding Box Conversions for given in_fmt {in_fmt} and out_fmt {out_fmt}"
        )
    if in_fmt == out_fmt:
        return boxes.clone()
    if in_fmt in _UPRIGHT and out_fmt in _UPRIGHT:
        corners = boxes if in_fmt == "xyxy" else _to_corners(boxes, in_fmt)
        return corners if out_fmt == "xyxy" else _from_corners(corners, out_fmt)
    if in_fmt in _TURNED and out_fmt in _TURNED:
        corner = (
            boxes if in_fmt == "xywhr" else _restore_dtype(_to_turned_corner(boxes, in_fmt), boxes)
        )
        return (
            corner
            if out_fmt == "xywhr"
            else _restore_dtype(_from_turned_corner(corner, out_fmt), boxes)
        )
    raise NotImplementedError(
        f"Unsupported Bounding Box Conversions for given in_fmt {in_fmt} and out_fmt {out_fmt}"
    )


# ---- areas and overlaps ----


def box_area(boxes: Tensor, fmt: str = "xyxy") -> Tensor:
    """The areas (...) of axis-aligned boxes (..., 4); ValueError for other formats.

    Args:
        boxes: the boxes (..., 4).
        fmt: their format: "xyxy", "xywh" or "cxcywh".

    Example:
        >>> torch.vision.ops.box_area(torch.tensor([[2.0, 3, 6, 11]]))
        tensor([32.])
    """
    if fmt not in _UPRIGHT:
        raise ValueError(f"Unsupported Bounding Box area for given format {fmt}")
    boxes = widen(boxes)
    wide, tall = boxes[..., 2], boxes[..., 3]  # IndexError where there are fewer numbers
    return (wide - boxes[..., 0]) * (tall - boxes[..., 1]) if fmt == "xyxy" else wide * tall


def _ends(boxes: Tensor, fmt: str) -> tuple[Tensor, Tensor]:
    """The smaller and the larger coordinates."""
    if fmt == "xyxy":
        return boxes[..., :2], boxes[..., 2:]
    place, size = boxes[..., :2], boxes[..., 2:]
    return (place, place + size) if fmt == "xywh" else (place - size / 2, place + size / 2)


class _Pairs:
    """All pairs of boxes (..., N, 4) and (..., M, 4): what they have in common, cover, and are
    enclosed by.
    """

    def __init__(self, boxes1: Tensor, boxes2: Tensor, fmt: str = "xyxy") -> None:
        first, second = _ends(boxes1, fmt), _ends(boxes2, fmt)
        self.low = first[0][..., :, None, :], second[0][..., None, :, :]
        self.high = first[1][..., :, None, :], second[1][..., None, :, :]
        sides = widen(torch.min(*self.high) - torch.max(*self.low)).clamp(min=0)
        common = sides[..., 0] * sides[..., 1]
        self.union = (
            box_area(boxes1, fmt)[..., :, None] + box_area(boxes2, fmt)[..., None, :] - common
        )
        self.common = common
        self.iou = common / self.union

    def enclosing(self) -> tuple[Tensor, Tensor]:
        """Sides of the smallest boxes around both."""
        sides = widen(torch.max(*self.high) - torch.min(*self.low)).clamp(min=0)
        return sides[..., 0], sides[..., 1]

    def distance_iou(self, eps: float) -> Tensor:
        width, height = self.enclosing()
        middles = [(low + high) / 2 for low, high in zip(self.low, self.high, strict=True)]
        apart = (widen(middles[0] - middles[1]) ** 2).sum(-1)
        return self.iou - apart / (width**2 + height**2 + eps)


def _aspect_difference(sides1: Tensor, sides2: Tensor) -> Tensor:
    """How far the angles of the diagonals differ, squared, from 0 to 1."""
    angles = [(sides[..., 0] / sides[..., 1]).atan() for sides in (sides1, sides2)]
    return 4 / math.pi**2 * (angles[0] - angles[1]) ** 2


def _cross(a: Tensor, b: Tensor) -> Tensor:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def _signed_area(corners: Tensor) -> Tensor:
    """Areas (...) of polygons (..., K, 2), positive where x turns towards y."""
    return 0.5 * _cross(corners, corners.roll(-1, -2)).sum(-1)


def _is_inside(points: Tensor, corners: Tensor, slack: Tensor) -> Tensor:
    """Whether points (..., K, 2) are within or on a convex polygon (..., L, 2) that has an area."""
    sides = corners.roll(-1, -2) - corners
    sign = _signed_area(corners).sign()[..., None, None]
    to = points[..., :, None, :] - corners[..., None, :, :]
    within = _cross(sides[..., None, :, :], to) * sign >= -slack[..., None, None]
    return within.all(-1) & (sign[..., 0] != 0)


def _common_area(p: Tensor, q: Tensor) -> Tensor:
    """Areas (...) that two convex quadrilaterals (..., 4, 2) have in common: that of the polygon of
    the corners within the other one and of the crossings of sides, by their angles.
    """
    middle = p.mean(-2, keepdim=True)
    p, q = torch.broadcast_tensors(p - middle, q - middle)
    slack = 1e-10 * (p.abs().amax((-2, -1)) + q.abs().amax((-2, -1))) ** 2
    along_p, along_q = p.roll(-1, -2) - p, q.roll(-1, -2) - q
    a, da = p[..., :, None, :], along_p[..., :, None, :]
    db, apart = along_q[..., None, :, :], q[..., None, :, :] - p[..., :, None, :]
    steepness = _cross(da, db)
    parallel = steepness.abs() <= slack[..., None, None]
    steepness = steepness.masked_fill(parallel, 1.0)
    on_p, on_q = _cross(apart, db) / steepness, _cross(apart, da) / steepness
    meets = ~parallel & (on_p >= 0) & (on_p <= 1) & (on_q >= 0) & (on_q <= 1)
    crossings = (a + on_p[..., None] * da).flatten(-3, -2)
    points = torch.cat((p, q, crossings), -2)
    used = torch.cat((_is_inside(p, q, slack), _is_inside(q, p, slack), meets.flatten(-2)), -1)
    count = used.sum(-1)
    centre = (points * used[..., None]).sum(-2) / count.clamp(min=1)[..., None]
    x, y = (points - centre[..., None, :]).detach().unbind(-1)
    order = torch.atan2(y, x).masked_fill(~used, math.inf).argsort(-1)
    points = points.gather(-2, order[..., None].expand(points.shape))
    # Those that are no corners go where the first one is, and add nothing.
    points = torch.where(used.gather(-1, order)[..., None], points, points[..., :1, :])
    return _signed_area(points).abs() * (count >= 3)


_MOST_PAIRS = 1 << 15  # of turned boxes at a time


def _turned_iou(boxes1: Tensor, boxes2: Tensor, fmt: str) -> Tensor:
    result = boxes1.dtype if boxes1.dtype in (torch.float32, torch.float64) else torch.float32
    corners = []
    for boxes in (boxes1.double(), boxes2.double()):
        turned = boxes if fmt == "xyxyxyxy" else box_convert(boxes, fmt, "xyxyxyxy")
        corners.append(turned.unflatten(-1, (4, 2)))
    areas = [_signed_area(c).abs() for c in corners]
    p, q = corners[0][..., :, None, :, :], corners[1][..., None, :, :, :]
    rows = max(1, _MOST_PAIRS // max(1, corners[1][..., 0, 0].numel()))
    parts = [_common_area(part, q) for part in p.split(rows, p.dim() - 4)]
    common = torch.cat(parts, -2)
    union = areas[0][..., :, None] + areas[1][..., None, :] - common
    return torch.where(union > 0, common / union.clamp(min=1e-300), 0.0).to(result)


def box_iou(boxes1: Tensor, boxes2: Tensor, fmt: str = "xyxy") -> Tensor:
    """Intersection over union (..., N, M) of boxes (..., N, K) and (..., M, K), axis-aligned or
    rotated.

    Those of turned boxes are computed in float64. ValueError for an unknown format.

    Args:
        boxes1: boxes (..., N, K); K is 4, or 5 or 8 for rotated ones.
        boxes2: boxes (..., M, K) of the same format.
        fmt: the format of both; `box_convert` names them.

    Example:
        >>> first = torch.tensor([[0.0, 0, 4, 4], [10, 10, 14, 14]])
        >>> torch.vision.ops.box_iou(first, torch.tensor([[0.0, 0, 4, 8]]))
        tensor([[0.5000],
                [0.0000]])
    """
    if fmt in _TURNED:
        return _turned_iou(boxes1, boxes2, fmt)
    if fmt not in _UPRIGHT:
        raise ValueError(
            f"Unsupported format '{fmt}'. Supported axis-aligned formats: {_UPRIGHT}. "
            f"Supported rotated formats: {_TURNED}."
        )
    return _Pairs(boxes1, boxes2, fmt).iou


def generalized_box_iou(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """Generalised IoU: IoU less the share of the enclosing box that neither covers: (N, M), from -1
    to 1.

    Args:
        boxes1: boxes (N, 4) by two corners.
        boxes2: boxes (M, 4) by two corners.

    Example:
        >>> first = torch.tensor([[0.0, 0, 4, 4]])
        >>> torch.vision.ops.generalized_box_iou(
        ...     first, torch.tensor([[0.0, 0, 4, 8], [4, 0, 8, 4]])
        ... )
        tensor([[0.5000, 0.0000]])
    """
    pairs = _Pairs(boxes1, boxes2)
    width, height = pairs.enclosing()
    area = width * height
    return pairs.iou - (area - pairs.union) / area


def distance_box_iou(boxes1: Tensor, boxes2: Tensor, eps: float = 1e-07) -> Tensor:
    """Distance IoU: IoU less the squared distance of the centres, relative to the enclosing box:
    (N, M).

    Args:
        boxes1: boxes (N, 4) by two corners.
        boxes2: boxes (M, 4) by two corners.
        eps: is added to the divisor, so that it is not 0.

    Example:
        >>> first = torch.tensor([[0.0, 0, 4, 4]])
        >>> torch.vision.ops.distance_box_iou(first, torch.tensor([[0.0, 0, 4, 8], [4, 0, 8, 4]]))
        tensor([[ 0.4500, -0.2000]])
    """
    return _Pairs(widen(boxes1), widen(boxes2)).distance_iou(eps)


def complete_box_iou(boxes1: Tensor, boxes2: Tensor, eps: float = 1e-07) -> Tensor:
    """Complete IoU: `distance_box_iou` less a term for different aspect ratios: (N, M).

    Args:
        boxes1: boxes (N, 4) by two corners.
        boxes2: boxes (M, 4) by two corners.
        eps: is added to divisors, so that they are not 0.

    Example:
        >>> first = torch.tensor([[0.0, 0, 4, 4]])
        >>> torch.vision.ops.complete_box_iou(first, torch.tensor([[0.0, 0, 4, 8], [4, 0, 8, 4]]))
        tensor([[ 0.4468, -0.2000]])
    """
    pairs = _Pairs(widen(boxes1), widen(boxes2))
    sides = [high - low for low, high in zip(pairs.low, pairs.high, strict=True)]
    v = _aspect_difference(*sides)
    with torch.no_grad():
        alpha = v / (1 - pairs.iou + v + eps)
    return pairs.distance_iou(eps) - alpha * v


def masks_to_boxes(masks: Tensor) -> Tensor:
    """The smallest boxes (N, 4), float32, around the nonzero elements of masks (N, H, W); zeros for
    empty masks.

    Args:
        masks: masks (N, H, W); what is not 0 belongs to the object.

    Raises:
        ValueError: the masks have other than three dimensions.

    Example:
        >>> mask = torch.zeros(1, 6, 8)
        >>> mask[0, 2:4, 1:7] = 1
        >>> torch.vision.ops.masks_to_boxes(mask)
        tensor([[1., 2., 6., 3.]])
    """
    if masks.numel() == 0:
        return torch.zeros((0, 4), device=masks.device)
    if masks.ndim != 3:
        raise ValueError(f"masks are (N, H, W), not {tuple(masks.shape)}")
    sides = []
    for along in (1, 2):  # columns first: x before y
        seen = (masks != 0).any(along).float()
        sides.append((seen.argmax(1), seen.shape[1] - 1 - seen.flip(1).argmax(1)))
    (x1, x2), (y1, y2) = sides
    found = torch.stack((x1, y1, x2, y2), 1).float()
    return found * (masks != 0).flatten(1).any(1)[:, None]
