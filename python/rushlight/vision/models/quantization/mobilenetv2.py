"""MobileNet v2, to be quantised, in float forms."""

from ..mobilenetv2 import InvertedResidual, MobileNetV2
from .utils import Quantizable, make


class QuantizableInvertedResidual(Quantizable, InvertedResidual):
    """`InvertedResidual` with `fuse_model`."""


class QuantizableMobileNetV2(Quantizable, MobileNetV2):
    """`MobileNetV2` with `fuse_model`.

    For an example see `vision.models.quantization.mobilenet_v2`.
    """


_KINDS: dict[type, type] = {
    InvertedResidual: QuantizableInvertedResidual,
    MobileNetV2: QuantizableMobileNetV2,
}
MobileNet_V2_QuantizedWeights, mobilenet_v2 = make("MobileNet_V2", _KINDS, __name__)

__all__ = [
    "MobileNet_V2_QuantizedWeights",
    "QuantizableMobileNetV2",
    "mobilenet_v2",
]
