"""Inception v3 (Szegedy 2015)."""

from collections import namedtuple
from collections.abc import Callable

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor, nn

from ._api import builder, weights_enum
from .googlenet import BasicConv2d, init_truncated, prepare_heads, renormalize, warn_of_drawing

InceptionOutputs = namedtuple("InceptionOutputs", ["logits", "aux_logits"])
InceptionOutputs.__doc__ = """What the network gives in training: the scores of its two classifiers.

Args:
    logits: of the last.
    aux_logits: of the one within the network, or None.

For an example see `vision.models.inception_v3`.
"""
InceptionOutputs.__annotations__ = {"logits": Tensor, "aux_logits": Tensor | None}
_Conv = Callable[..., nn.Module] | None


class _Branches(nn.Module):
    """Chains of convolutions side by side, named NAME_1, NAME_2 …, or NAME where there is one."""

    def __init__(self, in_channels: int, conv_block: _Conv) -> None:
        super().__init__()
        self._inputs, self._conv = in_channels, conv_block or BasicConv2d

    def _chain(self, name: str, *layers: tuple) -> None:
        """Layers: channels, side or sides, stride, and whether the size is kept."""
        inputs = self._inputs
        for i, (outputs, side, stride, kept) in enumerate(layers, 1):
            sides = side if isinstance(side, tuple) else (side, side)
            padding = tuple(s // 2 for s in sides) if kept else 0
            own = f"{name}_{i}" if len(layers) > 1 else name
            self.add_module(
                own, self._conv(inputs, outputs, kernel_size=side, stride=stride, padding=padding)
            )
            inputs = outputs

    def _split(self, name: str, inputs: int, outputs: int) -> None:
        """A row and a column beside each other: NAMEa and NAMEb."""
        self.add_module(f"{name}a", self._conv(inputs, outputs, kernel_size=(1, 3), padding=(0, 1)))
        self.add_module(f"{name}b", self._conv(inputs, outputs, kernel_size=(3, 1), padding=(1, 0)))

    def _pool(self, x: Tensor) -> Tensor:
        return self.branch_pool(F.avg_pool2d(x, kernel_size=3, stride=1, padding=1))

    def _forward(self, x: Tensor) -> list[Tensor]:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat(self._forward(x), 1)


class InceptionA(_Branches):
    """1 x 1, 5 x 5, twice 3 x 3, pooling."""

    def __init__(self, in_channels: int, pool_features: int, conv_block: _Conv = None) -> None:
        super().__init__(in_channels, conv_block)
        self._chain("branch1x1", (64, 1, 1, True))
        self._chain("branch5x5", (48, 1, 1, True), (64, 5, 1, True))
        self._chain("branch3x3dbl", (64, 1, 1, True), (96, 3, 1, True), (96, 3, 1, True))
        self._chain("branch_pool", (pool_features, 1, 1, True))

    def _forward(self, x: Tensor) -> list[Tensor]:
        one = self.branch1x1(x)
        five = self.branch5x5_2(self.branch5x5_1(x))
        twice = self.branch3x3dbl_3(self.branch3x3dbl_2(self.branch3x3dbl_1(x)))
        return [one, five, twice, self._pool(x)]


class InceptionB(_Branches):
    """Half the size: 3 x 3, twice 3 x 3, largest pixels."""

    def __init__(self, in_channels: int, conv_block: _Conv = None) -> None:
        super().__init__(in_channels, conv_block)
        self._chain("branch3x3", (384, 3, 2, False))
        self._chain("branch3x3dbl", (64, 1, 1, True), (96, 3, 1, True), (96, 3, 2, False))

    def _forward(self, x: Tensor) -> list[Tensor]:
        three = self.branch3x3(x)
        twice = self.branch3x3dbl_3(self.branch3x3dbl_2(self.branch3x3dbl_1(x)))
        return [three, twice, F.max_pool2d(x, kernel_size=3, stride=2)]


class InceptionC(_Branches):
    """1 x 1, rows and columns of 7, twice those, pooling."""

    def __init__(self, in_channels: int, channels_7x7: int, conv_block: _Conv = None) -> None:
        super().__init__(in_channels, conv_block)
        c, row, column = channels_7x7, (1, 7), (7, 1)
        self._chain("branch1x1", (192, 1, 1, True))
        self._chain("branch7x7", (c, 1, 1, True), (c, row, 1, True), (192, column, 1, True))
        twice = [(c, column, 1, True), (c, row, 1, True), (c, column, 1, True), (192, row, 1, True)]
        self._chain("branch7x7dbl", (c, 1, 1, True), *twice)
        self._chain("branch_pool", (192, 1, 1, True))

    def _forward(self, x: Tensor) -> list[Tensor]:
        one = self.branch1x1(x)
        seven = self.branch7x7_3(self.branch7x7_2(self.branch7x7_1(x)))
        twice = self.branch7x7dbl_3(self.branch7x7dbl_2(self.branch7x7dbl_1(x)))
        twice = self.branch7x7dbl_5(self.branch7x7dbl_4(twice))
        return [one, seven, twice, self._pool(x)]


class InceptionD(_Branches):
    """Half the size: 3 x 3, a row and a column of 7 before it, largest pixels."""

    def __init__(self, in_channels: int, conv_block: _Conv = None) -> None:
        super().__init__(in_channels, conv_block)
        self._chain("branch3x3", (192, 1, 1, True), (320, 3, 2, False))
        lines = [(192, (1, 7), 1, True), (192, (7, 1), 1, True)]
        self._chain("branch7x7x3", (192, 1, 1, True), *lines, (192, 3, 2, False))

    def _forward(self, x: Tensor) -> list[Tensor]:
        three = self.branch3x3_2(self.branch3x3_1(x))
        seven = self.branch7x7x3_2(self.branch7x7x3_1(x))
        seven = self.branch7x7x3_4(self.branch7x7x3_3(seven))
        return [three, seven, F.max_pool2d(x, kernel_size=3, stride=2)]


class InceptionE(_Branches):
    """1 x 1, rows beside columns of 3, those behind a 3 x 3, pooling."""

    def __init__(self, in_channels: int, conv_block: _Conv = None) -> None:
        super().__init__(in_channels, conv_block)
        self._chain("branch1x1", (320, 1, 1, True))
        self.branch3x3_1 = self._conv(in_channels, 384, kernel_size=1)
        self._split("branch3x3_2", 384, 384)
        self._chain("branch3x3dbl", (448, 1, 1, True), (384, 3, 1, True))
        self._split("branch3x3dbl_3", 384, 384)
        self._chain("branch_pool", (192, 1, 1, True))

    def _forward(self, x: Tensor) -> list[Tensor]:
        one = self.branch1x1(x)
        three = self.branch3x3_1(x)
        three = torch.cat([self.branch3x3_2a(three), self.branch3x3_2b(three)], 1)
        twice = self.branch3x3dbl_2(self.branch3x3dbl_1(x))
        twice = torch.cat([self.branch3x3dbl_3a(twice), self.branch3x3dbl_3b(twice)], 1)
        return [one, three, twice, self._pool(x)]


class InceptionAux(nn.Module):
    """An auxiliary classifier in the middle of the network."""

    def __init__(self, in_channels: int, num_classes: int, conv_block: _Conv = None) -> None:
        super().__init__()
        conv = conv_block or BasicConv2d
        self.conv0 = conv(in_channels, 128, kernel_size=1)
        self.conv1 = conv(128, 768, kernel_size=5)
        self.conv1.stddev = 0.01
        self.fc = nn.Linear(768, num_classes)
        self.fc.stddev = 0.001

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv1(self.conv0(F.avg_pool2d(x, kernel_size=5, stride=3)))
        return self.fc(F.adaptive_avg_pool2d(x, (1, 1)).flatten(1))


class Inception3(nn.Module):
    """Images (N, 3, H, W), usually of 299², to scores (N, num_classes); in training with those of
    one more head.

    transform_input: images are normalised by ImageNet's colours, the weights want 0.5 and 0.5.

    Args:
        num_classes: how many scores there are.
        aux_logits: whether there is one more head, for training.
        transform_input: whether images that are normalised by ImageNet's colours become such of
            means and deviations of 0.5.
        inception_blocks: makes of the seven kinds of blocks; None: the usual ones.
        init_weights: whether weights are drawn as the paper says, which takes long; None: they are,
            with a warning.
        dropout: the probability with which numbers before the last layer become 0.

    Example:
        >>> with torch.device("meta"):  # shapes alone
        ...     net = torch.vision.models.Inception3(num_classes=10, init_weights=False).eval()
        ...     scores = net(torch.empty(2, 3, 299, 299))
        >>> scores.shape
        torch.Size([2, 10])
    """

    def __init__(
        self,
        num_classes: int = 1000,
        aux_logits: bool = True,
        transform_input: bool = False,
        inception_blocks: list[Callable[..., nn.Module]] | None = None,
        init_weights: bool | None = None,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        init_weights = warn_of_drawing("Inception3") if init_weights is None else init_weights
        usual = [
            BasicConv2d,
            InceptionA,
            InceptionB,
            InceptionC,
            InceptionD,
            InceptionE,
            InceptionAux,
        ]
        blocks = usual if inception_blocks is None else inception_blocks
        if len(blocks) != 7:
            raise ValueError(f"length of inception_blocks should be 7 instead of {len(blocks)}")
        conv, a, b, c, d, e, aux = blocks
        self.aux_logits, self.transform_input = aux_logits, transform_input
        self.Conv2d_1a_3x3 = conv(3, 32, kernel_size=3, stride=2)
        self.Conv2d_2a_3x3 = conv(32, 32, kernel_size=3)
        self.Conv2d_2b_3x3 = conv(32, 64, kernel_size=3, padding=1)
        self.maxpool1 = nn.MaxPool2d(kernel_size=3, stride=2)
        self.Conv2d_3b_1x1 = conv(64, 80, kernel_size=1)
        self.Conv2d_4a_3x3 = conv(80, 192, kernel_size=3)
        self.maxpool2 = nn.MaxPool2d(kernel_size=3, stride=2)
        self.Mixed_5b = a(192, pool_features=32)
        self.Mixed_5c = a(256, pool_features=64)
        self.Mixed_5d = a(288, pool_features=64)
        self.Mixed_6a = b(288)
        self.Mixed_6b = c(768, channels_7x7=128)
        self.Mixed_6c = c(768, channels_7x7=160)
        self.Mixed_6d = c(768, channels_7x7=160)
        self.Mixed_6e = c(768, channels_7x7=192)
        self.AuxLogits = aux(768, num_classes) if aux_logits else None
        self.Mixed_7a = d(768)
        self.Mixed_7b = e(1280)
        self.Mixed_7c = e(2048)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(p=dropout)
        self.fc = nn.Linear(2048, num_classes)
        if init_weights:
            init_truncated(self, 0.1)

    def _features(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        x = self.maxpool1(self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(self.Conv2d_1a_3x3(x))))
        x = self.maxpool2(self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(x)))
        x = self.Mixed_6a(self.Mixed_5d(self.Mixed_5c(self.Mixed_5b(x))))
        x = self.Mixed_6e(self.Mixed_6d(self.Mixed_6c(self.Mixed_6b(x))))
        aux = self.AuxLogits(x) if self.AuxLogits is not None and self.training else None
        x = self.avgpool(self.Mixed_7c(self.Mixed_7b(self.Mixed_7a(x))))
        return self.fc(self.dropout(x).flatten(1)), aux

    def eager_outputs(self, x: Tensor, aux: Tensor | None) -> InceptionOutputs | Tensor:
        """The result of the model: in training with the scores of the auxiliary classifier."""
        return InceptionOutputs(x, aux) if self.training and self.aux_logits else x

    def forward(self, x: Tensor) -> InceptionOutputs:  # the tensor alone outside of programs
        x, aux = self._features(renormalize(x) if self.transform_input else x)
        if torch.jit.is_scripting():
            return InceptionOutputs(x, aux)
        return self.eager_outputs(x, aux)  # type: ignore[return-value]


Inception_V3_Weights = weights_enum("Inception_V3_Weights", __name__)
inception_v3 = builder(
    "inception_v3", Inception_V3_Weights, Inception3, module=__name__, prepare=prepare_heads
)

__all__ = ["Inception3", "InceptionOutputs", "Inception_V3_Weights", "inception_v3"]
