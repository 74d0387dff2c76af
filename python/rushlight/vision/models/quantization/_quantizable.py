"""Networks under the names of their quantised forms: they compute in floats, take the float forms'
weights, and merge normalisations into convolutions.
"""

from itertools import pairwise
from typing import Any

from rushlight import nn
from rushlight.nn.utils.fusion import fuse_conv_bn_eval

from .._api import get_model_builder, get_weight, register, weights_enum
from ..googlenet import GoogLeNet
from ..inception import Inception3
from ..mobilenetv2 import MobileNetV2
from ..mobilenetv3 import MobileNetV3
from ..resnet import ResNet
from ..shufflenetv2 import ShuffleNetV2


def fuse_convolutions(model: nn.Module) -> None:
    """Merges each batch normalisation into the convolution before it, where it leaves an Identity.

    RuntimeError in training, where both still change.
    """
    if model.training:
        raise RuntimeError("fuse_model wants a model in evaluation: call eval() before")
    for module in list(model.modules()):
        children = list(module.named_children())
        for (first, conv), (second, norm) in pairwise(children):
            fits = isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d)
            if fits and conv.out_channels == norm.num_features:
                setattr(module, first, fuse_conv_bn_eval(conv, norm))
                setattr(module, second, nn.Identity())


class _Quantizable(nn.Module):
    def fuse_model(self, is_qat: bool | None = None) -> None:
        """`fuse_convolutions`; NotImplementedError for training that knows of quantisation."""
        if is_qat:
            raise NotImplementedError("training that knows of quantisation is not supported")
        fuse_convolutions(self)


class QuantizableGoogLeNet(_Quantizable, GoogLeNet):
    """`GoogLeNet` with `fuse_model`."""


class QuantizableInception3(_Quantizable, Inception3):
    """`Inception3` with `fuse_model`."""


class QuantizableMobileNetV2(_Quantizable, MobileNetV2):
    """`MobileNetV2` with `fuse_model`."""


class QuantizableMobileNetV3(_Quantizable, MobileNetV3):
    """`MobileNetV3` with `fuse_model`."""


class QuantizableResNet(_Quantizable, ResNet):
    """`ResNet` with `fuse_model`."""


class QuantizableShuffleNetV2(_Quantizable, ShuffleNetV2):
    """`ShuffleNetV2` with `fuse_model`."""


def _make(title: str, kind: type[_Quantizable]) -> tuple[Any, Any]:
    weights = weights_enum(f"{title}_QuantizedWeights", __name__)
    for member in weights:
        member.meta["unquantized"] = get_weight(member.meta["unquantized"])
    name = title.lower()
    plain = get_model_builder(name)

    def build(
        *, weights: Any = None, progress: bool = True, quantize: bool = False, **kwargs: Any
    ) -> Any:
        if quantize:
            raise NotImplementedError(
                f"{name}: quantised arithmetic is not supported; quantize=False gives floats"
            )
        model = plain(weights=weights, progress=progress, **kwargs)
        model.__class__ = kind  # which adds functions alone
        return model

    build.__name__ = build.__qualname__ = name
    build.__module__ = __name__
    build.__doc__ = f"The float form of {name}: its weights or None, and its arguments."
    return weights, register(f"quantized_{name}", build, weights)


GoogLeNet_QuantizedWeights, googlenet = _make("GoogLeNet", QuantizableGoogLeNet)
Inception_V3_QuantizedWeights, inception_v3 = _make("Inception_V3", QuantizableInception3)
MobileNet_V2_QuantizedWeights, mobilenet_v2 = _make("MobileNet_V2", QuantizableMobileNetV2)
MobileNet_V3_Large_QuantizedWeights, mobilenet_v3_large = _make(
    "MobileNet_V3_Large", QuantizableMobileNetV3
)
ResNet18_QuantizedWeights, resnet18 = _make("ResNet18", QuantizableResNet)
ResNet50_QuantizedWeights, resnet50 = _make("ResNet50", QuantizableResNet)
ResNeXt101_32X8D_QuantizedWeights, resnext101_32x8d = _make("ResNeXt101_32X8D", QuantizableResNet)
ResNeXt101_64X4D_QuantizedWeights, resnext101_64x4d = _make("ResNeXt101_64X4D", QuantizableResNet)
ShuffleNet_V2_X0_5_QuantizedWeights, shufflenet_v2_x0_5 = _make(
    "ShuffleNet_V2_X0_5", QuantizableShuffleNetV2
)
ShuffleNet_V2_X1_0_QuantizedWeights, shufflenet_v2_x1_0 = _make(
    "ShuffleNet_V2_X1_0", QuantizableShuffleNetV2
)
ShuffleNet_V2_X1_5_QuantizedWeights, shufflenet_v2_x1_5 = _make(
    "ShuffleNet_V2_X1_5", QuantizableShuffleNetV2
)
ShuffleNet_V2_X2_0_QuantizedWeights, shufflenet_v2_x2_0 = _make(
    "ShuffleNet_V2_X2_0", QuantizableShuffleNetV2
)

__all__ = [
    *["googlenet", "inception_v3", "mobilenet_v2", "mobilenet_v3_large", "resnet18", "resnet50"],
    *(n for n in dir() if n.startswith(("Quantizable", "resnext", "shufflenet_"))),
    *(n for n in dir() if n.endswith("_QuantizedWeights")),
]
