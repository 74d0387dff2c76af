"""Transforms whose settings are drawn from ranges."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight._warnings import warn

from . import functional as F
from ._basic import PrintedTransform, Sometimes
from ._drawn import (
    angles,
    check_sequence,
    check_spread,
    fill_for,
    fill_setting,
    happens,
    integer,
    odd_size,
    part,
    patch,
    size_of,
    uniform,
)
from ._modes import InterpolationMode, as_mode

_BILINEAR, _NEAREST = InterpolationMode.BILINEAR, InterpolationMode.NEAREST


def _check_ranges(scale: Any, ratio: Any) -> None:
    if not isinstance(scale, Sequence):
        raise TypeError("Scale should be a sequence")
    if not isinstance(ratio, Sequence):
        raise TypeError("Ratio should be a sequence")
    if scale[0] > scale[1] or ratio[0] > ratio[1]:
        warn("Scale and ratio should be of kind (min, max)")


class RandomCrop(PrintedTransform):
    """Crops at a random position to a given size.

    Args:
        size: height and width, or one number for both.
        padding: pixels that are put around the image before, as `functional.pad` takes them.
        pad_if_needed: whether an image that is too small gets more pixels; else ValueError.
        fill: the value of such pixels.
        padding_mode: the way to make the new pixels.
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
        _check_ranges(scale, ratio)
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


def factor_range(value: Any, name: str, center: float, bound: tuple[float, float]) -> Any:
    """A range of factors from a number (how far from the centre) or two; None if it is the
    centre alone.
    """
    if isinstance(value, numbers.Number):
        if value < 0:  # type: ignore[operator]
            raise ValueError(f"If {name} is a single number, it is a largest change: 0 or more")
        low = center - float(value)  # type: ignore[arg-type]
        value = [max(low, 0.0) if center else low, center + float(value)]  # type: ignore[arg-type]
    elif isinstance(value, tuple | list) and len(value) == 2:
        value = [float(value[0]), float(value[1])]
    else:
        raise TypeError(f"{name} should be a single number or two of them, not {value}")
    if not bound[0] <= value[0] <= value[1] <= bound[1]:
        raise ValueError(f"{name} values should be between {bound}: {value} are not")
    return None if value[0] == value[1] == center else tuple(value)


class ColorJitter(PrintedTransform):
    """Changes brightness, contrast, saturation and hue by random factors, in a random order.

    Args:
        brightness, contrast, saturation: a range of factors, or one number d for max(0, 1 - d) to 1
            + d.
        hue: a range in -0.5 to 0.5, or one number d for -d to d.
    """

    _shows = ("brightness", "contrast", "saturation", "hue")

    def __init__(
        self, brightness: Any = 0, contrast: Any = 0, saturation: Any = 0, hue: Any = 0
    ) -> None:
        super().__init__()
        factors = (0, float("inf"))
        self.brightness = factor_range(brightness, "brightness", 1, factors)
        self.contrast = factor_range(contrast, "contrast", 1, factors)
        self.saturation = factor_range(saturation, "saturation", 1, factors)
        self.hue = factor_range(hue, "hue", 0, (-0.5, 0.5))

    @staticmethod
    def get_params(brightness: Any, contrast: Any, saturation: Any, hue: Any) -> tuple:
        """The order of the four changes and their factors, None for those that are not made."""
        order = rushlight.randperm(4)
        ranges = (brightness, contrast, saturation, hue)
        return (order, *(None if r is None else uniform(r[0], r[1]) for r in ranges))

    def forward(self, img: Any) -> Any:
        order, *factors = self.get_params(self.brightness, self.contrast, self.saturation, self.hue)
        changes = (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue)
        for i in order.tolist():
            if factors[i] is not None:
                img = changes[i](img, factors[i])
        return img


class RandomErasing(PrintedTransform):
    """Erases a random region of a tensor, with probability p.

    Args:
        p: a probability.
        scale: range of the part's share of the area.
        ratio: range of its width by its height.
        value: the value to write: a number, one for each channel, or "random" for normal noise.
        inplace: whether the tensor itself is changed.
    """

    _shows = ("p", "scale", "ratio", "value", "inplace")

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: Any = 0,
        inplace: bool = False,
    ) -> None:
        super().__init__()
        if not isinstance(value, numbers.Number | str | tuple | list):
            raise TypeError(f"value should be either a number, numbers or 'random', not {value}")
        if isinstance(value, str) and value != "random":
            raise ValueError("If value is str, it should be 'random'")
        _check_ranges(scale, ratio)
        for name, low, high in (("Scale", *scale[:2]), ("Random erasing probability", p, p)):
            if low < 0 or high > 1:
                raise ValueError(f"{name} should be between 0 and 1")
        self.p, self.value, self.inplace = p, value, inplace
        self.scale, self.ratio = scale, ratio

    @staticmethod
    def get_params(
        img: Tensor, scale: Sequence[float], ratio: Sequence[float], value: Any = None
    ) -> tuple[int, int, int, int, Tensor]:
        """Top, left, height, width and the values written there; the unchanged image if ten tries
        do not fit.
        """
        found = patch(img.shape[-3:], scale, ratio, value)
        return found or (0, 0, img.shape[-2], img.shape[-1], img)

    def forward(self, img: Tensor) -> Tensor:
        if not happens(self.p):
            return img
        value = self.value
        if isinstance(value, numbers.Number):
            value = [float(value)]  # type: ignore[arg-type]
        value = None if isinstance(value, str) else [float(v) for v in value]
        if value is not None and len(value) not in (1, img.shape[-3]):
            raise ValueError(
                "value is a sequence, so it should have either a single value or one for each of "
                f"{img.shape[-3]} channels"
            )
        return F.erase(img, *self.get_params(img, self.scale, self.ratio, value), self.inplace)


class GaussianBlur(PrintedTransform):
    """Blurs with a Gaussian of random deviation.

    Args:
        kernel_size: odd, one or (width, height).
        sigma: the deviation in pixels, or its range.
    """

    _shows = ("kernel_size", "sigma")

    def __init__(self, kernel_size: Any, sigma: Any = (0.1, 2.0)) -> None:
        super().__init__()
        self.kernel_size = odd_size(kernel_size)
        single = isinstance(sigma, numbers.Real)
        if single and sigma <= 0:
            raise ValueError(f"sigma should be above 0, and is {sigma}")
        if not single and (not isinstance(sigma, Sequence) or len(sigma) != 2):
            raise ValueError(f"sigma should be a single number or two of them, not {sigma}")
        self.sigma: Any = (sigma, sigma) if single else sigma
        check_spread(self.sigma)

    @staticmethod
    def get_params(sigma_min: float, sigma_max: float) -> float:
        """The deviation."""
        return uniform(sigma_min, sigma_max)

    def forward(self, img: Any) -> Any:
        sigma = self.get_params(self.sigma[0], self.sigma[1])
        return F.gaussian_blur(img, list(self.kernel_size), [sigma, sigma])


def _per_axis(value: Any, name: str) -> Sequence[float]:
    if not isinstance(value, int | float | Sequence):
        raise TypeError(f"{name} should be a float or two of them, not {value!r}")
    if not isinstance(value, Sequence):
        return [float(value), float(value)]
    values = [value[0], value[0]] if len(value) == 1 else value
    if len(values) != 2:
        raise ValueError(f"{name} should have one number or two, not {len(values)}")
    if any(not isinstance(v, int | float) for v in value):
        raise TypeError(f"{name} should hold floats, not {value[0]!r}")
    return values


class ElasticTransform(PrintedTransform):
    """Moves every pixel by smoothed noise, as if seen through water.

    Args:
        alpha: the size of the displacements, one number or one for each axis.
        sigma: how smooth, in pixels, likewise.
        interpolation, fill: those of `functional.elastic_transform`.
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
        self.alpha = _per_axis(alpha, "alpha")
        self.sigma = _per_axis(sigma, "sigma")
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
