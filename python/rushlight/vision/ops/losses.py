"""Losses of detectors: for pairs of boxes (N, 4), and for unbalanced classes."""

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor

from ._shared import reduce
from .boxes import _aspect_difference

__all__ = [
    "complete_box_iou_loss",
    "distance_box_iou_loss",
    "generalized_box_iou_loss",
    "sigmoid_focal_loss",
]


class _Rows:
    """Rows of two tensors of boxes: their overlap and the box around both."""

    def __init__(self, boxes1: Tensor, boxes2: Tensor, eps: float) -> None:
        first, second = (
            b if b.dtype in (torch.float32, torch.float64) else b.float() for b in (boxes1, boxes2)
        )
        shapes = f"{tuple(first.shape)} and {tuple(second.shape)}"
        if first.shape[-1:] != (4,) or second.shape[-1:] != (4,):
            raise ValueError(f"boxes are of 4 numbers, but got shapes {shapes}")
        if first.shape != second.shape:
            raise RuntimeError(f"boxes belong together row by row, but got shapes {shapes}")
        self.low, self.high = (first[..., :2], second[..., :2]), (first[..., 2:], second[..., 2:])
        self.sides = self.high[0] - self.low[0], self.high[1] - self.low[1]
        inner = torch.min(*self.high) - torch.max(*self.low)
        met = (inner > 0).all(-1)
        common = torch.where(met, inner[..., 0] * inner[..., 1], 0.0)
        areas = [side[..., 0] * side[..., 1] for side in self.sides]
        self.union = areas[0] + areas[1] - common
        self.iou = common / (self.union + eps)
        self.outer = torch.max(*self.high) - torch.min(*self.low)

    def distance_loss(self, eps: float) -> Tensor:
        middles = [(low + high) / 2 for low, high in zip(self.low, self.high, strict=True)]
        apart = ((middles[0] - middles[1]) ** 2).sum(-1)
        return 1 - self.iou + apart / ((self.outer**2).sum(-1) + eps)


def generalized_box_iou_loss(
    boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-07
) -> Tensor:
    """1 less the generalised IoU of pairs of boxes (N, 4). ValueError for an unknown reduction.

    Args:
        boxes1, boxes2: the pairs, (N, 4) each, by two corners.
        reduction: "none" for a loss (N) of each pair, "mean" or "sum".
        eps: is added to divisors, so that they are not 0.

    Example:
        >>> found, true = torch.tensor([[0.0, 0, 4, 4]]), torch.tensor([[0.0, 0, 4, 8]])
        >>> torch.vision.ops.generalized_box_iou_loss(found, true)
        tensor([0.5000])
    """
    rows = _Rows(boxes1, boxes2, eps)
    area = rows.outer[..., 0] * rows.outer[..., 1]
    return reduce(
        1 - (rows.iou - (area - rows.union) / (area + eps)), reduction, empty_is_zero=True
    )


def distance_box_iou_loss(
    boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-07
) -> Tensor:
    """1 less the distance IoU of pairs of boxes (N, 4). ValueError for an unknown reduction.

    Args:
        boxes1, boxes2: the pairs, (N, 4) each, by two corners.
        reduction: "none" for a loss (N) of each pair, "mean" or "sum".
        eps: is added to divisors, so that they are not 0.

    Example:
        >>> found, true = torch.tensor([[0.0, 0, 4, 4]]), torch.tensor([[0.0, 0, 4, 8]])
        >>> torch.vision.ops.distance_box_iou_loss(found, true)
        tensor([0.5500])
    """
    return reduce(_Rows(boxes1, boxes2, eps).distance_loss(eps), reduction, empty_is_zero=True)


def complete_box_iou_loss(
    boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-07
) -> Tensor:
    """1 less the complete IoU of pairs of boxes (N, 4). ValueError for an unknown reduction.

    eps guards the weight of the sides alone, as in torchvision.

    Args:
        boxes1, boxes2: the pairs, (N, 4) each, by two corners.
        reduction: "none" for a loss (N) of each pair, "mean" or "sum".
        eps: is added to the divisor of the weight of the sides.

    Example:
        >>> found, true = torch.tensor([[0.0, 0, 4, 4]]), torch.tensor([[0.0, 0, 4, 8]])
        >>> torch.vision.ops.complete_box_iou_loss(found, true, reduction="mean")
        tensor(0.5532)
    """
    rows = _Rows(boxes1, boxes2, 1e-7)
    v = _aspect_difference(*rows.sides)
    with torch.no_grad():
        alpha = v / (1 - rows.iou + v + eps)
    return reduce(rows.distance_loss(1e-7) + alpha * v, reduction, empty_is_zero=True)


def sigmoid_focal_loss(
    inputs: Tensor, targets: Tensor, alpha: float = 0.25, gamma: float = 2, reduction: str = "none"
) -> Tensor:
    """Focal loss: binary cross entropy of logits in which easy examples count less.

    inputs and targets (0 or 1, floating) have one shape. alpha weighs positive examples, 1 - alpha
    negative ones (-1: none); gamma is the power of 1 - p. ValueError for other alphas and unknown
    reductions.

    Args:
        inputs: logits of any shape.
        targets: 0 or 1 for each of them, floating.
        alpha: the weight of positive examples; -1: none.
        gamma: how much less easy examples count; 0 is plain cross entropy.
        reduction: "none" for a loss of each logit, "mean" or "sum".

    Example:
        >>> logits, classes = torch.tensor([3.0, -3.0, 0.0]), torch.tensor([1.0, 1.0, 0.0])
        >>> torch.vision.ops.sigmoid_focal_loss(logits, classes)
        tensor([2.7321e-05, 6.9157e-01, 1.2997e-01])
    """
    if alpha != -1 and not 0 <= alpha <= 1:
        raise ValueError(
            f"Invalid alpha value: {alpha}; it is from 0 to 1, or -1 where classes weigh the same"
        )
    p = torch.sigmoid(inputs)
    if inputs.shape != targets.shape:
        raise ValueError(
            f"Target size ({targets.shape}) must be the same as input size ({inputs.shape})"
        )
    right = p * targets + (1 - p) * (1 - targets)
    loss = (
        F.binary_cross_entropy_with_logits(inputs, targets, reduction="none") * (1 - right) ** gamma
    )
    if alpha >= 0:
        loss = (alpha * targets + (1 - alpha) * (1 - targets)) * loss
    return reduce(loss, reduction)
