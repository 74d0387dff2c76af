"""Swin transformers of videos (Liu 2021): attention in windows of space and time."""

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import rushlight.nn.functional as F
from rushlight import Tensor, fx, nn

from .._api import Made, builder, weights_enum
from ..swin_transformer import (
    PatchMerging,
    ShiftedWindowAttention,
    SwinTransformerBlock,
    init_linear,
    shifted_window_attention,
    stages_of_blocks,
)

# What asks for sizes, which are not known while a graph is traced, is a node of it. Names of nodes
# are torchvision's.


@fx.wrap
def _compute_pad_size_3d(size_dhw: tuple[int, ...], patch_size: tuple[int, ...]) -> tuple[int, ...]:
    """What is missing in each dimension to multiples of a patch."""
    return tuple(-n % p for n, p in zip(size_dhw, patch_size, strict=True))


@fx.wrap
def _get_window_and_shift_size(
    shift_size: list[int], size_dhw: list[int], window_size: list[int]
) -> tuple[list[int], list[int]]:
    """Windows that are no larger than the video, and shifts: none along what one window covers."""
    pairs = list(zip(window_size, size_dhw, strict=True))
    shifts = [0 if n <= w else s for (w, n), s in zip(pairs, shift_size, strict=True)]
    return [min(w, n) for w, n in pairs], shifts


@fx.wrap
def _get_relative_position_bias(
    relative_position_bias_table: Tensor, relative_position_index: Tensor, window_size: list[int]
) -> Tensor:
    """(1, heads, L, L). A smaller window takes the first rows of the index (L, L), as the trained
    weights want it.
    """
    places = math.prod(window_size)
    index = relative_position_index[:places, :places].flatten()
    bias = relative_position_bias_table[index].view(places, places, -1)
    return bias.permute(2, 0, 1).contiguous()[None]


@fx.wrap
def shifted_window_attention_3d(
    input: Tensor,
    qkv_weight: Tensor,
    proj_weight: Tensor,
    relative_position_bias: Tensor,
    window_size: list[int],
    num_heads: int,
    shift_size: list[int],
    attention_dropout: float = 0.0,
    dropout: float = 0.0,
    qkv_bias: Tensor | None = None,
    proj_bias: Tensor | None = None,
    training: bool = True,
) -> Tensor:
    """`shifted_window_attention` of videos (N, T, H, W, C)."""
    return shifted_window_attention(
        *(input, qkv_weight, proj_weight, relative_position_bias),
        *(window_size, num_heads, shift_size, attention_dropout, dropout),
        *(qkv_bias, proj_bias),
        training=training,
    )


class ShiftedWindowAttention3d(ShiftedWindowAttention):
    """`ShiftedWindowAttention` of videos."""

    def define_relative_position_index(self) -> None:
        super().define_relative_position_index()
        places = math.prod(self.window_size)
        self.relative_position_index = self.relative_position_index.view(places, places)

    def get_relative_position_bias(self, window_size: list[int]) -> Tensor:
        """(1, heads, L, L) for positions of a window."""
        return _get_relative_position_bias(
            self.relative_position_bias_table, self.relative_position_index, window_size
        )

    def forward(self, x: Tensor) -> Tensor:
        _, t, h, w, _ = x.shape
        window, shift = _get_window_and_shift_size(self.shift_size, [t, h, w], self.window_size)
        bias = self.get_relative_position_bias(window)
        return shifted_window_attention_3d(
            *(x, self.qkv.weight, self.proj.weight, bias, window, self.num_heads, shift),
            *(self.attention_dropout, self.dropout, self.qkv.bias, self.proj.bias, self.training),
        )


class PatchEmbed3d(nn.Module):
    """Patches of videos (N, C, T, H, W) as (N, T / p, H / p, W / p, embed_dim)."""

    def __init__(
        self,
        patch_size: list[int],
        in_channels: int = 3,
        embed_dim: int = 96,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        self.patch_size = patch_size
        size = tuple(patch_size)
        self.proj = nn.Conv3d(in_channels, embed_dim, kernel_size=size, stride=size)
        self.norm = norm_layer(embed_dim) if norm_layer is not None else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        _, _, t, h, w = x.size()
        behind, below, right = _compute_pad_size_3d((t, h, w), tuple(self.patch_size))
        x = F.pad(x, (0, right, 0, below, 0, behind))
        return self.norm(self.proj(x).permute(0, 2, 3, 4, 1))


class SwinTransformer3d(nn.Module):
    """Videos (N, 3, T, H, W) to scores (N, num_classes).

    Args:
        patch_size: frames, rows and columns of a patch.
        embed_dim: numbers of a patch.
        depths: blocks of each stage.
        num_heads: heads of each stage.
        window_size: patches of a window along time, rows and columns.
        mlp_ratio: the width within blocks by their own.
        dropout: behind layers.
        attention_dropout: within attention.
        stochastic_depth_prob: how probably the last block is left out; the first never is.
        num_classes: classes.
        norm_layer: makes the norms.
        block: makes a block.
        downsample_layer: what stands between stages.
        patch_embed: makes patches.

    For an example see `vision.models.video.swin3d_t`.
    """

    def __init__(
        self,
        patch_size: list[int],
        embed_dim: int,
        depths: list[int],
        num_heads: list[int],
        window_size: list[int],
        mlp_ratio: float = 4.0,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        stochastic_depth_prob: float = 0.1,
        num_classes: int = 400,
        norm_layer: Callable[..., nn.Module] | None = None,
        block: Callable[..., nn.Module] | None = None,
        downsample_layer: Callable[..., nn.Module] = PatchMerging,
        patch_embed: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        self.num_classes = num_classes
        norm_layer = norm_layer or partial(nn.LayerNorm, eps=1e-5)
        patches = patch_embed or PatchEmbed3d
        self.patch_embed = patches(patch_size, embed_dim=embed_dim, norm_layer=norm_layer)
        self.pos_drop = nn.Dropout(p=dropout)
        self.features = nn.Sequential(
            *stages_of_blocks(
                *(embed_dim, depths, num_heads, window_size, stochastic_depth_prob),
                block or partial(SwinTransformerBlock, attn_layer=ShiftedWindowAttention3d),
                *(downsample_layer, norm_layer),
                mlp_ratio=mlp_ratio,
                dropout=dropout,
                attention_dropout=attention_dropout,
            )
        )
        self.num_features = embed_dim * 2 ** (len(depths) - 1)
        self.norm = norm_layer(self.num_features)
        self.avgpool = nn.AdaptiveAvgPool3d(1)
        self.head = nn.Linear(self.num_features, num_classes)
        init_linear(self)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.features(self.pos_drop(self.patch_embed(x))))
        return self.head(self.avgpool(x.permute(0, 4, 1, 2, 3)).flatten(1))


def _swin3d(width: int, depth: int, heads: int, **kwargs: Any) -> SwinTransformer3d:
    counts = [heads * 2**i for i in range(4)]
    return SwinTransformer3d([2, 4, 4], width, [2, 2, depth, 2], counts, [8, 7, 7], **kwargs)


def _make(size: str, *settings: int) -> Made[SwinTransformer3d]:
    weights = weights_enum(f"Swin3D_{size.upper()}_Weights", __name__)
    return weights, builder(f"swin3d_{size}", weights, _swin3d, *settings, module=__name__)


Swin3D_T_Weights, swin3d_t = _make("t", 96, 6, 3)
Swin3D_S_Weights, swin3d_s = _make("s", 96, 18, 3)
Swin3D_B_Weights, swin3d_b = _make("b", 128, 18, 4)

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [
        "SwinTransformer3d",
        *(n for n in dir() if n.startswith(("Swin3D_", "swin3d_"))),
    ]
