"""ResNet (He 2015), ResNeXt (grouped) and Wide ResNet."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rushlight import Tensor, nn

from ._api import Made, builder, weights_enum
from ._utils import init_layers


def conv3x3(
    in_planes: int, out_planes: int, stride: int = 1, groups: int = 1, dilation: int = 1
) -> nn.Conv2d:
    """A 3 x 3 convolution without a bias that keeps the size at stride 1."""
    return nn.Conv2d(in_planes, out_planes, 3, stride, dilation, dilation, groups, bias=False)


def conv1x1(in_planes: int, out_planes: int, stride: int = 1) -> nn.Conv2d:
    """A 1 x 1 convolution without a bias."""
    return nn.Conv2d(in_planes, out_planes, 1, stride, bias=False)


class _Block(nn.Module):
    expansion: int = 1
    relu: nn.Module
    downsample: nn.Module | None

    def _branch(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        branch = self._branch(x)
        return self.relu(branch + (x if self.downsample is None else self.downsample(x)))


class BasicBlock(_Block):
    """A residual block of two 3 x 3 convolutions."""

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Module | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        norm_layer = norm_layer or nn.BatchNorm2d
        if groups != 1 or base_width != 64:
            raise ValueError("BasicBlock only supports groups=1 and base_width=64")
        if dilation > 1:
            raise NotImplementedError("Dilation > 1 not supported in BasicBlock")
        self.conv1 = conv3x3(inplanes, planes, stride)
        self.bn1 = norm_layer(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = norm_layer(planes)
        self.downsample = downsample
        self.stride = stride

    def _branch(self, x: Tensor) -> Tensor:
        return self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))


class Bottleneck(_Block):
    """A residual block of a 3 x 3 convolution between two of 1 x 1; the middle one has the
    stride.
    """

    expansion = 4

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Module | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        norm_layer = norm_layer or nn.BatchNorm2d
        width = int(planes * (base_width / 64.0)) * groups
        self.conv1 = conv1x1(inplanes, width)
        self.bn1 = norm_layer(width)
        self.conv2 = conv3x3(width, width, stride, groups, dilation)
        self.bn2 = norm_layer(width)
        self.conv3 = conv1x1(width, planes * self.expansion)
        self.bn3 = norm_layer(planes * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def _branch(self, x: Tensor) -> Tensor:
        x = self.relu(self.bn1(self.conv1(x)))
        return self.bn3(self.conv3(self.relu(self.bn2(self.conv2(x)))))


class ResNet(nn.Module):
    """Images (N, 3, H, W) to scores (N, num_classes), by four stages of blocks.

    Args:
        block: `BasicBlock` or `Bottleneck`, of `vision.models.resnet`.
        layers: how many blocks each of the four stages has.
        num_classes: how many scores there are.
        zero_init_residual: whether a block passes on its input alone at first.
        groups: groups of the middle convolutions of a `Bottleneck`.
        width_per_group: channels of such a group in the first stage.
        replace_stride_with_dilation: for each of the last three stages, whether it is dilated
            instead of made smaller; None: none is.
        norm_layer: makes a normalisation; None: `nn.BatchNorm2d`.

    Raises:
        ValueError: other than three stages are to be dilated, or not.

    Example:
        >>> from rushlight.vision.models.resnet import BasicBlock
        >>> with torch.device("meta"):  # shapes alone
        ...     net = torch.vision.models.ResNet(BasicBlock, [1, 1, 1, 1], num_classes=10)
        ...     scores = net(torch.empty(2, 3, 64, 64))
        >>> scores.shape
        torch.Size([2, 10])
    """

    def __init__(
        self,
        block: type[BasicBlock] | type[Bottleneck],
        layers: list[int],
        num_classes: int = 1000,
        zero_init_residual: bool = False,
        groups: int = 1,
        width_per_group: int = 64,
        replace_stride_with_dilation: list[bool] | None = None,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        self._norm_layer = norm_layer or nn.BatchNorm2d
        dilated = (
            [False, False, False]
            if replace_stride_with_dilation is None
            else replace_stride_with_dilation
        )
        if len(dilated) != 3:
            raise ValueError(
                f"replace_stride_with_dilation should be None or a 3-element tuple, got {dilated}"
            )
        self.inplanes, self.dilation = 64, 1
        self.groups, self.base_width = groups, width_per_group
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = self._norm_layer(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = self._make_layer(block, 64, layers[0])
        self.layer2 = self._make_layer(block, 128, layers[1], 2, dilated[0])
        self.layer3 = self._make_layer(block, 256, layers[2], 2, dilated[1])
        self.layer4 = self._make_layer(block, 512, layers[3], 2, dilated[2])
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        init_layers(self)
        if zero_init_residual:
            for m in self.modules():
                last = getattr(m, "bn3" if isinstance(m, Bottleneck) else "bn2", None)
                if isinstance(m, _Block) and last is not None and last.weight is not None:
                    nn.init.zeros_(last.weight)

    def _make_layer(
        self, block, planes: int, blocks: int, stride: int = 1, dilate: bool = False
    ) -> nn.Sequential:
        before = self.dilation
        if dilate:
            self.dilation *= stride
            stride = 1
        outputs = planes * block.expansion
        downsample = None
        if stride != 1 or self.inplanes != outputs:
            downsample = nn.Sequential(
                conv1x1(self.inplanes, outputs, stride), self._norm_layer(outputs)
            )
        layers = []
        for i in range(blocks):
            first = (stride, downsample) if i == 0 else (1, None)
            dilation = before if i == 0 else self.dilation
            layers.append(
                block(
                    self.inplanes,
                    planes,
                    *first,
                    self.groups,
                    self.base_width,
                    dilation,
                    self._norm_layer,
                )
            )
            self.inplanes = outputs
        return nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))


def _make(name: str, block: type, layers: list[int], **settings: int) -> Made[ResNet]:
    def prepare(weights: Any, kwargs: dict[str, Any]) -> None:
        kwargs.update(settings)

    weights = weights_enum(f"{name}_Weights", __name__)
    return weights, builder(
        name.lower(), weights, ResNet, block, layers, module=__name__, prepare=prepare
    )


ResNet18_Weights, resnet18 = _make("ResNet18", BasicBlock, [2, 2, 2, 2])
ResNet34_Weights, resnet34 = _make("ResNet34", BasicBlock, [3, 4, 6, 3])
ResNet50_Weights, resnet50 = _make("ResNet50", Bottleneck, [3, 4, 6, 3])
ResNet101_Weights, resnet101 = _make("ResNet101", Bottleneck, [3, 4, 23, 3])
ResNet152_Weights, resnet152 = _make("ResNet152", Bottleneck, [3, 8, 36, 3])
ResNeXt50_32X4D_Weights, resnext50_32x4d = _make(
    "ResNeXt50_32X4D", Bottleneck, [3, 4, 6, 3], groups=32, width_per_group=4
)
ResNeXt101_32X8D_Weights, resnext101_32x8d = _make(
    "ResNeXt101_32X8D", Bottleneck, [3, 4, 23, 3], groups=32, width_per_group=8
)
ResNeXt101_64X4D_Weights, resnext101_64x4d = _make(
    "ResNeXt101_64X4D", Bottleneck, [3, 4, 23, 3], groups=64, width_per_group=4
)
Wide_ResNet50_2_Weights, wide_resnet50_2 = _make(
    "Wide_ResNet50_2", Bottleneck, [3, 4, 6, 3], width_per_group=128
)
Wide_ResNet101_2_Weights, wide_resnet101_2 = _make(
    "Wide_ResNet101_2", Bottleneck, [3, 4, 23, 3], width_per_group=128
)

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [name for name in dir() if name.lower().startswith(("res", "wide"))]
