"""Residual networks, to be quantised, in float forms."""

from ..resnet import BasicBlock, Bottleneck, ResNet
from .utils import Quantizable, make


class QuantizableBasicBlock(Quantizable, BasicBlock):
    """`BasicBlock` with `fuse_model`."""


class QuantizableBottleneck(Quantizable, Bottleneck):
    """`Bottleneck` with `fuse_model`."""


class QuantizableResNet(Quantizable, ResNet):
    """`ResNet` with `fuse_model`.

    For an example see `vision.models.quantization.resnet18`.
    """


_KINDS: dict[type, type] = {
    BasicBlock: QuantizableBasicBlock,
    Bottleneck: QuantizableBottleneck,
    ResNet: QuantizableResNet,
}
ResNet18_QuantizedWeights, resnet18 = make("ResNet18", _KINDS, __name__)
ResNet50_QuantizedWeights, resnet50 = make("ResNet50", _KINDS, __name__)
ResNeXt101_32X8D_QuantizedWeights, resnext101_32x8d = make("ResNeXt101_32X8D", _KINDS, __name__)
ResNeXt101_64X4D_QuantizedWeights, resnext101_64x4d = make("ResNeXt101_64X4D", _KINDS, __name__)

__all__ = [
    "QuantizableResNet",
    "ResNeXt101_32X8D_QuantizedWeights",
    "ResNeXt101_64X4D_QuantizedWeights",
    "ResNet18_QuantizedWeights",
    "ResNet50_QuantizedWeights",
    "resnet18",
    "resnet50",
    "resnext101_32x8d",
    "resnext101_64x4d",
]
