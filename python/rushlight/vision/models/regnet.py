"""RegNet (Radosavovic 2020): widths of stages from a quantised line."""

import math
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from rushlight import Tensor, nn

from ..ops.misc import Conv2dNormActivation, SqueezeExcitation
from ._api import Made, builder, weights_enum
from ._utils import _make_divisible, init_layers, normal


class SimpleStemIN(Conv2dNormActivation):
    """A convolution of 3 x 3 and stride 2."""

    def __init__(self, width_in: int, width_out: int, norm_layer, activation_layer) -> None:
        super().__init__(
            width_in, width_out, 3, 2, norm_layer=norm_layer, activation_layer=activation_layer
        )


class BottleneckTransform(nn.Sequential):
    """A grouped 3 x 3 convolution with squeeze and excitation, between two of 1 x 1."""

    def __init__(
        self,
        width_in: int,
        width_out: int,
        stride: int,
        norm_layer: Callable[..., nn.Module],
        activation_layer: Callable[..., nn.Module],
        group_width: int,
        bottleneck_multiplier: float,
        se_ratio: float | None,
    ) -> None:
        inside = round(width_out * bottleneck_multiplier)
        how: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": activation_layer}
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        layers["a"] = Conv2dNormActivation(width_in, inside, 1, **how)
        layers["b"] = Conv2dNormActivation(
            inside, inside, 3, stride, groups=inside // group_width, **how
        )
        if se_ratio:
            layers["se"] = SqueezeExcitation(
                inside, round(se_ratio * width_in), activation=activation_layer
            )
        layers["c"] = Conv2dNormActivation(
            inside, width_out, 1, norm_layer=norm_layer, activation_layer=None
        )
        super().__init__(layers)


class ResBottleneckBlock(nn.Module):
    """A `BottleneckTransform` added to the input, which a convolution projects if the shapes
    differ.
    """

    def __init__(
        self,
        width_in: int,
        width_out: int,
        stride: int,
        norm_layer: Callable[..., nn.Module],
        activation_layer: Callable[..., nn.Module],
        group_width: int = 1,
        bottleneck_multiplier: float = 1.0,
        se_ratio: float | None = None,
    ) -> None:
        super().__init__()
        self.proj = None
        if width_in != width_out or stride != 1:
            self.proj = Conv2dNormActivation(
                width_in, width_out, 1, stride, norm_layer=norm_layer, activation_layer=None
            )
        self.f = BottleneckTransform(
            *(width_in, width_out, stride, norm_layer, activation_layer),
            *(group_width, bottleneck_multiplier, se_ratio),
        )
        self.activation = activation_layer(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.activation((x if self.proj is None else self.proj(x)) + self.f(x))


class AnyStage(nn.Sequential):
    """A stage of blocks of one shape; the first has the stride."""

    def __init__(
        self,
        width_in: int,
        width_out: int,
        stride: int,
        depth: int,
        block_constructor: Callable[..., nn.Module],
        norm_layer: Callable[..., nn.Module],
        activation_layer: Callable[..., nn.Module],
        group_width: int,
        bottleneck_multiplier: float,
        se_ratio: float | None = None,
        stage_index: int = 0,
    ) -> None:
        super().__init__()
        for i in range(depth):
            inputs, step = (width_in, stride) if i == 0 else (width_out, 1)
            block = block_constructor(
                *(inputs, width_out, step, norm_layer, activation_layer),
                *(group_width, bottleneck_multiplier, se_ratio),
            )
            self.add_module(f"block{stage_index}-{i}", block)


class BlockParams:
    """The parameters of the blocks of each stage."""

    def __init__(
        self,
        depths: list[int],
        widths: list[int],
        group_widths: list[int],
        bottleneck_multipliers: list[float],
        strides: list[int],
        se_ratio: float | None = None,
    ) -> None:
        self.depths, self.widths, self.group_widths = depths, widths, group_widths
        self.bottleneck_multipliers, self.strides, self.se_ratio = (
            bottleneck_multipliers,
            strides,
            se_ratio,
        )

    @classmethod
    def from_init_params(
        cls,
        depth: int,
        w_0: int,
        w_a: float,
        w_m: float,
        group_width: int,
        bottleneck_multiplier: float = 1.0,
        se_ratio: float | None = None,
        **kwargs: Any,
    ) -> "BlockParams":
        """Block i has the power of w_m times w_0 nearest to w_0 + w_a i, in multiples of 8 that
        groups divide.
        """
        if w_a < 0 or w_0 <= 0 or w_m <= 1 or w_0 % 8 != 0:
            raise ValueError("Invalid RegNet settings")
        widths = []
        for i in range(depth):
            power = round(math.log((w_0 + w_a * i) / w_0) / math.log(w_m))
            widths.append(round(w_0 * w_m**power / 8) * 8)
        stages = sorted(set(widths))
        multipliers = [bottleneck_multiplier] * len(stages)
        groups, fitting = [], []
        for width in stages:
            inside = int(width * bottleneck_multiplier)
            group = min(group_width, inside)
            groups.append(group)
            fitting.append(int(_make_divisible(inside, group) / bottleneck_multiplier))
        return cls(
            [widths.count(w) for w in stages],
            fitting,
            groups,
            multipliers,
            [2] * len(stages),
            se_ratio,
        )


class RegNet(nn.Module):
    """Images (N, 3, H, W) to scores (N, num_classes).

    Args:
        block_params: the stages: a `BlockParams`.
        num_classes: how many scores there are.
        stem_width: channels of the first convolution.
        stem_type: makes what comes first; None: `SimpleStemIN`.
        block_type: makes a block; None: `ResBottleneckBlock`.
        norm_layer: makes a normalisation; None: `nn.BatchNorm2d`.
        activation: makes an activation; None: `nn.ReLU`.

    Example:
        >>> from rushlight.vision.models.regnet import BlockParams
        >>> stages = BlockParams([1, 1], [16, 32], [8, 8], [1.0, 1.0], [2, 2])
        >>> torch.vision.models.RegNet(stages, num_classes=3)(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 3])
    """

    def __init__(
        self,
        block_params: BlockParams,
        num_classes: int = 1000,
        stem_width: int = 32,
        stem_type: Callable[..., nn.Module] | None = None,
        block_type: Callable[..., nn.Module] | None = None,
        norm_layer: Callable[..., nn.Module] | None = None,
        activation: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        stem_type, block_type = stem_type or SimpleStemIN, block_type or ResBottleneckBlock
        norm_layer, activation = norm_layer or nn.BatchNorm2d, activation or nn.ReLU
        p = block_params
        self.stem = stem_type(3, stem_width, norm_layer, activation)
        stages: OrderedDict[str, nn.Module] = OrderedDict()
        width = stem_width
        every = zip(
            p.widths, p.strides, p.depths, p.group_widths, p.bottleneck_multipliers, strict=True
        )
        for i, (outputs, stride, depth, group_width, multiplier) in enumerate(every, 1):
            stages[f"block{i}"] = AnyStage(
                *(width, outputs, stride, depth, block_type, norm_layer, activation),
                *(group_width, multiplier, p.se_ratio, i),
            )
            width = outputs
        self.trunk_output = nn.Sequential(stages)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(width, num_classes)
        init_layers(
            self,
            conv=lambda w: nn.init.normal_(w, 0.0, math.sqrt(2.0 / (w.shape[0] * w[0, 0].numel()))),
            linear=normal(0.01),
            conv_bias=False,
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.avgpool(self.trunk_output(self.stem(x))).flatten(1))


def _regnet(*params: Any, **kwargs: Any) -> RegNet:
    kwargs.setdefault("norm_layer", partial(nn.BatchNorm2d, eps=1e-05, momentum=0.1))
    *numbers, se_ratio = params
    return RegNet(BlockParams.from_init_params(*numbers, se_ratio=se_ratio), **kwargs)


def _make(size: str, *numbers: float) -> Made[RegNet]:
    weights = weights_enum(f"RegNet_{size.upper()}_Weights", __name__)
    se_ratio = 0.25 if size.startswith("y") else None
    name = f"regnet_{size.lower()}"
    return weights, builder(name, weights, _regnet, *numbers, se_ratio, module=__name__)


# Blocks, first width, slope, factor, width of a group.
RegNet_Y_400MF_Weights, regnet_y_400mf = _make("y_400mf", 16, 48, 27.89, 2.09, 8)
RegNet_Y_800MF_Weights, regnet_y_800mf = _make("y_800mf", 14, 56, 38.84, 2.4, 16)
RegNet_Y_1_6GF_Weights, regnet_y_1_6gf = _make("y_1_6gf", 27, 48, 20.71, 2.65, 24)
RegNet_Y_3_2GF_Weights, regnet_y_3_2gf = _make("y_3_2gf", 21, 80, 42.63, 2.66, 24)
RegNet_Y_8GF_Weights, regnet_y_8gf = _make("y_8gf", 17, 192, 76.82, 2.19, 56)
RegNet_Y_16GF_Weights, regnet_y_16gf = _make("y_16gf", 18, 200, 106.23, 2.48, 112)
RegNet_Y_32GF_Weights, regnet_y_32gf = _make("y_32gf", 20, 232, 115.89, 2.53, 232)
RegNet_Y_128GF_Weights, regnet_y_128gf = _make("y_128gf", 27, 456, 160.83, 2.52, 264)
RegNet_X_400MF_Weights, regnet_x_400mf = _make("x_400mf", 22, 24, 24.48, 2.54, 16)
RegNet_X_800MF_Weights, regnet_x_800mf = _make("x_800mf", 16, 56, 35.73, 2.28, 16)
RegNet_X_1_6GF_Weights, regnet_x_1_6gf = _make("x_1_6gf", 18, 80, 34.01, 2.25, 24)
RegNet_X_3_2GF_Weights, regnet_x_3_2gf = _make("x_3_2gf", 25, 88, 26.31, 2.25, 48)
RegNet_X_8GF_Weights, regnet_x_8gf = _make("x_8gf", 23, 80, 49.56, 2.88, 120)
RegNet_X_16GF_Weights, regnet_x_16gf = _make("x_16gf", 22, 216, 55.59, 2.1, 128)
RegNet_X_32GF_Weights, regnet_x_32gf = _make("x_32gf", 23, 320, 69.86, 2.0, 168)

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [name for name in dir() if name.lower().startswith("regnet")]
