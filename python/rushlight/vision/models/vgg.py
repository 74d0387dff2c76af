"""VGG (Simonyan and Zisserman 2014), with and without batch normalisation."""

from typing import TYPE_CHECKING, Any

from rushlight import Tensor, nn

from ._api import Made, builder, weights_enum
from ._utils import init_layers, normal


class VGG(nn.Module):
    """Features of images, means of 7 x 7 positions, and three linear layers: scores (N,
    num_classes).

    Args:
        features: makes maps (N, 512, H', W') of images.
        num_classes: how many scores there are.
        init_weights: whether weights are drawn anew.
        dropout: the probability with which numbers between the linear layers become 0.

    Example:
        >>> with torch.device("meta"):  # shapes alone
        ...     net = torch.vision.models.VGG(torch.nn.Conv2d(3, 512, 3), num_classes=10)
        ...     scores = net(torch.empty(2, 3, 32, 32))
        >>> scores.shape
        torch.Size([2, 10])
    """

    def __init__(
        self,
        features: nn.Module,
        num_classes: int = 1000,
        init_weights: bool = True,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.features = features
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096),
            nn.ReLU(True),
            nn.Dropout(p=dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(True),
            nn.Dropout(p=dropout),
            nn.Linear(4096, num_classes),
        )
        if init_weights:
            init_layers(self, linear=normal(0.01))

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


# Convolutions of each of the five sizes.
_DEPTHS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


def _config(depth: int) -> list[str | int]:
    sizes = enumerate(_DEPTHS[depth])
    return [item for i, n in sizes for item in (*[min(64 * 2**i, 512)] * n, "M")]


# Under torchvision's letters: channels of convolutions, "M" for a pooling.
cfgs = {letter: _config(depth) for letter, depth in zip("ABDE", _DEPTHS, strict=True)}


def make_layers(cfg: list[str | int], batch_norm: bool = False) -> nn.Sequential:
    """The layers of `VGG.features`.

    Args:
        cfg: the channels of convolutions, and "M" where the image is halved.
        batch_norm: whether each convolution is followed by one.
    """
    layers: list[nn.Module] = []
    inputs = 3
    for item in cfg:
        if isinstance(item, str):
            layers.append(nn.MaxPool2d(2, 2))
            continue
        layers.append(nn.Conv2d(inputs, item, 3, padding=1))
        layers += [nn.BatchNorm2d(item)] if batch_norm else []
        layers.append(nn.ReLU(inplace=True))
        inputs = item
    return nn.Sequential(*layers)


def _vgg(depth: int, norm: bool, **kwargs: Any) -> VGG:
    return VGG(make_layers(_config(depth), norm), **kwargs)


def _prepare(weights: Any, kwargs: dict[str, Any]) -> None:
    if weights is not None:
        kwargs["init_weights"] = False


def _make(depth: int, norm: bool) -> Made[VGG]:
    suffix = "_bn" if norm else ""
    weights = weights_enum(f"VGG{depth}{suffix.upper()}_Weights", __name__)
    return weights, builder(
        f"vgg{depth}{suffix}", weights, _vgg, depth, norm, module=__name__, prepare=_prepare
    )


VGG11_Weights, vgg11 = _make(11, False)
VGG11_BN_Weights, vgg11_bn = _make(11, True)
VGG13_Weights, vgg13 = _make(13, False)
VGG13_BN_Weights, vgg13_bn = _make(13, True)
VGG16_Weights, vgg16 = _make(16, False)
VGG16_BN_Weights, vgg16_bn = _make(16, True)
VGG19_Weights, vgg19 = _make(19, False)
VGG19_BN_Weights, vgg19_bn = _make(19, True)

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [name for name in dir() if name.lower().startswith("vgg")]
