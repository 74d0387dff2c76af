"""GoogLeNet, to be quantised, in float forms."""

from typing import Any

from ..googlenet import BasicConv2d, GoogLeNet, Inception, InceptionAux
from .utils import Quantizable, make


class QuantizableBasicConv2d(Quantizable, BasicConv2d):
    """`BasicConv2d` with `fuse_model`."""


class QuantizableInception(Inception):
    """`Inception`, of quantisable blocks."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, conv_block=QuantizableBasicConv2d, **kwargs)


class QuantizableInceptionAux(InceptionAux):
    """`InceptionAux`, of quantisable blocks."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, conv_block=QuantizableBasicConv2d, **kwargs)


class QuantizableGoogLeNet(Quantizable, GoogLeNet):
    """`GoogLeNet` with `fuse_model`, of quantisable blocks.

    Args:
        args, kwargs: those of `GoogLeNet`.

    For an example see `vision.models.quantization.googlenet`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(
            *args,
            blocks=[QuantizableBasicConv2d, QuantizableInception, QuantizableInceptionAux],
            **kwargs,
        )


_KINDS: dict[type, type] = {
    BasicConv2d: QuantizableBasicConv2d,
    Inception: QuantizableInception,
    InceptionAux: QuantizableInceptionAux,
    GoogLeNet: QuantizableGoogLeNet,
}
GoogLeNet_QuantizedWeights, googlenet = make("GoogLeNet", _KINDS, __name__)

__all__ = [
    "GoogLeNet_QuantizedWeights",
    "QuantizableGoogLeNet",
    "googlenet",
]
