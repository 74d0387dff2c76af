"""SSD (Liu 2015): default boxes on maps of many sizes, learned against the hardest of the rest."""

import math
from collections import OrderedDict
from typing import Any

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor, nn

from .. import vgg
from .._api import builder, weights_enum
from . import _utils
from .anchor_utils import DefaultBoxGenerator
from .one_stage import Found, OneStageDetector, best_of, boxes_to_learn, init_convs
from .rpn import by_place
from .transform import COLOURS, GeneralizedRCNNTransform


class SSDScoringHead(nn.Module):
    """One layer for each map; rows (N, all positions and boxes, num_columns)."""

    def __init__(self, module_list: nn.ModuleList, num_columns: int) -> None:
        super().__init__()
        self.module_list, self.num_columns = module_list, num_columns

    def forward(self, x: list[Tensor]) -> Tensor:
        made = [layer(each) for layer, each in zip(self.module_list, x, strict=True)]
        return torch.cat([by_place(each, self.num_columns) for each in made], 1)


def _convs(in_channels: list[int], num_anchors: list[int], columns: int) -> nn.ModuleList:
    sizes = zip(in_channels, num_anchors, strict=True)
    layers = nn.ModuleList(nn.Conv2d(c, columns * n, 3, padding=1) for c, n in sizes)
    init_convs(layers, nn.init.xavier_uniform_)
    return layers


class SSDClassificationHead(SSDScoringHead):
    """Logits of classes."""

    def __init__(self, in_channels: list[int], num_anchors: list[int], num_classes: int) -> None:
        super().__init__(_convs(in_channels, num_anchors, num_classes), num_classes)


class SSDRegressionHead(SSDScoringHead):
    """Shifts of boxes."""

    def __init__(self, in_channels: list[int], num_anchors: list[int]) -> None:
        super().__init__(_convs(in_channels, num_anchors, 4), 4)


class SSDHead(nn.Module):
    """Layers for classes and layers for boxes."""

    def __init__(self, in_channels: list[int], num_anchors: list[int], num_classes: int) -> None:
        super().__init__()
        self.classification_head = SSDClassificationHead(in_channels, num_anchors, num_classes)
        self.regression_head = SSDRegressionHead(in_channels, num_anchors)

    def forward(self, x: list[Tensor]) -> dict[str, Tensor]:
        return {
            "bbox_regression": self.regression_head(x),
            "cls_logits": self.classification_head(x),
        }


class SSD(OneStageDetector):
    """Boxes of objects and their classes, in images resized to `size` (width, height); class 0 is
    nothing.

    A backbone without a list `out_channels` is asked for its maps once.
    """

    def __init__(
        self,
        backbone: Any,
        anchor_generator: DefaultBoxGenerator,
        size: tuple[int, int],
        num_classes: int,
        image_mean: list[float] | None = None,
        image_std: list[float] | None = None,
        head: nn.Module | None = None,
        score_thresh: float = 0.01,
        nms_thresh: float = 0.45,
        detections_per_img: int = 200,
        iou_thresh: float = 0.5,
        topk_candidates: int = 400,
        positive_fraction: float = 0.25,
        **kwargs: Any,
    ) -> None:
        if head is None:
            channels = getattr(backbone, "out_channels", None)
            channels = channels or _utils.retrieve_out_channels(backbone, size)
            each = anchor_generator.num_anchors_per_location()
            if len(channels) != len(each):
                raise ValueError(
                    f"the backbone's {len(channels)} maps do not match the length of the anchor "
                    f"generator's aspect ratios, {len(each)}"
                )
            head = SSDHead(channels, each, num_classes)
        colours = image_mean or COLOURS[0], image_std or COLOURS[1]
        fitted = {"size_divisible": 1, "fixed_size": size, **kwargs}
        super().__init__(
            *(backbone, anchor_generator, head),
            GeneralizedRCNNTransform(min(size), max(size), *colours, **fitted),
            *(score_thresh, nms_thresh, detections_per_img, topk_candidates),
        )
        self.box_coder = _utils.BoxCoder(weights=(10.0, 10.0, 5.0, 5.0))
        self.proposal_matcher = _utils.SSDMatcher(iou_thresh)
        self.neg_to_pos_ratio = (1.0 - positive_fraction) / positive_fraction

    def compute_loss(
        self,
        targets: list[dict[str, Tensor]],
        head_outputs: dict[str, Tensor],
        anchors: list[Tensor],
        matched_idxs: list[Tensor],
    ) -> dict[str, Tensor]:
        """The losses "bbox_regression" and "classification", over all positive anchors.

        Of the others those count that lose most, neg_to_pos_ratio times as many in each image.
        """
        box_losses, class_losses, count = [], [], 0
        for i, (positive, boxes, classes) in enumerate(boxes_to_learn(targets, matched_idxs)):
            count += len(positive)
            wanted = self.box_coder.encode_single(boxes, anchors[i][positive])
            told = head_outputs["bbox_regression"][i, positive]
            box_losses.append(F.smooth_l1_loss(told, wanted, reduction="sum"))
            labels = torch.zeros_like(matched_idxs[i])
            labels[positive] = classes
            loss = F.cross_entropy(head_outputs["cls_logits"][i], labels, reduction="none")
            things, nothing = loss[labels > 0], loss[labels == 0]
            most = min(math.ceil(self.neg_to_pos_ratio * len(things)), len(nothing))
            class_losses.append(things.sum() + nothing.topk(most).values.sum())
        return {
            "bbox_regression": torch.stack(box_losses).sum() / max(1, count),
            "classification": torch.stack(class_losses).sum() / max(1, count),
        }

    def _losses(
        self,
        targets: list[dict[str, Tensor]],
        outputs: dict[str, Tensor],
        anchors: list[Tensor],
        counts: list[int],
    ) -> dict[str, Tensor]:
        numbers = self.proposal_matcher.match(targets, anchors)
        return self.compute_loss(targets, outputs, anchors, numbers)

    def _scores(self, outputs: dict[str, Tensor]) -> Tensor:
        return outputs["cls_logits"].softmax(-1)

    def _candidates(self, scores: Tensor, counts: list[int]) -> list[Found]:
        """The best anchors of each class but nothing."""
        found: list[Found] = []
        for label in range(1, scores.shape[1]):
            own = scores[:, label]
            place, values = best_of(own, self.score_thresh, self.topk_candidates)
            found.append((place, torch.full_like(place, label), values))
        return found

    def postprocess_detections(
        self,
        head_outputs: dict[str, Tensor],
        image_anchors: list[Tensor],
        image_shapes: list[tuple[int, int]],
    ) -> list[dict[str, Tensor]]:
        """The detections of each image, from the outputs of the head for all of its anchors."""
        return [
            self._detect({k: v[i] for k, v in head_outputs.items()}, own, size, [len(own)])
            for i, (own, size) in enumerate(zip(image_anchors, image_shapes, strict=True))
        ]

    def _postprocess(
        self,
        outputs: dict[str, Tensor],
        anchors: list[Tensor],
        sizes: list[tuple[int, int]],
        counts: list[int],
    ) -> list[dict[str, Tensor]]:
        return self.postprocess_detections(outputs, anchors, sizes)


def _smaller(inputs: int, inside: int, outputs: int, side: int = 3, **how: Any) -> nn.Sequential:
    """A convolution of 1 x 1, then one that makes the map smaller."""
    return nn.Sequential(
        nn.Conv2d(inputs, inside, 1),
        nn.ReLU(inplace=True),
        nn.Conv2d(inside, outputs, side, **how),
        nn.ReLU(inplace=True),
    )


class SSDFeatureExtractorVGG(nn.Module):
    """VGG up to its fourth size, whose pixels are scaled to a learned length, and maps behind it.

    highres: one more map, for images of 512 x 512.
    """

    def __init__(self, backbone: nn.Sequential, highres: bool) -> None:
        super().__init__()
        pools = [i for i, layer in enumerate(backbone) if isinstance(layer, nn.MaxPool2d)]
        backbone[pools[2]].ceil_mode = True  # 75 pixels become 38
        self.scale_weight = nn.Parameter(torch.ones(512) * 20)
        self.features = backbone[: pools[3]]
        halved = {"stride": 2, "padding": 1}
        extra = [_smaller(1024, 256, 512, **halved), _smaller(512, 128, 256, **halved)]
        extra += [_smaller(256, 128, 256), _smaller(256, 128, 256)]
        if highres:
            extra.append(_smaller(256, 128, 256, 4))
        init_convs(nn.ModuleList(extra), nn.init.xavier_uniform_)
        dense = nn.Sequential(
            nn.MaxPool2d(3, 1, 1),
            nn.Conv2d(512, 1024, 3, padding=6, dilation=6),
            nn.ReLU(inplace=True),
            nn.Conv2d(1024, 1024, 1),
            nn.ReLU(inplace=True),
        )
        init_convs(dense, nn.init.xavier_uniform_)
        self.extra = nn.ModuleList([nn.Sequential(*backbone[pools[3] : -1], dense), *extra])

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        reached = self.features(x)
        maps: dict[str, Tensor] = OrderedDict(
            [("0", F.normalize(reached) * self.scale_weight[:, None, None])]
        )
        for step in self.extra:
            reached = step(reached)
            maps[str(len(maps))] = reached
        return maps


def _vgg_extractor(backbone: vgg.VGG, highres: bool, trainable_layers: int) -> nn.Module:
    """Maps of a VGG of which the last trainable_layers sizes are trained."""
    layers: Any = backbone.features
    *pools, _ = (i for i, layer in enumerate(layers) if isinstance(layer, nn.MaxPool2d))
    ends = [len(layers), *reversed(pools), 0]  # of what is not trained, by how much is
    if trainable_layers not in range(len(ends)):
        most = len(ends) - 1
        raise ValueError(f"trainable layers are in the range [0,{most}], got {trainable_layers}")
    layers[: ends[trainable_layers]].requires_grad_(False)
    return SSDFeatureExtractorVGG(layers, highres)


def _on_vgg(
    num_classes: int = 91,
    weights_backbone: Any = "IMAGENET1K_FEATURES",
    trainable_backbone_layers: int | None = None,
    *,
    trained: bool = False,
    **kwargs: Any,
) -> SSD:
    _utils.fixed_size(kwargs)
    trained = trained or weights_backbone is not None
    trainable = _utils.training_layers(trained, trainable_backbone_layers, 5, 4)
    backbone = _vgg_extractor(vgg.vgg16(weights=weights_backbone), False, trainable)
    anchors = DefaultBoxGenerator(
        [[2], [2, 3], [2, 3], [2, 3], [2], [2]],
        scales=[0.07, 0.15, 0.33, 0.51, 0.69, 0.87, 1.05],
        steps=[8, 16, 32, 64, 100, 300],
    )
    # The backbone was trained on colours from 0 to 255, less their mean.
    usual = {"image_mean": [0.48235, 0.45882, 0.40784], "image_std": [1.0 / 255.0] * 3}
    return SSD(backbone, anchors, (300, 300), num_classes, **{**usual, **kwargs})


SSD300_VGG16_Weights = weights_enum("SSD300_VGG16_Weights", __name__)
ssd300_vgg16 = builder(
    "ssd300_vgg16",
    SSD300_VGG16_Weights,
    _on_vgg,
    module=__name__,
    prepare=_utils.whole_weights,
    backbone=vgg.VGG16_Weights.IMAGENET1K_FEATURES,
)

__all__ = ["SSD300_VGG16_Weights", "ssd300_vgg16"]
