"""RetinaNet (Lin 2017): anchors with a focal loss, in which easy examples count less."""

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor, nn

from ...ops._shared import rename_layers
from ...ops.feature_pyramid_network import LastLevelP6P7
from ...ops.losses import generalized_box_iou_loss, sigmoid_focal_loss
from ...ops.misc import Conv2dNormActivation
from .. import resnet
from .._api import Made, builder, weights_enum
from .._utils import normal
from . import _utils
from .anchor_utils import AnchorGenerator
from .backbone_utils import resnet50_pyramid
from .one_stage import OneStageDetector, boxes_to_learn, init_convs
from .rpn import by_place
from .transform import COLOURS, GeneralizedRCNNTransform

_Norm = Callable[..., nn.Module] | None


class _Tower(nn.Module):
    """Four convolutions, and what a last one makes of them."""

    _version = 2

    def __init__(self, channels: int, norm_layer: _Norm) -> None:
        super().__init__()
        layers = (Conv2dNormActivation(channels, channels, norm_layer=norm_layer) for _ in range(4))
        self.conv = nn.Sequential(*layers)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *args, **kwargs):
        # Older checkpoints have convolutions and activations in one Sequential.
        names = [(f"conv.{2 * i}", f"conv.{i}.0") for i in range(4)]
        rename_layers(state_dict, prefix, local_metadata, names)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args, **kwargs)


class RetinaNetClassificationHead(_Tower):
    """Logits of each map, (N, positions * anchors, classes); initially of a small probability."""

    def __init__(
        self,
        in_channels: int,
        num_anchors: int,
        num_classes: int,
        prior_probability: float = 0.01,
        norm_layer: _Norm = None,
    ) -> None:
        super().__init__(in_channels, norm_layer)
        init_convs(self.conv, normal(0.01))
        self.cls_logits = nn.Conv2d(in_channels, num_anchors * num_classes, 3, padding=1)
        init_convs(self.cls_logits, normal(0.01))
        nn.init.constant_(self.cls_logits.bias, -math.log(1 / prior_probability - 1))
        self.num_classes, self.num_anchors = num_classes, num_anchors

    def compute_loss(
        self,
        targets: list[dict[str, Tensor]],
        head_outputs: dict[str, Tensor],
        matched_idxs: list[Tensor],
    ) -> Tensor:
        """The focal loss of all anchors that are not between the thresholds, over the positive
        ones.
        """
        losses = []
        for (positive, _, labels), logits, number in zip(
            boxes_to_learn(targets, matched_idxs),
            head_outputs["cls_logits"],
            matched_idxs,
            strict=True,
        ):
            wanted = torch.zeros_like(logits)
            wanted[positive, labels] = 1.0
            used = number != _utils.Matcher.BETWEEN_THRESHOLDS
            loss = sigmoid_focal_loss(logits[used], wanted[used], reduction="sum")
            losses.append(loss / max(1, len(positive)))
        return torch.stack(losses).sum() / len(targets)

    def forward(self, x: list[Tensor]) -> Tensor:
        logits = [self.cls_logits(self.conv(each)) for each in x]
        return torch.cat([by_place(each, self.num_classes) for each in logits], 1)


class RetinaNetRegressionHead(_Tower):
    """Box deltas of each map, (N, positions * anchors, 4)."""

    def __init__(self, in_channels: int, num_anchors: int, norm_layer: _Norm = None) -> None:
        super().__init__(in_channels, norm_layer)
        self.bbox_reg = nn.Conv2d(in_channels, num_anchors * 4, 3, padding=1)
        for part in (self.bbox_reg, self.conv):
            init_convs(part, normal(0.01))
        self.box_coder = _utils.BoxCoder(weights=(1.0, 1.0, 1.0, 1.0))
        self._loss_type = "l1"

    def _loss(self, told: Tensor, anchors: Tensor, boxes: Tensor) -> Tensor:
        if self._loss_type == "giou":
            found = self.box_coder.decode_single(told, anchors)
            return generalized_box_iou_loss(found, boxes, reduction="sum")
        return F.l1_loss(told, self.box_coder.encode_single(boxes, anchors), reduction="sum")

    def compute_loss(
        self,
        targets: list[dict[str, Tensor]],
        head_outputs: dict[str, Tensor],
        anchors: list[Tensor],
        matched_idxs: list[Tensor],
    ) -> Tensor:
        """Loss of the boxes of positive anchors."""
        losses = []
        for (positive, boxes, _), told, own in zip(
            boxes_to_learn(targets, matched_idxs),
            head_outputs["bbox_regression"],
            anchors,
            strict=True,
        ):
            losses.append(self._loss(told[positive], own[positive], boxes) / max(1, len(positive)))
        return torch.stack(losses).sum() / len(targets)

    def forward(self, x: list[Tensor]) -> Tensor:
        return torch.cat([by_place(self.bbox_reg(self.conv(each)), 4) for each in x], 1)


class RetinaNetHead(nn.Module):
    """A tower for classes and one for boxes, shared by all maps."""

    def __init__(
        self, in_channels: int, num_anchors: int, num_classes: int, norm_layer: _Norm = None
    ) -> None:
        super().__init__()
        self.classification_head = RetinaNetClassificationHead(
            in_channels, num_anchors, num_classes, norm_layer=norm_layer
        )
        self.regression_head = RetinaNetRegressionHead(in_channels, num_anchors, norm_layer)

    def compute_loss(
        self,
        targets: list[dict[str, Tensor]],
        head_outputs: dict[str, Tensor],
        anchors: list[Tensor],
        matched_idxs: list[Tensor],
    ) -> dict[str, Tensor]:
        classes, boxes = self.classification_head, self.regression_head
        return {
            "classification": classes.compute_loss(targets, head_outputs, matched_idxs),
            "bbox_regression": boxes.compute_loss(targets, head_outputs, anchors, matched_idxs),
        }

    def forward(self, x: list[Tensor]) -> dict[str, Tensor]:
        return {
            "cls_logits": self.classification_head(x),
            "bbox_regression": self.regression_head(x),
        }


def _default_anchorgen() -> AnchorGenerator:
    """Three sizes within each octave."""
    sizes = [32, 64, 128, 256, 512]
    octaves = tuple((s, int(s * 2 ** (1.0 / 3)), int(s * 2 ** (2.0 / 3))) for s in sizes)
    return AnchorGenerator(octaves, ((0.5, 1.0, 2.0),) * 5)


class RetinaNet(OneStageDetector):
    """RetinaNet: boxes of objects and their classes; class 0 is the background. The backbone has
    `out_channels`.

    Args:
        backbone: gives maps of an image; it has `out_channels`.
        num_classes: classes, with the background.
        min_size: the shorter side of images, which are resized; several: one is drawn in training.
        max_size: the longer side at most.
        image_mean, image_std: of the channels; those of ImageNet if None.
        anchor_generator: makes the boxes that are scored and moved.
        head: scores and moves them.
        proposal_matcher: says which box learns which thing.
        score_thresh: boxes of lower scores go.
        nms_thresh: overlap from which the worse of two boxes of a class goes.
        detections_per_img: boxes of an image at most.
        fg_iou_thresh, bg_iou_thresh: overlap with a thing from which, and up to which, a box learns
            to be one, or none.
        topk_candidates: boxes of a map that are looked at, the best ones.
        kwargs: those of `GeneralizedRCNNTransform`.

    For an example see `vision.models.detection.retinanet_resnet50_fpn`.
    """

    def __init__(
        self,
        backbone: Any,
        num_classes: int,
        min_size: Any = 800,
        max_size: int = 1333,
        image_mean: list[float] | None = None,
        image_std: list[float] | None = None,
        anchor_generator: AnchorGenerator | None = None,
        head: nn.Module | None = None,
        proposal_matcher: _utils.Matcher | None = None,
        score_thresh: float = 0.05,
        nms_thresh: float = 0.5,
        detections_per_img: int = 300,
        fg_iou_thresh: float = 0.5,
        bg_iou_thresh: float = 0.4,
        topk_candidates: int = 1000,
        **kwargs: Any,
    ) -> None:
        anchors = _utils.checked_anchors(backbone, anchor_generator) or _default_anchorgen()
        if head is None:
            each = anchors.num_anchors_per_location()[0]
            head = RetinaNetHead(backbone.out_channels, each, num_classes)
        colours = image_mean or COLOURS[0], image_std or COLOURS[1]
        super().__init__(
            *(backbone, anchors, head),
            GeneralizedRCNNTransform(min_size, max_size, *colours, **kwargs),
            *(score_thresh, nms_thresh, detections_per_img, topk_candidates),
        )
        self.proposal_matcher = proposal_matcher or _utils.Matcher(
            fg_iou_thresh, bg_iou_thresh, allow_low_quality_matches=True
        )
        self.box_coder = _utils.BoxCoder(weights=(1.0, 1.0, 1.0, 1.0))

    def compute_loss(
        self,
        targets: list[dict[str, Tensor]],
        head_outputs: dict[str, Tensor],
        anchors: list[Tensor],
    ) -> dict[str, Tensor]:
        """The losses "classification" and "bbox_regression"."""
        numbers = self.proposal_matcher.match(targets, anchors)
        return self.head.compute_loss(targets, head_outputs, anchors, numbers)

    def _losses(
        self,
        targets: list[dict[str, Tensor]],
        outputs: dict[str, Tensor],
        anchors: list[Tensor],
        counts: list[int],
    ) -> dict[str, Tensor]:
        return self.compute_loss(targets, outputs, anchors)


def _on_resnet(
    version: int,
    num_classes: int = 91,
    weights_backbone: Any = "IMAGENET1K_V1",
    trainable_backbone_layers: int | None = None,
    *,
    trained: bool = False,
    **kwargs: Any,
) -> RetinaNet:
    backbone = resnet50_pyramid(
        weights_backbone,
        trained,
        trainable_backbone_layers,
        nn.BatchNorm2d if version == 2 else None,
        returned_layers=[2, 3, 4],
        extra=partial(LastLevelP6P7, 2048 if version == 2 else 256, 256),
    )
    if version == 2:
        anchors = _default_anchorgen()
        each, norm = anchors.num_anchors_per_location()[0], partial(nn.GroupNorm, 32)
        head = RetinaNetHead(backbone.out_channels, each, num_classes, norm_layer=norm)
        head.regression_head._loss_type = "giou"
        kwargs = {"anchor_generator": anchors, "head": head, **kwargs}
    return RetinaNet(backbone, num_classes, **kwargs)


def _prepare(weights: Any, kwargs: dict[str, Any]) -> Callable[[Any], None] | None:
    _utils.whole_weights(weights, kwargs)
    return partial(_utils.overwrite_eps, eps=0.0) if weights is not None else None


def _make(version: int) -> Made[RetinaNet]:
    suffix = "_v2" if version == 2 else ""
    weights = weights_enum(f"RetinaNet_ResNet50_FPN{suffix.upper()}_Weights", __name__)
    name = f"retinanet_resnet50_fpn{suffix}"
    backbone = None if version == 2 else resnet.ResNet50_Weights.IMAGENET1K_V1
    return weights, builder(
        *(name, weights, _on_resnet, version),
        module=__name__,
        prepare=_prepare,
        backbone=backbone,
    )


RetinaNet_ResNet50_FPN_Weights, retinanet_resnet50_fpn = _make(1)
RetinaNet_ResNet50_FPN_V2_Weights, retinanet_resnet50_fpn_v2 = _make(2)

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = ["RetinaNet", *(n for n in dir() if n.startswith(("RetinaNet_", "retinanet_")))]
