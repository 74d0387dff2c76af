"""Transforms whose settings are drawn from ranges: colours, blurs, and regions that are erased."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight import Tensor

from . import functional as F
from ._basic import PrintedTransform
from ._drawn import (
    check_ranges,
    check_spread,
    happens,
    odd_size,
    patch,
    uniform,
)


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

    Example:
        >>> from rushlight.vision import transforms
        >>> transforms.ColorJitter(brightness=0.2, hue=0.1)(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 8, 8])
    """

    _shows = ("brightness", "contrast", "saturation", "hue")

    def __init__(
        self,
        brightness: float | Sequence[float] = 0,
        contrast: float | Sequence[float] = 0,
        saturation: float | Sequence[float] = 0,
        hue: float | Sequence[float] = 0,
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

    Example:
        >>> from rushlight.vision import transforms
        >>> transforms.RandomErasing(p=1.0)(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 8, 8])
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
        check_ranges(scale, ratio)
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

    Example:
        >>> from rushlight.vision import transforms
        >>> transforms.GaussianBlur(3)(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 8, 8])
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
