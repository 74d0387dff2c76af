"""What segmentation models share: the size of the result, and backbones without their last
layers.
"""

from collections import OrderedDict
from typing import Any

import rushlight.nn.functional as F
from rushlight import Tensor, nn

from .._api import overwrite
from .._utils import IntermediateLayerGetter


class _SimpleSegmentationModel(nn.Module):
    """Images (N, 3, H, W) to a dict of scores (N, num_classes, H, W): "out", and "aux" of a
    second head.
    """

    def __init__(
        self, backbone: nn.Module, classifier: nn.Module, aux_classifier: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.classifier = classifier
        self.aux_classifier = aux_classifier

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        size = x.shape[-2:]
        maps = self.backbone(x)
        out: dict[str, Tensor] = OrderedDict()
        for name, head in (("out", self.classifier), ("aux", self.aux_classifier)):
            if head is not None:
                out[name] = F.interpolate(
                    head(maps[name]), size=size, mode="bilinear", align_corners=False
                )
        return out


class FCNHead(nn.Sequential):
    """A convolution of 3 x 3 to a quarter of the channels, and one of 1 x 1 to scores."""

    def __init__(self, in_channels: int, channels: int) -> None:
        inside = in_channels // 4
        super().__init__(
            nn.Conv2d(in_channels, inside, 3, padding=1, bias=False),
            nn.BatchNorm2d(inside),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Conv2d(inside, channels, 1),
        )


def ends_of_sizes(layers: nn.Sequential) -> list[int]:
    """Numbers of the layers of a MobileNet that halve the size, the first and the last among
    them.
    """
    inner = [i for i, layer in enumerate(layers) if getattr(layer, "_is_cn", False)]
    return [0, *inner, len(layers) - 1]


def body(model: nn.Module, names: dict[str, str]) -> IntermediateLayerGetter:
    """A backbone's maps: {layer: name}."""
    return IntermediateLayerGetter(model, names)


def prepare(weights: Any, kwargs: dict[str, Any]) -> None:
    """Trained weights bring those of the backbone and, where the model has one, of the second
    head.
    """
    if weights is None:
        if kwargs.get("num_classes") is None:
            kwargs["num_classes"] = 21
        return
    kwargs["weights_backbone"] = None


def prepare_with_aux(weights: Any, kwargs: dict[str, Any]) -> None:
    """`prepare` for models that may have a second head."""
    prepare(weights, kwargs)
    if weights is not None:
        overwrite(kwargs, "aux_loss", True)
