"""MobileNet v3, to be quantised, in float forms."""

from typing import Any

from rushlight import nn

from ...ops.misc import SqueezeExcitation
from ..mobilenetv3 import InvertedResidual, MobileNetV3
from .utils import Quantizable, make


class QuantizableSqueezeExcitation(Quantizable, SqueezeExcitation):
    """`SqueezeExcitation` with `fuse_model`, of quantisable blocks."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, scale_activation=nn.Hardsigmoid, **kwargs)


class QuantizableInvertedResidual(InvertedResidual):
    """`InvertedResidual`, of quantisable blocks."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, se_layer=QuantizableSqueezeExcitation, **kwargs)


class QuantizableMobileNetV3(Quantizable, MobileNetV3):
    """`MobileNetV3` with `fuse_model`.

    For an example see `vision.models.quantization.mobilenet_v3_large`.
    """


_KINDS: dict[type, type] = {
    SqueezeExcitation: QuantizableSqueezeExcitation,
    InvertedResidual: QuantizableInvertedResidual,
    MobileNetV3: QuantizableMobileNetV3,
}
MobileNet_V3_Large_QuantizedWeights, mobilenet_v3_large = make(
    "MobileNet_V3_Large", _KINDS, __name__
)

__all__ = [
    "MobileNet_V3_Large_QuantizedWeights",
    "QuantizableMobileNetV3",
    "mobilenet_v3_large",
]
