"""Anchors of detectors: several boxes at each position of each feature map."""

import math

import rushlight as torch
from rushlight import Tensor, nn

from .image_list import ImageList

__all__ = ["AnchorGenerator", "DefaultBoxGenerator"]

_CPU = torch.device("cpu")


class AnchorGenerator(nn.Module):
    """At each position of map i, boxes of sizes[i] and aspect_ratios[i] (height over width), all
    pairs.

    Args:
        sizes: for each map the sides of boxes, in pixels.
        aspect_ratios: for each map heights by widths.

    Example:
        >>> from rushlight.vision.models.detection.anchor_utils import AnchorGenerator
        >>> anchors = AnchorGenerator(sizes=((32,), (64,)), aspect_ratios=((0.5, 1.0),) * 2)
        >>> anchors.num_anchors_per_location()
        [2, 2]
    """

    def __init__(self, sizes=((128, 256, 512),), aspect_ratios=((0.5, 1.0, 2.0),)) -> None:
        super().__init__()
        by_map, ratios_by_map = (isinstance(x[0], list | tuple) for x in (sizes, aspect_ratios))
        self.sizes = sizes if by_map else tuple((size,) for size in sizes)
        self.aspect_ratios = aspect_ratios if ratios_by_map else (aspect_ratios,) * len(self.sizes)
        settings = zip(self.sizes, self.aspect_ratios, strict=True)
        self.cell_anchors = [self.generate_anchors(*setting) for setting in settings]

    def generate_anchors(self, scales, aspect_ratios, dtype=torch.float32, device=_CPU) -> Tensor:
        """Boxes around (0, 0), with integer corners."""
        sides = torch.as_tensor(scales, dtype=dtype, device=device)
        tall = torch.as_tensor(aspect_ratios, dtype=dtype, device=device).sqrt()
        heights = (tall[:, None] * sides).flatten()
        widths = ((1 / tall)[:, None] * sides).flatten()
        return (torch.stack([-widths, -heights, widths, heights], dim=1) / 2).round()

    def num_anchors_per_location(self) -> list[int]:
        """For each map the number of boxes of a position."""
        return [len(s) * len(r) for s, r in zip(self.sizes, self.aspect_ratios, strict=True)]

    def set_cell_anchors(self, dtype: torch.dtype, device: torch.device) -> None:
        """Convert the boxes around (0, 0) to a dtype and a device."""
        self.cell_anchors = [base.to(dtype=dtype, device=device) for base in self.cell_anchors]

    def grid_anchors(self, grid_sizes: list[list[int]], strides: list[list[int]]) -> list[Tensor]:
        """The boxes of all positions of each map, row after row."""
        if not len(grid_sizes) == len(strides) == len(self.cell_anchors):
            raise AssertionError(
                f"{len(grid_sizes)} maps, but sizes and aspect_ratios for "
                f"{len(self.cell_anchors)}: Anchors should be Tuple[Tuple[int]], a tuple for each "
                "map"
            )
        found = []
        for (rows, columns), (down, right), base in zip(
            grid_sizes, strides, self.cell_anchors, strict=True
        ):
            y = torch.arange(rows, dtype=torch.int32, device=base.device) * down
            x = torch.arange(columns, dtype=torch.int32, device=base.device) * right
            y, x = (t.reshape(-1) for t in torch.meshgrid(y, x, indexing="ij"))
            places = torch.stack((x, y, x, y), dim=1)
            found.append((places[:, None] + base[None]).reshape(-1, 4))
        return found

    def forward(self, image_list: ImageList, feature_maps: list[Tensor]) -> list[Tensor]:
        """All boxes (A, 4), once for each image."""
        grids = [list(each.shape[-2:]) for each in feature_maps]
        size, like = image_list.tensors.shape[-2:], feature_maps[0]
        strides = [[size[0] // g[0], size[1] // g[1]] for g in grids]
        self.set_cell_anchors(like.dtype, like.device)
        every = torch.cat(self.grid_anchors(grids, strides))
        return [every for _ in image_list.image_sizes]


class DefaultBoxGenerator(nn.Module):
    """At each position of map i, squares of two sizes, and a wide and a tall box for each of
    aspect_ratios[i].

    Sizes are relative to the image: scales[i], or evenly from min_ratio to max_ratio; the second
    square is between scales[i] and the next. steps: pixels between positions, else those of the
    map. clip: no box is larger than the image.

    Args:
        aspect_ratios: for each map ratios beside 1.
        min_ratio, max_ratio: sides of boxes of the first and the last map, by the image's.
        scales: the sides for each map, instead.
        steps: for each map pixels from one position to the next.
        clip: keep boxes within the image.

    For an example see `vision.models.detection.ssd300_vgg16`.
    """

    def __init__(
        self,
        aspect_ratios: list[list[int]],
        min_ratio: float = 0.15,
        max_ratio: float = 0.9,
        scales: list[float] | None = None,
        steps: list[int] | None = None,
        clip: bool = True,
    ) -> None:
        super().__init__()
        count = len(aspect_ratios)
        if steps is not None and len(steps) != count:
            raise ValueError("aspect_ratios and steps should have the same length")
        if scales is None and count == 1:
            scales = [min_ratio, max_ratio]
        elif scales is None:
            wide = max_ratio - min_ratio
            scales = [*(min_ratio + wide * i / (count - 1.0) for i in range(count)), 1.0]
        self.aspect_ratios, self.scales, self.steps, self.clip = aspect_ratios, scales, steps, clip
        self._sizes = [self._sizes_of(i) for i in range(count)]

    def _sizes_of(self, i: int) -> Tensor:
        """Widths and heights (boxes, 2) of map i."""
        scale, between = self.scales[i], math.sqrt(self.scales[i] * self.scales[i + 1])
        sizes = [(scale, scale), (between, between)]
        for ratio in self.aspect_ratios[i]:
            long, short = scale * math.sqrt(ratio), scale / math.sqrt(ratio)
            sizes += [(long, short), (short, long)]
        return torch.tensor(sizes)

    def num_anchors_per_location(self) -> list[int]:
        """For each map the number of boxes of a position."""
        return [len(sizes) for sizes in self._sizes]

    def forward(self, image_list: ImageList, feature_maps: list[Tensor]) -> list[Tensor]:
        """All boxes (A, 4) in pixels, once for each image."""
        height, width = image_list.tensors.shape[-2:]
        like, parts, steps = feature_maps[0], [], self.steps
        for i, (maps, sizes) in enumerate(zip(feature_maps, self._sizes, strict=True)):
            rows, columns = maps.shape[-2:]
            down, right = float(rows), float(columns)
            if steps is not None:
                down, right = height / steps[i], width / steps[i]
            y = ((torch.arange(rows) + 0.5) / down).to(like)
            x = ((torch.arange(columns) + 0.5) / right).to(like)
            y, x = torch.meshgrid(y, x, indexing="ij")
            middle = torch.stack((x, y), 2).flatten(0, 1)[:, None]
            half = 0.5 * (sizes.clamp(min=0, max=1) if self.clip else sizes).to(like)
            parts.append(torch.cat((middle - half, middle + half), 2).flatten(0, 1))
        pixels = torch.tensor([width, height, width, height], device=like.device)
        boxes = torch.cat(parts) * pixels
        return [boxes for _ in image_list.image_sizes]

    def __repr__(self) -> str:
        names = "aspect_ratios", "clip", "scales", "steps"
        return f"{type(self).__name__}({', '.join(f'{n}={getattr(self, n)}' for n in names)})"
