"""S3D (Xie 2017): Inception for videos, with separate convolutions over space and time."""

from collections.abc import Callable
from functools import partial
from typing import Any

import rushlight as torch
from rushlight import Tensor, nn

from ...ops.misc import Conv3dNormActivation
from .._api import builder, weights_enum

_Norm = Callable[..., nn.Module]


class TemporalSeparableConv(nn.Sequential):
    """A convolution of each frame, then one along time."""

    def __init__(
        self,
        in_planes: int,
        out_planes: int,
        kernel_size: int,
        stride: int,
        padding: int,
        norm_layer: _Norm,
    ) -> None:
        k, s, p = kernel_size, stride, padding
        conv: Any = partial(Conv3dNormActivation, bias=False, norm_layer=norm_layer)
        super().__init__(
            conv(in_planes, out_planes, (1, k, k), stride=(1, s, s), padding=(0, p, p)),
            conv(out_planes, out_planes, (k, 1, 1), stride=(s, 1, 1), padding=(p, 0, 0)),
        )


class SepInceptionBlock3D(nn.Module):
    """1 x 1 x 1, two separable convolutions, pooling, side by side."""

    def __init__(
        self,
        in_planes: int,
        b0_out: int,
        b1_mid: int,
        b1_out: int,
        b2_mid: int,
        b2_out: int,
        b3_out: int,
        norm_layer: _Norm,
    ) -> None:
        super().__init__()

        def point(inputs: int, outputs: int) -> nn.Module:
            return Conv3dNormActivation(inputs, outputs, kernel_size=1, norm_layer=norm_layer)

        def separable(middle: int, outputs: int) -> nn.Module:
            return nn.Sequential(
                point(in_planes, middle),
                TemporalSeparableConv(middle, outputs, 3, 1, 1, norm_layer),
            )

        self.branch0 = point(in_planes, b0_out)
        self.branch1 = separable(b1_mid, b1_out)
        self.branch2 = separable(b2_mid, b2_out)
        self.branch3 = nn.Sequential(nn.MaxPool3d(3, stride=1, padding=1), point(in_planes, b3_out))

    def forward(self, x: Tensor) -> Tensor:
        branches = self.branch0, self.branch1, self.branch2, self.branch3
        return torch.cat([branch(x) for branch in branches], 1)


# Channels of the blocks' branches, between poolings.
_BLOCKS = (
    ((64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64)),
    (
        (192, 96, 208, 16, 48, 64),
        (160, 112, 224, 24, 64, 64),
        (128, 128, 256, 24, 64, 64),
        (112, 144, 288, 32, 64, 64),
        (256, 160, 320, 32, 128, 128),
    ),
    ((256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)),
)


class S3D(nn.Module):
    """Videos (N, 3, T, H, W), of 13 frames and 193² pixels at least, to scores (N, num_classes).

    Args:
        num_classes: classes.
        dropout: before the last layer.
        norm_layer: makes the norms.

    For an example see `vision.models.video.s3d`.
    """

    def __init__(
        self, num_classes: int = 400, dropout: float = 0.2, norm_layer: _Norm | None = None
    ) -> None:
        super().__init__()
        norm = norm_layer or partial(nn.BatchNorm3d, eps=0.001, momentum=0.001)
        smaller: Any = partial(nn.MaxPool3d, (1, 3, 3), stride=(1, 2, 2), padding=(0, 1, 1))
        layers: list[nn.Module] = [
            TemporalSeparableConv(3, 64, 7, 2, 3, norm),
            smaller(),
            Conv3dNormActivation(64, 64, kernel_size=1, norm_layer=norm),
            TemporalSeparableConv(64, 192, 3, 1, 1, norm),
            smaller(),
        ]
        pools = [nn.MaxPool3d(3, 2, 1), nn.MaxPool3d(2, 2)]
        inputs = 192
        for i, blocks in enumerate(_BLOCKS):
            for sizes in blocks:
                layers.append(SepInceptionBlock3D(inputs, *sizes, norm))
                b0, _, b1, _, b2, b3 = sizes
                inputs = b0 + b1 + b2 + b3
            layers += pools[i : i + 1]
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AvgPool3d(kernel_size=(2, 7, 7), stride=1)
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout), nn.Conv3d(inputs, num_classes, kernel_size=1)
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x))).mean(dim=(2, 3, 4))


S3D_Weights = weights_enum("S3D_Weights", __name__)
s3d = builder("s3d", S3D_Weights, S3D, module=__name__)

__all__ = ["S3D", "S3D_Weights", "s3d"]
