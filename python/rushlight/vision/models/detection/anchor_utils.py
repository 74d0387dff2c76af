"""Boxes that detectors start from: several at each place of each map."""

import rushlight as torch
from rushlight import Tensor, nn

from .image_list import ImageList


class AnchorGenerator(nn.Module):
    """At each place of map i, boxes of sizes[i] and aspect_ratios[i] (height over width), all
    pairs.
    """

    def __init__(self, sizes=((128, 256, 512),), aspect_ratios=((0.5, 1.0, 2.0),)) -> None:
        super().__init__()
        if not isinstance(sizes[0], list | tuple):
            sizes = tuple((s,) for s in sizes)
        if not isinstance(aspect_ratios[0], list | tuple):
            aspect_ratios = (aspect_ratios,) * len(sizes)
        self.sizes, self.aspect_ratios = sizes, aspect_ratios
        self.cell_anchors = [
            self.generate_anchors(s, r) for s, r in zip(sizes, aspect_ratios, strict=True)
        ]

    def generate_anchors(self, scales, aspect_ratios, dtype=torch.float32, device=None) -> Tensor:
        """Boxes around (0, 0), with whole numbers for corners."""
        sides = torch.as_tensor(scales, dtype=dtype, device=device)
        tall = torch.as_tensor(aspect_ratios, dtype=dtype, device=device).sqrt()
        heights = (tall[:, None] * sides).flatten()
        widths = ((1 / tall)[:, None] * sides).flatten()
        return (torch.stack([-widths, -heights, widths, heights], dim=1) / 2).round()

    def num_anchors_per_location(self) -> list[int]:
        return [len(s) * len(r) for s, r in zip(self.sizes, self.aspect_ratios, strict=True)]

    def grid_anchors(self, grid_sizes, strides) -> list[Tensor]:
        """Boxes of all places of each map, row after row."""
        if not len(grid_sizes) == len(strides) == len(self.cell_anchors):
            raise AssertionError(
                "Anchors should be Tuple[Tuple[int]] because each feature map could potentially "
                "have different "
                "sizes and aspect ratios. There needs to be a match between the number of feature "
                "maps passed and "
                "the number of sizes / aspect ratios specified."
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
        grids = [each.shape[-2:] for each in feature_maps]
        size, like = image_list.tensors.shape[-2:], feature_maps[0]
        strides = [(size[0] // g[0], size[1] // g[1]) for g in grids]
        self.cell_anchors = [
            base.to(dtype=like.dtype, device=like.device) for base in self.cell_anchors
        ]
        every = torch.cat(self.grid_anchors(grids, strides))
        return [every for _ in image_list.image_sizes]
