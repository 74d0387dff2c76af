"""Vision transformers (Dosovitskiy 2020)."""

import math
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import rushlight as torch
from rushlight import Tensor, nn

from ..ops._shared import rename_layers
from ..ops.misc import MLP, Conv2dNormActivation
from ._api import Made, builder, overwrite, weights_enum
from ._utils import init_perceptron

_NORM = partial(nn.LayerNorm, eps=1e-6)


class ConvStemConfig(NamedTuple):
    """A convolution before the patches."""

    out_channels: int
    kernel_size: int
    stride: int
    norm_layer: Callable[..., nn.Module] = nn.BatchNorm2d
    activation_layer: Callable[..., nn.Module] = nn.ReLU


class MLPBlock(MLP):
    """Two linear layers with GELU between them."""

    _version = 2

    def __init__(self, in_dim: int, mlp_dim: int, dropout: float) -> None:
        super().__init__(
            in_dim, [mlp_dim, in_dim], activation_layer=nn.GELU, inplace=None, dropout=dropout
        )
        init_perceptron(self)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *args, **kwargs):
        # Older files call the layers linear_1 and linear_2.
        names = [("linear_1", "0"), ("linear_2", "3")]
        rename_layers(state_dict, prefix, local_metadata, names)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args, **kwargs)


class EncoderBlock(nn.Module):
    """Attention and two linear layers, each normalised before and added to its input."""

    def __init__(
        self,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float,
        attention_dropout: float,
        norm_layer: Callable[..., nn.Module] = _NORM,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.ln_1 = norm_layer(hidden_dim)
        self.self_attention = nn.MultiheadAttention(
            hidden_dim, num_heads, dropout=attention_dropout, batch_first=True
        )
        self.dropout = nn.Dropout(dropout)
        self.ln_2 = norm_layer(hidden_dim)
        self.mlp = MLPBlock(hidden_dim, mlp_dim, dropout)

    def forward(self, input: Tensor) -> Tensor:
        torch._assert(
            input.dim() == 3, f"Expected (batch_size, seq_length, hidden_dim) got {input.shape}"
        )
        x = self.ln_1(input)
        attended, _ = self.self_attention(x, x, x, need_weights=False)
        x = self.dropout(attended) + input
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Module):
    """Places added to patches (N, L, hidden_dim), then blocks and a normalisation."""

    def __init__(
        self,
        seq_length: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float,
        attention_dropout: float,
        norm_layer: Callable[..., nn.Module] = _NORM,
    ) -> None:
        super().__init__()
        self.pos_embedding = nn.Parameter(torch.empty(1, seq_length, hidden_dim).normal_(std=0.02))
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.Sequential(
            OrderedDict(
                (
                    f"encoder_layer_{i}",
                    EncoderBlock(
                        num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer
                    ),
                )
                for i in range(num_layers)
            )
        )
        self.ln = norm_layer(hidden_dim)

    def forward(self, input: Tensor) -> Tensor:
        torch._assert(
            input.dim() == 3, f"Expected (batch_size, seq_length, hidden_dim) got {input.shape}"
        )
        return self.ln(self.layers(self.dropout(input + self.pos_embedding)))


def _stem(layers: list[ConvStemConfig], hidden_dim: int) -> nn.Sequential:
    """Convolutions in the place of the one that makes patches."""
    stem = nn.Sequential()
    channels = 3
    for i, layer in enumerate(layers):
        conv = Conv2dNormActivation(
            *(channels, layer.out_channels, layer.kernel_size, layer.stride),
            norm_layer=layer.norm_layer,
            activation_layer=layer.activation_layer,
        )
        stem.add_module(f"conv_bn_relu_{i}", conv)
        channels = layer.out_channels
    stem.add_module("conv_last", nn.Conv2d(channels, hidden_dim, 1))
    return stem


class VisionTransformer(nn.Module):
    """Images (N, 3, image_size, image_size) to scores (N, num_classes).

    Args:
        image_size: height and width of the images.
        patch_size: the side of a patch of pixels, which divides that of the images.
        num_layers: how many blocks there are.
        num_heads: heads of attention.
        hidden_dim: numbers of a patch.
        mlp_dim: numbers inside the perceptron of a block.
        dropout: the probability with which numbers of a perceptron and behind attention become 0.
        attention_dropout: the same of attention's weights.
        num_classes: how many scores there are.
        representation_size: numbers of one more layer before the last; None: there is none.
        norm_layer: makes a normalisation.
        conv_stem_configs: convolutions that make the patches, as `ConvStemConfig`; None: a single
            one.

    Raises:
        ValueError: patches do not fit the images.

    Example:
        >>> net = torch.vision.models.VisionTransformer(32, 8, 1, 2, 16, 32, num_classes=3)
        >>> net(torch.zeros(1, 3, 32, 32)).shape
        torch.Size([1, 3])
    """

    def __init__(
        self,
        image_size: int,
        patch_size: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        num_classes: int = 1000,
        representation_size: int | None = None,
        norm_layer: Callable[..., nn.Module] = _NORM,
        conv_stem_configs: list[ConvStemConfig] | None = None,
    ) -> None:
        super().__init__()
        if image_size % patch_size != 0:
            raise AssertionError("Input shape indivisible by patch size!")
        self.image_size, self.patch_size, self.hidden_dim, self.mlp_dim = (
            image_size,
            patch_size,
            hidden_dim,
            mlp_dim,
        )
        self.attention_dropout, self.dropout = attention_dropout, dropout
        self.num_classes, self.representation_size, self.norm_layer = (
            num_classes,
            representation_size,
            norm_layer,
        )
        if conv_stem_configs is not None:
            stem = _stem(conv_stem_configs, hidden_dim)
            last = stem.conv_last
            self.conv_proj: nn.Module = stem
        else:
            last = nn.Conv2d(3, hidden_dim, patch_size, patch_size)
            self.conv_proj = last
        self.class_token = nn.Parameter(torch.zeros(1, 1, hidden_dim))
        self.seq_length = (image_size // patch_size) ** 2 + 1
        self.encoder = Encoder(
            *(
                self.seq_length,
                num_layers,
                num_heads,
                hidden_dim,
                mlp_dim,
                dropout,
                attention_dropout,
                norm_layer,
            )
        )
        heads: OrderedDict[str, nn.Module] = OrderedDict()
        inputs = hidden_dim
        if representation_size is not None:
            heads["pre_logits"] = nn.Linear(hidden_dim, representation_size)
            heads["act"] = nn.Tanh()
            inputs = representation_size
        head = heads["head"] = nn.Linear(inputs, num_classes)
        self.heads = nn.Sequential(heads)
        if conv_stem_configs is None:
            fan_in = 3 * patch_size**2
            nn.init.trunc_normal_(last.weight, std=math.sqrt(1 / fan_in))
        else:
            nn.init.normal_(last.weight, std=math.sqrt(2.0 / hidden_dim))
        if last.bias is not None:
            nn.init.zeros_(last.bias)
        if representation_size is not None:
            before = heads["pre_logits"]
            assert isinstance(before, nn.Linear)
            nn.init.trunc_normal_(before.weight, std=math.sqrt(1 / before.in_features))
            nn.init.zeros_(before.bias)
        nn.init.zeros_(head.weight)
        nn.init.zeros_(head.bias)

    def _process_input(self, x: Tensor) -> Tensor:
        """Patches (N, L, hidden_dim) of images."""
        count, _, height, width = x.shape
        for side, size in (("height", height), ("width", width)):
            torch._assert(
                size == self.image_size,
                f"Wrong image {side}! Expected {self.image_size} but got {size}!",
            )
        rows, columns = height // self.patch_size, width // self.patch_size
        x = self.conv_proj(x)
        return x.reshape(count, self.hidden_dim, rows * columns).permute(0, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self._process_input(x)
        count = x.shape[0]
        x = torch.cat((self.class_token.expand(count, -1, -1), x), dim=1)
        return self.heads(self.encoder(x)[:, 0])


def _vit(
    patch_size: int, num_layers: int, num_heads: int, hidden_dim: int, mlp_dim: int, **kwargs: Any
) -> VisionTransformer:
    size = kwargs.pop("image_size", 224)
    return VisionTransformer(size, patch_size, num_layers, num_heads, hidden_dim, mlp_dim, **kwargs)


def _prepare(weights: Any, kwargs: dict[str, Any]) -> None:
    if weights is not None:
        overwrite(kwargs, "image_size", weights.meta["min_size"][0])


def _make(size: str, *settings: int) -> Made[VisionTransformer]:
    weights = weights_enum(f"ViT_{size.upper()}_Weights", __name__)
    return weights, builder(
        f"vit_{size}", weights, _vit, *settings, module=__name__, prepare=_prepare
    )


ViT_B_16_Weights, vit_b_16 = _make("b_16", 16, 12, 12, 768, 3072)
ViT_B_32_Weights, vit_b_32 = _make("b_32", 32, 12, 12, 768, 3072)
ViT_L_16_Weights, vit_l_16 = _make("l_16", 16, 24, 16, 1024, 4096)
ViT_L_32_Weights, vit_l_32 = _make("l_32", 32, 24, 16, 1024, 4096)
ViT_H_14_Weights, vit_h_14 = _make("h_14", 14, 32, 16, 1280, 5120)


def interpolate_embeddings(
    image_size: int,
    patch_size: int,
    model_state: "OrderedDict[str, Tensor]",
    interpolation_mode: str = "bicubic",
    reset_heads: bool = False,
) -> "OrderedDict[str, Tensor]":
    """Weights of a vision transformer for images of another size: embeddings of positions are
    resampled.
    """
    key = "encoder.pos_embedding"
    token, places = model_state[key].split([1, model_state[key].shape[1] - 1], dim=1)
    before, after = math.isqrt(places.shape[1]), image_size // patch_size
    if before**2 != places.shape[1]:
        raise ValueError(f"seq_length is not a perfect square: {places.shape[1]} places")
    if after != before:
        grid = places.transpose(1, 2).unflatten(2, (before, before))
        grid = nn.functional.interpolate(
            grid, size=after, mode=interpolation_mode, align_corners=True
        )
        model_state[key] = torch.cat((token, grid.flatten(2).transpose(1, 2)), dim=1)
    if reset_heads:
        return OrderedDict((k, v) for k, v in model_state.items() if not k.startswith("heads"))
    return model_state


if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
    __all__ = [name for name in dir() if name.lower().startswith("vi") and name != "VIT"]
