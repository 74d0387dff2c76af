"""Feature pyramids: feature maps of several sizes with the same number of channels."""

from collections import OrderedDict
from collections.abc import Callable

import rushlight.nn.functional as F
from rushlight import Tensor, nn

from . import _shared
from .misc import Conv2dNormActivation

__all__ = ["ExtraFPNBlock", "FeaturePyramidNetwork", "LastLevelMaxPool", "LastLevelP6P7"]


class ExtraFPNBlock(nn.Module):
    """Adds feature maps: from the results, the original maps and names to results and names.

    A class of one's own overrides `forward`.

    Example:
        >>> class First(torch.vision.ops.feature_pyramid_network.ExtraFPNBlock):
        ...     def forward(self, results, x, names):
        ...         return [*results, results[0]], [*names, "again"]
        >>> _, names = First()([torch.zeros(1, 4, 8, 8)], [], ["0"])
        >>> names
        ['0', 'again']
    """

    def forward(
        self, results: list[Tensor], x: list[Tensor], names: list[str]
    ) -> tuple[list[Tensor], list[str]]:
        """The maps and their names with more of both; subclasses define it."""
        raise NotImplementedError


class FeaturePyramidNetwork(nn.Module):
    """Maps (N, in_channels_list[i], H_i, W_i), each half as large as the one before, to maps of
    out_channels.

    From the smallest map on each is enlarged and added to the next, then smoothed. Takes and gives
    an ordered dict; extra_blocks appends to it.

    Args:
        in_channels_list: channels of each map that comes in, from the largest map on.
        out_channels: channels of each map of the result.
        extra_blocks: an `ExtraFPNBlock` that appends maps, or None.
        norm_layer: makes the normalisation behind each convolution; None: there is none.

    Raises:
        ValueError: a map has no channels.
        TypeError: `extra_blocks` is no `ExtraFPNBlock`.

    Example:
        >>> pyramid = torch.vision.ops.FeaturePyramidNetwork([16, 32], 8)
        >>> maps = {"large": torch.zeros(1, 16, 8, 8), "small": torch.zeros(1, 32, 4, 4)}
        >>> {name: tuple(map.shape) for name, map in pyramid(maps).items()}
        {'large': (1, 8, 8, 8), 'small': (1, 8, 4, 4)}
    """

    def __init__(
        self,
        in_channels_list: list[int],
        out_channels: int,
        extra_blocks: ExtraFPNBlock | None = None,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        if any(channels == 0 for channels in in_channels_list):
            raise ValueError("in_channels=0 is currently not supported")

        def conv(channels: int, kernel: int) -> nn.Module:
            return Conv2dNormActivation(
                channels,
                out_channels,
                kernel,
                padding=kernel // 2,
                norm_layer=norm_layer,
                activation_layer=None,
            )

        # Layers draw their numbers in pairs: one map's two, then the next one's.
        pairs = [(conv(channels, 1), conv(out_channels, 3)) for channels in in_channels_list]
        self.inner_blocks = nn.ModuleList(inner for inner, _ in pairs)
        self.layer_blocks = nn.ModuleList(layer for _, layer in pairs)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_uniform_(module.weight, a=1)
                if module.bias is not None:
                    nn.init.constant_(module.bias, 0)
        if extra_blocks is not None and not isinstance(extra_blocks, ExtraFPNBlock):
            raise TypeError(
                f"extra_blocks should be of type ExtraFPNBlock not {type(extra_blocks)}"
            )
        self.extra_blocks = extra_blocks

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *args, **kwargs):
        # Older checkpoints have the convolutions without a Sequential around them.
        names = [
            (f"{kind}.{i}", f"{kind}.{i}.0")
            for kind in ("inner_blocks", "layer_blocks")
            for i in range(len(getattr(self, kind)))
        ]
        _shared.rename_layers(state_dict, prefix, local_metadata, names)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args, **kwargs)

    _version = 2

    def get_result_from_inner_blocks(self, x: Tensor, idx: int) -> Tensor:
        """A map through its first convolution, of 1 x 1."""
        return self.inner_blocks[idx](x)

    def get_result_from_layer_blocks(self, x: Tensor, idx: int) -> Tensor:
        """A map through its second convolution, of 3 x 3."""
        return self.layer_blocks[idx](x)

    def forward(self, x: dict[str, Tensor]) -> dict[str, Tensor]:
        names, maps = list(x.keys()), list(x.values())
        results: list[Tensor] = []
        above: Tensor | None = None
        if len(maps) > len(self.inner_blocks):
            raise ValueError(f"{len(maps)} maps, but layers for {len(self.inner_blocks)}")
        for i in reversed(range(len(maps))):
            lateral = self.get_result_from_inner_blocks(maps[i], i)
            if above is not None:
                lateral = lateral + F.interpolate(above, size=lateral.shape[-2:], mode="nearest")
            above = lateral
            results.insert(0, self.get_result_from_layer_blocks(lateral, i))
        if self.extra_blocks is not None:
            results, names = self.extra_blocks(results, maps, names)
        return OrderedDict(zip(names, results, strict=True))


class LastLevelMaxPool(ExtraFPNBlock):
    """Adds a map "pool": every second pixel of the last result.

    Example:
        >>> block = torch.vision.ops.feature_pyramid_network.LastLevelMaxPool()
        >>> maps, names = block([torch.zeros(1, 8, 4, 4)], [], ["0"])
        >>> names, maps[-1].shape
        (['0', 'pool'], torch.Size([1, 8, 2, 2]))
    """

    def forward(
        self, x: list[Tensor], y: list[Tensor], names: list[str]
    ) -> tuple[list[Tensor], list[str]]:
        """The maps and their names, with a smaller last one: "pool"."""
        return [*x, F.max_pool2d(x[-1], 1, stride=2)], [*names, "pool"]


class LastLevelP6P7(ExtraFPNBlock):
    """Adds the maps "p6" and "p7", by convolutions of stride 2, from the last result or the last
    map.

    Args:
        in_channels: channels of the map that "p6" is made of.
        out_channels: channels of both; where they are `in_channels`, "p6" is made of the last
            result.

    Example:
        >>> block = torch.vision.ops.feature_pyramid_network.LastLevelP6P7(8, 8)
        >>> maps, names = block([torch.zeros(1, 8, 8, 8)], [torch.zeros(1, 8, 8, 8)], ["0"])
        >>> names, maps[-1].shape
        (['0', 'p6', 'p7'], torch.Size([1, 8, 2, 2]))
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.use_P5 = in_channels == out_channels
        self.p6, self.p7 = (
            nn.Conv2d(channels, out_channels, 3, stride=2, padding=1)
            for channels in (in_channels, out_channels)
        )
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            else:
                nn.init.kaiming_uniform_(parameter, a=1)

    def forward(
        self, p: list[Tensor], c: list[Tensor], names: list[str]
    ) -> tuple[list[Tensor], list[str]]:
        """The maps and their names, with two smaller ones: "p6" and "p7"."""
        p6 = self.p6((p if self.use_P5 else c)[-1])
        return [*p, p6, self.p7(F.relu(p6))], [*names, "p6", "p7"]
