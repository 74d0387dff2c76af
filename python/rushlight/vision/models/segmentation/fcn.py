"""Fully convolutional networks (Long 2014) on dilated residual networks."""

from collections.abc import Callable
from typing import Any

from .. import resnet
from .._api import builder, weights_enum
from ._base import FCNHead, _SimpleSegmentationModel, body, prepare_with_aux


class FCN(_SimpleSegmentationModel):
    """A backbone and `FCNHead`.

    Args:
        backbone: gives a dict of maps: "out", and "aux" if there is a second classifier.
        classifier: makes classes of "out".
        aux_classifier: makes classes of "aux", for training.

    For an example see `vision.models.segmentation.fcn_resnet50`.
    """


def on_resnet(
    model: Callable[..., Any],
    head: Callable[..., Any],
    backbone: Callable[..., Any],
    num_classes: int = 21,
    aux_loss: bool | None = None,
    weights_backbone: Any = "IMAGENET1K_V1",
) -> Any:
    """A segmentation model on a ResNet whose last two stages are dilated."""
    network = backbone(weights=weights_backbone, replace_stride_with_dilation=[False, True, True])
    maps = body(network, {"layer4": "out", **({"layer3": "aux"} if aux_loss else {})})
    second = FCNHead(1024, num_classes) if aux_loss else None
    return model(maps, head(2048, num_classes), second)


FCN_ResNet50_Weights = weights_enum("FCN_ResNet50_Weights", __name__)
FCN_ResNet101_Weights = weights_enum("FCN_ResNet101_Weights", __name__)
_how: dict[str, Any] = {"module": __name__, "prepare": prepare_with_aux}
fcn_resnet50: Callable[..., FCN] = builder(
    "fcn_resnet50",
    FCN_ResNet50_Weights,
    on_resnet,
    FCN,
    FCNHead,
    resnet.resnet50,
    **_how,
    backbone=resnet.ResNet50_Weights.IMAGENET1K_V1,
)
fcn_resnet101: Callable[..., FCN] = builder(
    "fcn_resnet101",
    FCN_ResNet101_Weights,
    on_resnet,
    FCN,
    FCNHead,
    resnet.resnet101,
    **_how,
    backbone=resnet.ResNet101_Weights.IMAGENET1K_V1,
)

__all__ = ["FCN", "FCN_ResNet50_Weights", "FCN_ResNet101_Weights", "fcn_resnet50", "fcn_resnet101"]
