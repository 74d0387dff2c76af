"""ConvNeXt (Liu 2022)."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor, nn

from ..ops.dropping import StochasticDepth
from ..ops.misc import Conv2dNormActivation, Permute
from ._api import Made, builder, weights_enum
from ._utils import depth_rates, init_layers, trunc_normal


class LayerNorm2d(nn.LayerNorm):
    """Layer normalisation over the channels of images (N, C, H, W)."""

    def forward(self, x: Tensor) -> Tensor:
        x = F.layer_norm(
            x.permute(0, 2, 3, 1), self.normalized_shape, self.weight, self.bias, self.eps
        )
        return x.permute(0, 3, 1, 2)


class CNBlock(nn.Module):
    """A depthwise 7 x 7 convolution and two linear layers, scaled and added to the input."""

    def __init__(
        self,
        dim: int,
        layer_scale: float,
        stochastic_depth_prob: float,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        norm_layer = norm_layer or partial(nn.LayerNorm, eps=1e-6)
        self.block = nn.Sequential(
            nn.Conv2d(dim, dim, 7, padding=3, groups=dim),
            Permute([0, 2, 3, 1]),
            norm_layer(dim),
            nn.Linear(dim, 4 * dim),
            nn.GELU(),
            nn.Linear(4 * dim, dim),
            Permute([0, 3, 1, 2]),
        )
        self.layer_scale = nn.Parameter(torch.ones(dim, 1, 1) * layer_scale)
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")

    def forward(self, input: Tensor) -> Tensor:
        return self.stochastic_depth(self.layer_scale * self.block(input)) + input


class CNBlockConfig:
    """A stage: the channels of its blocks, the channels of the next stage, and the number of
    blocks.
    """

    def __init__(self, input_channels: int, out_channels: int | None, num_layers: int) -> None:
        self.input_channels, self.out_channels, self.num_layers = (
            input_channels,
            out_channels,
            num_layers,
        )


class ConvNeXt(nn.Module):
    """Images (N, 3, H, W) to scores (N, num_classes).

    Args:
        block_setting: a `CNBlockConfig` for each stage: channels, channels of the next, blocks.
        stochastic_depth_prob: the probability with which the last block is left out in training;
            those before it are at less.
        layer_scale: what the branch of a block is multiplied by at first.
        num_classes: how many scores there are.
        block: makes a block; None: `CNBlock`.
        norm_layer: makes a normalisation; None: of channels, for each pixel.
        kwargs: nothing; is accepted for torchvision's sake.

    Example:
        >>> from rushlight.vision.models.convnext import CNBlockConfig
        >>> stages = [CNBlockConfig(8, 16, 1), CNBlockConfig(16, None, 2)]
        >>> torch.vision.models.ConvNeXt(stages, num_classes=3)(torch.zeros(1, 3, 32, 32)).shape
        torch.Size([1, 3])
    """

    def __init__(
        self,
        block_setting: list[CNBlockConfig],
        stochastic_depth_prob: float = 0.0,
        layer_scale: float = 1e-6,
        num_classes: int = 1000,
        block: Callable[..., nn.Module] | None = None,
        norm_layer: Callable[..., nn.Module] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if not block_setting:
            raise ValueError("The block_setting should not be empty")
        if not all(isinstance(s, CNBlockConfig) for s in block_setting):
            raise TypeError("The block_setting should be List[CNBlockConfig]")
        block, norm_layer = block or CNBlock, norm_layer or partial(LayerNorm2d, eps=1e-6)
        layers: list[nn.Module] = [
            Conv2dNormActivation(
                *(3, block_setting[0].input_channels, 4, 4, 0),
                norm_layer=norm_layer,
                activation_layer=None,
                bias=True,
            )
        ]
        rates = iter(depth_rates(stochastic_depth_prob, sum(s.num_layers for s in block_setting)))
        for s in block_setting:
            layers.append(
                nn.Sequential(
                    *(
                        block(s.input_channels, layer_scale, next(rates))
                        for _ in range(s.num_layers)
                    )
                )
            )
            if s.out_channels is not None:
                shrink = nn.Conv2d(s.input_channels, s.out_channels, 2, stride=2)
                layers.append(nn.Sequential(norm_layer(s.input_channels), shrink))
        last = block_setting[-1].out_channels or block_setting[-1].input_channels
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            norm_layer(last), nn.Flatten(1), nn.Linear(last, num_classes)
        )
        init_layers(self, conv=trunc_normal(0.02), linear=trunc_normal(0.02))

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x)))


def _convnext(width: int, depths: tuple[int, ...], rate: float, **kwargs: Any) -> ConvNeXt:
    widths = [width * 2**i for i in range(4)]
    stages = [
        CNBlockConfig(*stage) for stage in zip(widths, [*widths[1:], None], depths, strict=True)
    ]
    return ConvNeXt(stages, kwargs.pop("stochastic_depth_prob", rate), **kwargs)


def _make(size: str, *settings: Any) -> Made[ConvNeXt]:
    weights = weights_enum(f"ConvNeXt_{size.title()}_Weights", __name__)
    return weights, builder(f"convnext_{size}", weights, _convnext, *settings, module=__name__)


ConvNeXt_Tiny_Weights, convnext_tiny = _make("tiny", 96, (3, 3, 9, 3), 0.1)
ConvNeXt_Small_Weights, convnext_small = _make("small", 96, (3, 3, 27, 3), 0.4)
ConvNeXt_Base_Weights, convnext_base = _make("base", 128, (3, 3, 27, 3), 0.5)
ConvNeXt_Large_Weights, convnext_large = _make("large", 192, (3, 3, 27, 3), 0.5)

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [name for name in dir() if name.lower().startswith("convnext")]
