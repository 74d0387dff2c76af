"""MobileNet v2 (Sandler 2018): inverted residual blocks."""

from collections.abc import Callable
from typing import Any

from rushlight import Tensor, nn

from ..ops.misc import Conv2dNormActivation
from ._api import builder, weights_enum
from ._utils import _make_divisible, init_layers, normal


class InvertedResidual(nn.Module):
    """Expansion by expand_ratio, depthwise convolution, projection; added to the input if the
    shapes agree.
    """

    def __init__(
        self,
        inp: int,
        oup: int,
        stride: int,
        expand_ratio: int,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        if stride not in (1, 2):
            raise ValueError(f"stride should be 1 or 2 instead of {stride}")
        norm_layer = norm_layer or nn.BatchNorm2d
        hidden = round(inp * expand_ratio)
        how: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": nn.ReLU6}
        layers: list[nn.Module] = []
        if expand_ratio != 1:
            layers.append(Conv2dNormActivation(inp, hidden, 1, **how))
        layers.append(Conv2dNormActivation(hidden, hidden, stride=stride, groups=hidden, **how))
        layers += [nn.Conv2d(hidden, oup, 1, bias=False), norm_layer(oup)]
        self.conv = nn.Sequential(*layers)
        self.stride, self.out_channels, self._is_cn = stride, oup, stride > 1
        self.use_res_connect = stride == 1 and inp == oup

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


# Widening, channels, blocks and stride of each stage.
_STAGES = [
    [1, 16, 1, 1],
    [6, 24, 2, 2],
    [6, 32, 3, 2],
    [6, 64, 4, 2],
    [6, 96, 3, 1],
    [6, 160, 3, 2],
    [6, 320, 1, 1],
]


class MobileNetV2(nn.Module):
    """Images (N, 3, H, W) to scores (N, num_classes); width_mult multiplies channels, rounded to
    round_nearest.

    Args:
        num_classes: how many scores there are.
        width_mult: what channels are multiplied by.
        inverted_residual_setting: for each stage the expansion, channels, blocks and the first
            stride; None: the paper's.
        round_nearest: channels are multiples of this.
        block: makes a block; None: `InvertedResidual`.
        norm_layer: makes a normalisation; None: `nn.BatchNorm2d`.
        dropout: the probability with which numbers before the last layer become 0.

    Raises:
        ValueError: the setting is empty, or its rows have other than four numbers.

    Example:
        >>> with torch.device("meta"):  # shapes alone
        ...     scores = torch.vision.models.MobileNetV2(num_classes=10)(torch.empty(2, 3, 96, 96))
        >>> scores.shape
        torch.Size([2, 10])
    """

    def __init__(
        self,
        num_classes: int = 1000,
        width_mult: float = 1.0,
        inverted_residual_setting: list[list[int]] | None = None,
        round_nearest: int = 8,
        block: Callable[..., nn.Module] | None = None,
        norm_layer: Callable[..., nn.Module] | None = None,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        block, norm_layer = block or InvertedResidual, norm_layer or nn.BatchNorm2d
        stages = _STAGES if inverted_residual_setting is None else inverted_residual_setting
        if len(stages) == 0 or len(stages[0]) != 4:
            raise ValueError(
                f"inverted_residual_setting should be non-empty or a 4-element list, got {stages}"
            )
        how: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": nn.ReLU6}
        channels = _make_divisible(32 * width_mult, round_nearest)
        self.last_channel = _make_divisible(1280 * max(1.0, width_mult), round_nearest)
        features: list[nn.Module] = [Conv2dNormActivation(3, channels, stride=2, **how)]
        for ratio, wanted, count, stride in stages:
            outputs = _make_divisible(wanted * width_mult, round_nearest)
            for i in range(count):
                features.append(
                    block(
                        channels,
                        outputs,
                        stride if i == 0 else 1,
                        expand_ratio=ratio,
                        norm_layer=norm_layer,
                    )
                )
                channels = outputs
        features.append(Conv2dNormActivation(channels, self.last_channel, 1, **how))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout), nn.Linear(self.last_channel, num_classes)
        )
        init_layers(self, linear=normal(0.01))

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.adaptive_avg_pool2d(self.features(x), (1, 1))
        return self.classifier(x.flatten(1))


MobileNet_V2_Weights = weights_enum("MobileNet_V2_Weights", __name__)
mobilenet_v2 = builder("mobilenet_v2", MobileNet_V2_Weights, MobileNetV2, module=__name__)

__all__ = ["MobileNetV2", "MobileNet_V2_Weights", "mobilenet_v2"]
