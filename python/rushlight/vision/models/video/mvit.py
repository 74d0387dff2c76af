"""MViT (Fan 2021) and its second version (Li 2022): attention with ever fewer positions and ever
more channels.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor, fx, nn

from ...ops.dropping import StochasticDepth
from ...ops.misc import MLP
from .._api import Made, builder, weights_enum
from .._utils import depth_rates

Size = tuple[int, int, int]  # frames, rows, columns


@dataclass
class MSBlockConfig:
    """The heads and channels of a block, and how queries, keys and values are pooled, if at all."""

    num_heads: int
    input_channels: int
    output_channels: int
    kernel_q: list[int]
    kernel_kv: list[int]
    stride_q: list[int]
    stride_kv: list[int]


class Pool(nn.Module):
    """Pools the positions (N, 1 + T H W, C), also of each head (N, heads, 1 + T H W, C), behind the
    first, that of the class.
    """

    def __init__(
        self,
        pool: Any,
        norm: nn.Module | None,
        activation: nn.Module | None = None,
        norm_before_pool: bool = False,
    ) -> None:
        super().__init__()
        self.pool = pool
        layers = [layer for layer in (norm, activation) if layer is not None]
        self.norm_act = nn.Sequential(*layers) if layers else None
        self.norm_before_pool = norm_before_pool

    def normalize(self, x: Tensor, before: bool) -> Tensor:
        """Norm and activation, where they belong before (or behind) the pooling."""
        if self.norm_act is not None and self.norm_before_pool == before:
            x = self.norm_act(x)
        return x

    def shrink(self, x: Tensor, thw: Size) -> tuple[Tensor, Size]:
        """Positions (N, heads, L, C) of a video, pooled, and the sizes of what they are then."""
        images = x.transpose(2, 3)
        batch, heads, channels = images.shape[:3]
        small = self.pool(images.reshape((batch * heads, channels, *thw)).contiguous())
        t, h, w = small.shape[2:]
        return small.reshape(batch, heads, channels, -1).transpose(2, 3), (t, h, w)

    def forward(self, x: Tensor, thw: Size) -> tuple[Tensor, Size]:
        x, dims = _unsqueeze(x, 4, 1)
        first, rest = torch.tensor_split(x, (1,), 2)
        rest, thw = self.shrink(self.normalize(rest, True), thw)
        return _squeeze(self.normalize(torch.cat([first, rest], 2), False), 4, 1, dims), thw


def _resample(table: Tensor, length: int) -> Tensor:
    """Rows of a table, as many as `length`, between its own."""
    if len(table) == length:
        return table
    return F.interpolate(table.t()[None], size=length, mode="linear")[0].t()


def _by_distance(table: Tensor, queries: int, keys: int) -> Tensor:
    """Rows (queries, keys, C) of a table by how far positions of one axis lie apart."""
    # The coarser axis has the wider steps.
    q = torch.arange(queries, device=table.device) * max(keys / queries, 1.0)
    k = torch.arange(keys, device=table.device) * max(queries / keys, 1.0)
    apart = q[:, None] - k + (keys - 1) * max(queries / keys, 1.0)
    return _resample(table, 2 * max(queries, keys) - 1)[apart.long()]


# What asks for sizes, which are not known while a graph is traced, is a node of it. Names of nodes
# are torchvision's.


@fx.wrap
def _unsqueeze(x: Tensor, target_dim: int, expand_dim: int) -> tuple[Tensor, int]:
    """`x` with one dimension more where it has one less than target_dim, and how many it had."""
    dims = x.dim()
    return (x.unsqueeze(expand_dim) if dims == target_dim - 1 else x), dims


@fx.wrap
def _squeeze(x: Tensor, target_dim: int, expand_dim: int, tensor_dim: int) -> Tensor:
    """Undoes `_unsqueeze`."""
    return x.squeeze(expand_dim) if tensor_dim == target_dim - 1 else x


@fx.wrap
def _add_rel_pos(
    attn: Tensor,
    q: Tensor,
    q_thw: Size,
    k_thw: Size,
    rel_pos_h: Tensor,
    rel_pos_w: Tensor,
    rel_pos_t: Tensor,
) -> Tensor:
    """Scores (N, heads, 1 + T H W, 1 + positions) plus the terms for distances of positions, except
    for the class token.
    """
    t, h, w = (
        _by_distance(table, queries, keys)
        for table, queries, keys in zip(
            (rel_pos_t, rel_pos_h, rel_pos_w), q_thw, k_thw, strict=True
        )
    )
    x = q[:, :, 1:].unflatten(2, q_thw)
    more = (
        torch.einsum("nmthwc,tkc->nmthwk", x, t)[..., :, None, None]
        + torch.einsum("nmthwc,hkc->nmthwk", x, h)[..., None, :, None]
        + torch.einsum("nmthwc,wkc->nmthwk", x, w)[..., None, None, :]
    )
    return attn + F.pad(more.flatten(5).flatten(2, 4), (1, 0, 1, 0))


@fx.wrap
def _add_shortcut(x: Tensor, shortcut: Tensor, residual_with_cls_embed: bool) -> Tensor:
    """`x` and the shortcut, that of the class only if it is wanted."""
    return x + (shortcut if residual_with_cls_embed else F.pad(shortcut[:, :, 1:], (0, 0, 1, 0)))


class MultiscaleAttention(nn.Module):
    """Attention of pooled positions (N, 1 + T H W, embed_dim) to (N, 1 + fewer, output_dim).

    residual_pool: pooled queries are added to the result, that of the class only with
    residual_with_cls_embed.
    """

    def __init__(
        self,
        input_size: Sequence[int],
        embed_dim: int,
        output_dim: int,
        num_heads: int,
        kernel_q: list[int],
        kernel_kv: list[int],
        stride_q: list[int],
        stride_kv: list[int],
        residual_pool: bool,
        residual_with_cls_embed: bool,
        rel_pos_embed: bool,
        dropout: float = 0.0,
        norm_layer: Callable[..., nn.Module] = nn.LayerNorm,
    ) -> None:
        super().__init__()
        self.embed_dim, self.output_dim, self.num_heads = embed_dim, output_dim, num_heads
        self.head_dim = output_dim // num_heads
        self.scaler = 1.0 / math.sqrt(self.head_dim)
        self.residual_pool = residual_pool
        self.residual_with_cls_embed = residual_with_cls_embed
        self.qkv = nn.Linear(embed_dim, 3 * output_dim)
        dropped = [nn.Dropout(dropout, inplace=True)] if dropout > 0.0 else []
        self.project = nn.Sequential(nn.Linear(output_dim, output_dim), *dropped)

        def pool(kernel: list[int], stride: list[int]) -> nn.Module | None:
            if not kernel or math.prod(kernel) * math.prod(stride) == 1:
                return None
            padding, c = tuple(k // 2 for k in kernel), self.head_dim
            how = {"stride": tuple(stride), "padding": padding, "groups": c, "bias": False}
            return Pool(nn.Conv3d(c, c, tuple(kernel), **how), norm_layer(c))

        self.pool_q = pool(kernel_q, stride_q)
        self.pool_k, self.pool_v = pool(kernel_kv, stride_kv), pool(kernel_kv, stride_kv)
        longest = max(input_size[1:])
        for axis, size in zip("hwt", (longest, longest, input_size[0]), strict=True):
            i = "thw".index(axis)
            steps = [s[i] if s else 1 for s in (stride_q, stride_kv)]
            rows = 2 * max(size // step for step in steps) - 1
            table = nn.Parameter(torch.zeros(rows, self.head_dim)) if rel_pos_embed else None
            self.register_parameter(f"rel_pos_{axis}", table)
        if rel_pos_embed:
            for axis in "hwt":
                nn.init.trunc_normal_(getattr(self, f"rel_pos_{axis}"), std=0.02)

    def forward(self, x: Tensor, thw: Size) -> tuple[Tensor, Size]:
        batch, places, _ = x.shape
        heads = self.qkv(x).reshape(batch, places, 3, self.num_heads, self.head_dim)
        q, k, v = heads.transpose(1, 3).unbind(dim=2)
        pools, parts = (self.pool_k, self.pool_v, self.pool_q), (k, v, q)
        (k, k_size), (v, _), (q, q_size) = (
            (part, thw) if pool is None else pool(part, thw)
            for pool, part in zip(pools, parts, strict=True)
        )
        scores = torch.matmul(self.scaler * q, k.transpose(2, 3))
        if self.rel_pos_h is not None:
            tables = self.rel_pos_h, self.rel_pos_w, self.rel_pos_t
            scores = _add_rel_pos(scores, q, q_size, k_size, *tables)
        x = torch.matmul(scores.softmax(dim=-1), v)
        if self.residual_pool:
            x = _add_shortcut(x, q, self.residual_with_cls_embed)
        return self.project(x.transpose(1, 2).reshape(batch, -1, self.output_dim)), q_size


class MultiscaleBlock(nn.Module):
    """Attention and two linear layers, each normalised before and added to its input.

    That is pooled as the queries are, and widened where channels grow: with proj_after_attn at the
    attention, else at the layers.
    """

    def __init__(
        self,
        input_size: Sequence[int],
        cnf: MSBlockConfig,
        residual_pool: bool,
        residual_with_cls_embed: bool,
        rel_pos_embed: bool,
        proj_after_attn: bool,
        dropout: float = 0.0,
        stochastic_depth_prob: float = 0.0,
        norm_layer: Callable[..., nn.Module] = nn.LayerNorm,
    ) -> None:
        super().__init__()
        self.proj_after_attn = proj_after_attn
        inputs, outputs = cnf.input_channels, cnf.output_channels
        self.pool_skip: nn.Module | None = None
        if cnf.stride_q and math.prod(cnf.stride_q) > 1:
            kernel = tuple(s + 1 if s > 1 else s for s in cnf.stride_q)
            padding = tuple(k // 2 for k in kernel)
            self.pool_skip = Pool(nn.MaxPool3d(kernel, tuple(cnf.stride_q), padding), None)
        inside = outputs if proj_after_attn else inputs
        self.norm1, self.norm2 = norm_layer(inputs), norm_layer(inside)
        self.attn = MultiscaleAttention(
            *(input_size, inputs, inside, cnf.num_heads),
            *(cnf.kernel_q, cnf.kernel_kv, cnf.stride_q, cnf.stride_kv),
            *(residual_pool, residual_with_cls_embed, rel_pos_embed),
            dropout=dropout,
            norm_layer=norm_layer,
        )
        self.mlp = MLP(
            inside, [4 * inside, outputs], activation_layer=nn.GELU, dropout=dropout, inplace=None
        )
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        self.project = nn.Linear(inputs, outputs) if inputs != outputs else None

    def forward(self, x: Tensor, thw: Size) -> tuple[Tensor, Size]:
        normed = self.norm1(x)
        found, size = self.attn(normed, thw)
        if self.project is not None and self.proj_after_attn:
            x = self.project(normed)
        if self.pool_skip is not None:
            x, _ = self.pool_skip(x, thw)
        x = x + self.stochastic_depth(found)
        normed = self.norm2(x)
        if self.project is not None and not self.proj_after_attn:
            x = self.project(normed)
        return x + self.stochastic_depth(self.mlp(normed)), size


class PositionalEncoding(nn.Module):
    """Puts a class token before the positions (N, T H W, C), and adds a learned encoding to all."""

    def __init__(
        self,
        embed_size: int,
        spatial_size: tuple[int, int],
        temporal_size: int,
        rel_pos_embed: bool,
    ) -> None:
        super().__init__()
        self.spatial_size, self.temporal_size = spatial_size, temporal_size
        self.class_token = nn.Parameter(torch.zeros(embed_size))
        sizes = {"spatial_pos": [math.prod(spatial_size)], "temporal_pos": [temporal_size]}
        for name, rows in (sizes | {"class_pos": []}).items():
            place = None if rel_pos_embed else nn.Parameter(torch.zeros(*rows, embed_size))
            self.register_parameter(name, place)

    def forward(self, x: Tensor) -> Tensor:
        first = self.class_token.expand(x.size(0), -1).unsqueeze(1)
        x = torch.cat((first, x), dim=1)
        spatial, temporal, of_class = self.spatial_pos, self.temporal_pos, self.class_pos
        if spatial is None or temporal is None or of_class is None:
            return x
        count, width = spatial.shape
        places = torch.repeat_interleave(temporal, count, dim=0)
        places.add_(spatial.unsqueeze(0).expand(self.temporal_size, -1, -1).reshape(-1, width))
        places = torch.cat((of_class.unsqueeze(0), places), dim=0).unsqueeze(0)
        return x.add_(places)


class MViT(nn.Module):
    """Videos (N, 3, T, H, W) of one size to scores (N, num_classes).

    Args:
        spatial_size: (height, width) of frames.
        temporal_size: frames of a clip.
        block_setting: what each block is.
        residual_pool: add the pooled queries to the result of attention.
        residual_with_cls_embed: those of the token of the class, too.
        rel_pos_embed: attention knows distances.
        proj_after_attn: change the width behind attention, not behind the block.
        dropout: before the last layer.
        attention_dropout: within attention.
        stochastic_depth_prob: how probably the last block is left out; the first never is.
        num_classes: classes.
        block: makes a block.
        norm_layer: makes the norms.
        patch_embed_kernel, patch_embed_stride, patch_embed_padding: of the convolution that makes
            patches.

    For an example see `vision.models.video.mvit_v2_s`.
    """

    def __init__(
        self,
        spatial_size: tuple[int, int],
        temporal_size: int,
        block_setting: Sequence[MSBlockConfig],
        residual_pool: bool,
        residual_with_cls_embed: bool,
        rel_pos_embed: bool,
        proj_after_attn: bool,
        dropout: float = 0.5,
        attention_dropout: float = 0.0,
        stochastic_depth_prob: float = 0.0,
        num_classes: int = 400,
        block: Callable[..., nn.Module] | None = None,
        norm_layer: Callable[..., nn.Module] | None = None,
        patch_embed_kernel: tuple[int, int, int] = (3, 7, 7),
        patch_embed_stride: tuple[int, int, int] = (2, 4, 4),
        patch_embed_padding: tuple[int, int, int] = (1, 3, 3),
    ) -> None:
        super().__init__()
        if not block_setting:
            raise ValueError("The configuration parameter can't be empty.")
        norm = norm_layer or partial(nn.LayerNorm, eps=1e-6)
        channels = block_setting[0].input_channels
        self.conv_proj = nn.Conv3d(
            *(3, channels, patch_embed_kernel, patch_embed_stride, patch_embed_padding)
        )
        before = temporal_size, *spatial_size
        size = [n // s for n, s in zip(before, patch_embed_stride, strict=True)]
        self.pos_encoding = PositionalEncoding(channels, (size[1], size[2]), size[0], rel_pos_embed)
        self.blocks = nn.ModuleList()
        rates = depth_rates(stochastic_depth_prob, len(block_setting))
        for setting, rate in zip(block_setting, rates, strict=True):
            made = (block or MultiscaleBlock)(
                input_size=size,
                cnf=setting,
                residual_pool=residual_pool,
                residual_with_cls_embed=residual_with_cls_embed,
                rel_pos_embed=rel_pos_embed,
                proj_after_attn=proj_after_attn,
                dropout=attention_dropout,
                stochastic_depth_prob=rate,
                norm_layer=norm,
            )
            self.blocks.append(made)
            if setting.stride_q:
                size = [n // s for n, s in zip(size, setting.stride_q, strict=True)]
        last = block_setting[-1].output_channels
        self.norm = norm(last)
        self.head = nn.Sequential(nn.Dropout(dropout, inplace=True), nn.Linear(last, num_classes))
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.trunc_normal_(m.weight, std=0.02)
                if m.bias is not None:
                    nn.init.zeros_(m.bias)
            elif isinstance(m, PositionalEncoding):
                for parameter in m.parameters():
                    nn.init.trunc_normal_(parameter, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        x = _unsqueeze(x, 5, 2)[0]  # an image is a video of one frame
        places = self.pos_encoding
        patches = places(self.conv_proj(x).flatten(2).transpose(1, 2))
        state = patches, (places.temporal_size, *places.spatial_size)
        for block in self.blocks:
            state = block(*state)
        return self.head(self.norm(state[0])[:, 0])


_HEADS = [1, 2, 2, *[4] * 11, 8, 8]
_HALVED = (1, 3, 14)  # blocks whose queries have half as many rows and columns


def _blocks(inputs: list[int], outputs: list[int], pool_all: bool) -> list[MSBlockConfig]:
    """16 blocks: keys and values are always as many, queries fewer from block to block.

    pool_all: queries pass through a convolution where their number stays, too.
    """
    made, step = [], 8
    for i, (heads, before, after) in enumerate(zip(_HEADS, inputs, outputs, strict=True)):
        halved = i in _HALVED
        step //= 2 if halved else 1
        used = halved or pool_all
        stride = [1, 2, 2] if halved else [1, 1, 1]
        made.append(
            MSBlockConfig(
                *(heads, before, after, [3, 3, 3] if used else [], [3, 3, 3]),
                *(stride if used else [], [1, step, step]),
            )
        )
    return made


def _mvit(version: int, **kwargs: Any) -> MViT:
    second = version == 2
    widths = [96, 192, 192, *[384] * 11, 768, 768]
    inputs = [96, *widths[:-1]] if second else widths
    outputs = widths if second else [*widths[1:], 768]
    usual = {
        "spatial_size": (224, 224),
        "temporal_size": 16,
        "stochastic_depth_prob": 0.2,
        "residual_pool": second,
        "residual_with_cls_embed": False,
        "rel_pos_embed": second,
        "proj_after_attn": second,
    }
    return MViT(block_setting=_blocks(inputs, outputs, second), **{**usual, **kwargs})


def _make(name: str, version: int) -> Made[MViT]:
    weights = weights_enum(f"MViT_{name.upper()}_Weights", __name__)
    return weights, builder(f"mvit_{name}", weights, _mvit, version, module=__name__)


MViT_V1_B_Weights, mvit_v1_b = _make("v1_b", 1)
MViT_V2_S_Weights, mvit_v2_s = _make("v2_s", 2)

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = ["MViT", *(n for n in dir() if n.startswith(("MViT_", "mvit_")))]
