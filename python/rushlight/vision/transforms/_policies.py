"""What policies of augmentation draw from: ops, their magnitudes, and the pairs that AutoAugment
learned.

Sources: AutoAugment (arXiv 1805.09501), RandAugment (1909.13719), TrivialAugment (2103.10158),
AugMix (1912.02781).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from typing import Any

import rushlight
from rushlight import _C, Tensor

from ._drawn import integer


def _affine(way: Any, img: Any, mode: Any, fill: Any, **change: Any) -> Any:
    settings = {"angle": 0.0, "translate": [0, 0], "scale": 1.0, "shear": [0.0, 0.0], **change}
    return way.affine(img, interpolation=mode, fill=fill, **settings)


def _shear(magnitude: float) -> float:
    return math.degrees(math.atan(magnitude))


# What an op does: op(functions, image, magnitude, interpolation, fill).
OPS: dict[str, Callable[..., Any]] = {
    "ShearX": lambda f, i, m, mode, fill: _affine(
        f, i, mode, fill, shear=[_shear(m), 0.0], center=[0, 0]
    ),
    "ShearY": lambda f, i, m, mode, fill: _affine(
        f, i, mode, fill, shear=[0.0, _shear(m)], center=[0, 0]
    ),
    "TranslateX": lambda f, i, m, mode, fill: _affine(f, i, mode, fill, translate=[int(m), 0]),
    "TranslateY": lambda f, i, m, mode, fill: _affine(f, i, mode, fill, translate=[0, int(m)]),
    "Rotate": lambda f, i, m, mode, fill: f.rotate(i, m, mode, fill=fill),
    "Brightness": lambda f, i, m, mode, fill: f.adjust_brightness(i, 1.0 + m),
    "Color": lambda f, i, m, mode, fill: f.adjust_saturation(i, 1.0 + m),
    "Contrast": lambda f, i, m, mode, fill: f.adjust_contrast(i, 1.0 + m),
    "Sharpness": lambda f, i, m, mode, fill: f.adjust_sharpness(i, 1.0 + m),
    "Posterize": lambda f, i, m, mode, fill: f.posterize(i, int(m)),
    "Solarize": lambda f, i, m, mode, fill: f.solarize(i, m),
    "AutoContrast": lambda f, i, m, mode, fill: f.autocontrast(i),
    "Equalize": lambda f, i, m, mode, fill: f.equalize(i),
    "Invert": lambda f, i, m, mode, fill: f.invert(i),
    "Identity": lambda f, i, m, mode, fill: i,
}


_Space = dict[str, tuple[Tensor, bool]]


def _space(
    names: str,
    bins: int,
    move: tuple[float, float],
    *,
    shear: float = 0.3,
    turn: float = 30.0,
    colour: float = 0.9,
    bits: tuple[int, int] = (8, 4),
    white: float = 255.0,
) -> _Space:
    """Magnitudes of ops, one for each bin or one number for ops without any, and whether they have
    signs.

    Args:
        names: the names of the ops.
        bins: how many magnitudes.
        shear, turn, colour: the largest ones.
        move: the largest along x and along y, in pixels.
        bits: of posterize: how many at first, and how many fewer in the end.
        white: the threshold that solarize begins with.
    """

    def up_to(largest: float) -> tuple[Tensor, bool]:
        return rushlight.linspace(0.0, largest, bins), True

    shears, colours = up_to(shear), up_to(colour)
    fewer = (rushlight.arange(bins) / ((bins - 1) / bits[1])).round().int()
    ways = {
        "ShearX": shears,
        "ShearY": shears,
        "TranslateX": up_to(move[0]),
        "TranslateY": up_to(move[1]),
        "Rotate": up_to(turn),
        "Brightness": colours,
        "Color": colours,
        "Contrast": colours,
        "Sharpness": colours,
        "Posterize": (bits[0] - fewer, False),
        "Solarize": (rushlight.linspace(white, 0.0, bins), False),
    }
    nothing = (rushlight.tensor(0.0), False)
    return {name: ways.get(name, nothing) for name in names.split()}


_GEOMETRY = "ShearX ShearY TranslateX TranslateY Rotate"
_COLOURS = "Brightness Color Contrast Sharpness"
_TABLES = "Posterize Solarize AutoContrast Equalize"


def auto_space(width: int, height: int, white: float = 255.0) -> _Space:
    """AutoAugment's."""
    return _space(f"{_GEOMETRY} {_COLOURS} {_TABLES} Invert", 10, _far(width, height), white=white)


def rand_space(bins: int, width: int, height: int, white: float = 255.0) -> _Space:
    """RandAugment's."""
    names = f"Identity {_GEOMETRY} {_COLOURS} {_TABLES}"
    return _space(names, bins, _far(width, height), white=white)


def wide_space(bins: int, white: float = 255.0) -> _Space:
    """TrivialAugmentWide's."""
    return _space(
        f"Identity {_GEOMETRY} {_COLOURS} {_TABLES}",
        bins,
        (32.0, 32.0),
        shear=0.99,
        turn=135.0,
        colour=0.99,
        bits=(8, 6),
        white=white,
    )


def mix_space(bins: int, width: int, height: int, colours: bool, white: float = 255.0) -> _Space:
    """AugMix's, with colours or without."""
    names = f"{_GEOMETRY} {_TABLES}{' ' + _COLOURS if colours else ''}"
    return _space(names, bins, (width / 3.0, height / 3.0), bits=(4, 4), white=white)


def _far(width: int, height: int) -> tuple[float, float]:
    """As far as AutoAugment moves: 150 pixels of 331."""
    return 150.0 / 331.0 * width, 150.0 / 331.0 * height


class Mixing:
    """What both AugMix are: settings, and the mixing of chains of ops."""

    _bins = 10

    def _settle(
        self, severity: int, mixture_width: int, chain_depth: int, alpha: float, all_ops: bool
    ) -> None:
        if not 1 <= severity <= self._bins:
            raise ValueError(
                f"The severity must be between [1, {self._bins}]. Got {severity} instead."
            )
        self.severity = severity
        self.mixture_width = mixture_width
        self.chain_depth = chain_depth
        self.alpha = alpha
        self.all_ops = all_ops

    def _sample_dirichlet(self, params: Tensor) -> Tensor:
        return _C.ops._sample_dirichlet(params)

    def _mix(self, batch: Tensor, step: Callable[[Tensor], Tensor]) -> Tensor:
        """A batch mixed with chains of random steps on it, by weights of each image."""
        each = [batch.shape[0]] + [1] * (batch.ndim - 1)

        def weights(n: int) -> Tensor:
            alphas = rushlight.tensor([self.alpha] * n, device=batch.device)
            return self._sample_dirichlet(alphas.expand(each[0], -1))

        shares = weights(2)
        chains = weights(self.mixture_width) * shares[:, 1].reshape(each[0], -1)
        mix = shares[:, 0].reshape(each) * batch
        for i in range(self.mixture_width):
            made = batch
            for _ in range(self.chain_depth if self.chain_depth > 0 else integer(1, 4)):
                made = step(made)
            mix.add_(chains[:, i].reshape(each) * made)
        return mix


class AutoAugmentPolicy(Enum):
    """The data sets on which AutoAugment's policies were learned.

    Example:
        >>> torch.vision.transforms.AutoAugmentPolicy.IMAGENET.value
        'imagenet'
    """

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


# Pairs of ops, each with its probability and the number of its magnitude.
POLICIES = {
    AutoAugmentPolicy.IMAGENET: """
        Posterize 0.4 8, Rotate 0.6 9; Solarize 0.6 5, AutoContrast 0.6; Equalize 0.8, Equalize 0.6;
        Posterize 0.6 7, Posterize 0.6 6; Equalize 0.4, Solarize 0.2 4; Equalize 0.4, Rotate 0.8 8;
        Solarize 0.6 3, Equalize 0.6; Posterize 0.8 5, Equalize 1.0; Rotate 0.2 3, Solarize 0.6 8;
        Equalize 0.6, Posterize 0.4 6; Rotate 0.8 8, Color 0.4 0; Rotate 0.4 9, Equalize 0.6;
        Equalize 0.0, Equalize 0.8; Invert 0.6, Equalize 1.0; Color 0.6 4, Contrast 1.0 8;
        Rotate 0.8 8, Color 1.0 2; Color 0.8 8, Solarize 0.8 7; Sharpness 0.4 7, Invert 0.6;
        ShearX 0.6 5, Equalize 1.0; Color 0.4 0, Equalize 0.6; Equalize 0.4, Solarize 0.2 4;
        Solarize 0.6 5, AutoContrast 0.6; Invert 0.6, Equalize 1.0; Color 0.6 4, Contrast 1.0 8;
        Equalize 0.8, Equalize 0.6""",
    AutoAugmentPolicy.CIFAR10: """
        Invert 0.1, Contrast 0.2 6; Rotate 0.7 2, TranslateX 0.3 9; Sharpness 0.8 1, Sharpness 0.9
        3;
        ShearY 0.5 8, TranslateY 0.7 9; AutoContrast 0.5, Equalize 0.9;
        ShearY 0.2 7, Posterize 0.3 7;
        Color 0.4 3, Brightness 0.6 7; Sharpness 0.3 9, Brightness 0.7 9;
        Equalize 0.6, Equalize 0.5;
        Contrast 0.6 7, Sharpness 0.6 5; Color 0.7 7, TranslateX 0.5 8;
        Equalize 0.3, AutoContrast 0.4;
        TranslateY 0.4 3, Sharpness 0.2 6; Brightness 0.9 6, Color 0.2 8;
        Solarize 0.5 2, Invert 0.0;
        Equalize 0.2, AutoContrast 0.6; Equalize 0.2, Equalize 0.6; Color 0.9 9, Equalize 0.6;
        AutoContrast 0.8, Solarize 0.2 8; Brightness 0.1 3, Color 0.7 0;
        Solarize 0.4 5, AutoContrast 0.9;
        TranslateY 0.9 9, TranslateY 0.7 9; AutoContrast 0.9, Solarize 0.8 3;
        Equalize 0.8, Invert 0.1;
        TranslateY 0.7 9, AutoContrast 0.9""",
    AutoAugmentPolicy.SVHN: """
        ShearX 0.9 4, Invert 0.2; ShearY 0.9 8, Invert 0.7; Equalize 0.6, Solarize 0.6 6;
        Invert 0.9, Equalize 0.6; Equalize 0.6, Rotate 0.9 3; ShearX 0.9 4, AutoContrast 0.8;
        ShearY 0.9 8, Invert 0.4; ShearY 0.9 5, Solarize 0.2 6; Invert 0.9, AutoContrast 0.8;
        Equalize 0.6, Rotate 0.9 3; ShearX 0.9 4, Solarize 0.3 3; ShearY 0.8 8, Invert 0.7;
        Equalize 0.9, TranslateY 0.6 6; Invert 0.9, Equalize 0.6; Contrast 0.3 3, Rotate 0.8 4;
        Invert 0.8, TranslateY 0.0 2; ShearY 0.7 6, Solarize 0.4 8; Invert 0.6, Rotate 0.8 4;
        ShearY 0.3 7, TranslateX 0.9 3; ShearX 0.1 6, Invert 0.6; Solarize 0.7 2, TranslateY 0.6 7;
        ShearY 0.8 4, Invert 0.8; ShearX 0.7 9, TranslateY 0.8 3; ShearY 0.8 5, AutoContrast 0.7;
        ShearX 0.7 2, Invert 0.1""",
}


def parse(text: str) -> list[tuple[tuple[str, float, int | None], ...]]:
    policies = []
    for pair in text.split(";"):
        steps = [step.split() for step in pair.split(",")]
        policies.append(
            tuple((s[0], float(s[1]), int(s[2]) if len(s) > 2 else None) for s in steps)
        )
    return policies
