"""Which boxes belong to which, which of them are learned from, and how boxes are told relative
to others.
"""

import math
from typing import Any

import rushlight as torch
from rushlight import Tensor
from rushlight._warnings import warn

from ...ops.boxes import box_iou
from ...ops.misc import FrozenBatchNorm2d
from .anchor_utils import AnchorGenerator


class BalancedPositiveNegativeSampler:
    """Draws boxes to learn from: a share of them positive at most, the rest negative."""

    def __init__(self, batch_size_per_image: int, positive_fraction: float) -> None:
        self.batch_size_per_image, self.positive_fraction = batch_size_per_image, positive_fraction

    def __call__(self, matched_idxs: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """Of labels (1 and more: positive, 0: negative), masks of those that are drawn."""
        positive: list[Tensor] = []
        negative: list[Tensor] = []
        for labels in matched_idxs:
            left = self.batch_size_per_image
            most = int(left * self.positive_fraction)
            for is_positive in (True, False):
                candidates = labels >= 1 if is_positive else labels == 0
                places = candidates.nonzero().squeeze(1)
                count = min(places.numel(), most)
                chosen = places[torch.randperm(places.numel(), device=places.device)[:count]]
                mask = torch.zeros_like(labels, dtype=torch.uint8)
                mask[chosen] = 1
                (positive if is_positive else negative).append(mask)
                left -= count
                most = left
        return positive, negative


def _middles(boxes: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    width, height = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    return boxes[:, 0] + 0.5 * width, boxes[:, 1] + 0.5 * height, width, height


def encode_boxes(
    reference_boxes: Tensor, proposals: Tensor, weights: tuple[float, float, float, float]
) -> Tensor:
    """Where boxes (N, 4) lie, seen from proposals: shifts of centres, logarithms of sizes, times
    four weights, which may be a tensor.
    """
    x, y, w, h = _middles(reference_boxes)
    from_x, from_y, from_w, from_h = _middles(proposals)
    told = (
        (x - from_x) / from_w,
        (y - from_y) / from_h,
        torch.log(w / from_w),
        torch.log(h / from_h),
    )
    return torch.stack([t * weights[i] for i, t in enumerate(told)], dim=1)


class BoxCoder:
    """Boxes told by how far others lie from them: shifts of centres and logarithms of sizes,
    times weights.
    """

    def __init__(
        self,
        weights: tuple[float, float, float, float],
        bbox_xform_clip: float = math.log(1000.0 / 16),
    ):
        self.weights, self.bbox_xform_clip = weights, bbox_xform_clip

    def encode(self, reference_boxes: list[Tensor], proposals: list[Tensor]) -> tuple[Tensor, ...]:
        """Where the boxes of each image lie, seen from its proposals."""
        counts = [len(b) for b in reference_boxes]
        return self.encode_single(torch.cat(reference_boxes), torch.cat(proposals)).split(counts)

    def encode_single(self, reference_boxes: Tensor, proposals: Tensor) -> Tensor:
        return encode_boxes(reference_boxes, proposals, self.weights)

    def decode(self, rel_codes: Tensor, boxes: list[Tensor]) -> Tensor:
        """Boxes (N, classes, 4) from what is told of them (N, 4 * classes)."""
        every = torch.cat(boxes)
        if len(every) == 0:
            return rel_codes.reshape(0, max(rel_codes.shape[-1] // 4, 1), 4)
        return self.decode_single(rel_codes, every).reshape(len(every), -1, 4)

    def decode_single(self, rel_codes: Tensor, boxes: Tensor) -> Tensor:
        from_x, from_y, from_w, from_h = (t[:, None] for t in _middles(boxes.to(rel_codes.dtype)))
        dx, dy, dw, dh = (rel_codes[:, i::4] / weight for i, weight in enumerate(self.weights))
        x, y = dx * from_w + from_x, dy * from_h + from_y
        w = dw.clamp(max=self.bbox_xform_clip).exp() * from_w * 0.5
        h = dh.clamp(max=self.bbox_xform_clip).exp() * from_h * 0.5
        return torch.stack((x - w, y - h, x + w, y + h), dim=2).flatten(1)


class BoxLinearCoder:
    """Boxes told by how far their sides lie from the middles of others, in sizes of these."""

    def __init__(self, normalize_by_size: bool = True) -> None:
        self.normalize_by_size = normalize_by_size

    def _frame(self, boxes: Tensor) -> tuple[Tensor, Tensor]:
        """Middles and sizes (…, 2)."""
        low, high = boxes[..., :2], boxes[..., 2:]
        size = high - low if self.normalize_by_size else torch.ones_like(low)
        return 0.5 * (low + high), size

    def encode(self, reference_boxes: Tensor, proposals: Tensor) -> Tensor:
        """Distances left, up, right and down (…, 4) from the middles of reference_boxes to the
        sides of proposals.
        """
        middle, size = self._frame(reference_boxes)
        before, after = middle - proposals[..., :2], proposals[..., 2:] - middle
        return torch.cat((before / size, after / size), -1)

    def decode(self, rel_codes: Tensor, boxes: Tensor) -> Tensor:
        """Boxes (…, 4) from such distances."""
        middle, size = self._frame(boxes.to(rel_codes.dtype))
        before, after = rel_codes[..., :2] * size, rel_codes[..., 2:] * size
        return torch.cat((middle - before, middle + after), -1)


class Matcher:
    """To each predicted box the true one that it overlaps most: its number, or -1 below, -2
    between two thresholds.

    allow_low_quality_matches: a true box has those that overlap it most, however little.
    """

    BELOW_LOW_THRESHOLD = -1
    BETWEEN_THRESHOLDS = -2

    def __init__(
        self, high_threshold: float, low_threshold: float, allow_low_quality_matches: bool = False
    ) -> None:
        if low_threshold > high_threshold:
            raise AssertionError("low_threshold should be <= high_threshold")
        self.high_threshold, self.low_threshold = high_threshold, low_threshold
        self.allow_low_quality_matches = allow_low_quality_matches

    def __call__(self, match_quality_matrix: Tensor) -> Tensor:
        """Of overlaps (true, predicted): numbers (predicted)."""
        quality = match_quality_matrix
        if quality.numel() == 0:
            missing = "ground-truth" if quality.shape[0] == 0 else "proposal"
            raise ValueError(f"No {missing} boxes available for one of the images during training")
        values, best = quality.max(dim=0)
        low, below_high = values < self.low_threshold, values < self.high_threshold
        found = best.masked_fill(below_high & ~low, self.BETWEEN_THRESHOLDS)
        found.masked_fill_(low, self.BELOW_LOW_THRESHOLD)
        if self.allow_low_quality_matches:
            self.set_low_quality_matches_(found, best, quality)
        return found

    def match(self, targets: list[dict[str, Tensor]], anchors: list[Tensor]) -> list[Tensor]:
        """Of each image, the true box of each anchor; all -1 where there are none."""
        return [
            self(box_iou(target["boxes"], own))
            if len(target["boxes"]) > 0
            else torch.full((len(own),), -1, dtype=torch.int64, device=own.device)
            for target, own in zip(targets, anchors, strict=True)
        ]

    def set_low_quality_matches_(
        self, matches: Tensor, all_matches: Tensor, match_quality_matrix: Tensor
    ) -> None:
        most = match_quality_matrix.max(dim=1).values
        chosen = (match_quality_matrix == most[:, None]).any(0)
        matches[chosen] = all_matches[chosen]


class SSDMatcher(Matcher):
    """`Matcher` of one threshold; each true box has the predicted one that it overlaps most."""

    def __init__(self, threshold: float) -> None:
        super().__init__(threshold, threshold)

    def __call__(self, match_quality_matrix: Tensor) -> Tensor:
        found = super().__call__(match_quality_matrix)
        best = match_quality_matrix.argmax(dim=1)
        found[best] = torch.arange(len(best), device=best.device)
        return found


def retrieve_out_channels(model: torch.nn.Module, size: tuple[int, int]) -> list[int]:
    """Channels of the maps that a backbone makes of an image of this width and height."""
    training = model.training
    model.eval()
    with torch.no_grad():
        like = next(model.parameters())
        maps = model(like.new_zeros((1, 3, size[1], size[0])))
    model.train(training)
    return [m.shape[1] for m in ([maps] if isinstance(maps, Tensor) else maps.values())]


def checked_anchors(backbone: Any, anchors: Any) -> Any:
    """The generator of anchors that is given, or None.

    ValueError for a backbone that does not say its channels, TypeError for another thing than a
    generator.
    """
    if not hasattr(backbone, "out_channels"):
        raise ValueError(
            "backbone should contain an attribute out_channels: how many channels each of its maps "
            "has"
        )
    if anchors is not None and not isinstance(anchors, AnchorGenerator):
        raise TypeError(
            f"anchor_generator should be of type AnchorGenerator or None instead of {type(anchors)}"
        )
    return anchors


def whole_weights(weights: Any, kwargs: dict[str, Any]) -> None:
    """Trained weights bring those of the backbone; without any there are the 91 classes of COCO."""
    kwargs["trained"] = weights is not None
    if weights is not None:
        kwargs["weights_backbone"] = None
    elif kwargs.get("num_classes") is None:
        kwargs["num_classes"] = 91


def fixed_size(kwargs: dict[str, Any]) -> None:
    """Drops an argument `size`, with a warning: the network decides it."""
    if kwargs.pop("size", None) is not None:
        warn("The size of the model is already fixed; it is ignored.")


def overwrite_eps(model: torch.nn.Module, eps: float) -> None:
    """Sets the epsilon of frozen normalisations: the first weights were trained with 0."""
    for module in model.modules():
        if isinstance(module, FrozenBatchNorm2d):
            module.eps = eps


def training_layers(trained: bool, wanted: int | None, most: int, usual: int) -> int:
    """How many last stages of a backbone are trained: all where nothing was trained before."""
    if not trained:
        if wanted is not None:
            warn("trainable_backbone_layers has no effect without trained weights")
        return most
    wanted = usual if wanted is None else wanted
    if not 0 <= wanted <= most:
        raise ValueError(
            f"Trainable backbone layers should be in the range [0,{most}], got {wanted}"
        )
    return wanted


def check_targets(targets: list[dict[str, Tensor]] | None) -> None:
    """AssertionError if training has no targets, or boxes that are none."""
    if targets is None:
        raise AssertionError("targets should not be none when in training mode")
    for i, target in enumerate(targets):
        boxes = target["boxes"]
        if not isinstance(boxes, Tensor):
            raise AssertionError(f"Expected target boxes to be of type Tensor, got {type(boxes)}.")
        if boxes.dim() != 2 or boxes.shape[-1] != 4:
            raise AssertionError(
                f"Expected target boxes to be a tensor of rows of 4, got {boxes.shape}"
            )
        bad = (boxes[:, 2:] <= boxes[:, :2]).any(1)
        if bad.any():
            first: list[float] = boxes[bad.nonzero()[0, 0]].double().tolist()
            raise AssertionError(
                "boxes should have positive height and width. "
                f"Found invalid box {first} in target {i}."
            )
