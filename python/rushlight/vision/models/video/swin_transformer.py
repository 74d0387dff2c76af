"""Swin transformers of videos (Liu 2021): attention in windows of space and time."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import rushlight.nn.functional as F
from rushlight import Tensor, fx, nn

from .._api import builder, weights_enum
from ..swin_transformer import (
    PatchMerging,
    ShiftedWindowAttention,
    SwinTransformerBlock,
    init_linear,
    shifted_window_attention,
    stages_of_blocks,
)


def attention_of_videos(
    x: Tensor, table: Tensor, index: Tensor, window: list[int], *args: Any, **kwargs: Any
) -> Tensor:
    """`shifted_window_attention` in windows that are no larger than the video (N, T, H, W, C).

    A smaller window takes the first rows of `index` (L, L), as the trained weights want it.
    """
    window = [min(w, size) for w, size in zip(window, x.shape[1:-1], strict=True)]
    places = math.prod(window)
    bias = table[index[:places, :places].flatten()].view(places, places, -1)
    kwargs["relative_position_bias"] = bias.permute(2, 0, 1).contiguous()[None]
    return shifted_window_attention(x, *args, window_size=window, **kwargs)


def filled(x: Tensor, patch: list[int]) -> Tensor:
    """Videos (N, C, T, H, W) with zeros behind, up to multiples of a patch."""
    missing = [-size % p for size, p in zip(x.shape[2:], patch, strict=True)]
    return F.pad(x, [n for m in reversed(missing) for n in (0, m)])


# Both ask for sizes, which are not known while a graph is traced.
fx.wrap("attention_of_videos")
fx.wrap("filled")


class ShiftedWindowAttention3d(ShiftedWindowAttention):
    """`ShiftedWindowAttention` of videos."""

    def define_relative_position_index(self) -> None:
        super().define_relative_position_index()
        places = math.prod(self.window_size)
        self.relative_position_index = self.relative_position_index.view(places, places)

    def forward(self, x: Tensor) -> Tensor:
        return attention_of_videos(
            x,
            self.relative_position_bias_table,
            self.relative_position_index,
            self.window_size,
            (self.qkv.weight, self.qkv.bias),
            (self.proj.weight, self.proj.bias),
            num_heads=self.num_heads,
            shift_size=self.shift_size,
            attention_dropout=self.attention_dropout,
            dropout=self.dropout,
            training=self.training,
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
        return self.norm(self.proj(filled(x, self.patch_size)).permute(0, 2, 3, 4, 1))


class SwinTransformer3d(nn.Module):
    """Videos (N, 3, T, H, W) to scores (N, num_classes)."""

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


def _make(size: str, *settings: int) -> tuple[Any, Any]:
    weights = weights_enum(f"Swin3D_{size.upper()}_Weights", __name__)
    return weights, builder(f"swin3d_{size}", weights, _swin3d, *settings, module=__name__)


Swin3D_T_Weights, swin3d_t = _make("t", 96, 6, 3)
Swin3D_S_Weights, swin3d_s = _make("s", 96, 18, 3)
Swin3D_B_Weights, swin3d_b = _make("b", 128, 18, 4)

__all__ = [
    "SwinTransformer3d",
    *(n for n in dir() if n.startswith(("Swin3D_", "swin3d_"))),
]
