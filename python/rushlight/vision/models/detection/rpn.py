"""Region proposals: boxes that may contain an object of any class."""

import itertools

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor, nn

from ...ops import _shared
from ...ops import boxes as box_ops
from ...ops.misc import Conv2dNormActivation
from .._utils import normal
from . import _utils
from .anchor_utils import AnchorGenerator as AnchorGenerator
from .image_list import ImageList
from .one_stage import init_convs

__all__ = [
    "AnchorGenerator",
    "RPNHead",
    "RegionProposalNetwork",
    "concat_box_prediction_layers",
    "permute_and_flatten",
]


class RPNHead(nn.Module):
    """For each map, scores and box deltas of the anchors at each position.

    Args:
        in_channels: of each map.
        num_anchors: boxes of a position.
        conv_depth: convolutions before the scores.

    Example:
        >>> from rushlight.vision.models.detection.rpn import RPNHead
        >>> scores, moves = RPNHead(8, 3)([torch.zeros(1, 8, 4, 4)])
        >>> scores[0].shape, moves[0].shape
        (torch.Size([1, 3, 4, 4]), torch.Size([1, 12, 4, 4]))
    """

    _version = 2

    def __init__(self, in_channels: int, num_anchors: int, conv_depth: int = 1) -> None:
        super().__init__()
        widths = [in_channels] * (conv_depth + 1)
        self.conv = nn.Sequential(
            *(Conv2dNormActivation(*pair, norm_layer=None) for pair in itertools.pairwise(widths))
        )
        self.cls_logits = nn.Conv2d(in_channels, num_anchors, 1)
        self.bbox_pred = nn.Conv2d(in_channels, num_anchors * 4, 1)
        init_convs(self, normal(0.01))

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *args, **kwargs):
        # Older checkpoints have one convolution without a Sequential around it.
        _shared.rename_layers(state_dict, prefix, local_metadata, [("conv", "conv.0.0")])
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args, **kwargs)

    def forward(self, x: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """Scores and shifts of the anchors at each place, a map for each level."""
        hidden = [self.conv(each) for each in x]
        return [self.cls_logits(h) for h in hidden], [self.bbox_pred(h) for h in hidden]


def by_place(maps: Tensor, size: int) -> Tensor:
    """Maps (N, A * size, H, W) as rows (N, H * W * A, size)."""
    return maps.unflatten(1, (-1, size)).permute(0, 3, 4, 1, 2).flatten(1, 3)


def permute_and_flatten(layer: Tensor, N: int, A: int, C: int, H: int, W: int) -> Tensor:
    """Maps (N, A * C, H, W) as rows (N, H * W * A, C).

    Args:
        layer: (N, A * C, H, W).
        N: images.
        A: boxes of a position.
        C: numbers of a box.
        H: the map's height.
        W: its width.

    Example:
        >>> from rushlight.vision.models.detection.rpn import permute_and_flatten
        >>> permute_and_flatten(torch.zeros(1, 6, 4, 4), 1, 3, 2, 4, 4).shape
        torch.Size([1, 48, 2])
    """
    return by_place(layer.view(N, A * C, H, W), C)


def concat_box_prediction_layers(
    box_cls: list[Tensor], box_regression: list[Tensor]
) -> tuple[Tensor, Tensor]:
    """Rows of all maps, images and positions: scores (…, classes) and shifts (…, 4).

    Args:
        box_cls: scores of each map.
        box_regression: moves of each map.

    For an example see `vision.models.detection.rpn.RPNHead`.
    """
    # Scores have A * classes channels, shifts A * 4.
    classes = [4 * c.shape[1] // s.shape[1] for c, s in zip(box_cls, box_regression, strict=True)]
    scores = [by_place(each, n) for each, n in zip(box_cls, classes, strict=True)]
    shifts = [by_place(each, 4) for each in box_regression]
    return torch.cat(scores, 1).flatten(0, -2), torch.cat(shifts, 1).reshape(-1, 4)


class RegionProposalNetwork(nn.Module):
    """Boxes (K, 4) of each image, and in training the losses "loss_objectness" and
    "loss_rpn_box_reg".

    Args:
        anchor_generator: makes the boxes that proposals begin with.
        head: scores and moves them.
        fg_iou_thresh, bg_iou_thresh: overlap from which, and up to which, a box learns to be a
            thing, or none.
        batch_size_per_image: boxes of an image that learn.
        positive_fraction: share of things among them.
        pre_nms_top_n, post_nms_top_n: dicts of "training" and "testing": boxes that are kept
            before, and after, overlapping ones go.
        nms_thresh: overlap from which the worse of two goes.
        score_thresh: boxes of lower scores go.

    For an example see `vision.models.detection.fasterrcnn_resnet50_fpn`.
    """

    def __init__(
        self,
        anchor_generator: nn.Module,
        head: nn.Module,
        fg_iou_thresh: float,
        bg_iou_thresh: float,
        batch_size_per_image: int,
        positive_fraction: float,
        pre_nms_top_n: dict[str, int],
        post_nms_top_n: dict[str, int],
        nms_thresh: float,
        score_thresh: float = 0.0,
    ) -> None:
        super().__init__()
        self.anchor_generator, self.head = anchor_generator, head
        self.box_coder = _utils.BoxCoder(weights=(1.0, 1.0, 1.0, 1.0))
        self.box_similarity = box_ops.box_iou
        self.proposal_matcher = _utils.Matcher(
            fg_iou_thresh, bg_iou_thresh, allow_low_quality_matches=True
        )
        self.fg_bg_sampler = _utils.BalancedPositiveNegativeSampler(
            batch_size_per_image, positive_fraction
        )
        self._pre_nms_top_n, self._post_nms_top_n = pre_nms_top_n, post_nms_top_n
        self.nms_thresh, self.score_thresh, self.min_size = nms_thresh, score_thresh, 1e-3

    def pre_nms_top_n(self) -> int:
        """How many boxes are kept before overlapping ones go, in this mode."""
        return self._pre_nms_top_n["training" if self.training else "testing"]

    def post_nms_top_n(self) -> int:
        """How many boxes are kept after overlapping ones go, in this mode."""
        return self._post_nms_top_n["training" if self.training else "testing"]

    def assign_targets_to_anchors(
        self, anchors: list[Tensor], targets: list[dict[str, Tensor]]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """For each image, labels (1, 0, -1 for neither) and the true boxes of its anchors."""
        labels, matched = [], []
        for own, target in zip(anchors, targets, strict=True):
            boxes = target["boxes"]
            if boxes.numel() == 0:
                matched.append(torch.zeros_like(own))
                labels.append(own.new_zeros(len(own)))
                continue
            number = self.proposal_matcher(self.box_similarity(boxes, own))
            matched.append(boxes[number.clamp(min=0)])
            label = (number >= 0).to(torch.float32)
            label[number == self.proposal_matcher.BETWEEN_THRESHOLDS] = -1.0
            labels.append(label)
        return labels, matched

    def filter_proposals(
        self,
        proposals: Tensor,
        objectness: Tensor,
        image_shapes: list[tuple[int, int]],
        num_anchors_per_level: list[int],
    ) -> tuple[list[Tensor], list[Tensor]]:
        """The best proposals of each image, the best of each map before, without those that
        overlap better ones.
        """
        objectness = objectness.detach().reshape(len(proposals), -1)
        places, levels, first = [], [], 0
        for level, part in enumerate(objectness.split(num_anchors_per_level, 1)):
            best = part.topk(min(self.pre_nms_top_n(), part.shape[1]), dim=1).indices
            places.append(best + first)
            levels.append(torch.full_like(best, level))
            first += part.shape[1]
        place, level_of = torch.cat(places, 1), torch.cat(levels, 1)
        boxes_found, scores_found = [], []
        for i, shape in enumerate(image_shapes):
            boxes = box_ops.clip_boxes_to_image(proposals[i, place[i]], shape)
            scores, level = objectness[i, place[i]].sigmoid(), level_of[i]
            kept = box_ops.remove_small_boxes(boxes, self.min_size)
            kept = kept[scores[kept] >= self.score_thresh]
            boxes, scores, level = boxes[kept], scores[kept], level[kept]
            kept = box_ops.batched_nms(boxes, scores, level, self.nms_thresh)[
                : self.post_nms_top_n()
            ]
            boxes_found.append(boxes[kept])
            scores_found.append(scores[kept])
        return boxes_found, scores_found

    def compute_loss(
        self,
        objectness: Tensor,
        pred_bbox_deltas: Tensor,
        labels: list[Tensor],
        regression_targets: list[Tensor],
    ) -> tuple[Tensor, Tensor]:
        """Losses of scores and of boxes over a sample of anchors."""
        positive, negative = (torch.cat(m).nonzero().squeeze(1) for m in self.fg_bg_sampler(labels))
        sampled = torch.cat([positive, negative])
        wanted = torch.cat(regression_targets)
        box_loss = F.smooth_l1_loss(
            pred_bbox_deltas[positive], wanted[positive], beta=1 / 9, reduction="sum"
        )
        scores = objectness.flatten()[sampled]
        return (
            F.binary_cross_entropy_with_logits(scores, torch.cat(labels)[sampled]),
            box_loss / sampled.numel(),
        )

    def forward(
        self,
        images: ImageList,
        features: dict[str, Tensor],
        targets: list[dict[str, Tensor]] | None = None,
    ) -> tuple[list[Tensor], dict[str, Tensor]]:
        """Boxes of each image in which something may be, and losses in training."""
        maps = [*features.values()]
        by_map = self.head(maps)
        anchors = self.anchor_generator(images, maps)
        scores, deltas = concat_box_prediction_layers(*by_map)
        found = self.box_coder.decode(deltas.detach(), anchors).view(len(anchors), -1, 4)
        counts = [of_map[0].numel() for of_map in by_map[0]]
        boxes, _ = self.filter_proposals(found, scores, images.image_sizes, counts)
        if not self.training:
            return boxes, {}
        if targets is None:
            raise ValueError("targets should not be None")
        labels, matched = self.assign_targets_to_anchors(anchors, targets)
        wanted = list(self.box_coder.encode(matched, anchors))
        for_score, for_box = self.compute_loss(scores, deltas, labels, wanted)
        return boxes, {"loss_objectness": for_score, "loss_rpn_box_reg": for_box}
