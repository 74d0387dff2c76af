"""Pooling of regions from the map of a feature pyramid that suits their size."""

import math

import rushlight as torch
from rushlight import Tensor, nn

from ._shared import n_of
from .boxes import box_area
from .rois import roi_align, with_image_numbers

__all__ = ["LevelMapper", "MultiScaleRoIAlign", "initLevelMapper"]


class LevelMapper:
    """For boxes (L, 4) of each image, indices of the maps that suit their sizes, from 0.

    Maps are the levels k_min to k_max; a box whose side (the root of its area) is canonical_scale
    belongs to level canonical_level, one twice as large to the next.

    Args:
        k_min: the level of the first map.
        k_max: the level of the last map.
        canonical_scale: the side of a box of the level `canonical_level`, in pixels.
        canonical_level: the level of a box of that side.
        eps: is added to the level before it is rounded down.

    Example:
        >>> mapper = torch.vision.ops.poolers.LevelMapper(2, 5)
        >>> mapper([torch.tensor([[0.0, 0, 32, 32], [0, 0, 224, 224], [0, 0, 900, 900]])])
        tensor([0, 2, 3])
    """

    def __init__(
        self,
        k_min: int,
        k_max: int,
        canonical_scale: int = 224,
        canonical_level: int = 4,
        eps: float = 1e-6,
    ) -> None:
        self.k_min, self.k_max, self.eps = k_min, k_max, eps
        self.s0, self.lvl0 = canonical_scale, canonical_level

    def __call__(self, boxlists: list[Tensor]) -> Tensor:
        sides = torch.cat([box_area(boxes) for boxes in boxlists]).sqrt()
        level = torch.floor(self.lvl0 + torch.log2(sides / self.s0) + self.eps)
        return (level.clamp(self.k_min, self.k_max) - self.k_min).to(torch.int64)


def initLevelMapper(
    k_min: int,
    k_max: int,
    canonical_scale: int = 224,
    canonical_level: int = 4,
    eps: float = 1e-6,
) -> LevelMapper:
    """Make a `LevelMapper`.

    Args:
        k_min: the level of the first map.
        k_max: the level of the last map.
        canonical_scale: the side of a box of the level `canonical_level`, in pixels.
        canonical_level: the level of a box of that side.
        eps: is added to the level before it is rounded down.

    Example:
        >>> torch.vision.ops.poolers.initLevelMapper(2, 5)([torch.tensor([[0.0, 0, 224, 224]])])
        tensor([2])
    """
    return LevelMapper(k_min, k_max, canonical_scale, canonical_level, eps)


class MultiScaleRoIAlign(nn.Module):
    """`roi_align` from one of several maps (N, C, H_i, W_i): larger boxes use smaller maps.

    A box whose side (the root of its area) is canonical_scale belongs to level canonical_level, one
    twice as large to the next. Takes a dict of maps, boxes (L, 4) of each image and the images'
    sizes; gives (K, C, height, width).

    Args:
        featmap_names: the keys of the maps that are used.
        output_size: height and width of a result, or one number for both.
        sampling_ratio: samples along each side of a bin; 0 or less: as many as it has pixels.
        canonical_scale: the side of a box of the level `canonical_level`, in pixels.
        canonical_level: the level of a box of that side.

    Example:
        >>> pool = torch.vision.ops.MultiScaleRoIAlign(["large", "small"], 7, sampling_ratio=2)
        >>> maps = {"large": torch.zeros(1, 8, 64, 64), "small": torch.zeros(1, 8, 32, 32)}
        >>> pool(maps, [torch.tensor([[0.0, 0, 100, 100]])], image_shapes=[(256, 256)]).shape
        torch.Size([1, 8, 7, 7])
    """

    def __init__(
        self,
        featmap_names: list[str],
        output_size: int | tuple[int] | list[int],
        sampling_ratio: int,
        *,
        canonical_scale: int = 224,
        canonical_level: int = 4,
    ) -> None:
        super().__init__()
        self.featmap_names, self.sampling_ratio = featmap_names, sampling_ratio
        self.output_size = n_of(output_size, 2)
        self.canonical_scale, self.canonical_level = canonical_scale, canonical_level

    def _scales(self, maps: list[Tensor], image_shapes: list[tuple[int, int]]) -> list[float]:
        """Of each map, a power of two, measured along the height."""
        tallest = max(shape[0] for shape in image_shapes)
        return [
            2.0 ** float(torch.tensor(each.shape[-2] / tallest).log2().round()) for each in maps
        ]

    def forward(
        self, x: dict[str, Tensor], boxes: list[Tensor], image_shapes: list[tuple[int, int]]
    ) -> Tensor:
        maps = [value for name, value in x.items() if name in self.featmap_names]
        scales = self._scales(maps, image_shapes)
        rois = with_image_numbers(boxes)
        if len(maps) == 1:
            return roi_align(maps[0], rois, self.output_size, scales[0], self.sampling_ratio)
        first, last = (-int(math.log2(scale)) for scale in (scales[0], scales[-1]))
        level = LevelMapper(first, last, self.canonical_scale, self.canonical_level)(boxes)
        result = maps[0].new_zeros((len(rois), maps[0].shape[1], *self.output_size))
        for i, (each, scale) in enumerate(zip(maps, scales, strict=True)):
            chosen = (level == i).nonzero().squeeze(1)
            windows = roi_align(each, rois[chosen], self.output_size, scale, self.sampling_ratio)
            result = result.index_put((chosen,), windows.to(result.dtype))
        return result

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(featmap_names={self.featmap_names}, "
            f"output_size={self.output_size}, "
            f"sampling_ratio={self.sampling_ratio})"
        )
