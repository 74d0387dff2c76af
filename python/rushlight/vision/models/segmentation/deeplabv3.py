"""DeepLab v3 (Chen 2017): dilated convolutions of several rates in parallel."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor, nn

from .. import mobilenetv3, resnet
from .._api import builder, weights_enum
from ._base import FCNHead, _SimpleSegmentationModel, body, ends_of_sizes, prepare_with_aux
from .fcn import on_resnet


def _conv(inputs: int, outputs: int, side: int = 1, dilation: int = 1) -> list[nn.Module]:
    padding = dilation if side == 3 else 0
    conv = nn.Conv2d(inputs, outputs, side, padding=padding, dilation=dilation, bias=False)
    return [conv, nn.BatchNorm2d(outputs), nn.ReLU()]


class ASPPConv(nn.Sequential):
    """A dilated 3 x 3 convolution."""

    def __init__(self, in_channels: int, out_channels: int, dilation: int) -> None:
        super().__init__(*_conv(in_channels, out_channels, 3, dilation))


class ASPPPooling(nn.Sequential):
    """The mean of the image at every position."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(nn.AdaptiveAvgPool2d(1), *_conv(in_channels, out_channels))

    def forward(self, x: Tensor) -> Tensor:
        size = x.shape[-2:]
        return F.interpolate(super().forward(x), size=size, mode="bilinear", align_corners=False)


class ASPP(nn.Module):
    """Dilated convolutions of several rates and the image's mean in parallel, then projected."""

    def __init__(
        self, in_channels: int, atrous_rates: Sequence[int], out_channels: int = 256
    ) -> None:
        super().__init__()
        self.convs = nn.ModuleList(
            [
                nn.Sequential(*_conv(in_channels, out_channels)),
                *(ASPPConv(in_channels, out_channels, rate) for rate in atrous_rates),
                ASPPPooling(in_channels, out_channels),
            ]
        )
        self.project = nn.Sequential(
            *_conv(len(self.convs) * out_channels, out_channels), nn.Dropout(0.5)
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.project(torch.cat([conv(x) for conv in self.convs], dim=1))


class DeepLabHead(nn.Sequential):
    """`ASPP`, a convolution of 3 x 3, and one of 1 x 1 to scores."""

    def __init__(
        self, in_channels: int, num_classes: int, atrous_rates: Sequence[int] = (12, 24, 36)
    ) -> None:
        super().__init__(
            ASPP(in_channels, atrous_rates), *_conv(256, 256, 3), nn.Conv2d(256, num_classes, 1)
        )


class DeepLabV3(_SimpleSegmentationModel):
    """A backbone and `DeepLabHead`.

    Args:
        backbone: gives a dict of maps: "out", and "aux" if there is a second classifier.
        classifier: makes classes of "out".
        aux_classifier: makes classes of "aux", for training.

    For an example see `vision.models.segmentation.deeplabv3_resnet50`.
    """


def _on_mobilenet(
    num_classes: int = 21, aux_loss: bool | None = None, weights_backbone: Any = "IMAGENET1K_V1"
) -> DeepLabV3:
    layers = mobilenetv3.mobilenet_v3_large(weights=weights_backbone, dilated=True).features
    ends = ends_of_sizes(layers)
    last, middle = ends[-1], ends[-4]
    maps = body(layers, {str(last): "out", **({str(middle): "aux"} if aux_loss else {})})
    second = FCNHead(layers[middle].out_channels, num_classes) if aux_loss else None
    return DeepLabV3(maps, DeepLabHead(layers[last].out_channels, num_classes), second)


DeepLabV3_ResNet50_Weights = weights_enum("DeepLabV3_ResNet50_Weights", __name__)
DeepLabV3_ResNet101_Weights = weights_enum("DeepLabV3_ResNet101_Weights", __name__)
DeepLabV3_MobileNet_V3_Large_Weights = weights_enum(
    "DeepLabV3_MobileNet_V3_Large_Weights", __name__
)
_how: dict[str, Any] = {"module": __name__, "prepare": prepare_with_aux}
_what = DeepLabV3, DeepLabHead
deeplabv3_resnet50: Callable[..., DeepLabV3] = builder(
    "deeplabv3_resnet50",
    DeepLabV3_ResNet50_Weights,
    on_resnet,
    *_what,
    resnet.resnet50,
    **_how,
    backbone=resnet.ResNet50_Weights.IMAGENET1K_V1,
)
deeplabv3_resnet101: Callable[..., DeepLabV3] = builder(
    "deeplabv3_resnet101",
    DeepLabV3_ResNet101_Weights,
    on_resnet,
    *_what,
    resnet.resnet101,
    **_how,
    backbone=resnet.ResNet101_Weights.IMAGENET1K_V1,
)
deeplabv3_mobilenet_v3_large = builder(
    "deeplabv3_mobilenet_v3_large",
    DeepLabV3_MobileNet_V3_Large_Weights,
    _on_mobilenet,
    **_how,
    backbone=mobilenetv3.MobileNet_V3_Large_Weights.IMAGENET1K_V1,
)

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [
        *["DeepLabV3", "DeepLabV3_ResNet50_Weights", "DeepLabV3_ResNet101_Weights"],
        *["DeepLabV3_MobileNet_V3_Large_Weights", "deeplabv3_resnet50", "deeplabv3_resnet101"],
        "deeplabv3_mobilenet_v3_large",
    ]
