"""MobileNet v3 (Howard 2019)."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from rushlight import Tensor, nn

from ..ops.misc import Conv2dNormActivation
from ..ops.misc import SqueezeExcitation as _SqueezeExcitation
from ._api import builder, weights_enum
from ._utils import _make_divisible, init_layers, normal

SqueezeExcitation = partial(_SqueezeExcitation, scale_activation=nn.Hardsigmoid)


class InvertedResidualConfig:
    """A block: channels before, inside and after it, side, whether channels are weighed,
    activation, stride.
    """

    def __init__(
        self,
        input_channels: int,
        kernel: int,
        expanded_channels: int,
        out_channels: int,
        use_se: bool,
        activation: str,
        stride: int,
        dilation: int,
        width_mult: float,
    ) -> None:
        self.input_channels = self.adjust_channels(input_channels, width_mult)
        self.kernel = kernel
        self.expanded_channels = self.adjust_channels(expanded_channels, width_mult)
        self.out_channels = self.adjust_channels(out_channels, width_mult)
        self.use_se, self.use_hs = use_se, activation == "HS"
        self.stride, self.dilation = stride, dilation

    @staticmethod
    def adjust_channels(channels: int, width_mult: float) -> int:
        return _make_divisible(channels * width_mult, 8)


class InvertedResidual(nn.Module):
    """Expansion, depthwise convolution, squeeze and excitation, projection; added to the input if
    the shapes agree.
    """

    def __init__(
        self,
        cnf: InvertedResidualConfig,
        norm_layer: Callable[..., nn.Module],
        se_layer: Callable[..., nn.Module] = SqueezeExcitation,
    ) -> None:
        super().__init__()
        if not 1 <= cnf.stride <= 2:
            raise ValueError("illegal stride value")
        inside = cnf.expanded_channels
        how: dict[str, Any] = {
            "norm_layer": norm_layer,
            "activation_layer": nn.Hardswish if cnf.use_hs else nn.ReLU,
        }
        layers: list[nn.Module] = []
        if inside != cnf.input_channels:
            layers.append(Conv2dNormActivation(cnf.input_channels, inside, 1, **how))
        stride = 1 if cnf.dilation > 1 else cnf.stride
        layers.append(
            Conv2dNormActivation(
                inside, inside, cnf.kernel, stride, dilation=cnf.dilation, groups=inside, **how
            )
        )
        if cnf.use_se:
            layers.append(se_layer(inside, _make_divisible(inside // 4, 8)))
        layers.append(
            Conv2dNormActivation(
                inside, cnf.out_channels, 1, norm_layer=norm_layer, activation_layer=None
            )
        )
        self.block = nn.Sequential(*layers)
        self.use_res_connect = cnf.stride == 1 and cnf.input_channels == cnf.out_channels
        self.out_channels, self._is_cn = cnf.out_channels, cnf.stride > 1

    def forward(self, input: Tensor) -> Tensor:
        return self.block(input) + input if self.use_res_connect else self.block(input)


class MobileNetV3(nn.Module):
    """Images (N, 3, H, W) to scores (N, num_classes), by blocks of a list of settings.

    Args:
        inverted_residual_setting: an `InvertedResidualConfig` for each block.
        last_channel: numbers before the last layer.
        num_classes: how many scores there are.
        block: makes a block; None: `InvertedResidual`.
        norm_layer: makes a normalisation; None: `nn.BatchNorm2d` with an epsilon of 0.001.
        dropout: the probability with which numbers before the last layer become 0.
        kwargs: nothing; is accepted for torchvision's sake.

    Raises:
        ValueError: the setting is empty.
        TypeError: the setting is no list of settings.

    Example:
        >>> from rushlight.vision.models.mobilenetv3 import InvertedResidualConfig
        >>> blocks = [InvertedResidualConfig(16, 3, 16, 16, True, "RE", 2, 1, 1.0)]
        >>> net = torch.vision.models.MobileNetV3(blocks, last_channel=64, num_classes=3)
        >>> net(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 3])
    """

    def __init__(
        self,
        inverted_residual_setting: list[InvertedResidualConfig],
        last_channel: int,
        num_classes: int = 1000,
        block: Callable[..., nn.Module] | None = None,
        norm_layer: Callable[..., nn.Module] | None = None,
        dropout: float = 0.2,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if not inverted_residual_setting:
            raise ValueError("The inverted_residual_setting should not be empty")
        if not all(isinstance(s, InvertedResidualConfig) for s in inverted_residual_setting):
            raise TypeError("The inverted_residual_setting should be List[InvertedResidualConfig]")
        block = block or InvertedResidual
        norm_layer = norm_layer or partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)
        how: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": nn.Hardswish}
        first, last = (
            inverted_residual_setting[0].input_channels,
            inverted_residual_setting[-1].out_channels,
        )
        self.features = nn.Sequential(
            Conv2dNormActivation(3, first, 3, 2, **how),
            *(block(setting, norm_layer) for setting in inverted_residual_setting),
            Conv2dNormActivation(last, 6 * last, 1, **how),
        )
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Linear(6 * last, last_channel),
            nn.Hardswish(inplace=True),
            nn.Dropout(p=dropout, inplace=True),
            nn.Linear(last_channel, num_classes),
        )
        init_layers(self, linear=normal(0.01))

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


# Side, channels inside and after, weighed, activation, stride; from the block named on, the tail:
# channels that may be halved and strides that may become dilation.
_LARGE = [
    *[(3, 16, 16, False, "RE", 1), (3, 64, 24, False, "RE", 2), (3, 72, 24, False, "RE", 1)],
    *[(5, 72, 40, True, "RE", 2), (5, 120, 40, True, "RE", 1), (5, 120, 40, True, "RE", 1)],
    *[(3, 240, 80, False, "HS", 2), (3, 200, 80, False, "HS", 1), (3, 184, 80, False, "HS", 1)],
    *[(3, 184, 80, False, "HS", 1), (3, 480, 112, True, "HS", 1), (3, 672, 112, True, "HS", 1)],
    *[(5, 672, 160, True, "HS", 2), (5, 960, 160, True, "HS", 1), (5, 960, 160, True, "HS", 1)],
]
_SMALL = [
    *[(3, 16, 16, True, "RE", 2), (3, 72, 24, False, "RE", 2), (3, 88, 24, False, "RE", 1)],
    *[(5, 96, 40, True, "HS", 2), (5, 240, 40, True, "HS", 1), (5, 240, 40, True, "HS", 1)],
    *[(5, 120, 48, True, "HS", 1), (5, 144, 48, True, "HS", 1)],
    *[(5, 288, 96, True, "HS", 2), (5, 576, 96, True, "HS", 1), (5, 576, 96, True, "HS", 1)],
]
_ARCHITECTURES = {"mobilenet_v3_large": (_LARGE, 1280), "mobilenet_v3_small": (_SMALL, 1024)}


def _settings(
    arch: str, width_mult: float = 1.0, reduced_tail: bool = False, dilated: bool = False
) -> tuple[list[InvertedResidualConfig], int]:
    blocks, last_channel = _ARCHITECTURES[arch]
    part, dilation = 2 if reduced_tail else 1, 2 if dilated else 1
    settings, channels = [], 16
    for i, (kernel, inside, outputs, weighed, activation, stride) in enumerate(blocks):
        tail = i >= len(blocks) - 3
        shrunk = part if tail else 1
        inside = inside // shrunk if i > len(blocks) - 3 else inside
        config = InvertedResidualConfig(
            *(channels, kernel, inside, outputs // shrunk, weighed, activation, stride),
            dilation if tail else 1,
            width_mult,
        )
        settings.append(config)
        channels = outputs // shrunk
    return settings, InvertedResidualConfig.adjust_channels(last_channel // part, width_mult)


def _mobilenet_v3(
    arch: str,
    width_mult: float = 1.0,
    reduced_tail: bool = False,
    dilated: bool = False,
    **kwargs: Any,
) -> MobileNetV3:
    return MobileNetV3(*_settings(arch, width_mult, reduced_tail, dilated), **kwargs)


MobileNet_V3_Large_Weights = weights_enum("MobileNet_V3_Large_Weights", __name__)
MobileNet_V3_Small_Weights = weights_enum("MobileNet_V3_Small_Weights", __name__)
mobilenet_v3_large = builder(
    "mobilenet_v3_large",
    MobileNet_V3_Large_Weights,
    _mobilenet_v3,
    "mobilenet_v3_large",
    module=__name__,
)
mobilenet_v3_small = builder(
    "mobilenet_v3_small",
    MobileNet_V3_Small_Weights,
    _mobilenet_v3,
    "mobilenet_v3_small",
    module=__name__,
)

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [
        *["MobileNetV3", "MobileNet_V3_Large_Weights", "MobileNet_V3_Small_Weights"],
        *["mobilenet_v3_large", "mobilenet_v3_small"],
    ]
