"""Swin transformers (Liu 2021) and their second version (2022): attention in windows that are
shifted.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor, fx, nn

from ..ops.dropping import StochasticDepth
from ..ops.misc import MLP, Permute
from ._api import Made, builder, weights_enum
from ._utils import depth_rates, init_perceptron


def offsets_in_window(window: list[int]) -> list[Tensor]:
    """The distances of pairs of positions of a window along each dimension: (L, L) each."""
    grid = torch.stack(
        torch.meshgrid(*(torch.arange(size) for size in window), indexing="ij")
    ).flatten(1)
    return list((grid[:, :, None] - grid[:, None, :]).unbind(0))


def relative_index(window: list[int]) -> Tensor:
    """Indices (L * L) of the pairs of positions of a window; pairs with equal distances have equal
    ones.
    """
    index = torch.zeros((), dtype=torch.int64)
    for apart, size in zip(offsets_in_window(window), window, strict=True):
        index = index * (2 * size - 1) + apart + (size - 1)
    return index.flatten()


def windows_of(x: Tensor, window: list[int]) -> Tensor:
    """Partition maps (N, *sizes, C), with sizes that are multiples of the window's, to (N *
    windows, L, C).
    """
    dims = len(window)
    sizes = [s for size, w in zip(x.shape[1:-1], window, strict=True) for s in (size // w, w)]
    x = x.reshape(x.shape[0], *sizes, x.shape[-1])
    places, inner = range(1, 2 * dims, 2), range(2, 2 * dims + 1, 2)
    return x.permute(0, *places, *inner, 2 * dims + 1).reshape(-1, math.prod(window), x.shape[-1])


def from_windows(x: Tensor, window: list[int], sizes: list[int]) -> Tensor:
    """The inverse of `windows_of`, for maps of `sizes`."""
    dims = len(window)
    counts = [size // w for size, w in zip(sizes, window, strict=True)]
    x = x.reshape(-1, *counts, *window, x.shape[-1])
    order = [i for d in range(dims) for i in (1 + d, 1 + dims + d)]
    return x.permute(0, *order, 2 * dims + 1).reshape(-1, *sizes, x.shape[-1])


def strangers(window: list[int], shift: list[int], sizes: list[int], like: Tensor) -> Tensor:
    """-100 (windows, L, L) between positions that only a shift has brought together, else 0."""
    regions = like.new_zeros(sizes)
    for d, (size, w, s) in enumerate(zip(sizes, window, shift, strict=True)):
        along = like.new_zeros(size)
        if s:
            along[size - w :] = 1
            along[size - s :] = 2
        regions = regions * 3 + along.view([-1 if e == d else 1 for e in range(len(sizes))])
    numbers = windows_of(regions[None, ..., None], window).squeeze(-1)
    return (numbers[:, None, :] != numbers[:, :, None]).to(like.dtype) * -100.0


def shifted_window_attention(
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
    logit_scale: Tensor | None = None,
    training: bool = True,
) -> Tensor:
    """Attention (N, *sizes, C) within windows; logit_scale: by cosines, with a factor for each
    head.
    """
    x, dims = input, len(window_size)
    sizes = list(x.shape[1:-1])
    channels = x.shape[-1]
    missing = [(w - size % w) % w for size, w in zip(sizes, window_size, strict=True)]
    x = F.pad(x, (0, 0, *(p for m in reversed(missing) for p in (0, m))))
    padded = list(x.shape[1:-1])
    # A window as large as the map is not shifted.
    shift = [
        0 if w >= size else s for w, size, s in zip(window_size, padded, shift_size, strict=True)
    ]
    along = list(range(1, dims + 1))
    if any(shift):
        x = torch.roll(x, shifts=[-s for s in shift], dims=along)
    x = windows_of(x, window_size)
    if logit_scale is not None and qkv_bias is not None:
        qkv_bias = qkv_bias.clone()
        qkv_bias[channels : 2 * channels].zero_()
    every = (
        F.linear(x, qkv_weight, qkv_bias)
        .unflatten(2, (3, num_heads, channels // num_heads))
        .permute(2, 0, 3, 1, 4)
    )
    q, k, v = every[0], every[1], every[2]
    if logit_scale is not None:
        scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)
        scores = scores * torch.clamp(logit_scale, max=math.log(100.0)).exp()
    else:
        scores = (q * (channels // num_heads) ** -0.5).matmul(k.transpose(-2, -1))
    scores = scores + relative_position_bias
    if any(shift):
        apart = strangers(window_size, shift, padded, x)
        scores = (scores.unflatten(0, (-1, apart.shape[0])) + apart[None, :, None]).flatten(0, 1)
    share = F.dropout(F.softmax(scores, dim=-1), p=attention_dropout, training=training)
    x = F.linear(share.matmul(v).transpose(1, 2).flatten(2), proj_weight, proj_bias)
    x = from_windows(F.dropout(x, p=dropout, training=training), window_size, padded)
    if any(shift):
        x = torch.roll(x, shifts=shift, dims=along)
    for d, size in enumerate(sizes):
        x = x.narrow(d + 1, 0, size)
    return x.contiguous()


def _get_relative_position_bias(
    relative_position_bias_table: Tensor, relative_position_index: Tensor, window_size: list[int]
) -> Tensor:
    """Rows of a table (rows, heads) for all pairs of positions of a window: (1, heads, L, L)."""
    places = math.prod(window_size)
    rows = relative_position_bias_table[relative_position_index.flatten()].view(places, places, -1)
    return rows.permute(2, 0, 1).contiguous().unsqueeze(0)


class ShiftedWindowAttention(nn.Module):
    """`shifted_window_attention` with a learned bias for the distances of positions."""

    def __init__(
        self,
        dim: int,
        window_size: list[int],
        shift_size: list[int],
        num_heads: int,
        qkv_bias: bool = True,
        proj_bias: bool = True,
        attention_dropout: float = 0.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if len(window_size) != len(shift_size):
            raise ValueError("window_size and shift_size must be of length 2")
        self.window_size, self.shift_size, self.num_heads = window_size, shift_size, num_heads
        self.attention_dropout, self.dropout = attention_dropout, dropout
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim, bias=proj_bias)
        self.define_relative_position_bias_table()
        self.define_relative_position_index()

    def define_relative_position_bias_table(self) -> None:
        count = math.prod(2 * size - 1 for size in self.window_size)
        self.relative_position_bias_table = nn.Parameter(torch.zeros(count, self.num_heads))
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)

    def define_relative_position_index(self) -> None:
        self.register_buffer("relative_position_index", relative_index(self.window_size))

    def _bias_of(self, table: Tensor) -> Tensor:
        return _get_relative_position_bias(table, self.relative_position_index, self.window_size)

    def get_relative_position_bias(self) -> Tensor:
        """The bias of pairs of positions: (1, heads, L, L)."""
        return self._bias_of(self.relative_position_bias_table)

    def _settings(self) -> tuple[Any, ...]:
        """Arguments of `shifted_window_attention` behind the input, up to `proj_bias`."""
        bias = self.get_relative_position_bias()
        return (
            *(self.qkv.weight, self.proj.weight, bias),
            *(self.window_size, self.num_heads, self.shift_size),
            *(self.attention_dropout, self.dropout, self.qkv.bias, self.proj.bias),
        )

    def forward(self, x: Tensor) -> Tensor:
        return shifted_window_attention(x, *self._settings(), training=self.training)


class ShiftedWindowAttentionV2(ShiftedWindowAttention):
    """Attention by cosines; the bias is made by two layers from logarithms of distances."""

    def __init__(
        self,
        dim: int,
        window_size: list[int],
        shift_size: list[int],
        num_heads: int,
        qkv_bias: bool = True,
        proj_bias: bool = True,
        attention_dropout: float = 0.0,
        dropout: float = 0.0,
    ):
        super().__init__(
            *(dim, window_size, shift_size, num_heads, qkv_bias, proj_bias),
            *(attention_dropout, dropout),
        )
        self.logit_scale = nn.Parameter(torch.log(10 * torch.ones((num_heads, 1, 1))))
        self.cpb_mlp = nn.Sequential(
            nn.Linear(2, 512, bias=True),
            nn.ReLU(inplace=True),
            nn.Linear(512, num_heads, bias=False),
        )
        if self.qkv.bias is not None:
            length = self.qkv.bias.numel() // 3
            self.qkv.bias[length : 2 * length].data.zero_()

    def define_relative_position_bias_table(self) -> None:
        axes = [torch.arange(1 - size, size, dtype=torch.float32) for size in self.window_size]
        table = (
            torch.stack(torch.meshgrid(*axes, indexing="ij"))
            .permute(1, 2, 0)
            .contiguous()
            .unsqueeze(0)
        )
        for d, size in enumerate(self.window_size):
            table[..., d] /= size - 1
        table *= 8
        logs = torch.sign(table) * torch.log2(torch.abs(table) + 1.0) / 3.0
        self.register_buffer("relative_coords_table", logs)

    def get_relative_position_bias(self) -> Tensor:
        table = self.cpb_mlp(self.relative_coords_table).view(-1, self.num_heads)
        return 16 * torch.sigmoid(self._bias_of(table))

    def forward(self, x: Tensor) -> Tensor:
        return shifted_window_attention(
            x, *self._settings(), logit_scale=self.logit_scale, training=self.training
        )


def _patch_merging_pad(x: Tensor) -> Tensor:
    """The four pixels of squares (…, H, W, C) as channels (…, H / 2, W / 2, 4 C); odd sizes are
    filled with zeros.
    """
    height, width = x.shape[-3:-1]
    x = F.pad(x, (0, 0, 0, width % 2, 0, height % 2))
    return torch.cat([x[..., i::2, j::2, :] for j in (0, 1) for i in (0, 1)], -1)


# These ask for sizes, which are not known while a graph is traced, or are one step of it.
fx.wrap("_get_relative_position_bias")
fx.wrap("shifted_window_attention")
fx.wrap("_patch_merging_pad")


class PatchMerging(nn.Module):
    """Maps (…, H, W, C) to (…, H / 2, W / 2, 2 C), normalised before."""

    def __init__(self, dim: int, norm_layer: Callable[..., nn.Module] = nn.LayerNorm) -> None:
        super().__init__()
        self.dim = dim
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = norm_layer(4 * dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.reduction(self.norm(_patch_merging_pad(x)))


class PatchMergingV2(nn.Module):
    """`PatchMerging`, normalised after."""

    def __init__(self, dim: int, norm_layer: Callable[..., nn.Module] = nn.LayerNorm) -> None:
        super().__init__()
        self.dim = dim
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = norm_layer(2 * dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.reduction(_patch_merging_pad(x)))


class SwinTransformerBlock(nn.Module):
    """Attention in windows and two linear layers, each normalised before and added to its input."""

    def __init__(
        self,
        dim: int,
        num_heads: int,
        window_size: list[int],
        shift_size: list[int],
        mlp_ratio: float = 4.0,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        stochastic_depth_prob: float = 0.0,
        norm_layer: Callable[..., nn.Module] = nn.LayerNorm,
        attn_layer: Callable[..., nn.Module] = ShiftedWindowAttention,
    ) -> None:
        super().__init__()
        self.norm1 = norm_layer(dim)
        self.attn = attn_layer(
            dim,
            window_size,
            shift_size,
            num_heads,
            attention_dropout=attention_dropout,
            dropout=dropout,
        )
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        self.norm2 = norm_layer(dim)
        self.mlp = MLP(
            dim,
            [int(dim * mlp_ratio), dim],
            activation_layer=nn.GELU,
            inplace=None,
            dropout=dropout,
        )
        init_perceptron(self.mlp)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.stochastic_depth(self.attn(self.norm1(x)))
        return x + self.stochastic_depth(self.mlp(self.norm2(x)))


class SwinTransformerBlockV2(SwinTransformerBlock):
    """`SwinTransformerBlock` with cosines, normalised after."""

    def __init__(
        self,
        dim: int,
        num_heads: int,
        window_size: list[int],
        shift_size: list[int],
        mlp_ratio: float = 4.0,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        stochastic_depth_prob: float = 0.0,
        norm_layer: Callable[..., nn.Module] = nn.LayerNorm,
        attn_layer: Callable[..., nn.Module] = ShiftedWindowAttentionV2,
    ):
        super().__init__(
            *(dim, num_heads, window_size, shift_size, mlp_ratio, dropout),
            *(attention_dropout, stochastic_depth_prob, norm_layer, attn_layer),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.stochastic_depth(self.norm1(self.attn(x)))
        return x + self.stochastic_depth(self.norm2(self.mlp(x)))


def stages_of_blocks(
    embed_dim: int,
    depths: list[int],
    num_heads: list[int],
    window_size: list[int],
    stochastic_depth_prob: float,
    block: Callable[..., nn.Module],
    downsample: Callable[..., nn.Module] | None,
    norm_layer: Callable[..., nn.Module],
    **settings: Any,
) -> list[nn.Module]:
    """Stages of blocks, every second one with shifted windows, and what halves the map after each
    but the last.
    """
    layers: list[nn.Module] = []
    rates = iter(depth_rates(stochastic_depth_prob, sum(depths)))
    for i, depth in enumerate(depths):
        dim = embed_dim * 2**i
        blocks = []
        for j in range(depth):
            shift = [0 if j % 2 == 0 else w // 2 for w in window_size]
            how = {"stochastic_depth_prob": next(rates), "norm_layer": norm_layer, **settings}
            blocks.append(
                block(dim, num_heads[i], window_size=window_size, shift_size=shift, **how)
            )
        layers.append(nn.Sequential(*blocks))
        if downsample is not None and i < len(depths) - 1:
            layers.append(downsample(dim, norm_layer))
    return layers


def init_linear(model: nn.Module) -> None:
    """Draws weights of linear layers between -2 and 2, nearly all near 0."""
    for m in model.modules():
        if isinstance(m, nn.Linear):
            nn.init.trunc_normal_(m.weight, std=0.02)
            if m.bias is not None:
                nn.init.zeros_(m.bias)


class SwinTransformer(nn.Module):
    """Images (N, 3, H, W) to scores (N, num_classes).

    Args:
        patch_size: height and width of a patch of pixels.
        embed_dim: numbers of a patch in the first stage; each further stage has twice as many.
        depths: how many blocks each stage has.
        num_heads: heads of attention of each stage.
        window_size: height and width of a window of attention, in patches.
        mlp_ratio: numbers inside the perceptron of a block, relative to those of a patch.
        dropout: the probability with which numbers of a perceptron and behind attention become 0.
        attention_dropout: the same of attention's weights.
        stochastic_depth_prob: the probability with which the last block is left out in training;
            those before it are at less.
        num_classes: how many scores there are.
        norm_layer: makes a normalisation; None: `nn.LayerNorm` with an epsilon of 1e-5.
        block: makes a block; None: `SwinTransformerBlock`.
        downsample_layer: makes what lies between stages.

    Example:
        >>> net = torch.vision.models.SwinTransformer(
        ...     [4, 4], 8, [1, 1], [2, 4], [4, 4], num_classes=3
        ... )
        >>> net(torch.zeros(1, 3, 32, 32)).shape
        torch.Size([1, 3])
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
        num_classes: int = 1000,
        norm_layer: Callable[..., nn.Module] | None = None,
        block: Callable[..., nn.Module] | None = None,
        downsample_layer: Callable[..., nn.Module] = PatchMerging,
    ) -> None:
        super().__init__()
        self.num_classes = num_classes
        norm_layer = norm_layer or partial(nn.LayerNorm, eps=1e-5)
        patches = nn.Conv2d(
            3, embed_dim, (patch_size[0], patch_size[1]), (patch_size[0], patch_size[1])
        )
        stages = [nn.Sequential(patches, Permute([0, 2, 3, 1]), norm_layer(embed_dim))]
        self.features = nn.Sequential(
            *stages,
            *stages_of_blocks(
                *(embed_dim, depths, num_heads, window_size, stochastic_depth_prob),
                *(block or SwinTransformerBlock, downsample_layer, norm_layer),
                mlp_ratio=mlp_ratio,
                dropout=dropout,
                attention_dropout=attention_dropout,
            ),
        )
        last = embed_dim * 2 ** (len(depths) - 1)
        self.norm = norm_layer(last)
        self.permute = Permute([0, 3, 1, 2])
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten(1)
        self.head = nn.Linear(last, num_classes)
        init_linear(self)

    def forward(self, x: Tensor) -> Tensor:
        x = self.permute(self.norm(self.features(x)))
        return self.head(self.flatten(self.avgpool(x)))


def _swin(
    version: int, window: int, width: int, depth: int, heads: int, rate: float, **kwargs: Any
) -> SwinTransformer:
    if version == 2:
        kwargs = {"block": SwinTransformerBlockV2, "downsample_layer": PatchMergingV2, **kwargs}
    counts = [heads * 2**i for i in range(4)]
    rate = kwargs.pop("stochastic_depth_prob", rate)
    return SwinTransformer(
        [4, 4],
        width,
        [2, 2, depth, 2],
        counts,
        [window, window],
        stochastic_depth_prob=rate,
        **kwargs,
    )


def _make(size: str, *settings: float) -> Made[SwinTransformer]:
    weights = weights_enum(f"Swin_{size.upper()}_Weights", __name__)
    version, window = (2, 8) if size.startswith("v2") else (1, 7)
    return weights, builder(
        f"swin_{size}", weights, _swin, version, window, *settings, module=__name__
    )


Swin_T_Weights, swin_t = _make("t", 96, 6, 3, 0.2)
Swin_S_Weights, swin_s = _make("s", 96, 18, 3, 0.3)
Swin_B_Weights, swin_b = _make("b", 128, 18, 4, 0.5)
Swin_V2_T_Weights, swin_v2_t = _make("v2_t", 96, 6, 3, 0.2)
Swin_V2_S_Weights, swin_v2_s = _make("v2_s", 96, 18, 3, 0.3)
Swin_V2_B_Weights, swin_v2_b = _make("v2_b", 128, 18, 4, 0.5)

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [
        "SwinTransformer",
        *(n for n in dir() if n.startswith(("Swin_", "swin_"))),
    ]
