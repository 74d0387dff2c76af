"""ShuffleNet v2 (Ma 2018): half of the channels skip a block, then channels are shuffled."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import rushlight as torch
from rushlight import Tensor, nn

from ._api import Made, builder, weights_enum


def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """Interleave the channels of `groups` groups."""
    batch, channels, height, width = x.size()
    x = x.view(batch, groups, channels // groups, height, width).transpose(1, 2).contiguous()
    return x.view(batch, channels, height, width)


def _conv(
    inputs: int, outputs: int, side: int, stride: int = 1, relu: bool = True
) -> list[nn.Module]:
    """Of 1 x 1 across channels, else channel by channel; normalised."""
    conv = nn.Conv2d(
        inputs, outputs, side, stride, side // 2, groups=1 if side == 1 else inputs, bias=False
    )
    return [conv, nn.BatchNorm2d(outputs), *([nn.ReLU(inplace=True)] if relu else [])]


class InvertedResidual(nn.Module):
    """At stride 1 one half of the channels is convolved; else all are, by two branches."""

    def __init__(self, inp: int, oup: int, stride: int) -> None:
        super().__init__()
        if not 1 <= stride <= 3:
            raise ValueError("illegal stride value")
        half = oup // 2
        if stride == 1 and inp != half << 1:
            raise ValueError(
                f"Invalid combination of stride {stride}, inp {inp} and oup {oup} values."
            )
        self.stride = stride
        self.branch1 = nn.Sequential(
            *([*_conv(inp, inp, 3, stride, relu=False), *_conv(inp, half, 1)] if stride > 1 else [])
        )
        self.branch2 = nn.Sequential(
            *_conv(inp if stride > 1 else half, half, 1),
            *_conv(half, half, 3, stride, relu=False),
            *_conv(half, half, 1),
        )

    @staticmethod
    def depthwise_conv(
        i: int, o: int, kernel_size: int, stride: int = 1, padding: int = 0, bias: bool = False
    ) -> nn.Conv2d:
        return nn.Conv2d(i, o, kernel_size, stride, padding, bias=bias, groups=i)

    def forward(self, x: Tensor) -> Tensor:
        if self.stride == 1:
            passed, convolved = x.chunk(2, dim=1)
        else:
            passed, convolved = self.branch1(x), x
        return channel_shuffle(torch.cat((passed, self.branch2(convolved)), dim=1), 2)


class ShuffleNetV2(nn.Module):
    """Images (N, 3, H, W) to scores (N, num_classes); blocks of three stages, channels of five.

    Args:
        stages_repeats: how many blocks each of three stages has.
        stages_out_channels: channels of the first convolution, of the stages, and of the last
            convolution.
        num_classes: how many scores there are.
        inverted_residual: makes a block.

    Raises:
        ValueError: there are other than three stages or five numbers of channels.

    Example:
        >>> net = torch.vision.models.ShuffleNetV2([1, 1, 1], [8, 16, 32, 64, 64], num_classes=3)
        >>> net(torch.zeros(2, 3, 64, 64)).shape
        torch.Size([2, 3])
    """

    def __init__(
        self,
        stages_repeats: list[int],
        stages_out_channels: list[int],
        num_classes: int = 1000,
        inverted_residual: Callable[..., nn.Module] = InvertedResidual,
    ) -> None:
        super().__init__()
        if len(stages_repeats) != 3:
            raise ValueError("expected stages_repeats as list of 3 positive ints")
        if len(stages_out_channels) != 5:
            raise ValueError("expected stages_out_channels as list of 5 positive ints")
        first, *middle, last = stages_out_channels

        def conv(inputs: int, outputs: int, side: int, stride: int) -> nn.Sequential:
            layer = nn.Conv2d(inputs, outputs, side, stride, side // 2, bias=False)
            return nn.Sequential(layer, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))

        self.conv1 = conv(3, first, 3, 2)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        stages, channels = [], first
        for count, outputs in zip(stages_repeats, middle, strict=True):
            blocks = [inverted_residual(channels, outputs, 2)]
            blocks += [inverted_residual(outputs, outputs, 1) for _ in range(count - 1)]
            stages.append(nn.Sequential(*blocks))
            channels = outputs
        self.stage2, self.stage3, self.stage4 = stages
        self.conv5 = conv(channels, last, 1, 1)
        self.fc = nn.Linear(last, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.conv1(x))
        x = self.conv5(self.stage4(self.stage3(self.stage2(x))))
        return self.fc(x.mean([2, 3]))


def _make(width: str, channels: list[int]) -> Made[ShuffleNetV2]:
    weights = weights_enum(f"ShuffleNet_V2_X{width}_Weights", __name__)
    name = f"shufflenet_v2_x{width}"
    return weights, builder(name, weights, ShuffleNetV2, [4, 8, 4], channels, module=__name__)


ShuffleNet_V2_X0_5_Weights, shufflenet_v2_x0_5 = _make("0_5", [24, 48, 96, 192, 1024])
ShuffleNet_V2_X1_0_Weights, shufflenet_v2_x1_0 = _make("1_0", [24, 116, 232, 464, 1024])
ShuffleNet_V2_X1_5_Weights, shufflenet_v2_x1_5 = _make("1_5", [24, 176, 352, 704, 1024])
ShuffleNet_V2_X2_0_Weights, shufflenet_v2_x2_0 = _make("2_0", [24, 244, 488, 976, 2048])

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [name for name in dir() if name.lower().startswith("shuffle")]
