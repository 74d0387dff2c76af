"""SSDLite (Sandler 2018): `SSD` of depthwise convolutions on a MobileNet."""

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

from rushlight import Tensor, nn

from ...ops.misc import Conv2dNormActivation
from .. import mobilenetv3
from .._api import builder, weights_enum
from .._utils import normal
from . import _utils
from .anchor_utils import DefaultBoxGenerator
from .backbone_utils import frozen_mobilenet
from .one_stage import init_convs
from .ssd import SSD, SSDScoringHead

_Norm = Callable[..., nn.Module]


def _depthwise(channels: int, norm: _Norm, **how: Any) -> nn.Module:
    return Conv2dNormActivation(
        *(channels, channels), groups=channels, norm_layer=norm, activation_layer=nn.ReLU6, **how
    )


def _layers(
    in_channels: list[int], num_anchors: list[int], columns: int, norm: _Norm
) -> nn.ModuleList:
    layers = nn.ModuleList(
        nn.Sequential(_depthwise(c, norm), nn.Conv2d(c, columns * n, 1))
        for c, n in zip(in_channels, num_anchors, strict=True)
    )
    init_convs(layers, normal(0.03))
    return layers


class SSDLiteClassificationHead(SSDScoringHead):
    """Logits of the classes."""

    def __init__(
        self, in_channels: list[int], num_anchors: list[int], num_classes: int, norm_layer: _Norm
    ) -> None:
        layers = _layers(in_channels, num_anchors, num_classes, norm_layer)
        super().__init__(layers, num_classes)


class SSDLiteRegressionHead(SSDScoringHead):
    """Box deltas."""

    def __init__(self, in_channels: list[int], num_anchors: list[int], norm_layer: _Norm) -> None:
        super().__init__(_layers(in_channels, num_anchors, 4, norm_layer), 4)


class SSDLiteHead(nn.Module):
    """A head for classes and a head for boxes."""

    def __init__(
        self, in_channels: list[int], num_anchors: list[int], num_classes: int, norm_layer: _Norm
    ) -> None:
        super().__init__()
        self.classification_head = SSDLiteClassificationHead(
            in_channels, num_anchors, num_classes, norm_layer
        )
        self.regression_head = SSDLiteRegressionHead(in_channels, num_anchors, norm_layer)

    def forward(self, x: list[Tensor]) -> dict[str, Tensor]:
        return {
            "bbox_regression": self.regression_head(x),
            "cls_logits": self.classification_head(x),
        }


def _smaller(inputs: int, outputs: int, norm: _Norm) -> nn.Sequential:
    """Half the size, in half the channels."""
    point: Any = partial(
        Conv2dNormActivation, kernel_size=1, norm_layer=norm, activation_layer=nn.ReLU6
    )
    inside = outputs // 2
    middle = _depthwise(inside, norm, stride=2)
    return nn.Sequential(point(inputs, inside), middle, point(inside, outputs))


class SSDLiteFeatureExtractorMobileNet(nn.Module):
    """A MobileNet cut behind the first convolution of block c4_pos, and four maps behind it."""

    def __init__(
        self,
        backbone: Any,
        c4_pos: int,
        norm_layer: _Norm,
        width_mult: float = 1.0,
        min_depth: int = 16,
    ) -> None:
        super().__init__()
        block: Any = backbone[c4_pos].block
        self.features = nn.Sequential(
            nn.Sequential(*backbone[:c4_pos], block[0]),
            nn.Sequential(block[1:], *backbone[c4_pos + 1 :]),
        )
        widths = [max(min_depth, int(depth * width_mult)) for depth in (512, 256, 256, 128)]
        inputs = [backbone[-1].out_channels, *widths]
        self.extra = nn.ModuleList(
            _smaller(i, o, norm_layer) for i, o in zip(inputs, widths, strict=False)
        )
        init_convs(self.extra, normal(0.03))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        maps = []
        for layer in (*self.features, *self.extra):
            x = layer(x)
            maps.append(x)
        return OrderedDict([(str(i), m) for i, m in enumerate(maps)])


def _on_mobilenet(
    num_classes: int = 91,
    weights_backbone: Any = "IMAGENET1K_V1",
    trainable_backbone_layers: int | None = None,
    norm_layer: _Norm | None = None,
    *,
    trained: bool = False,
    **kwargs: Any,
) -> SSD:
    _utils.fixed_size(kwargs)
    # Without trained weights the last layers have half the channels.
    reduced = weights_backbone is None
    trained = trained or weights_backbone is not None
    trainable = _utils.training_layers(trained, trainable_backbone_layers, 6, 6)
    norm: _Norm = norm_layer or partial(nn.BatchNorm2d, eps=0.001, momentum=0.03)
    network = mobilenetv3.mobilenet_v3_large(
        weights=weights_backbone, norm_layer=norm, reduced_tail=reduced
    )
    if weights_backbone is None:
        init_convs(network, normal(0.03))
    ends = frozen_mobilenet(network.features, trainable)
    backbone = SSDLiteFeatureExtractorMobileNet(network.features, ends[-2], norm)
    size = 320, 320
    anchors = DefaultBoxGenerator([[2, 3]] * 6, min_ratio=0.2, max_ratio=0.95)
    channels = _utils.retrieve_out_channels(backbone, size)
    head = SSDLiteHead(channels, anchors.num_anchors_per_location(), num_classes, norm)
    usual = {
        "score_thresh": 0.001,
        "nms_thresh": 0.55,
        "detections_per_img": 300,
        "topk_candidates": 300,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    }
    return SSD(backbone, anchors, size, num_classes, head=head, **{**usual, **kwargs})


SSDLite320_MobileNet_V3_Large_Weights = weights_enum(
    "SSDLite320_MobileNet_V3_Large_Weights", __name__
)
ssdlite320_mobilenet_v3_large = builder(
    "ssdlite320_mobilenet_v3_large",
    SSDLite320_MobileNet_V3_Large_Weights,
    _on_mobilenet,
    module=__name__,
    prepare=_utils.whole_weights,
    backbone=mobilenetv3.MobileNet_V3_Large_Weights.IMAGENET1K_V1,
)

__all__ = ["SSDLite320_MobileNet_V3_Large_Weights", "ssdlite320_mobilenet_v3_large"]
