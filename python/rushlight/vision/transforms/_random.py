"""Transforms whose settings are drawn from ranges: crops, and what turns and bends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight import Tensor

from . import functional as F
from ._basic import PrintedTransform
from ._chance import Sometimes
from ._drawn import (
    angles,
    check_ranges,
    check_sequence,
    fill_for,
    fill_setting,
    integer,
    part,
    per_axis,
    size_of,
    uniform,
)
from ._modes import InterpolationMode, as_mode

_BILINEAR, _NEAREST = InterpolationMode.BILINEAR, InterpolationMode.NEAREST


class RandomCrop(PrintedTransform):
    """Crops at a random position to a given size.

    Args:
        size: height and width, or one number for both.
        padding: pixels that are put around the image before, as `functional.pad` takes them.
        pad_if_needed: whether an image that is too small gets more pixels; else ValueError.
        fill: the value of such pixels.
        padding_mode: the way to make the new pixels.

    Example:
        >>> from rushlight.vision import transforms
        >>> transforms.RandomCrop(4)(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 4, 4])
    """

    _shows = ("size", "padding")
    takes_parts = True

    def __init__(
        self,
        size: int | Sequence[int],
        padding: Any = None,
        pad_if_needed: bool = False,
        fill: Any = 0,
        padding_mode: str = "constant",
    ) -> None:
        super().__init__()
        self.size: tuple[int, int] = size_of(size)
        self.padding = padding
        self.pad_if_needed = pad_if_needed
        self.fill = fill
        self.padding_mode = padding_mode

    @staticmethod
    def get_params(img: Any, output_size: tuple[int, int]) -> tuple[int, int, int, int]:
        """Top, left, height and width of the crop."""
        _, h, w = F.get_dimensions(img)
        height, width = output_size
        if h < height or w < width:
            raise ValueError(
                f"Required crop size {(height, width)} is larger than the image: {(h, w)}"
            )
        if (h, w) == (height, width):
            return 0, 0, h, w
        top = integer(0, h - height + 1)
        return top, integer(0, w - width + 1), height, width

    def forward(self, img: Any) -> Any:
        if self.padding is not None:
            img = F.pad(img, self.padding, self.fill, self.padding_mode)
        missing = [a - b for a, b in zip(self.size, F.get_dimensions(img)[1:], strict=True)]
        if self.pad_if_needed and max(missing) > 0:
            height, width = (max(pixels, 0) for pixels in missing)
            img = F.pad(img, [width, height], self.fill, self.padding_mode)
        return F.crop(img, *self.get_params(img, self.size))


class RandomResizedCrop(PrintedTransform):
    """Crops at a random position with a random size and aspect ratio, and resizes: the usual
    transform for training on ImageNet.

    Args:
        size: height and width of the result, or one number for both.
        scale: range of the part's share of the area.
        ratio: range of its width by its height.
        interpolation: how it is resized.
        antialias: whether tensors are smoothed.

    Example:
        >>> from rushlight.vision import transforms
        >>> transforms.RandomResizedCrop(4)(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 4, 4])
    """

    takes_parts = True

    def __init__(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Any = _BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.size = size_of(size)
        check_ranges(scale, ratio)
        self.interpolation = as_mode(interpolation)
        self.antialias = antialias
        self.scale = scale
        self.ratio = ratio

    @staticmethod
    def get_params(
        img: Any, scale: Sequence[float], ratio: Sequence[float]
    ) -> tuple[int, int, int, int]:
        """Top, left, height and width of the crop; the largest in the centre if ten tries do not
        fit.
        """
        _, height, width = F.get_dimensions(img)
        return part(height, width, scale, ratio)

    def forward(self, img: Any) -> Any:
        found = self.get_params(img, self.scale, self.ratio)
        return F.resized_crop(img, *found, self.size, self.interpolation, antialias=self.antialias)

    def __repr__(self) -> str:
        scale = tuple(round(s, 4) for s in self.scale)
        ratio = tuple(round(r, 4) for r in self.ratio)
        return (
            f"{type(self).__name__}(size={self.size}, scale={scale}, ratio={ratio}, "
            f"interpolation={self.interpolation.value}, antialias={self.antialias})"
        )


class RandomPerspective(Sometimes):
    """Distorts the perspective with probability p: corners move inwards by up to half the edges
    times `distortion_scale`.

    Args:
        distortion_scale: how far corners move, from 0 to 1.
        p: the probability of doing it.
        interpolation: how pixels are read.
        fill: the value of what lies outside.

    Example:
        >>> from rushlight.vision import transforms
        >>> transforms.RandomPerspective()(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 8, 8])
    """

    def __init__(
        self,
        distortion_scale: float = 0.5,
        p: float = 0.5,
        interpolation: Any = _BILINEAR,
        fill: Any = 0,
    ) -> None:
        super().__init__(p)
        self.interpolation = as_mode(interpolation)
        self.distortion_scale = distortion_scale
        self.fill = fill_setting(fill)

    @staticmethod
    def get_params(
        width: int, height: int, distortion_scale: float
    ) -> tuple[list[list[int]], list[list[int]]]:
        """The corners before and after the transform."""
        dx = int(distortion_scale * (width // 2))
        dy = int(distortion_scale * (height // 2))
        near_x, near_y = (0, dx + 1), (0, dy + 1)
        far_x, far_y = (width - dx - 1, width), (height - dy - 1, height)
        around = ((near_x, near_y), (far_x, near_y), (far_x, far_y), (near_x, far_y))
        moved = [[integer(*x), integer(*y)] for x, y in around]
        start = [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]
        return start, moved

    def change(self, img: Any) -> Any:
        _, height, width = F.get_dimensions(img)
        start, end = self.get_params(width, height, self.distortion_scale)
        return F.perspective(img, start, end, self.interpolation, fill_for(img, self.fill))


class RandomRotation(PrintedTransform):
    """Rotates by a random angle from a range.

    Args:
        degrees: the range, or one number for -degrees to degrees.
        interpolation, expand, center, fill: those of `functional.rotate`.

    Example:
        >>> from rushlight.vision import transforms
        >>> transforms.RandomRotation(30)(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 8, 8])
    """

    def __init__(
        self,
        degrees: Any,
        interpolation: Any = _NEAREST,
        expand: bool = False,
        center: Any = None,
        fill: Any = 0,
    ) -> None:
        super().__init__()
        self.interpolation = as_mode(interpolation)
        self.degrees = angles(degrees, "degrees")
        if center is not None:
            check_sequence(center, "center", (2,))
        self.center = center
        self.expand = expand
        self.fill = fill_setting(fill)

    @staticmethod
    def get_params(degrees: Sequence[float]) -> float:
        """The angle."""
        return uniform(degrees[0], degrees[1])

    def forward(self, img: Any) -> Any:
        fill = fill_for(img, self.fill)
        angle = self.get_params(self.degrees)
        return F.rotate(img, angle, self.interpolation, self.expand, self.center, fill)

    def __repr__(self) -> str:
        center = f", center={self.center}" if self.center is not None else ""
        return (
            f"{type(self).__name__}(degrees={self.degrees}, "
            f"interpolation={self.interpolation.value}, expand={self.expand}{center}, "
            f"fill={self.fill})"
        )


class RandomAffine(PrintedTransform):
    """Rotates, translates, scales and shears by random numbers from ranges, around the centre.

    Args:
        degrees: range of angles, or one number for -degrees to degrees.
        translate: the largest shares of width and height that it is moved by, from 0 to 1; None for
            no move.
        scale: range of factors; None for 1.
        shear: range of angles along x, or of x and y (four numbers), or one number; None for none.
        interpolation, fill, center: those of `functional.affine`.

    Example:
        >>> from rushlight.vision import transforms
        >>> transforms.RandomAffine(degrees=10)(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 8, 8])
    """

    def __init__(
        self,
        degrees: Any,
        translate: Any = None,
        scale: Any = None,
        shear: Any = None,
        interpolation: Any = _NEAREST,
        fill: Any = 0,
        center: Any = None,
    ) -> None:
        super().__init__()
        self.interpolation = as_mode(interpolation)
        self.degrees = angles(degrees, "degrees")
        if translate is not None:
            check_sequence(translate, "translate", (2,))
            if any(not 0.0 <= t <= 1.0 for t in translate):
                raise ValueError("translation values should be between 0 and 1")
        self.translate = translate
        if scale is not None:
            check_sequence(scale, "scale", (2,))
            if any(s <= 0 for s in scale):
                raise ValueError("scale values should be positive")
        self.scale = scale
        self.shear = shear if shear is None else angles(shear, "shear", (2, 4))
        self.fill = fill_setting(fill)
        if center is not None:
            check_sequence(center, "center", (2,))
        self.center = center

    @staticmethod
    def get_params(
        degrees: Sequence[float],
        translate: Sequence[float] | None,
        scale_ranges: Sequence[float] | None,
        shears: Sequence[float] | None,
        img_size: Sequence[int],
    ) -> tuple[float, tuple[int, int], float, tuple[float, float]]:
        """Angle, translation, scale and shear, for an image of (width, height)."""
        angle = uniform(degrees[0], degrees[1])
        move = (0, 0)
        if translate is not None:
            far = [float(share * n) for share, n in zip(translate, img_size, strict=False)]
            move = (round(uniform(-far[0], far[0])), round(uniform(-far[1], far[1])))
        scale = 1.0 if scale_ranges is None else uniform(scale_ranges[0], scale_ranges[1])
        shear_x = shear_y = 0.0
        if shears is not None:
            shear_x = uniform(shears[0], shears[1])
            if len(shears) == 4:
                shear_y = uniform(shears[2], shears[3])
        return angle, move, scale, (shear_x, shear_y)

    def forward(self, img: Any) -> Any:
        fill = fill_for(img, self.fill)
        _, height, width = F.get_dimensions(img)
        drawn = self.get_params(
            self.degrees, self.translate, self.scale, self.shear, [width, height]
        )
        return F.affine(img, *drawn, self.interpolation, fill, self.center)

    def __repr__(self) -> str:
        said = [f"degrees={self.degrees}"]
        for name, usual in (("translate", None), ("scale", None), ("shear", None)):
            if getattr(self, name) is not usual:
                said.append(f"{name}={getattr(self, name)}")
        if self.interpolation is not _NEAREST:
            said.append(f"interpolation={self.interpolation.value}")
        if self.fill != 0:
            said.append(f"fill={self.fill}")
        if self.center is not None:
            said.append(f"center={self.center}")
        return f"{type(self).__name__}({', '.join(said)})"


class ElasticTransform(PrintedTransform):
    """Moves every pixel by smoothed noise, as if seen through water.

    Args:
        alpha: the size of the displacements, one number or one for each axis.
        sigma: how smooth, in pixels, likewise.
        interpolation, fill: those of `functional.elastic_transform`.

    Example:
        >>> from rushlight.vision import transforms
        >>> transforms.ElasticTransform(sigma=0.5)(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 8, 8])
    """

    def __init__(
        self,
        alpha: Any = 50.0,
        sigma: Any = 5.0,
        interpolation: Any = _BILINEAR,
        fill: Any = 0,
    ) -> None:
        super().__init__()
        for name, value in (("alpha", alpha), ("sigma", sigma)):
            if isinstance(value, Sequence) and len(value) != 2:
                raise ValueError(
                    f"{name} should be one number or (smallest, largest), not {len(value)} of them"
                )
        self.alpha = per_axis(alpha, "alpha")
        self.sigma = per_axis(sigma, "sigma")
        self.interpolation = as_mode(interpolation)
        self.fill = [float(fill)] if isinstance(fill, int | float) else [float(f) for f in fill]

    @staticmethod
    def get_params(alpha: Sequence[float], sigma: Sequence[float], size: Sequence[int]) -> Tensor:
        """The displacement, (1, H, W, 2); RuntimeError for an image without pixels."""
        if 0 in size:
            raise RuntimeError(f"an image of size {tuple(size)} has no pixels to move")
        moves = []
        for axis in range(2):
            noise = rushlight.rand([1, 1, *size]) * 2 - 1
            if sigma[axis] > 0.0:
                n = int(8 * sigma[axis] + 1)
                n += n % 2 == 0
                noise = F.gaussian_blur(noise, [n, n], list(sigma))
            moves.append(noise * alpha[axis] / size[1 - axis])  # x by the width
        return rushlight.cat(moves, 1).permute([0, 2, 3, 1])

    def forward(self, tensor: Any) -> Any:
        _, height, width = F.get_dimensions(tensor)
        displacement = self.get_params(self.alpha, self.sigma, [height, width])
        return F.elastic_transform(tensor, displacement, self.interpolation, self.fill)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(alpha={self.alpha}, sigma={self.sigma}, "
            f"interpolation={self.interpolation}, fill={self.fill})"
        )
