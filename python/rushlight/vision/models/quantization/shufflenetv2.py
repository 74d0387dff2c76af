"""ShuffleNet v2, to be quantised, in float forms."""

from ..shufflenetv2 import InvertedResidual, ShuffleNetV2
from .utils import Quantizable, make


class QuantizableInvertedResidual(InvertedResidual):
    """`InvertedResidual`."""


class QuantizableShuffleNetV2(Quantizable, ShuffleNetV2):
    """`ShuffleNetV2` with `fuse_model`.

    For an example see `vision.models.quantization.shufflenet_v2_x0_5`.
    """


_KINDS: dict[type, type] = {
    InvertedResidual: QuantizableInvertedResidual,
    ShuffleNetV2: QuantizableShuffleNetV2,
}
ShuffleNet_V2_X0_5_QuantizedWeights, shufflenet_v2_x0_5 = make(
    "ShuffleNet_V2_X0_5", _KINDS, __name__
)
ShuffleNet_V2_X1_0_QuantizedWeights, shufflenet_v2_x1_0 = make(
    "ShuffleNet_V2_X1_0", _KINDS, __name__
)
ShuffleNet_V2_X1_5_QuantizedWeights, shufflenet_v2_x1_5 = make(
    "ShuffleNet_V2_X1_5", _KINDS, __name__
)
ShuffleNet_V2_X2_0_QuantizedWeights, shufflenet_v2_x2_0 = make(
    "ShuffleNet_V2_X2_0", _KINDS, __name__
)

__all__ = [
    "QuantizableShuffleNetV2",
    "ShuffleNet_V2_X0_5_QuantizedWeights",
    "ShuffleNet_V2_X1_0_QuantizedWeights",
    "ShuffleNet_V2_X1_5_QuantizedWeights",
    "ShuffleNet_V2_X2_0_QuantizedWeights",
    "shufflenet_v2_x0_5",
    "shufflenet_v2_x1_0",
    "shufflenet_v2_x1_5",
    "shufflenet_v2_x2_0",
]
