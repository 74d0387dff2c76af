"""Lite R-ASPP (Howard 2019): scores of a small map, weighed by the image's mean, added to those
of a large one.
"""

from collections import OrderedDict
from typing import Any

import rushlight.nn.functional as F
from rushlight import Tensor, nn

from .. import mobilenetv3
from .._api import builder, weights_enum
from ._base import body, ends_of_sizes, prepare


def _as_large_as(other: Tensor, x: Tensor) -> Tensor:
    return F.interpolate(x, size=other.shape[-2:], mode="bilinear", align_corners=False)


class LRASPPHead(nn.Module):
    """Scores from a large map, "low", and a small one, "high"."""

    def __init__(
        self, low_channels: int, high_channels: int, num_classes: int, inter_channels: int
    ) -> None:
        super().__init__()
        self.cbr = nn.Sequential(
            nn.Conv2d(high_channels, inter_channels, 1, bias=False),
            nn.BatchNorm2d(inter_channels),
            nn.ReLU(inplace=True),
        )
        self.scale = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(high_channels, inter_channels, 1, bias=False),
            nn.Sigmoid(),
        )
        self.low_classifier = nn.Conv2d(low_channels, num_classes, 1)
        self.high_classifier = nn.Conv2d(inter_channels, num_classes, 1)

    def forward(self, input: dict[str, Tensor]) -> Tensor:
        low, high = input["low"], input["high"]
        wide = _as_large_as(low, self.cbr(high) * self.scale(high))
        return self.low_classifier(low) + self.high_classifier(wide)


class LRASPP(nn.Module):
    """Images (N, 3, H, W) to {"out": scores (N, num_classes, H, W)}.

    Args:
        backbone: gives a dict of maps: "low" and "high".
        low_channels: channels of "low".
        high_channels: channels of "high".
        num_classes: classes, with the background.
        inter_channels: channels between.

    For an example see `vision.models.segmentation.lraspp_mobilenet_v3_large`.
    """

    def __init__(
        self,
        backbone: nn.Module,
        low_channels: int,
        high_channels: int,
        num_classes: int,
        inter_channels: int = 128,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.classifier = LRASPPHead(low_channels, high_channels, num_classes, inter_channels)

    def forward(self, input: Tensor) -> dict[str, Tensor]:
        scores = self.classifier(self.backbone(input))
        size = input.shape[-2:]
        return OrderedDict(
            out=F.interpolate(scores, size=size, mode="bilinear", align_corners=False)
        )


def _on_mobilenet(
    num_classes: int = 21, weights_backbone: Any = "IMAGENET1K_V1", **kwargs: Any
) -> LRASPP:
    layers = mobilenetv3.mobilenet_v3_large(weights=weights_backbone, dilated=True).features
    ends = ends_of_sizes(layers)
    channels = layers[ends[-4]].out_channels, layers[ends[-1]].out_channels
    maps = body(layers, {str(ends[-4]): "low", str(ends[-1]): "high"})
    return LRASPP(maps, *channels, num_classes, **kwargs)


LRASPP_MobileNet_V3_Large_Weights = weights_enum("LRASPP_MobileNet_V3_Large_Weights", __name__)
lraspp_mobilenet_v3_large = builder(
    "lraspp_mobilenet_v3_large",
    LRASPP_MobileNet_V3_Large_Weights,
    _on_mobilenet,
    module=__name__,
    prepare=prepare,
    backbone=mobilenetv3.MobileNet_V3_Large_Weights.IMAGENET1K_V1,
)

__all__ = ["LRASPP", "LRASPP_MobileNet_V3_Large_Weights", "lraspp_mobilenet_v3_large"]
