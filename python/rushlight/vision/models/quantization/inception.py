"""Inception v3, to be quantised, in float forms."""

from typing import Any

from ..inception import (
    BasicConv2d,
    Inception3,
    InceptionA,
    InceptionAux,
    InceptionB,
    InceptionC,
    InceptionD,
    InceptionE,
)
from .utils import Quantizable, make


class QuantizableBasicConv2d(Quantizable, BasicConv2d):
    """`BasicConv2d` with `fuse_model`."""


class QuantizableInceptionA(InceptionA):
    """`InceptionA`, of quantisable blocks."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, conv_block=QuantizableBasicConv2d, **kwargs)


class QuantizableInceptionB(InceptionB):
    """`InceptionB`, of quantisable blocks."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, conv_block=QuantizableBasicConv2d, **kwargs)


class QuantizableInceptionC(InceptionC):
    """`InceptionC`, of quantisable blocks."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, conv_block=QuantizableBasicConv2d, **kwargs)


class QuantizableInceptionD(InceptionD):
    """`InceptionD`, of quantisable blocks."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, conv_block=QuantizableBasicConv2d, **kwargs)


class QuantizableInceptionE(InceptionE):
    """`InceptionE`, of quantisable blocks."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, conv_block=QuantizableBasicConv2d, **kwargs)


class QuantizableInceptionAux(InceptionAux):
    """`InceptionAux`, of quantisable blocks."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, conv_block=QuantizableBasicConv2d, **kwargs)


class QuantizableInception3(Quantizable, Inception3):
    """`Inception3` with `fuse_model`, of quantisable blocks.

    Args:
        args, kwargs: those of `Inception3`.

    For an example see `vision.models.quantization.inception_v3`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(
            *args,
            inception_blocks=[
                QuantizableBasicConv2d,
                QuantizableInceptionA,
                QuantizableInceptionB,
                QuantizableInceptionC,
                QuantizableInceptionD,
                QuantizableInceptionE,
                QuantizableInceptionAux,
            ],
            **kwargs,
        )


_KINDS: dict[type, type] = {
    BasicConv2d: QuantizableBasicConv2d,
    InceptionA: QuantizableInceptionA,
    InceptionB: QuantizableInceptionB,
    InceptionC: QuantizableInceptionC,
    InceptionD: QuantizableInceptionD,
    InceptionE: QuantizableInceptionE,
    InceptionAux: QuantizableInceptionAux,
    Inception3: QuantizableInception3,
}
Inception_V3_QuantizedWeights, inception_v3 = make("Inception_V3", _KINDS, __name__)

__all__ = [
    "Inception_V3_QuantizedWeights",
    "QuantizableInception3",
    "inception_v3",
]
