"""MNASNet (Tan 2018)."""

from typing import TYPE_CHECKING

from rushlight import Tensor, nn

from ._api import Made, builder, weights_enum
from ._utils import _make_divisible, init_layers

_MOMENTUM = 1 - 0.9997


def _conv(
    inputs: int,
    outputs: int,
    side: int = 1,
    stride: int = 1,
    apart: bool = False,
    relu: bool = True,
) -> list:
    """A convolution, channel by channel where `apart`, and what follows it."""
    groups = inputs if apart else 1
    conv = nn.Conv2d(inputs, outputs, side, stride, side // 2, groups=groups, bias=False)
    norm = nn.BatchNorm2d(outputs, momentum=_MOMENTUM)
    return [conv, norm, *([nn.ReLU(inplace=True)] if relu else [])]


class _InvertedResidual(nn.Module):
    def __init__(
        self, in_ch: int, out_ch: int, kernel_size: int, stride: int, expansion_factor: int
    ) -> None:
        super().__init__()
        inside = in_ch * expansion_factor
        self.apply_residual = in_ch == out_ch and stride == 1
        self.layers = nn.Sequential(
            *_conv(in_ch, inside),
            *_conv(inside, inside, kernel_size, stride, True),
            *_conv(inside, out_ch, relu=False),
        )

    def forward(self, input: Tensor) -> Tensor:
        return self.layers(input) + input if self.apply_residual else self.layers(input)


# Channels, side, stride, widening and blocks of each stage.
_STAGES = [
    (24, 3, 2, 3, 3),
    (40, 5, 2, 3, 3),
    (80, 5, 2, 6, 3),
    (96, 3, 1, 6, 2),
    (192, 5, 2, 6, 4),
    (320, 3, 1, 6, 1),
]


class MNASNet(nn.Module):
    """Images (N, 3, H, W) to scores (N, num_classes); alpha multiplies channels.

    Args:
        alpha: what channels are multiplied by.
        num_classes: how many scores there are.
        dropout: the probability with which numbers before the last layer become 0.

    Raises:
        ValueError: `alpha` is not above 0.

    Example:
        >>> with torch.device("meta"):  # shapes alone
        ...     scores = torch.vision.models.MNASNet(0.5, num_classes=10)(torch.empty(2, 3, 96, 96))
        >>> scores.shape
        torch.Size([2, 10])
    """

    _version = 2

    def __init__(self, alpha: float, num_classes: int = 1000, dropout: float = 0.2) -> None:
        super().__init__()
        if alpha <= 0.0:
            raise ValueError(f"alpha should be greater than 0.0 instead of {alpha}")
        self.alpha, self.num_classes = alpha, num_classes
        first, channels = (_make_divisible(n * alpha, 8) for n in (32, 16))
        layers = [
            *_conv(3, first, 3, 2),
            *_conv(first, first, 3, 1, True),
            *_conv(first, channels, relu=False),
        ]
        for wanted, side, stride, widening, count in _STAGES:
            outputs = _make_divisible(wanted * alpha, 8)
            blocks = []
            for i in range(count):
                blocks.append(
                    _InvertedResidual(channels, outputs, side, stride if i == 0 else 1, widening)
                )
                channels = outputs
            layers.append(nn.Sequential(*blocks))
        self.layers = nn.Sequential(*layers, *_conv(channels, 1280))
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout, inplace=True), nn.Linear(1280, num_classes)
        )
        init_layers(
            self,
            linear=lambda w: nn.init.kaiming_uniform_(w, mode="fan_out", nonlinearity="sigmoid"),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.layers(x).mean([2, 3]))


def _make(width: str) -> Made[MNASNet]:
    weights = weights_enum(f"MNASNet{width}_Weights", __name__)
    return weights, builder(
        f"mnasnet{width}", weights, MNASNet, float(width.replace("_", ".")), module=__name__
    )


MNASNet0_5_Weights, mnasnet0_5 = _make("0_5")
MNASNet0_75_Weights, mnasnet0_75 = _make("0_75")
MNASNet1_0_Weights, mnasnet1_0 = _make("1_0")
MNASNet1_3_Weights, mnasnet1_3 = _make("1_3")

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [name for name in dir() if name.lower().startswith("mnas")]
