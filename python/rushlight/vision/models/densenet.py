"""DenseNet (Huang 2016): each layer gets the results of all previous layers."""

import re
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor, nn
from rushlight.utils.checkpoint import checkpoint

from ._api import Made, builder, weights_enum
from ._utils import init_layers


class _DenseLayer(nn.Module):
    def __init__(
        self, inputs: int, growth_rate: int, bn_size: int, drop_rate: float, memory_efficient: bool
    ) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inputs)
        self.relu1 = nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(inputs, bn_size * growth_rate, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(bn_size * growth_rate)
        self.relu2 = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(bn_size * growth_rate, growth_rate, 3, padding=1, bias=False)
        self.drop_rate, self.memory_efficient = float(drop_rate), memory_efficient

    def _bottleneck(self, maps: list[Tensor]) -> Tensor:
        return self.conv1(self.relu1(self.norm1(torch.cat(maps, 1))))

    @torch.jit.unused
    def _checkpointed(self, maps: list[Tensor]) -> Tensor:
        return checkpoint(lambda *maps: self._bottleneck(list(maps)), *maps, use_reentrant=False)

    def forward(self, input: Tensor | list[Tensor]) -> Tensor:
        maps = [input] if isinstance(input, Tensor) else input
        recorded = [m.requires_grad for m in maps]
        if self.memory_efficient and any(recorded):
            squeezed = self._checkpointed(maps)
        else:
            squeezed = self._bottleneck(maps)
        new = self.conv2(self.relu2(self.norm2(squeezed)))
        return (
            F.dropout(new, p=self.drop_rate, training=self.training) if self.drop_rate > 0 else new
        )


class _DenseBlock(nn.ModuleDict):
    _version = 2

    def __init__(self, layers: int, inputs: int, growth_rate: int, *settings: Any) -> None:
        super().__init__()
        for i in range(layers):
            self[f"denselayer{i + 1}"] = _DenseLayer(
                inputs + i * growth_rate, growth_rate, *settings
            )

    def forward(self, x: Tensor) -> Tensor:
        maps = [x]
        for layer in self.values():
            maps.append(layer(maps))
        return torch.cat(maps, 1)


def _transition(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        OrderedDict(
            norm=nn.BatchNorm2d(inputs),
            relu=nn.ReLU(inplace=True),
            conv=nn.Conv2d(inputs, outputs, 1, bias=False),
            pool=nn.AvgPool2d(2, 2),
        )
    )


class DenseNet(nn.Module):
    """Images (N, 3, H, W) to scores (N, num_classes), by layers that see the maps of all before.

    Args:
        growth_rate: channels that a layer adds.
        block_config: how many layers each of the four blocks has.
        num_init_features: channels of the first convolution.
        bn_size: how many times `growth_rate` a layer has in its middle.
        drop_rate: the probability with which numbers that a layer adds become 0.
        num_classes: how many scores there are.
        memory_efficient: whether backward computes again what is cheap, instead of keeping it.

    Example:
        >>> net = torch.vision.models.DenseNet(4, (1, 1, 1, 1), 8, num_classes=3)
        >>> net(torch.zeros(2, 3, 64, 64)).shape
        torch.Size([2, 3])
    """

    def __init__(
        self,
        growth_rate: int = 32,
        block_config: tuple[int, int, int, int] = (6, 12, 24, 16),
        num_init_features: int = 64,
        bn_size: int = 4,
        drop_rate: float = 0,
        num_classes: int = 1000,
        memory_efficient: bool = False,
    ) -> None:
        super().__init__()
        channels = num_init_features
        parts: dict[str, nn.Module] = OrderedDict(
            conv0=nn.Conv2d(3, channels, 7, 2, 3, bias=False),
            norm0=nn.BatchNorm2d(channels),
            relu0=nn.ReLU(inplace=True),
            pool0=nn.MaxPool2d(3, 2, 1),
        )
        for i, layers in enumerate(block_config, 1):
            parts[f"denseblock{i}"] = _DenseBlock(
                layers, channels, growth_rate, bn_size, drop_rate, memory_efficient
            )
            channels += layers * growth_rate
            if i < len(block_config):
                parts[f"transition{i}"] = _transition(channels, channels // 2)
                channels //= 2
        parts["norm5"] = nn.BatchNorm2d(channels)
        self.features = nn.Sequential(parts)
        self.classifier = nn.Linear(channels, num_classes)
        init_layers(self, conv=nn.init.kaiming_normal_)
        nn.init.zeros_(self.classifier.bias)

    def forward(self, x: Tensor) -> Tensor:
        x = F.adaptive_avg_pool2d(F.relu(self.features(x), inplace=True), (1, 1))
        return self.classifier(x.flatten(1))


def _load(model: DenseNet, state: dict[str, Any]) -> None:
    """Names in files have a dot before the number of a layer's part: norm.1, conv.2."""
    model.load_state_dict(
        {
            re.sub(r"(denselayer\d+\.(?:norm|relu|conv))\.(?=[12]\.)", r"\1", k): v
            for k, v in state.items()
        }
    )


def _make(depth: int, *settings: Any) -> Made[DenseNet]:
    weights = weights_enum(f"DenseNet{depth}_Weights", __name__)
    return weights, builder(
        f"densenet{depth}", weights, DenseNet, *settings, module=__name__, load=_load
    )


DenseNet121_Weights, densenet121 = _make(121, 32, (6, 12, 24, 16), 64)
DenseNet161_Weights, densenet161 = _make(161, 48, (6, 12, 36, 24), 96)
DenseNet169_Weights, densenet169 = _make(169, 32, (6, 12, 32, 32), 64)
DenseNet201_Weights, densenet201 = _make(201, 32, (6, 12, 48, 32), 64)

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [name for name in dir() if name.lower().startswith("dense")]
