"""Transforms of colours."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight.vision import transforms as v1

from .._drawn import happens, uniform
from .._random_pixels import factor_range
from . import functional as F
from ._transform import Sometimes, Transform
from ._utils import query_chw


class Grayscale(Transform):
    """Converts to grey, with one channel or three.

    Args:
        num_output_channels: 1 or 3.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.Grayscale()(torch.zeros(3, 8, 8)).shape
        torch.Size([1, 8, 8])
    """

    _v1_transform_cls = v1.Grayscale

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.rgb_to_grayscale, inpt, num_output_channels=self.num_output_channels
        )


class RandomGrayscale(Sometimes):
    """Converts to grey with probability p, and keeps the number of channels.

    Args:
        p: the probability of doing it.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.RandomGrayscale()(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 8, 8])
    """

    _v1_transform_cls = v1.RandomGrayscale

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"num_output_channels": query_chw(flat_inputs)[0]}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.rgb_to_grayscale, inpt, **params)


class RGB(Transform):
    """Converts to three channels: grey images get three equal ones.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.RGB()(torch.zeros(1, 4, 4)).shape
        torch.Size([3, 4, 4])
    """

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.grayscale_to_rgb, inpt)


# The functions of brightness, contrast, saturation and hue.
_CHANGES = (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue)
_BRIGHTNESS, _CONTRAST, _SATURATION, _HUE = range(4)


class _Changes(Transform):
    def _change(self, inpt: Any, factors: Any, which: int) -> Any:
        factor = factors[which]
        return inpt if factor is None else self._call_kernel(_CHANGES[which], inpt, factor)


class ColorJitter(_Changes):
    """Changes brightness, contrast, saturation and hue by random factors, in a random order.

    Args:
        brightness, contrast, saturation: a range of factors, or one number d for max(0, 1 - d) to 1
            + d.
        hue: a range in -0.5 to 0.5, or one number d for -d to d.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.ColorJitter(brightness=0.2, hue=0.1)(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 8, 8])
    """

    _v1_transform_cls = v1.ColorJitter

    def __init__(
        self,
        brightness: Any = None,
        contrast: Any = None,
        saturation: Any = None,
        hue: Any = None,
    ) -> None:
        super().__init__()
        factors = {"brightness": brightness, "contrast": contrast, "saturation": saturation}
        ranges = [self._range(value, name) for name, value in factors.items()]
        self.brightness, self.contrast, self.saturation = ranges
        self.hue = self._range(hue, "hue", 0, (-0.5, 0.5))

    @staticmethod
    def _range(
        value: Any, name: str, center: float = 1, bound: tuple[float, float] = (0, float("inf"))
    ) -> Any:
        return None if value is None else factor_range(value, name, center, bound)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        order, *factors = v1.ColorJitter.get_params(
            self.brightness, self.contrast, self.saturation, self.hue
        )
        return {"order": order.tolist(), "factors": factors}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        for which in params["order"]:
            inpt = self._change(inpt, params["factors"], which)
        return inpt


class RandomChannelPermutation(Transform):
    """Permutes the channels randomly.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.RandomChannelPermutation()(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 8, 8])
    """

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"permutation": rushlight.randperm(query_chw(flat_inputs)[0]).tolist()}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.permute_channels, inpt, **params)


class RandomPhotometricDistort(_Changes):
    """Changes colours and permutes channels, each with probability p, as for training SSD (arXiv
    1512.02325).

    Args:
        brightness, contrast, saturation: ranges of factors.
        hue: a range in -0.5 to 0.5.
        p: a probability.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.RandomPhotometricDistort()(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 8, 8])
    """

    def __init__(
        self,
        brightness: tuple[float, float] = (0.875, 1.125),
        contrast: tuple[float, float] = (0.5, 1.5),
        saturation: tuple[float, float] = (0.5, 1.5),
        hue: tuple[float, float] = (-0.05, 0.05),
        p: float = 0.5,
    ) -> None:
        super().__init__()
        self.brightness = brightness
        self.contrast = contrast
        self.hue = hue
        self.saturation = saturation
        self.p = p

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        channels = query_chw(flat_inputs)[0]
        ranges = (self.brightness, self.contrast, self.saturation, self.hue)
        factors = [uniform(low, high) if happens(self.p) else None for low, high in ranges]
        early = bool(rushlight.rand(()) < 0.5)
        order = (_BRIGHTNESS, _CONTRAST, _SATURATION, _HUE)
        late = (_BRIGHTNESS, _SATURATION, _HUE, _CONTRAST)
        return {
            "factors": factors,
            "order": order if early else late,
            "permutation": rushlight.randperm(channels).tolist() if happens(self.p) else None,
        }

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        for which in params["order"]:
            inpt = self._change(inpt, params["factors"], which)
        if params["permutation"] is None:
            return inpt
        return self._call_kernel(F.permute_channels, inpt, params["permutation"])


class RandomEqualize(Sometimes):
    """Equalises the histogram with probability p.

    Args:
        p: the probability of doing it.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.RandomEqualize()(torch.zeros(3, 8, 8, dtype=torch.uint8)).shape
        torch.Size([3, 8, 8])
    """

    _v1_transform_cls = v1.RandomEqualize

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.equalize, inpt)


class RandomInvert(Sometimes):
    """Inverts the colours with probability p.

    Args:
        p: the probability of doing it.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.RandomInvert(p=1.0)(torch.ones(3, 1, 1)).flatten()
        tensor([0., 0., 0.])
    """

    _v1_transform_cls = v1.RandomInvert

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.invert, inpt)


class RandomPosterize(Sometimes):
    """Keeps only the highest bits, with probability p.

    Args:
        bits: how many bits each channel keeps.
        p: the probability of doing it.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.RandomPosterize(bits=4)(torch.zeros(3, 8, 8, dtype=torch.uint8)).shape
        torch.Size([3, 8, 8])
    """

    _v1_transform_cls = v1.RandomPosterize

    def __init__(self, bits: int, p: float = 0.5) -> None:
        super().__init__(p)
        self.bits = bits

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.posterize, inpt, bits=self.bits)


class RandomSolarize(Sometimes):
    """Inverts pixels from a threshold on, with probability p.

    Args:
        threshold: values above it are inverted.
        p: the probability of doing it.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.RandomSolarize(0.5)(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 8, 8])
    """

    _v1_transform_cls = v1.RandomSolarize

    def __init__(self, threshold: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.threshold = threshold

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.solarize, inpt, threshold=self.threshold)


class RandomAutocontrast(Sometimes):
    """Stretches the contrast with probability p.

    Args:
        p: the probability of doing it.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.RandomAutocontrast()(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 8, 8])
    """

    _v1_transform_cls = v1.RandomAutocontrast

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.autocontrast, inpt)


class RandomAdjustSharpness(Sometimes):
    """Changes the sharpness with probability p.

    Args:
        sharpness_factor: 0 blurs, 1 changes nothing, 2 sharpens.
        p: the probability of doing it.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.RandomAdjustSharpness(2)(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 8, 8])
    """

    _v1_transform_cls = v1.RandomAdjustSharpness

    def __init__(self, sharpness_factor: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.sharpness_factor = sharpness_factor

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.adjust_sharpness, inpt, sharpness_factor=self.sharpness_factor)
