"""FCOS (Tian 2019): each position of a map predicts the distances to the sides of its box."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor, nn

from ...ops.boxes import box_area
from ...ops.feature_pyramid_network import LastLevelP6P7
from ...ops.losses import generalized_box_iou_loss, sigmoid_focal_loss
from .. import resnet
from .._api import builder, weights_enum
from .._utils import normal
from . import _utils
from .anchor_utils import AnchorGenerator
from .backbone_utils import resnet50_pyramid
from .one_stage import OneStageDetector, boxes_to_learn, init_convs
from .rpn import by_place
from .transform import COLOURS, GeneralizedRCNNTransform

_Norm = Callable[..., nn.Module] | None


def _tower(channels: int, count: int, norm_layer: _Norm) -> nn.Sequential:
    norm = norm_layer or partial(nn.GroupNorm, 32)
    layers: list[nn.Module] = []
    for _ in range(count):
        layers += [nn.Conv2d(channels, channels, 3, padding=1), norm(channels), nn.ReLU()]
    return nn.Sequential(*layers)


class FCOSClassificationHead(nn.Module):
    """Logits of each map, (N, positions * anchors, classes); initially of a small probability."""

    def __init__(
        self,
        in_channels: int,
        num_anchors: int,
        num_classes: int,
        num_convs: int = 4,
        prior_probability: float = 0.01,
        norm_layer: _Norm = None,
    ) -> None:
        super().__init__()
        self.num_classes, self.num_anchors = num_classes, num_anchors
        self.conv = _tower(in_channels, num_convs, norm_layer)
        init_convs(self.conv, normal(0.01))
        self.cls_logits = nn.Conv2d(in_channels, num_anchors * num_classes, 3, padding=1)
        init_convs(self.cls_logits, normal(0.01))
        nn.init.constant_(self.cls_logits.bias, -math.log(1 / prior_probability - 1))

    def forward(self, x: list[Tensor]) -> Tensor:
        logits = [self.cls_logits(self.conv(each)) for each in x]
        return torch.cat([by_place(each, self.num_classes) for each in logits], 1)


class FCOSRegressionHead(nn.Module):
    """For each map, distances of sides (N, positions * anchors, 4), and logits (…, 1) of how near
    the centre a position is.
    """

    def __init__(
        self, in_channels: int, num_anchors: int, num_convs: int = 4, norm_layer: _Norm = None
    ) -> None:
        super().__init__()
        self.conv = _tower(in_channels, num_convs, norm_layer)
        self.bbox_reg = nn.Conv2d(in_channels, num_anchors * 4, 3, padding=1)
        self.bbox_ctrness = nn.Conv2d(in_channels, num_anchors, 3, padding=1)
        for part in (self.bbox_reg, self.bbox_ctrness, self.conv):
            init_convs(part, normal(0.01))

    def forward(self, x: list[Tensor]) -> tuple[Tensor, Tensor]:
        hidden = [self.conv(each) for each in x]
        sides = [by_place(F.relu(self.bbox_reg(h)), 4) for h in hidden]
        middles = [by_place(self.bbox_ctrness(h), 1) for h in hidden]
        return torch.cat(sides, 1), torch.cat(middles, 1)


class FCOSHead(nn.Module):
    """A tower for classes and one for boxes, shared by all maps."""

    def __init__(
        self, in_channels: int, num_anchors: int, num_classes: int, num_convs: int = 4
    ) -> None:
        super().__init__()
        self.box_coder = _utils.BoxLinearCoder(normalize_by_size=True)
        self.classification_head = FCOSClassificationHead(
            in_channels, num_anchors, num_classes, num_convs
        )
        self.regression_head = FCOSRegressionHead(in_channels, num_anchors, num_convs)

    def compute_loss(
        self,
        targets: list[dict[str, Tensor]],
        head_outputs: dict[str, Tensor],
        anchors: list[Tensor],
        matched_idxs: list[Tensor],
    ) -> dict[str, Tensor]:
        """The losses over positions that have a box."""
        logits = head_outputs["cls_logits"]
        wanted = torch.zeros_like(logits)
        true, own, image, place = [], [], [], []
        for i, (positive, boxes, labels) in enumerate(boxes_to_learn(targets, matched_idxs)):
            wanted[i, positive, labels] = 1.0
            true.append(boxes)
            own.append(anchors[i][positive])
            image.append(torch.full_like(positive, i))
            place.append(positive)
        images, places = torch.cat(image), torch.cat(place)
        boxes, around = torch.cat(true), torch.cat(own)
        found = self.box_coder.decode(head_outputs["bbox_regression"][images, places], around)
        nearness = head_outputs["bbox_ctrness"][images, places].squeeze(1)
        before, after = self.box_coder.encode(around, boxes).split(2, 1)
        near = torch.minimum(before, after) / torch.maximum(before, after)
        losses = {
            "classification": sigmoid_focal_loss(logits, wanted, reduction="sum"),
            "bbox_regression": generalized_box_iou_loss(found, boxes, reduction="sum"),
            "bbox_ctrness": F.binary_cross_entropy_with_logits(
                nearness, near.prod(1).sqrt(), reduction="sum"
            ),
        }
        return {name: loss / max(1, len(boxes)) for name, loss in losses.items()}

    def forward(self, x: list[Tensor]) -> dict[str, Tensor]:
        logits = self.classification_head(x)
        sides, middles = self.regression_head(x)
        return {"cls_logits": logits, "bbox_regression": sides, "bbox_ctrness": middles}


class FCOS(OneStageDetector):
    """FCOS: boxes of objects and their classes; class 0 is the background. The backbone has
    `out_channels`.

    A position learns the smallest box around it whose centre is at most center_sampling_radius
    positions away and whose sides are at distances that its map is for.

    It has the arguments of `RetinaNet`, but for those of overlap.

    Args:
        center_sampling_radius: how many positions from its centre a box is learnt.

    For an example see `vision.models.detection.fcos_resnet50_fpn`.
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
        center_sampling_radius: float = 1.5,
        score_thresh: float = 0.2,
        nms_thresh: float = 0.6,
        detections_per_img: int = 100,
        topk_candidates: int = 1000,
        **kwargs: Any,
    ) -> None:
        anchors = _utils.checked_anchors(backbone, anchor_generator)
        if anchors is None:
            anchors = AnchorGenerator(((8,), (16,), (32,), (64,), (128,)), ((1.0,),) * 5)
        each = anchors.num_anchors_per_location()[0]
        if each != 1:
            raise AssertionError(f"FCOS wants one anchor at each place, not {each}")
        head = head or FCOSHead(backbone.out_channels, each, num_classes)
        colours = image_mean or COLOURS[0], image_std or COLOURS[1]
        super().__init__(
            *(backbone, anchors, head),
            GeneralizedRCNNTransform(min_size, max_size, *colours, **kwargs),
            *(score_thresh, nms_thresh, detections_per_img, topk_candidates),
        )
        self.box_coder = _utils.BoxLinearCoder(normalize_by_size=True)
        self.center_sampling_radius = center_sampling_radius

    def _match(self, boxes: Tensor, anchors: Tensor, counts: list[int]) -> Tensor:
        """The box that each position learns, or -1."""
        if len(boxes) == 0:
            return torch.full((len(anchors),), -1, dtype=torch.int64, device=anchors.device)
        middle = ((anchors[:, :2] + anchors[:, 2:]) / 2)[:, None]
        side = (anchors[:, 2] - anchors[:, 0])[:, None]
        sides = torch.cat((middle - boxes[:, :2], boxes[:, 2:] - middle), 2)
        away = (middle - (boxes[:, :2] + boxes[:, 2:]) / 2).abs().amax(2)
        # Each map is for boxes of a size; the first for all smaller, the last for all larger ones.
        least, most = side * 4, side * 8
        least[: counts[0]] = 0
        most[-counts[-1] :] = math.inf
        farthest = sides.amax(2)
        fits = (away < self.center_sampling_radius * side) & (sides.amin(2) > 0)
        fits &= (farthest > least) & (farthest < most)
        area = torch.where(fits, box_area(boxes), math.inf).min(1)
        return area.indices.masked_fill(area.values.isinf(), -1)

    def compute_loss(
        self,
        targets: list[dict[str, Tensor]],
        head_outputs: dict[str, Tensor],
        anchors: list[Tensor],
        num_anchors_per_level: list[int],
    ) -> dict[str, Tensor]:
        """The losses "classification", "bbox_regression" and "bbox_ctrness"."""
        numbers = [
            self._match(target["boxes"], own, num_anchors_per_level)
            for target, own in zip(targets, anchors, strict=True)
        ]
        return self.head.compute_loss(targets, head_outputs, anchors, numbers)

    def _losses(
        self,
        targets: list[dict[str, Tensor]],
        outputs: dict[str, Tensor],
        anchors: list[Tensor],
        counts: list[int],
    ) -> dict[str, Tensor]:
        return self.compute_loss(targets, outputs, anchors, counts)

    def _scores(self, outputs: dict[str, Tensor]) -> Tensor:
        return (outputs["cls_logits"].sigmoid() * outputs["bbox_ctrness"].sigmoid()).sqrt()

    def _decode(self, codes: Tensor, anchors: Tensor) -> Tensor:
        return self.box_coder.decode(codes, anchors)


def _on_resnet(
    num_classes: int = 91,
    weights_backbone: Any = "IMAGENET1K_V1",
    trainable_backbone_layers: int | None = None,
    *,
    trained: bool = False,
    **kwargs: Any,
) -> FCOS:
    backbone = resnet50_pyramid(
        *(weights_backbone, trained, trainable_backbone_layers),
        returned_layers=[2, 3, 4],
        extra=partial(LastLevelP6P7, 256, 256),
    )
    return FCOS(backbone, num_classes, **kwargs)


FCOS_ResNet50_FPN_Weights = weights_enum("FCOS_ResNet50_FPN_Weights", __name__)
fcos_resnet50_fpn = builder(
    "fcos_resnet50_fpn",
    FCOS_ResNet50_FPN_Weights,
    _on_resnet,
    module=__name__,
    prepare=_utils.whole_weights,
    backbone=resnet.ResNet50_Weights.IMAGENET1K_V1,
)

__all__ = ["FCOS", "FCOS_ResNet50_FPN_Weights", "fcos_resnet50_fpn"]
