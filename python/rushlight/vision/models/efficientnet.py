"""EfficientNet (Tan and Le 2019) and EfficientNet v2 (2021)."""

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from rushlight import Tensor, nn

from ..ops.dropping import StochasticDepth
from ..ops.misc import Conv2dNormActivation, SqueezeExcitation
from ._api import Made, builder, weights_enum
from ._utils import _make_divisible, init_by_fan_out, init_layers


@dataclass
class _MBConvConfig:
    expand_ratio: float
    kernel: int
    stride: int
    input_channels: int
    out_channels: int
    num_layers: int
    block: Callable[..., nn.Module]

    @staticmethod
    def adjust_channels(channels: int, width_mult: float, min_value: int | None = None) -> int:
        return _make_divisible(channels * width_mult, 8, min_value)


class _Residual(nn.Module):
    """Layers whose result is dropped at times and added to the input where the shape is kept."""

    def __init__(self, cnf: _MBConvConfig, layers: list[nn.Module], drop_prob: float) -> None:
        super().__init__()
        self.use_res_connect = cnf.stride == 1 and cnf.input_channels == cnf.out_channels
        self.block = nn.Sequential(*layers)
        self.stochastic_depth = StochasticDepth(drop_prob, "row")
        self.out_channels = cnf.out_channels

    def forward(self, input: Tensor) -> Tensor:
        result = self.block(input)
        return self.stochastic_depth(result) + input if self.use_res_connect else result


class MBConv(_Residual):
    """Expansion, depthwise convolution, squeeze and excitation, projection."""

    def __init__(
        self,
        cnf: _MBConvConfig,
        stochastic_depth_prob: float,
        norm_layer: Callable[..., nn.Module],
        se_layer: Callable[..., nn.Module] = SqueezeExcitation,
    ) -> None:
        inside = cnf.adjust_channels(cnf.input_channels, cnf.expand_ratio)
        how: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": nn.SiLU}
        layers: list[nn.Module] = []
        if inside != cnf.input_channels:
            layers.append(Conv2dNormActivation(cnf.input_channels, inside, 1, **how))
        layers.append(
            Conv2dNormActivation(inside, inside, cnf.kernel, cnf.stride, groups=inside, **how)
        )
        layers.append(
            se_layer(
                inside, max(1, cnf.input_channels // 4), activation=partial(nn.SiLU, inplace=True)
            )
        )
        layers.append(
            Conv2dNormActivation(
                inside, cnf.out_channels, 1, norm_layer=norm_layer, activation_layer=None
            )
        )
        super().__init__(cnf, layers, stochastic_depth_prob)


class FusedMBConv(_Residual):
    """Expansion by a full convolution, projection."""

    def __init__(
        self, cnf: _MBConvConfig, stochastic_depth_prob: float, norm_layer: Callable[..., nn.Module]
    ) -> None:
        inside = cnf.adjust_channels(cnf.input_channels, cnf.expand_ratio)
        widened = inside != cnf.input_channels
        layers: list[nn.Module] = [
            Conv2dNormActivation(
                cnf.input_channels,
                inside if widened else cnf.out_channels,
                cnf.kernel,
                cnf.stride,
                norm_layer=norm_layer,
                activation_layer=nn.SiLU,
            )
        ]
        if widened:
            layers.append(
                Conv2dNormActivation(
                    inside, cnf.out_channels, 1, norm_layer=norm_layer, activation_layer=None
                )
            )
        super().__init__(cnf, layers, stochastic_depth_prob)


class MBConvConfig(_MBConvConfig):
    """A stage of `MBConv` blocks, whose channels and number are multiplied."""

    def __init__(
        self,
        expand_ratio: float,
        kernel: int,
        stride: int,
        input_channels: int,
        out_channels: int,
        num_layers: int,
        width_mult: float = 1.0,
        depth_mult: float = 1.0,
        block: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__(
            *(expand_ratio, kernel, stride),
            self.adjust_channels(input_channels, width_mult),
            self.adjust_channels(out_channels, width_mult),
            self.adjust_depth(num_layers, depth_mult),
            block or MBConv,
        )

    @staticmethod
    def adjust_depth(num_layers: int, depth_mult: float) -> int:
        return math.ceil(num_layers * depth_mult)


class FusedMBConvConfig(_MBConvConfig):
    """A stage of `FusedMBConv` blocks."""

    def __init__(
        self,
        expand_ratio: float,
        kernel: int,
        stride: int,
        input_channels: int,
        out_channels: int,
        num_layers: int,
        block: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__(
            *(expand_ratio, kernel, stride, input_channels, out_channels, num_layers),
            block or FusedMBConv,
        )


class EfficientNet(nn.Module):
    """Images (N, 3, H, W) to scores (N, num_classes), by stages of a list of settings.

    Args:
        inverted_residual_setting: a `MBConvConfig` or `FusedMBConvConfig` for each stage.
        dropout: the probability with which numbers before the last layer become 0.
        stochastic_depth_prob: the probability with which the last block is left out in training;
            those before it are at less.
        num_classes: how many scores there are.
        norm_layer: makes a normalisation; None: `nn.BatchNorm2d`.
        last_channel: channels before the last layer; None: four times those of the last stage.

    Raises:
        ValueError: there are no stages.
        TypeError: the stages are no list of settings.

    Example:
        >>> from rushlight.vision.models.efficientnet import MBConvConfig
        >>> stages = [MBConvConfig(1, 3, 1, 8, 8, 1), MBConvConfig(4, 3, 2, 8, 16, 2)]
        >>> net = torch.vision.models.EfficientNet(stages, dropout=0.1, num_classes=3)
        >>> net(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 3])
    """

    def __init__(
        self,
        inverted_residual_setting: Sequence[_MBConvConfig],
        dropout: float,
        stochastic_depth_prob: float = 0.2,
        num_classes: int = 1000,
        norm_layer: Callable[..., nn.Module] | None = None,
        last_channel: int | None = None,
    ) -> None:
        super().__init__()
        settings = inverted_residual_setting
        if not settings:
            raise ValueError("The inverted_residual_setting should not be empty")
        if not (
            isinstance(settings, Sequence) and all(isinstance(s, _MBConvConfig) for s in settings)
        ):
            raise TypeError("The inverted_residual_setting should be List[MBConvConfig]")
        norm_layer = norm_layer or nn.BatchNorm2d
        how: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": nn.SiLU}
        layers: list[nn.Module] = [Conv2dNormActivation(3, settings[0].input_channels, 3, 2, **how)]
        total = sum(s.num_layers for s in settings)
        number = 0
        for setting in settings:
            stage = []
            for i in range(setting.num_layers):
                block = copy(setting)
                if i > 0:
                    block.input_channels, block.stride = block.out_channels, 1
                stage.append(
                    block.block(block, stochastic_depth_prob * float(number) / total, norm_layer)
                )
                number += 1
            layers.append(nn.Sequential(*stage))
        before = settings[-1].out_channels
        last = 4 * before if last_channel is None else last_channel
        layers.append(Conv2dNormActivation(before, last, 1, **how))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout, inplace=True), nn.Linear(last, num_classes)
        )
        init_layers(self, linear=init_by_fan_out)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


# Widening, side, stride, channels before and after, blocks.
_V1 = [
    *[(1, 3, 1, 32, 16, 1), (6, 3, 2, 16, 24, 2), (6, 5, 2, 24, 40, 2), (6, 3, 2, 40, 80, 3)],
    *[(6, 5, 1, 80, 112, 3), (6, 5, 2, 112, 192, 4), (6, 3, 1, 192, 320, 1)],
]
# Of the second generation, fused stages and the others.
_V2 = {
    "s": (
        [(1, 3, 1, 24, 24, 2), (4, 3, 2, 24, 48, 4), (4, 3, 2, 48, 64, 4)],
        [(4, 3, 2, 64, 128, 6), (6, 3, 1, 128, 160, 9), (6, 3, 2, 160, 256, 15)],
    ),
    "m": (
        [(1, 3, 1, 24, 24, 3), (4, 3, 2, 24, 48, 5), (4, 3, 2, 48, 80, 5)],
        [
            (4, 3, 2, 80, 160, 7),
            (6, 3, 1, 160, 176, 14),
            (6, 3, 2, 176, 304, 18),
            (6, 3, 1, 304, 512, 5),
        ],
    ),
    "l": (
        [(1, 3, 1, 32, 32, 4), (4, 3, 2, 32, 64, 7), (4, 3, 2, 64, 96, 7)],
        [
            (4, 3, 2, 96, 192, 10),
            (6, 3, 1, 192, 224, 19),
            (6, 3, 2, 224, 384, 25),
            (6, 3, 1, 384, 640, 7),
        ],
    ),
}


def _v1(
    width_mult: float, depth_mult: float, dropout: float, narrow: bool, **kwargs: Any
) -> EfficientNet:
    stages = [MBConvConfig(*stage, width_mult=width_mult, depth_mult=depth_mult) for stage in _V1]
    if narrow:
        kwargs.setdefault("norm_layer", partial(nn.BatchNorm2d, eps=0.001, momentum=0.01))
    return EfficientNet(stages, kwargs.pop("dropout", dropout), **kwargs)


def _v2(size: str, dropout: float, **kwargs: Any) -> EfficientNet:
    fused, others = _V2[size]
    stages = [
        *(FusedMBConvConfig(*stage) for stage in fused),
        *(MBConvConfig(*stage) for stage in others),
    ]
    kwargs.setdefault("norm_layer", partial(nn.BatchNorm2d, eps=1e-03))
    return EfficientNet(stages, kwargs.pop("dropout", dropout), last_channel=1280, **kwargs)


def _make(size: str, make: Callable[..., EfficientNet], *settings: Any) -> Made[EfficientNet]:
    weights = weights_enum(f"EfficientNet_{size.upper()}_Weights", __name__)
    return weights, builder(f"efficientnet_{size}", weights, make, *settings, module=__name__)


EfficientNet_B0_Weights, efficientnet_b0 = _make("b0", _v1, 1.0, 1.0, 0.2, False)
EfficientNet_B1_Weights, efficientnet_b1 = _make("b1", _v1, 1.0, 1.1, 0.2, False)
EfficientNet_B2_Weights, efficientnet_b2 = _make("b2", _v1, 1.1, 1.2, 0.3, False)
EfficientNet_B3_Weights, efficientnet_b3 = _make("b3", _v1, 1.2, 1.4, 0.3, False)
EfficientNet_B4_Weights, efficientnet_b4 = _make("b4", _v1, 1.4, 1.8, 0.4, False)
EfficientNet_B5_Weights, efficientnet_b5 = _make("b5", _v1, 1.6, 2.2, 0.4, True)
EfficientNet_B6_Weights, efficientnet_b6 = _make("b6", _v1, 1.8, 2.6, 0.5, True)
EfficientNet_B7_Weights, efficientnet_b7 = _make("b7", _v1, 2.0, 3.1, 0.5, True)
EfficientNet_V2_S_Weights, efficientnet_v2_s = _make("v2_s", _v2, "s", 0.2)
EfficientNet_V2_M_Weights, efficientnet_v2_m = _make("v2_m", _v2, "m", 0.3)
EfficientNet_V2_L_Weights, efficientnet_v2_l = _make("v2_l", _v2, "l", 0.4)

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [name for name in dir() if name.lower().startswith("efficient")]
