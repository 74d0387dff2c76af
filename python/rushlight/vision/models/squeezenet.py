"""SqueezeNet (Iandola 2016)."""

from typing import TYPE_CHECKING

import rushlight as torch
from rushlight import Tensor, nn

from ._api import Made, builder, weights_enum


class Fire(nn.Module):
    """Few channels, then many by two convolutions side by side."""

    def __init__(
        self, inplanes: int, squeeze_planes: int, expand1x1_planes: int, expand3x3_planes: int
    ) -> None:
        super().__init__()
        self.inplanes = inplanes
        self.squeeze = nn.Conv2d(inplanes, squeeze_planes, 1)
        self.squeeze_activation = nn.ReLU(inplace=True)
        self.expand1x1 = nn.Conv2d(squeeze_planes, expand1x1_planes, 1)
        self.expand1x1_activation = nn.ReLU(inplace=True)
        self.expand3x3 = nn.Conv2d(squeeze_planes, expand3x3_planes, 3, padding=1)
        self.expand3x3_activation = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        x = self.squeeze_activation(self.squeeze(x))
        return torch.cat(
            (
                self.expand1x1_activation(self.expand1x1(x)),
                self.expand3x3_activation(self.expand3x3(x)),
            ),
            1,
        )


# The first convolution's channels and side, and after how many of the eight modules a pooling
# stands.
_VERSIONS = {"1_0": (96, 7, (0, 3, 7)), "1_1": (64, 3, (0, 2, 4))}
_SQUEEZED = (16, 16, 32, 32, 48, 48, 64, 64)


class SqueezeNet(nn.Module):
    """Images (N, 3, H, W) to scores (N, num_classes); version "1_0" or "1_1".

    Args:
        version: "1_0", or "1_1", which computes less.
        num_classes: how many scores there are.
        dropout: the probability with which numbers before the last convolution become 0.

    Raises:
        ValueError: there is no such version.

    Example:
        >>> with torch.device("meta"):  # shapes alone
        ...     scores = torch.vision.models.SqueezeNet("1_1", 10)(torch.empty(2, 3, 96, 96))
        >>> scores.shape
        torch.Size([2, 10])
    """

    def __init__(self, version: str = "1_0", num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        if version not in _VERSIONS:
            raise ValueError(f"Unsupported SqueezeNet version {version}: 1_0 or 1_1 expected")
        self.num_classes = num_classes
        channels, side, pooled = _VERSIONS[version]
        layers: list[nn.Module] = [nn.Conv2d(3, channels, side, 2), nn.ReLU(inplace=True)]
        for i, squeezed in enumerate(_SQUEEZED):
            if i in pooled:
                layers.append(nn.MaxPool2d(3, 2, ceil_mode=True))
            layers.append(Fire(channels, squeezed, 4 * squeezed, 4 * squeezed))
            channels = 8 * squeezed
        self.features = nn.Sequential(*layers)
        last = nn.Conv2d(512, num_classes, 1)
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout), last, nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d((1, 1))
        )
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                if m is last:
                    nn.init.normal_(m.weight, 0.0, 0.01)
                else:
                    nn.init.kaiming_uniform_(m.weight)
                nn.init.zeros_(m.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x)).flatten(1)


def _make(version: str) -> Made[SqueezeNet]:
    weights = weights_enum(f"SqueezeNet{version}_Weights", __name__)
    return weights, builder(f"squeezenet{version}", weights, SqueezeNet, version, module=__name__)


SqueezeNet1_0_Weights, squeezenet1_0 = _make("1_0")
SqueezeNet1_1_Weights, squeezenet1_1 = _make("1_1")

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [name for name in dir() if name.lower().startswith("squeeze")]
