"""Pooling of regions of interest: interpolated means (align), and maxima or means of pixels (pool).

Boxes are (K, 5), with the number of their image in front, or a list with one (L, 4) for each image;
corners in the coordinates of an image that spatial_scale takes to the input's (N, C, H, W). Results
are (K, C, height, width), for the position-sensitive ones (ps_) (K, C / (height * width), height,
width). All have first and second derivatives by the input, none by the boxes.
"""

import rushlight as torch
from rushlight import Tensor, nn
from rushlight._table import ops as _ops

from ._shared import pair, register

__all__ = [
    "PSRoIAlign",
    "PSRoIPool",
    "RoIAlign",
    "RoIPool",
    "ps_roi_align",
    "ps_roi_pool",
    "roi_align",
    "roi_pool",
]

Boxes = Tensor | list[Tensor]
_average, _max = register(_ops._roi_average), register(_ops._roi_max)


def with_image_numbers(boxes: list[Tensor] | tuple[Tensor, ...]) -> Tensor:
    """Boxes (L, 4) of each image as one tensor (K, 5) with the images' numbers in front."""
    return torch.cat([torch.cat((torch.full_like(b[:, :1], i), b), 1) for i, b in enumerate(boxes)])


def _rois(boxes: Boxes) -> Tensor:
    if isinstance(boxes, list | tuple):
        if any(b.dim() != 2 or b.size(1) != 4 for b in boxes):
            raise AssertionError(
                "a tensor in the list of boxes is not correct as Tensor[L, 4]: "
                f"{[tuple(b.shape) for b in boxes]}"
            )
        return with_image_numbers(boxes)
    if not isinstance(boxes, Tensor):
        raise AssertionError("boxes is expected to be a tensor of 5 columns, or several of 4")
    if boxes.dim() != 2 or boxes.size(1) != 5:
        raise AssertionError("The boxes tensor shape is not correct as Tensor[K, 5]")
    return boxes


def roi_align(
    input: Tensor,
    boxes: Boxes,
    output_size: int | tuple[int, int],
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    aligned: bool = False,
) -> Tensor:
    """RoI align: the means of interpolated samples in the bins of each box.

    sampling_ratio: samples by the height and by the width of a bin; 0 or less: as many as it has
    pixels. aligned: coordinates are those of pixels' middles, half a pixel less. AssertionError for
    boxes of other shapes, RuntimeError for a dtype that is not the input's and for a box of an
    image that is not there.

    Args:
        input: maps (N, C, H, W).
        boxes: the regions, (K, 5) with the number of their image in front, or a list with (L, 4)
            for each image; by two corners.
        output_size: height and width of a result, or one number for both.
        spatial_scale: what the coordinates of boxes are multiplied by to get the map's.
        sampling_ratio: samples along each side of a bin; 0 or less: as many as it has pixels.
        aligned: whether coordinates are those of pixels' middles.

    Example:
        >>> image = torch.arange(16.0).view(1, 1, 4, 4)
        >>> torch.vision.ops.roi_align(image, [torch.tensor([[0.0, 0, 4, 4]])], output_size=2)
        tensor([[[[ 5.0000,  6.7500],
                  [12.0000, 13.7500]]]])
    """
    height, width = pair(output_size, "output_size")
    return _average(
        input, _rois(boxes), spatial_scale, height, width, sampling_ratio, aligned, "align"
    )


def ps_roi_align(
    input: Tensor,
    boxes: Boxes,
    output_size: int | tuple[int, int],
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
) -> Tensor:
    """Position-sensitive RoI align: `roi_align` in which each bin reads its own channel.

    Args:
        input: maps (N, C * height * width, H, W).
        boxes: the regions, as `roi_align` takes them.
        output_size: height and width of a result, or one number for both.
        spatial_scale: what the coordinates of boxes are multiplied by to get the map's.
        sampling_ratio: samples along each side of a bin; 0 or less: as many as it has pixels.

    Example:
        >>> maps = torch.ones(1, 8, 4, 4)
        >>> torch.vision.ops.ps_roi_align(maps, [torch.tensor([[0.0, 0, 4, 4]])], 2).shape
        torch.Size([1, 2, 2, 2])
    """
    height, width = pair(output_size, "output_size")
    return _average(
        input, _rois(boxes), spatial_scale, height, width, sampling_ratio, True, "ps_align"
    )


def roi_pool(
    input: Tensor, boxes: Boxes, output_size: int | tuple[int, int], spatial_scale: float = 1.0
) -> Tensor:
    """RoI pooling: the largest pixel in the bins of each box, which is rounded to whole pixels.

    Args:
        input: maps (N, C, H, W).
        boxes: the regions, as `roi_align` takes them.
        output_size: height and width of a result, or one number for both.
        spatial_scale: what the coordinates of boxes are multiplied by to get the map's.

    Example:
        >>> image = torch.arange(16.0).view(1, 1, 4, 4)
        >>> torch.vision.ops.roi_pool(image, [torch.tensor([[0.0, 0, 3, 3]])], output_size=2)
        tensor([[[[ 5.,  7.],
                  [13., 15.]]]])
    """
    height, width = pair(output_size, "output_size")
    return _max(input, _rois(boxes), spatial_scale, height, width)[0]


def ps_roi_pool(
    input: Tensor, boxes: Boxes, output_size: int | tuple[int, int], spatial_scale: float = 1.0
) -> Tensor:
    """Position-sensitive RoI pooling: the mean pixel of each bin, which reads its own channel.

    Args:
        input: maps (N, C * height * width, H, W).
        boxes: the regions, as `roi_align` takes them.
        output_size: height and width of a result, or one number for both.
        spatial_scale: what the coordinates of boxes are multiplied by to get the map's.

    Example:
        >>> maps = torch.ones(1, 8, 4, 4)
        >>> torch.vision.ops.ps_roi_pool(maps, [torch.tensor([[0.0, 0, 4, 4]])], 2).shape
        torch.Size([1, 2, 2, 2])
    """
    height, width = pair(output_size, "output_size")
    return _average(input, _rois(boxes), spatial_scale, height, width, -1, False, "ps_pool")


class _Window(nn.Module):
    """A function of this module with its settings."""

    def __init__(self, **settings) -> None:
        super().__init__()
        for name, value in settings.items():
            setattr(self, name, value)
        self._settings = tuple(settings)

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={getattr(self, name)}" for name in self._settings)
        return f"{type(self).__name__}({settings})"


class RoIAlign(_Window):
    """`roi_align` as a layer.

    Args:
        output_size: height and width of a result, or one number for both.
        spatial_scale: what the coordinates of boxes are multiplied by to get the map's.
        sampling_ratio: samples along each side of a bin; 0 or less: as many as it has pixels.
        aligned: whether coordinates are those of pixels' middles.

    Example:
        >>> layer = torch.vision.ops.RoIAlign(7, spatial_scale=0.25, sampling_ratio=2)
        >>> layer(torch.ones(1, 16, 32, 32), [torch.tensor([[0.0, 0, 64, 64]])]).shape
        torch.Size([1, 16, 7, 7])
    """

    def __init__(
        self,
        output_size: int | tuple[int, int],
        spatial_scale: float,
        sampling_ratio: int,
        aligned: bool = False,
    ) -> None:
        super().__init__(
            output_size=output_size,
            spatial_scale=spatial_scale,
            sampling_ratio=sampling_ratio,
            aligned=aligned,
        )

    def forward(self, input: Tensor, rois: Boxes) -> Tensor:
        return roi_align(
            input, rois, self.output_size, self.spatial_scale, self.sampling_ratio, self.aligned
        )


class RoIPool(_Window):
    """`roi_pool` as a layer.

    Args:
        output_size: height and width of a result, or one number for both.
        spatial_scale: what the coordinates of boxes are multiplied by to get the map's.

    Example:
        >>> layer = torch.vision.ops.RoIPool(7, spatial_scale=0.25)
        >>> layer(torch.ones(1, 16, 32, 32), [torch.tensor([[0.0, 0, 64, 64]])]).shape
        torch.Size([1, 16, 7, 7])
    """

    def __init__(self, output_size: int | tuple[int, int], spatial_scale: float) -> None:
        super().__init__(output_size=output_size, spatial_scale=spatial_scale)

    def forward(self, input: Tensor, rois: Boxes) -> Tensor:
        return roi_pool(input, rois, self.output_size, self.spatial_scale)


class PSRoIAlign(_Window):
    """`ps_roi_align` as a layer.

    Args:
        output_size: height and width of a result, or one number for both.
        spatial_scale: what the coordinates of boxes are multiplied by to get the map's.
        sampling_ratio: samples along each side of a bin; 0 or less: as many as it has pixels.

    Example:
        >>> layer = torch.vision.ops.PSRoIAlign(3, spatial_scale=0.25, sampling_ratio=2)
        >>> layer(torch.ones(1, 18, 32, 32), [torch.tensor([[0.0, 0, 64, 64]])]).shape
        torch.Size([1, 2, 3, 3])
    """

    def __init__(
        self, output_size: int | tuple[int, int], spatial_scale: float, sampling_ratio: int
    ) -> None:
        super().__init__(
            output_size=output_size, spatial_scale=spatial_scale, sampling_ratio=sampling_ratio
        )

    def forward(self, input: Tensor, rois: Boxes) -> Tensor:
        return ps_roi_align(input, rois, self.output_size, self.spatial_scale, self.sampling_ratio)


class PSRoIPool(_Window):
    """`ps_roi_pool` as a layer.

    Args:
        output_size: height and width of a result, or one number for both.
        spatial_scale: what the coordinates of boxes are multiplied by to get the map's.

    Example:
        >>> layer = torch.vision.ops.PSRoIPool(3, spatial_scale=0.25)
        >>> layer(torch.ones(1, 18, 32, 32), [torch.tensor([[0.0, 0, 64, 64]])]).shape
        torch.Size([1, 2, 3, 3])
    """

    def __init__(self, output_size: int | tuple[int, int], spatial_scale: float) -> None:
        super().__init__(output_size=output_size, spatial_scale=spatial_scale)

    def forward(self, input: Tensor, rois: Boxes) -> Tensor:
        return ps_roi_pool(input, rois, self.output_size, self.spatial_scale)
