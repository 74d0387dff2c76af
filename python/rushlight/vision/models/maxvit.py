"""MaxViT (Tu 2022): convolutions, attention within windows, and attention across a grid of
windows.
"""

import math
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor, nn

from ..ops.dropping import StochasticDepth
from ..ops.misc import Conv2dNormActivation, SqueezeExcitation
from ._api import builder, overwrite, weights_enum
from ._utils import depth_rates, init_layers, normal
from .swin_transformer import relative_index


class MBConv(nn.Module):
    """Expansion, depthwise convolution, squeeze and excitation, projection, added to the input."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        expansion_ratio: float,
        squeeze_ratio: float,
        stride: int,
        activation_layer: Callable[..., nn.Module],
        norm_layer: Callable[..., nn.Module],
        p_stochastic_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.proj: nn.Module = nn.Identity()
        if stride != 1 or in_channels != out_channels:
            fit = nn.Conv2d(in_channels, out_channels, 1)
            self.proj = nn.Sequential(*([nn.AvgPool2d(3, stride, 1)] if stride == 2 else []), fit)
        inside = int(out_channels * expansion_ratio)
        how: dict[str, Any] = {
            "activation_layer": activation_layer,
            "norm_layer": norm_layer,
            "inplace": None,
        }
        rate = p_stochastic_dropout
        self.stochastic_depth = StochasticDepth(rate, "row") if rate else nn.Identity()
        self.layers = nn.Sequential(
            OrderedDict(
                pre_norm=norm_layer(in_channels),
                conv_a=Conv2dNormActivation(in_channels, inside, 1, **how),
                conv_b=Conv2dNormActivation(inside, inside, 3, stride, 1, groups=inside, **how),
                squeeze_excitation=SqueezeExcitation(
                    inside, int(out_channels * squeeze_ratio), activation=nn.SiLU
                ),
                conv_c=nn.Conv2d(inside, out_channels, 1),
            )
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(x) + self.stochastic_depth(self.layers(x))


class RelativePositionalMultiHeadAttention(nn.Module):
    """Attention (N, windows, L, C) with a learned bias for how far the positions of a square lie
    apart.
    """

    def __init__(self, feat_dim: int, head_dim: int, max_seq_len: int) -> None:
        super().__init__()
        if feat_dim % head_dim != 0:
            raise ValueError(f"feat_dim: {feat_dim} must be divisible by head_dim: {head_dim}")
        self.n_heads, self.head_dim, self.max_seq_len = feat_dim // head_dim, head_dim, max_seq_len
        side = int(math.sqrt(max_seq_len))
        self.to_qkv = nn.Linear(feat_dim, 3 * feat_dim)
        self.scale_factor = feat_dim**-0.5
        self.merge = nn.Linear(feat_dim, feat_dim)
        self.relative_position_bias_table = nn.Parameter(
            torch.empty((2 * side - 1) ** 2, self.n_heads)
        )
        index = relative_index([side, side]).view(max_seq_len, max_seq_len)
        self.register_buffer("relative_position_index", index)
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)

    def get_relative_positional_bias(self) -> Tensor:
        """The bias of pairs of positions: (1, heads, L, L)."""
        table = self.relative_position_bias_table[self.relative_position_index.view(-1)]
        by_pair = table.view(self.max_seq_len, self.max_seq_len, -1)
        return by_pair.permute(2, 0, 1).contiguous().unsqueeze(0)

    def forward(self, x: Tensor) -> Tensor:
        batch, windows, places, channels = x.shape
        split = batch, windows, places, self.n_heads, self.head_dim
        q, k, v = torch.chunk(self.to_qkv(x), 3, dim=-1)
        q, k, v = (part.reshape(*split).permute(0, 1, 3, 2, 4) for part in (q, k, v))
        scores = torch.einsum("bwhic,bwhjc->bwhij", q, k * self.scale_factor)
        share = F.softmax(scores + self.get_relative_positional_bias(), dim=-1)
        out = torch.einsum("bwhij,bwhjc->bwhic", share, v)
        return self.merge(out.permute(0, 1, 3, 2, 4).reshape(batch, windows, places, channels))


class WindowPartition(nn.Module):
    """Maps (N, C, H, W) as windows (N, windows, positions, C) of p rows and columns."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: Tensor, p: tuple[int, int]) -> Tensor:
        batch, channels, height, width = x.shape
        rows, columns = p
        x = x.reshape(batch, channels, height // rows, rows, width // columns, columns)
        x = x.permute(0, 2, 4, 3, 5, 1)
        count = (height // rows) * (width // columns)
        return x.reshape(batch, count, rows * columns, channels)


class WindowDepartition(nn.Module):
    """The inverse of `WindowPartition`, for this number of rows and columns of windows."""

    def __init__(self) -> None:
        super().__init__()

    def forward(
        self, x: Tensor, p: tuple[int, int], h_partitions: int, w_partitions: int
    ) -> Tensor:
        batch, _, _, channels = x.shape
        rows, columns = p
        x = x.reshape(batch, h_partitions, w_partitions, rows, columns, channels)
        x = x.permute(0, 5, 1, 3, 2, 4)
        return x.reshape(batch, channels, h_partitions * rows, w_partitions * columns)


class SwapAxes(nn.Module):
    """Swaps two dimensions."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__()
        self.a, self.b = a, b

    def forward(self, x: Tensor) -> Tensor:
        return torch.swapaxes(x, self.a, self.b)


class PartitionAttentionLayer(nn.Module):
    """Attention and two linear layers within windows ("window"), or across the windows' equal
    positions ("grid").
    """

    def __init__(
        self,
        in_channels: int,
        head_dim: int,
        partition_size: int,
        partition_type: str,
        grid_size: tuple[int, int],
        mlp_ratio: int,
        activation_layer: Callable[..., nn.Module],
        norm_layer: Callable[..., nn.Module],
        attention_dropout: float,
        mlp_dropout: float,
        p_stochastic_dropout: float,
    ) -> None:
        super().__init__()
        if partition_type not in ("grid", "window"):
            raise ValueError("partition_type must be either 'grid' or 'window'")
        self.partition_size, self.grid_size = partition_size, grid_size
        # Places of a window "across" the grid are as far apart as there are windows.
        across = partition_type == "grid"
        counts = grid_size[0] // partition_size, grid_size[1] // partition_size
        square = partition_size, partition_size
        self.p, self.g = (counts, square) if across else (square, counts)
        self.partition_op = WindowPartition()
        self.departition_op = WindowDepartition()
        self.partition_swap = SwapAxes(-2, -3) if across else nn.Identity()
        self.departition_swap = SwapAxes(-2, -3) if across else nn.Identity()
        self.attn_layer = nn.Sequential(
            norm_layer(in_channels),
            RelativePositionalMultiHeadAttention(in_channels, head_dim, partition_size**2),
            nn.Dropout(attention_dropout),
        )
        self.mlp_layer = nn.Sequential(
            nn.LayerNorm(in_channels),
            nn.Linear(in_channels, in_channels * mlp_ratio),
            activation_layer(),
            nn.Linear(in_channels * mlp_ratio, in_channels),
            nn.Dropout(mlp_dropout),
        )
        self.stochastic_dropout = StochasticDepth(p_stochastic_dropout, mode="row")

    def forward(self, x: Tensor) -> Tensor:
        torch._assert(
            not any(side % self.partition_size for side in self.grid_size),
            f"Grid size must be divisible by partition size: {self.grid_size} is not by "
            f"{self.partition_size}",
        )
        y = self.partition_swap(self.partition_op(x, self.p))
        y = y + self.stochastic_dropout(self.attn_layer(y))
        y = y + self.stochastic_dropout(self.mlp_layer(y))
        return self.departition_op(self.departition_swap(y), self.p, *self.g)


class MaxVitLayer(nn.Module):
    """A convolution block, attention within windows, attention across them."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        squeeze_ratio: float,
        expansion_ratio: float,
        stride: int,
        norm_layer: Callable[..., nn.Module],
        activation_layer: Callable[..., nn.Module],
        head_dim: int,
        mlp_ratio: int,
        mlp_dropout: float,
        attention_dropout: float,
        p_stochastic_dropout: float,
        partition_size: int,
        grid_size: tuple[int, int],
    ) -> None:
        super().__init__()

        def attention(kind: str) -> nn.Module:
            return PartitionAttentionLayer(
                *(out_channels, head_dim, partition_size, kind, grid_size, mlp_ratio),
                *(
                    activation_layer,
                    nn.LayerNorm,
                    attention_dropout,
                    mlp_dropout,
                    p_stochastic_dropout,
                ),
            )

        self.layers = nn.Sequential(
            OrderedDict(
                MBconv=MBConv(
                    *(in_channels, out_channels, expansion_ratio, squeeze_ratio, stride),
                    *(activation_layer, norm_layer, p_stochastic_dropout),
                ),
                window_attention=attention("window"),
                grid_attention=attention("grid"),
            )
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class MaxVitBlock(nn.Module):
    """Layers at one size, half the size of the input."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        squeeze_ratio: float,
        expansion_ratio: float,
        norm_layer: Callable[..., nn.Module],
        activation_layer: Callable[..., nn.Module],
        head_dim: int,
        mlp_ratio: int,
        mlp_dropout: float,
        attention_dropout: float,
        partition_size: int,
        input_grid_size: tuple[int, int],
        n_layers: int,
        p_stochastic: list[float],
    ) -> None:
        super().__init__()
        if len(p_stochastic) != n_layers:
            raise ValueError(
                f"p_stochastic must have length n_layers={n_layers}, got {p_stochastic}."
            )
        self.grid_size = (input_grid_size[0] + 1) // 2, (input_grid_size[1] + 1) // 2
        layers = []
        for i, rate in enumerate(p_stochastic):
            inputs, stride = (in_channels, 2) if i == 0 else (out_channels, 1)
            layers.append(
                MaxVitLayer(
                    *(inputs, out_channels, squeeze_ratio, expansion_ratio, stride),
                    *(norm_layer, activation_layer, head_dim, mlp_ratio, mlp_dropout),
                    *(attention_dropout, rate, partition_size, self.grid_size),
                )
            )
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class MaxVit(nn.Module):
    """Images (N, 3, *input_size) to scores (N, num_classes); ValueError if windows do not fit
    the size.

    Args:
        input_size: height and width of the images.
        stem_channels: channels of the first convolutions.
        partition_size: the side of a window of attention, in pixels of a map.
        block_channels: channels of each stage.
        block_layers: how many layers each stage has.
        head_dim: numbers of a head of attention.
        stochastic_depth_prob: the probability with which the last layer is left out in training;
            those before it are at less.
        norm_layer: makes a normalisation of maps; None: `nn.BatchNorm2d` with a momentum of 0.01.
        activation_layer: makes an activation.
        squeeze_ratio: channels in the middle of squeeze and excitation, relative to those of the
            block.
        expansion_ratio: channels inside a convolution block, relative to those after it.
        mlp_ratio: the same of the perceptron behind attention.
        mlp_dropout: the probability with which numbers of a perceptron become 0.
        attention_dropout: the same of attention's weights.
        num_classes: how many scores there are.

    Example:
        >>> net = torch.vision.models.MaxVit((64, 64), 8, 2, [8], [1], 4, 0.0, num_classes=3)
        >>> net(torch.zeros(1, 3, 64, 64)).shape
        torch.Size([1, 3])
    """

    def __init__(
        self,
        input_size: tuple[int, int],
        stem_channels: int,
        partition_size: int,
        block_channels: list[int],
        block_layers: list[int],
        head_dim: int,
        stochastic_depth_prob: float,
        norm_layer: Callable[..., nn.Module] | None = None,
        activation_layer: Callable[..., nn.Module] = nn.GELU,
        squeeze_ratio: float = 0.25,
        expansion_ratio: float = 4,
        mlp_ratio: int = 4,
        mlp_dropout: float = 0.0,
        attention_dropout: float = 0.0,
        num_classes: int = 1000,
    ) -> None:
        super().__init__()
        norm_layer = norm_layer or partial(nn.BatchNorm2d, eps=1e-3, momentum=0.01)
        for i in range(1, len(block_channels) + 1):
            size = tuple(-(-n // 2 ** (i + 1)) for n in input_size)
            if any(n % partition_size != 0 for n in size):
                raise ValueError(
                    f"Input size {input_size} is not divisible by partition size {partition_size} "
                    f"where it comes to block {i - 1}, as {size}"
                )
        how: dict[str, Any] = {"activation_layer": activation_layer, "norm_layer": norm_layer}
        self.stem = nn.Sequential(
            Conv2dNormActivation(3, stem_channels, 3, 2, **how, bias=False, inplace=None),
            Conv2dNormActivation(
                stem_channels, stem_channels, 3, norm_layer=None, activation_layer=None, bias=True
            ),
        )
        self.partition_size = partition_size
        grid = (input_size[0] + 1) // 2, (input_size[1] + 1) // 2
        rates = depth_rates(stochastic_depth_prob, sum(block_layers))
        self.blocks = nn.ModuleList()
        channels = stem_channels
        for outputs, count in zip(block_channels, block_layers, strict=True):
            block = MaxVitBlock(
                *(channels, outputs, squeeze_ratio, expansion_ratio, norm_layer, activation_layer),
                *(head_dim, mlp_ratio, mlp_dropout, attention_dropout, partition_size),
                *(grid, count, rates[:count]),
            )
            self.blocks.append(block)
            channels, grid, rates = outputs, block.grid_size, rates[count:]
        self.classifier = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.LayerNorm(channels),
            nn.Linear(channels, channels),
            nn.Tanh(),
            nn.Linear(channels, num_classes, bias=False),
        )
        init_layers(self, conv=normal(0.02), linear=normal(0.02))

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.classifier(x)


def _maxvit(**kwargs: Any) -> MaxVit:
    usual: dict[str, Any] = {
        "stem_channels": 64,
        "block_channels": [64, 128, 256, 512],
        "block_layers": [2, 2, 5, 2],
        "head_dim": 32,
        "stochastic_depth_prob": 0.2,
        "partition_size": 7,
        "input_size": (224, 224),
    }
    return MaxVit(**{**usual, **kwargs})


def _prepare(weights: Any, kwargs: dict[str, Any]) -> None:
    if weights is not None:
        overwrite(kwargs, "input_size", weights.meta["min_size"])


MaxVit_T_Weights = weights_enum("MaxVit_T_Weights", __name__)
maxvit_t = builder("maxvit_t", MaxVit_T_Weights, _maxvit, module=__name__, prepare=_prepare)

__all__ = ["MaxVit", "MaxVit_T_Weights", "maxvit_t"]
