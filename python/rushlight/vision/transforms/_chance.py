"""Transforms that do one thing or nothing, by chance."""

from __future__ import annotations

from typing import Any

from . import functional as F
from ._basic import PrintedTransform
from ._drawn import happens


class Sometimes(PrintedTransform):
    """Changes an image with probability p."""

    _shows = ("p",)
    p: float

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def change(self, img: Any) -> Any:
        """The changed image."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it changes")

    def forward(self, img: Any) -> Any:
        """The image, changed with the probability `p`."""
        return self.change(img) if happens(self.p) else img


class RandomHorizontalFlip(Sometimes):
    """Flips horizontally with probability p.

    Args:
        p: the probability of doing it.

    Example:
        >>> from rushlight.vision import transforms
        >>> transforms.RandomHorizontalFlip(p=1.0)(torch.tensor([[[1, 2]]]))
        tensor([[[2, 1]]])
    """

    takes_parts = True

    def change(self, img: Any) -> Any:
        return F.hflip(img)


class RandomVerticalFlip(Sometimes):
    """Flips vertically with probability p.

    Args:
        p: the probability of doing it.

    Example:
        >>> from rushlight.vision import transforms
        >>> transforms.RandomVerticalFlip(p=1.0)(torch.tensor([[[1], [2]]]))
        tensor([[[2],
                 [1]]])
    """

    def change(self, img: Any) -> Any:
        return F.vflip(img)


class RandomGrayscale(Sometimes):
    """Converts to grey with probability p, and keeps the number of channels.

    Args:
        p: the probability of doing it.

    Example:
        >>> from rushlight.vision import transforms
        >>> transforms.RandomGrayscale()(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 8, 8])
    """

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p)

    def change(self, img: Any) -> Any:
        return F.rgb_to_grayscale(img, num_output_channels=F.get_dimensions(img)[0])


class RandomInvert(Sometimes):
    """Inverts the colours with probability p.

    Args:
        p: the probability of doing it.

    Example:
        >>> from rushlight.vision import transforms
        >>> transforms.RandomInvert(p=1.0)(torch.ones(3, 1, 1)).flatten()
        tensor([0., 0., 0.])
    """

    def change(self, img: Any) -> Any:
        return F.invert(img)


class RandomAutocontrast(Sometimes):
    """Stretches the contrast with probability p.

    Args:
        p: the probability of doing it.

    Example:
        >>> from rushlight.vision import transforms
        >>> transforms.RandomAutocontrast()(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 8, 8])
    """

    def change(self, img: Any) -> Any:
        return F.autocontrast(img)


class RandomEqualize(Sometimes):
    """Equalises the histogram with probability p.

    Args:
        p: the probability of doing it.

    Example:
        >>> from rushlight.vision import transforms
        >>> transforms.RandomEqualize()(torch.zeros(3, 8, 8, dtype=torch.uint8)).shape
        torch.Size([3, 8, 8])
    """

    def change(self, img: Any) -> Any:
        return F.equalize(img)


class RandomPosterize(Sometimes):
    """Keeps only the highest bits, with probability p.

    Args:
        bits: how many bits each channel keeps.
        p: the probability of doing it.

    Example:
        >>> from rushlight.vision import transforms
        >>> transforms.RandomPosterize(bits=4)(torch.zeros(3, 8, 8, dtype=torch.uint8)).shape
        torch.Size([3, 8, 8])
    """

    _shows = ("bits", "p")

    def __init__(self, bits: int, p: float = 0.5) -> None:
        super().__init__(p)
        self.bits = bits

    def change(self, img: Any) -> Any:
        return F.posterize(img, self.bits)


class RandomSolarize(Sometimes):
    """Inverts pixels from a threshold on, with probability p.

    Args:
        threshold: values above it are inverted.
        p: the probability of doing it.

    Example:
        >>> from rushlight.vision import transforms
        >>> transforms.RandomSolarize(0.5)(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 8, 8])
    """

    _shows = ("threshold", "p")

    def __init__(self, threshold: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.threshold = threshold

    def change(self, img: Any) -> Any:
        return F.solarize(img, self.threshold)


class RandomAdjustSharpness(Sometimes):
    """Changes the sharpness with probability p.

    Args:
        sharpness_factor: 0 blurs, 1 changes nothing, 2 sharpens.
        p: the probability of doing it.

    Example:
        >>> from rushlight.vision import transforms
        >>> transforms.RandomAdjustSharpness(2)(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 8, 8])
    """

    _shows = ("sharpness_factor", "p")

    def __init__(self, sharpness_factor: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.sharpness_factor = sharpness_factor

    def change(self, img: Any) -> Any:
        return F.adjust_sharpness(img, self.sharpness_factor)
