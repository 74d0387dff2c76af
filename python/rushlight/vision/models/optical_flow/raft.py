"""RAFT (Teed and Deng 2020): optical flow from correlations of all pairs of pixels, refined step by
step.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor, nn

from ...ops.misc import Conv2dNormActivation
from .._api import Made, builder, weights_enum
from .._utils import init_layers

_Norm = Callable[..., nn.Module] | None


class ResidualBlock(nn.Module):
    """A residual block of two convolutions."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        norm_layer: _Norm,
        stride: int = 1,
        always_project: bool = False,
    ) -> None:
        super().__init__()
        conv: Any = partial(Conv2dNormActivation, norm_layer=norm_layer, bias=True)
        self.convnormrelu1 = conv(in_channels, out_channels, 3, stride=stride)
        self.convnormrelu2 = conv(out_channels, out_channels, 3)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or always_project:
            shrink = {"stride": stride, "activation_layer": None}
            self.downsample = conv(in_channels, out_channels, 1, **shrink)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.relu(self.downsample(x) + self.convnormrelu2(self.convnormrelu1(x)))


class BottleneckBlock(nn.Module):
    """A residual block of three convolutions, through a quarter of the channels."""

    def __init__(
        self, in_channels: int, out_channels: int, *, norm_layer: _Norm, stride: int = 1
    ) -> None:
        super().__init__()
        conv: Any = partial(Conv2dNormActivation, norm_layer=norm_layer, bias=True)
        inside = out_channels // 4
        self.convnormrelu1 = conv(in_channels, inside, 1)
        self.convnormrelu2 = conv(inside, inside, 3, stride=stride)
        self.convnormrelu3 = conv(inside, out_channels, 1)
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1:
            shrink = {"stride": stride, "activation_layer": None}
            self.downsample = conv(in_channels, out_channels, 1, **shrink)

    def forward(self, x: Tensor) -> Tensor:
        inside = self.convnormrelu2(self.convnormrelu1(x))
        return self.relu(self.downsample(x) + self.convnormrelu3(inside))


class FeatureEncoder(nn.Module):
    """Images to maps of layers[-1] channels, smaller by the product of the strides."""

    def __init__(
        self,
        *,
        block: Callable[..., nn.Module] = ResidualBlock,
        layers: Sequence[int] = (64, 64, 96, 128, 256),
        strides: Sequence[int] = (2, 1, 2, 2),
        norm_layer: _Norm = nn.BatchNorm2d,
    ) -> None:
        super().__init__()
        if len(layers) != 5:
            raise ValueError(f"The expected number of layers is 5, instead got {len(layers)}")
        self.convnormrelu = Conv2dNormActivation(
            3, layers[0], kernel_size=7, norm_layer=norm_layer, stride=strides[0], bias=True
        )
        self.layer1, self.layer2, self.layer3 = (
            nn.Sequential(
                block(before, after, norm_layer=norm_layer, stride=stride),
                block(after, after, norm_layer=norm_layer),
            )
            for before, after, stride in zip(layers[:3], layers[1:4], strides[1:], strict=True)
        )
        self.conv = nn.Conv2d(layers[3], layers[4], kernel_size=1)
        init_layers(self, conv_bias=False)
        self.output_dim = layers[-1]
        self.downsample_factor = math.prod(strides)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(self.layer3(self.layer2(self.layer1(self.convnormrelu(x)))))


class MotionEncoder(nn.Module):
    """How well pixels fit and where they go (N, 2, H, W), as out_channels maps, the last two the
    flow itself.
    """

    def __init__(
        self,
        *,
        in_channels_corr: int,
        corr_layers: Sequence[int] = (256, 192),
        flow_layers: Sequence[int] = (128, 64),
        out_channels: int = 128,
    ) -> None:
        super().__init__()
        if len(flow_layers) != 2:
            raise ValueError(
                f"The expected number of flow_layers is 2, instead got {len(flow_layers)}"
            )
        if len(corr_layers) not in (1, 2):
            raise ValueError(
                f"The number of corr_layers should be 1 or 2, instead got {len(corr_layers)}"
            )
        conv: Any = partial(Conv2dNormActivation, norm_layer=None)
        self.convcorr1 = conv(in_channels_corr, corr_layers[0], 1)
        self.convcorr2 = conv(*corr_layers, 3) if len(corr_layers) == 2 else nn.Identity()
        self.convflow1 = conv(2, flow_layers[0], 7)
        self.convflow2 = conv(*flow_layers, 3)
        self.conv = conv(corr_layers[-1] + flow_layers[-1], out_channels - 2, 3)
        self.out_channels = out_channels

    def forward(self, flow: Tensor, corr_features: Tensor) -> Tensor:
        corr = self.convcorr2(self.convcorr1(corr_features))
        moved = self.convflow2(self.convflow1(flow))
        return torch.cat([self.conv(torch.cat([corr, moved], 1)), flow], 1)


class ConvGRU(nn.Module):
    """A gated recurrent unit with convolutions."""

    def __init__(
        self, *, input_size: int, hidden_size: int, kernel_size: Any, padding: Any
    ) -> None:
        super().__init__()
        sizes = input_size + hidden_size, hidden_size, kernel_size
        convs = (nn.Conv2d(*sizes, padding=padding) for _ in "zrq")
        self.convz, self.convr, self.convq = convs

    def forward(self, h: Tensor, x: Tensor) -> Tensor:
        both = torch.cat([h, x], 1)
        z, r = self.convz(both).sigmoid(), self.convr(both).sigmoid()
        q = self.convq(torch.cat([r * h, x], 1)).tanh()
        return (1 - z) * h + z * q


class RecurrentBlock(nn.Module):
    """One `ConvGRU`, or two, along rows and along columns."""

    def __init__(
        self,
        *,
        input_size: int,
        hidden_size: int,
        kernel_size: Sequence[Any] = ((1, 5), (5, 1)),
        padding: Sequence[Any] = ((0, 2), (2, 0)),
    ) -> None:
        super().__init__()
        if len(kernel_size) != len(padding):
            raise ValueError(
                f"kernel_size should have the same length as padding, instead got "
                f"{len(kernel_size)} and {len(padding)}"
            )
        if len(kernel_size) not in (1, 2):
            raise ValueError(f"kernel_size should have 1 or 2 items, got {len(kernel_size)}")
        for i, (kernel, pad) in enumerate(zip(kernel_size, padding, strict=True), 1):
            unit = ConvGRU(
                input_size=input_size, hidden_size=hidden_size, kernel_size=kernel, padding=pad
            )
            self.add_module(f"convgru{i}", unit)
        self.hidden_size = hidden_size

    def forward(self, h: Tensor, x: Tensor) -> Tensor:
        for unit in self.children():
            h = unit(h, x)
        return h


class FlowHead(nn.Module):
    """The update of the flow (N, 2, H, W) from the hidden state."""

    def __init__(self, *, in_channels: int, hidden_size: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, hidden_size, 3, padding=1)
        self.conv2 = nn.Conv2d(hidden_size, 2, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv2(self.relu(self.conv1(x)))


class UpdateBlock(nn.Module):
    """One step: the next hidden state, and the update of the flow."""

    def __init__(
        self, *, motion_encoder: nn.Module, recurrent_block: nn.Module, flow_head: nn.Module
    ) -> None:
        super().__init__()
        self.motion_encoder = motion_encoder
        self.recurrent_block = recurrent_block
        self.flow_head = flow_head
        self.hidden_state_size: Any = recurrent_block.hidden_size

    def forward(
        self, hidden_state: Tensor, context: Tensor, corr_features: Tensor, flow: Tensor
    ) -> tuple[Tensor, Tensor]:
        x = torch.cat([context, self.motion_encoder(flow, corr_features)], 1)
        hidden_state = self.recurrent_block(hidden_state, x)
        return hidden_state, self.flow_head(hidden_state)


class MaskPredictor(nn.Module):
    """For each of the 8 x 8 pixels of a position, scores of the 9 neighbouring positions."""

    def __init__(self, *, in_channels: int, hidden_size: int, multiplier: float = 0.25) -> None:
        super().__init__()
        self.convrelu = Conv2dNormActivation(in_channels, hidden_size, norm_layer=None)
        self.conv = nn.Conv2d(hidden_size, 8 * 8 * 9, 1)
        self.multiplier = multiplier

    def forward(self, x: Tensor) -> Tensor:
        return self.multiplier * self.conv(self.convrelu(x))


def places(maps: Tensor) -> Tensor:
    """x and y of each position (N, 2, H, W) of maps (N, C, H, W)."""
    y, x = (torch.arange(n, dtype=maps.dtype, device=maps.device) for n in maps.shape[-2:])
    y, x = torch.meshgrid(y, x, indexing="ij")
    return torch.stack((x, y))[None].expand(len(maps), -1, -1, -1)


class CorrBlock(nn.Module):
    """Correlations of all pairs of positions, at num_levels sizes, looked up within a radius."""

    corr_pyramid: list[Tensor]

    def __init__(self, *, num_levels: int = 4, radius: int = 4) -> None:
        super().__init__()
        self.num_levels, self.radius = num_levels, radius
        self.corr_pyramid = []
        self.out_channels = num_levels * (2 * radius + 1) ** 2

    def build_pyramid(self, fmap1: Tensor, fmap2: Tensor) -> None:
        """Compute the correlations of two maps (N, C, H, W); ValueError for maps that differ in
        shape or are too small.
        """
        if fmap1.shape != fmap2.shape:
            raise ValueError(
                f"Input feature maps should have the same shape, instead got {fmap1.shape} and "
                f"{fmap2.shape}"
            )
        n, channels, height, width = fmap1.shape
        least = 2**self.num_levels
        if height < least or width < least:
            raise ValueError(
                f"Feature maps are too small to be down-sampled {self.num_levels - 1} times: their "
                f"sides should be at least {least}, and are {(height, width)}"
            )
        alike = fmap1.flatten(2).transpose(1, 2) @ fmap2.flatten(2) / math.sqrt(channels)
        level = alike.reshape(n * height * width, 1, height, width)
        self.corr_pyramid = [level]
        for _ in range(self.num_levels - 1):
            level = F.avg_pool2d(level, kernel_size=2, stride=2)
            self.corr_pyramid.append(level)

    def index_pyramid(self, centroids_coords: Tensor) -> Tensor:
        """The correlations around positions (N, 2, H, W) of the second image: (N, out_channels, H,
        W).
        """
        n, _, height, width = centroids_coords.shape
        middle = centroids_coords.permute(0, 2, 3, 1).reshape(-1, 1, 1, 2)
        reach = torch.arange(-self.radius, self.radius + 1, device=middle.device)
        # Steps of x are counted first, as the trained weights want it.
        around = torch.stack(torch.meshgrid(reach, reach, indexing="ij"), 2).to(middle)
        found = []
        for i, level in enumerate(self.corr_pyramid):
            last = torch.tensor([level.shape[-1] - 1, level.shape[-2] - 1]).to(middle)
            grid = (middle / 2**i + around) * 2 / last - 1
            part = F.grid_sample(level, grid, mode="bilinear", align_corners=True)
            found.append(part.view(n, height, width, -1))
        return torch.cat(found, 3).permute(0, 3, 1, 2).contiguous()


def upsample_flow(flow: Tensor, up_mask: Tensor | None = None) -> Tensor:
    """Flow (N, 2, H, W) eight times as large: mixtures of the 9 positions around by up_mask, or
    bilinear.
    """
    n, _, height, width = flow.shape
    size = height * 8, width * 8
    if up_mask is None:
        return F.interpolate(flow, size=size, mode="bilinear", align_corners=True) * 8
    share = up_mask.view(n, 1, 9, 8, 8, height, width).softmax(dim=2)
    around = F.unfold(8 * flow, kernel_size=3, padding=1).view(n, 2, 9, 1, 1, height, width)
    return (share * around).sum(dim=2).permute(0, 1, 4, 2, 5, 3).reshape(n, 2, *size)


class RAFT(nn.Module):
    """Two images (N, 3, H, W), sides multiples of 8 and 128 at least, of numbers from -1 to 1, to a
    list of flows (N, 2, H, W), each better than the one before.

    Args:
        feature_encoder: gives features of both images.
        context_encoder: gives features of the first.
        corr_block: compares features of both at all places.
        update_block: moves the flow.
        mask_predictor: says how the flow is made larger; bilinear if None.

    For an example see `vision.models.optical_flow.raft_small`.
    """

    def __init__(
        self,
        *,
        feature_encoder: nn.Module,
        context_encoder: nn.Module,
        corr_block: nn.Module,
        update_block: nn.Module,
        mask_predictor: nn.Module | None = None,
    ) -> None:
        super().__init__()
        if not hasattr(update_block, "hidden_state_size"):
            raise ValueError("The update_block parameter should expose a 'hidden_state_size'")
        self.feature_encoder: Any = feature_encoder
        self.context_encoder: Any = context_encoder
        self.corr_block: Any = corr_block
        self.update_block: Any = update_block
        self.mask_predictor = mask_predictor

    def forward(self, image1: Tensor, image2: Tensor, num_flow_updates: int = 12) -> list[Tensor]:
        if image2.shape != image1.shape:
            raise ValueError(
                f"input images should have the same shape, instead got ({image1.shape} != "
                f"{image2.shape})"
            )
        if any(side % 8 != 0 for side in image1.shape[-2:]):
            raise ValueError(
                f"images' H and W should be divisible by 8, instead got {image1.shape[-2:]}"
            )
        fmap1, fmap2 = self.feature_encoder(torch.cat([image1, image2])).chunk(2)
        self.corr_block.build_pyramid(fmap1, fmap2)
        context = self.context_encoder(image1)
        hidden_size = self.update_block.hidden_state_size
        if context.shape[1] <= hidden_size:
            raise ValueError(
                f"The context encoder outputs {context.shape[1]} channels, but it should have more "
                f"than hidden_state={hidden_size} channels"
            )
        hidden, context = context.split([hidden_size, context.shape[1] - hidden_size], 1)
        hidden, context = hidden.tanh(), context.relu()
        start = places(fmap1)
        end, flows = start, []
        for _ in range(num_flow_updates):
            end = end.detach()  # each step learns for itself
            alike = self.corr_block.index_pyramid(end)
            hidden, further = self.update_block(hidden, context, alike, end - start)
            end = end + further
            mask = None if self.mask_predictor is None else self.mask_predictor(hidden)
            flows.append(upsample_flow(end - start, mask))
        return flows


def _raft(
    feature_layers: Sequence[int],
    context_layers: Sequence[int],
    block: Callable[..., nn.Module],
    context_norm: _Norm,
    radius: int,
    motion: dict[str, Any],
    recurrent: dict[str, Any],
    head_hidden: int,
    masked: bool,
    **parts: Any,
) -> RAFT:
    """A network of these sizes; parts of one's own take the place of those it makes."""

    def part(name: str, make: Callable[[], nn.Module]) -> Any:
        return parts.pop(name, None) or make()

    hidden = recurrent["hidden_size"]
    encoder = partial(FeatureEncoder, block=block)
    features = part(
        "feature_encoder", partial(encoder, layers=feature_layers, norm_layer=nn.InstanceNorm2d)
    )
    context = part(
        "context_encoder", partial(encoder, layers=context_layers, norm_layer=context_norm)
    )
    corr = part("corr_block", partial(CorrBlock, radius=radius))

    def update() -> nn.Module:
        told = MotionEncoder(in_channels_corr=corr.out_channels, **motion)
        inputs = told.out_channels + context_layers[-1] - hidden
        unit = RecurrentBlock(input_size=inputs, **recurrent)
        head = FlowHead(in_channels=hidden, hidden_size=head_hidden)
        return UpdateBlock(motion_encoder=told, recurrent_block=unit, flow_head=head)

    step = part("update_block", update)
    mask = parts.pop("mask_predictor", None)
    if mask is None and masked:
        mask = MaskPredictor(in_channels=hidden, hidden_size=256)
    return RAFT(
        feature_encoder=features,
        context_encoder=context,
        corr_block=corr,
        update_block=step,
        mask_predictor=mask,
        **parts,
    )


def _make(size: str, *settings: Any) -> Made[RAFT]:
    weights = weights_enum(f"Raft_{size}_Weights", __name__)
    name = f"raft_{size.lower()}"
    return weights, builder(name, weights, _raft, *settings, module=__name__, classes=False)


Raft_Large_Weights, raft_large = _make(
    "Large",
    *((64, 64, 96, 128, 256), (64, 64, 96, 128, 256), ResidualBlock, nn.BatchNorm2d, 4),
    {"corr_layers": (256, 192), "flow_layers": (128, 64), "out_channels": 128},
    {"hidden_size": 128},
    *(256, True),
)
Raft_Small_Weights, raft_small = _make(
    "Small",
    *((32, 32, 64, 96, 128), (32, 32, 64, 96, 160), BottleneckBlock, None, 3),
    {"corr_layers": (96,), "flow_layers": (64, 32), "out_channels": 82},
    {"hidden_size": 96, "kernel_size": (3,), "padding": (1,)},
    *(128, False),
)

__all__ = ["RAFT", "Raft_Large_Weights", "Raft_Small_Weights", "raft_large", "raft_small"]
