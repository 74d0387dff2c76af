"""Residual networks over space and time (Tran 2017)."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rushlight import Tensor, nn

from .._api import Made, builder, weights_enum
from .._utils import init_layers, normal


class Conv3DSimple(nn.Conv3d):
    """A convolution of 3 x 3 x 3."""

    def __init__(
        self,
        in_planes: int,
        out_planes: int,
        midplanes: int | None = None,
        stride: int = 1,
        padding: int = 1,
    ):
        super().__init__(in_planes, out_planes, (3, 3, 3), stride, padding, bias=False)

    @staticmethod
    def get_downsample_stride(stride: int) -> tuple[int, int, int]:
        return stride, stride, stride


class Conv3DNoTemporal(nn.Conv3d):
    """A convolution of 3 x 3 for each frame."""

    def __init__(
        self,
        in_planes: int,
        out_planes: int,
        midplanes: int | None = None,
        stride: int = 1,
        padding: int = 1,
    ):
        super().__init__(
            in_planes, out_planes, (1, 3, 3), (1, stride, stride), (0, padding, padding), bias=False
        )

    @staticmethod
    def get_downsample_stride(stride: int) -> tuple[int, int, int]:
        return 1, stride, stride


def _within_frames(
    inputs: int, outputs: int, side: int, stride: int, padding: int
) -> list[nn.Module]:
    size, step, around = (1, side, side), (1, stride, stride), (0, padding, padding)
    conv = nn.Conv3d(inputs, outputs, size, step, around, bias=False)
    return [conv, nn.BatchNorm3d(outputs), nn.ReLU(inplace=True)]


def _across_frames(inputs: int, outputs: int, stride: int, padding: int) -> nn.Module:
    step, around = (stride, 1, 1), (padding, 0, 0)
    return nn.Conv3d(inputs, outputs, (3, 1, 1), step, around, bias=False)


class Conv2Plus1D(nn.Sequential):
    """A convolution of 3 x 3 for each frame, then of 3 along time."""

    def __init__(
        self, in_planes: int, out_planes: int, midplanes: int, stride: int = 1, padding: int = 1
    ) -> None:
        within = _within_frames(in_planes, midplanes, 3, stride, padding)
        super().__init__(*within, _across_frames(midplanes, out_planes, stride, padding))

    @staticmethod
    def get_downsample_stride(stride: int) -> tuple[int, int, int]:
        return stride, stride, stride


def _mid_channels(inplanes: int, planes: int) -> int:
    """Channels between the two convolutions that make as many weights as one of 3 x 3 x 3."""
    return (inplanes * planes * 3 * 3 * 3) // (inplanes * 3 * 3 + 3 * planes)


class BasicBlock(nn.Module):
    """A residual block of two convolutions."""

    expansion = 1

    def __init__(
        self,
        inplanes: int,
        planes: int,
        conv_builder: Callable[..., nn.Module],
        stride: int = 1,
        downsample: nn.Module | None = None,
    ) -> None:
        super().__init__()
        inside = _mid_channels(inplanes, planes)
        first = conv_builder(inplanes, planes, inside, stride)
        self.conv1 = nn.Sequential(first, nn.BatchNorm3d(planes), nn.ReLU(inplace=True))
        self.conv2 = nn.Sequential(conv_builder(planes, planes, inside), nn.BatchNorm3d(planes))
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        branch = self.conv2(self.conv1(x))
        return self.relu(branch + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(nn.Module):
    """A residual block of a convolution between two of 1 x 1 x 1."""

    expansion = 4

    def __init__(
        self,
        inplanes: int,
        planes: int,
        conv_builder: Callable[..., nn.Module],
        stride: int = 1,
        downsample: nn.Module | None = None,
    ) -> None:
        super().__init__()
        outputs = planes * self.expansion
        first = nn.Conv3d(inplanes, planes, 1, bias=False)
        middle = conv_builder(planes, planes, _mid_channels(inplanes, planes), stride)
        last = nn.Conv3d(planes, outputs, 1, bias=False)
        self.conv1 = nn.Sequential(first, nn.BatchNorm3d(planes), nn.ReLU(inplace=True))
        self.conv2 = nn.Sequential(middle, nn.BatchNorm3d(planes), nn.ReLU(inplace=True))
        self.conv3 = nn.Sequential(last, nn.BatchNorm3d(outputs))
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        branch = self.conv3(self.conv2(self.conv1(x)))
        return self.relu(branch + (x if self.downsample is None else self.downsample(x)))


class BasicStem(nn.Sequential):
    """A convolution of 7 x 7 pixels and 3 frames."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv3d(3, 64, (3, 7, 7), (1, 2, 2), (1, 3, 3), bias=False),
            nn.BatchNorm3d(64),
            nn.ReLU(inplace=True),
        )


class R2Plus1dStem(nn.Sequential):
    """A convolution of 7 x 7 for each frame, then of 3 along time."""

    def __init__(self) -> None:
        within, across = _within_frames(3, 45, 7, 2, 3), _across_frames(45, 64, 1, 1)
        super().__init__(*within, across, nn.BatchNorm3d(64), nn.ReLU(inplace=True))


class VideoResNet(nn.Module):
    """Videos (N, 3, T, H, W) to scores (N, num_classes).

    Args:
        block: the class of a block.
        conv_makers: for each of four layers the class of its convolutions.
        layers: for each of four layers how many blocks.
        stem: the class of the first layer.
        num_classes: classes.
        zero_init_residual: begin each block as the identity.

    For an example see `vision.models.video.r3d_18`.
    """

    def __init__(
        self,
        block: Callable[..., nn.Module],
        conv_makers: Sequence[Any],
        layers: list[int],
        stem: Callable[..., nn.Module],
        num_classes: int = 400,
        zero_init_residual: bool = False,
    ) -> None:
        super().__init__()
        self.stem = stem()
        inplanes, stages = 64, []
        for i, (conv, count) in enumerate(zip(conv_makers, layers, strict=True)):
            planes, stride = 64 * 2**i, 1 if i == 0 else 2
            blocks = []
            for j in range(count):
                step = stride if j == 0 else 1
                outputs = planes * block.expansion
                shrink = None
                if step != 1 or inplanes != outputs:
                    steps = conv.get_downsample_stride(step)
                    fit = nn.Conv3d(inplanes, outputs, 1, steps, bias=False)
                    shrink = nn.Sequential(fit, nn.BatchNorm3d(outputs))
                blocks.append(block(inplanes, planes, conv, step, shrink))
                inplanes = outputs
            stages.append(nn.Sequential(*blocks))
        self.layer1, self.layer2, self.layer3, self.layer4 = stages
        self.avgpool = nn.AdaptiveAvgPool3d((1, 1, 1))
        self.fc = nn.Linear(inplanes, num_classes)
        init_layers(self, linear=normal(0.01))
        if zero_init_residual:
            for m in self.modules():
                last = getattr(m, "bn3", None)
                if last is not None:
                    nn.init.zeros_(last.weight)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layer4(self.layer3(self.layer2(self.layer1(self.stem(x)))))
        return self.fc(self.avgpool(x).flatten(1))


def _make(name: str, convs: list[type], stem: type) -> Made[VideoResNet]:
    weights = weights_enum(f"{name}_Weights", __name__)
    settings = BasicBlock, convs, [2, 2, 2, 2], stem
    return weights, builder(name.lower(), weights, VideoResNet, *settings, module=__name__)


R3D_18_Weights, r3d_18 = _make("R3D_18", [Conv3DSimple] * 4, BasicStem)
MC3_18_Weights, mc3_18 = _make("MC3_18", [Conv3DSimple, *[Conv3DNoTemporal] * 3], BasicStem)
R2Plus1D_18_Weights, r2plus1d_18 = _make("R2Plus1D_18", [Conv2Plus1D] * 4, R2Plus1dStem)

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [
        *["VideoResNet", "R3D_18_Weights", "MC3_18_Weights", "R2Plus1D_18_Weights"],
        *["r3d_18", "mc3_18", "r2plus1d_18"],
    ]
