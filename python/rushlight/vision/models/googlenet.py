"""GoogLeNet (Szegedy 2014), with batch normalisation."""

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor, nn
from rushlight._warnings import warn

from ._api import builder, overwrite, weights_enum

GoogLeNetOutputs = namedtuple("GoogLeNetOutputs", ["logits", "aux_logits2", "aux_logits1"])
GoogLeNetOutputs.__doc__ = """What the network gives in training: scores of its three classifiers.

Args:
    logits: of the last.
    aux_logits2: of the second of the two within the network, or None.
    aux_logits1: of the first of them, or None.

For an example see `vision.models.googlenet`.
"""
GoogLeNetOutputs.__annotations__ = {
    "logits": Tensor,
    "aux_logits2": Tensor | None,
    "aux_logits1": Tensor | None,
}


class BasicConv2d(nn.Module):
    """A convolution without a bias, and a batch norm."""

    def __init__(self, in_channels: int, out_channels: int, **kwargs: Any) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, bias=False, **kwargs)
        self.bn = nn.BatchNorm2d(out_channels, eps=0.001)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.bn(self.conv(x)), inplace=True)


class Inception(nn.Module):
    """Four branches side by side: 1 x 1, two of 1 x 1 and 3 x 3, pooling and 1 x 1."""

    def __init__(
        self,
        in_channels: int,
        ch1x1: int,
        ch3x3red: int,
        ch3x3: int,
        ch5x5red: int,
        ch5x5: int,
        pool_proj: int,
        conv_block: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        conv = conv_block or BasicConv2d

        def pair(inside: int, outputs: int) -> nn.Sequential:
            return nn.Sequential(
                conv(in_channels, inside, kernel_size=1),
                conv(inside, outputs, kernel_size=3, padding=1),
            )

        self.branch1 = conv(in_channels, ch1x1, kernel_size=1)
        self.branch2 = pair(ch3x3red, ch3x3)
        self.branch3 = pair(ch5x5red, ch5x5)
        self.branch4 = nn.Sequential(
            nn.MaxPool2d(3, stride=1, padding=1, ceil_mode=True),
            conv(in_channels, pool_proj, kernel_size=1),
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], 1)


class InceptionAux(nn.Module):
    """An auxiliary classifier in the middle of the network."""

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        conv_block: Callable[..., nn.Module] | None = None,
        dropout: float = 0.7,
    ) -> None:
        super().__init__()
        self.conv = (conv_block or BasicConv2d)(in_channels, 128, kernel_size=1)
        self.fc1 = nn.Linear(2048, 1024)
        self.fc2 = nn.Linear(1024, num_classes)
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(F.adaptive_avg_pool2d(x, (4, 4)))
        return self.fc2(self.dropout(F.relu(self.fc1(x.flatten(1)), inplace=True)))


# Channels of the branches, by the name of the module.
_MODULES = {
    "3a": (192, 64, 96, 128, 16, 32, 32),
    "3b": (256, 128, 128, 192, 32, 96, 64),
    "4a": (480, 192, 96, 208, 16, 48, 64),
    "4b": (512, 160, 112, 224, 24, 64, 64),
    "4c": (512, 128, 128, 256, 24, 64, 64),
    "4d": (512, 112, 144, 288, 32, 64, 64),
    "4e": (528, 256, 160, 320, 32, 128, 128),
    "5a": (832, 256, 160, 320, 32, 128, 128),
    "5b": (832, 384, 192, 384, 48, 128, 128),
}
# What an image in the range of one normalisation is multiplied and moved by to be in that of the
# other.
_COLOURS = tuple(
    ((std / 0.5), (mean - 0.5) / 0.5)
    for mean, std in ((0.485, 0.229), (0.456, 0.224), (0.406, 0.225))
)


def renormalize(x: Tensor) -> Tensor:
    """Images (N, 3, H, W) normalised by ImageNet's colours as if they were by 0.5 and 0.5."""
    return torch.cat(
        [x[:, c : c + 1] * scale + shift for c, (scale, shift) in enumerate(_COLOURS)], 1
    )


def init_truncated(model: nn.Module, std: float) -> None:
    """Draws weights near 0, with the deviation that a module names, and sets those of
    normalisations to 1.
    """
    for m in model.modules():
        if isinstance(m, nn.Conv2d | nn.Linear):
            nn.init.trunc_normal_(
                m.weight, mean=0.0, std=float(getattr(m, "stddev", std)), a=-2, b=2
            )
        elif isinstance(m, nn.BatchNorm2d):
            nn.init.ones_(m.weight)
            nn.init.zeros_(m.bias)


def warn_of_drawing(name: str) -> bool:
    """The default of init_weights, with a warning that it takes long."""
    warn(
        f"{name} draws its weights from a truncated normal distribution by default, which takes "
        f"long. "
        "Say init_weights=True to have that without a warning, False to leave it out.",
        FutureWarning,
    )
    return True


def prepare_heads(weights: Any, kwargs: dict[str, Any]) -> Callable[[Any], None] | None:
    """Arguments for trained weights with further heads: the model has them while they are loaded.

    What is returned takes them away afterwards, where nobody asked for them.
    """
    if weights is None:
        return None
    kwargs.setdefault("transform_input", True)
    wanted = kwargs.get("aux_logits")
    kwargs["aux_logits"] = True
    overwrite(kwargs, "init_weights", False)

    def finish(model: Any) -> None:
        model.aux_logits = False
        for name in ("aux1", "aux2", "AuxLogits"):
            if hasattr(model, name):
                setattr(model, name, None)

    return (
        None
        if wanted or (wanted is None and weights.__class__.__name__.startswith("Inception"))
        else finish
    )


class GoogLeNet(nn.Module):
    """Images (N, 3, H, W) to scores (N, num_classes); in training GoogLeNetOutputs with those of
    two more heads.

    transform_input: images are normalised by ImageNet's colours, the weights want 0.5 and 0.5.

    Args:
        num_classes: how many scores there are.
        aux_logits: whether there are two more heads, for training.
        transform_input: whether images that are normalised by ImageNet's colours become such of
            means and deviations of 0.5.
        init_weights: whether weights are drawn as the paper says, which takes long; None: they are,
            with a warning.
        blocks: makes of convolutions, of inception blocks and of heads; None: the usual ones.
        dropout: the probability with which numbers before the last layer become 0.
        dropout_aux: the same in the two heads.

    Example:
        >>> with torch.device("meta"):  # shapes alone
        ...     net = torch.vision.models.GoogLeNet(num_classes=10, init_weights=False).eval()
        ...     scores = net(torch.empty(2, 3, 224, 224))
        >>> scores.shape
        torch.Size([2, 10])
    """

    def __init__(
        self,
        num_classes: int = 1000,
        aux_logits: bool = True,
        transform_input: bool = False,
        init_weights: bool | None = None,
        blocks: list[Callable[..., nn.Module]] | None = None,
        dropout: float = 0.2,
        dropout_aux: float = 0.7,
    ) -> None:
        super().__init__()
        conv, inception, aux = blocks or [BasicConv2d, Inception, InceptionAux]
        init_weights = warn_of_drawing("GoogLeNet") if init_weights is None else init_weights
        self.aux_logits, self.transform_input = aux_logits, transform_input
        self.conv1 = conv(3, 64, kernel_size=7, stride=2, padding=3)
        self.maxpool1 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.conv2 = conv(64, 64, kernel_size=1)
        self.conv3 = conv(64, 192, kernel_size=3, padding=1)
        self.maxpool2 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        for name, channels in _MODULES.items():
            if name == "4a":
                self.maxpool3 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
            elif name == "5a":
                self.maxpool4 = nn.MaxPool2d(2, stride=2, ceil_mode=True)
            self.add_module(f"inception{name}", inception(*channels))
        self.aux1 = aux(512, num_classes, dropout=dropout_aux) if aux_logits else None
        self.aux2 = aux(528, num_classes, dropout=dropout_aux) if aux_logits else None
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(p=dropout)
        self.fc = nn.Linear(1024, num_classes)
        if init_weights:
            init_truncated(self, 0.01)

    def _features(self, x: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None]:
        x = self.maxpool1(self.conv1(x))
        x = self.maxpool2(self.conv3(self.conv2(x)))
        x = self.maxpool3(self.inception3b(self.inception3a(x)))
        x = self.inception4a(x)
        aux1 = self.aux1(x) if self.aux1 is not None and self.training else None
        x = self.inception4d(self.inception4c(self.inception4b(x)))
        aux2 = self.aux2(x) if self.aux2 is not None and self.training else None
        x = self.maxpool4(self.inception4e(x))
        x = self.inception5b(self.inception5a(x))
        return self.fc(self.dropout(self.avgpool(x).flatten(1))), aux2, aux1

    def eager_outputs(
        self, x: Tensor, aux2: Tensor | None, aux1: Tensor | None
    ) -> GoogLeNetOutputs | Tensor:
        """The result of the model: in training with the scores of auxiliary classifiers."""
        return GoogLeNetOutputs(x, aux2, aux1) if self.training and self.aux_logits else x

    def forward(self, x: Tensor) -> GoogLeNetOutputs:  # the tensor alone outside of programs
        x, aux2, aux1 = self._features(renormalize(x) if self.transform_input else x)
        if torch.jit.is_scripting():
            return GoogLeNetOutputs(x, aux2, aux1)
        return self.eager_outputs(x, aux2, aux1)  # type: ignore[return-value]


GoogLeNet_Weights = weights_enum("GoogLeNet_Weights", __name__)
googlenet = builder(
    "googlenet",
    GoogLeNet_Weights,
    GoogLeNet,
    module=__name__,
    prepare=prepare_heads,
    shown="aux_logits=False, init_weights=False",
)

__all__ = ["GoogLeNet", "GoogLeNetOutputs", "GoogLeNet_Weights", "googlenet"]
