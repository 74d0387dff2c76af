"""Policies of augmentation: ops with magnitudes, drawn or learned.

Sources: AutoAugment (arXiv 1805.09501), RandAugment (1909.13719), TrivialAugment (2103.10158),
AugMix (1912.02781).
Tensors are bytes; pictures have mode "L" or "RGB".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from typing import Any

import rushlight
from rushlight import _C, Tensor

from . import functional as F
from ._basic import Shown
from ._drawn import fill_for, integer
from ._modes import InterpolationMode

__all__ = ["AugMix", "AutoAugment", "AutoAugmentPolicy", "RandAugment", "TrivialAugmentWide"]

_NEAREST = InterpolationMode.NEAREST


def _moved(img: Any, mode: Any, fill: Any, **change: Any) -> Any:
    settings = {"angle": 0.0, "translate": [0, 0], "scale": 1.0, "shear": [0.0, 0.0], **change}
    return F.affine(img, interpolation=mode, fill=fill, **settings)


def _shear(magnitude: float) -> float:
    return math.degrees(math.atan(magnitude))


# What an op does: f(image, magnitude, interpolation, fill).
_OPS: dict[str, Callable[..., Any]] = {
    "ShearX": lambda i, m, mode, fill: _moved(i, mode, fill, shear=[_shear(m), 0.0], center=[0, 0]),
    "ShearY": lambda i, m, mode, fill: _moved(i, mode, fill, shear=[0.0, _shear(m)], center=[0, 0]),
    "TranslateX": lambda i, m, mode, fill: _moved(i, mode, fill, translate=[int(m), 0]),
    "TranslateY": lambda i, m, mode, fill: _moved(i, mode, fill, translate=[0, int(m)]),
    "Rotate": lambda i, m, mode, fill: F.rotate(i, m, mode, fill=fill),
    "Brightness": lambda i, m, mode, fill: F.adjust_brightness(i, 1.0 + m),
    "Color": lambda i, m, mode, fill: F.adjust_saturation(i, 1.0 + m),
    "Contrast": lambda i, m, mode, fill: F.adjust_contrast(i, 1.0 + m),
    "Sharpness": lambda i, m, mode, fill: F.adjust_sharpness(i, 1.0 + m),
    "Posterize": lambda i, m, mode, fill: F.posterize(i, int(m)),
    "Solarize": lambda i, m, mode, fill: F.solarize(i, m),
    "AutoContrast": lambda i, m, mode, fill: F.autocontrast(i),
    "Equalize": lambda i, m, mode, fill: F.equalize(i),
    "Invert": lambda i, m, mode, fill: F.invert(i),
    "Identity": lambda i, m, mode, fill: i,
}


def _space(
    names: str,
    bins: int,
    *,
    shear: float,
    move: tuple[float, float],
    turn: float,
    colour: float,
    bits: tuple[int, int],
) -> dict[str, tuple[Tensor, bool]]:
    """Magnitudes of ops, one for each bin or one number for ops without any, and whether they have
    signs.

    Args:
        names: of the ops.
        bins: how many magnitudes.
        shear, turn, colour: the largest ones.
        move: the largest along x and along y, in pixels.
        bits: of posterize: how many at first, and how many fewer in the end.
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
        "Solarize": (rushlight.linspace(255.0, 0.0, bins), False),
    }
    nothing = (rushlight.tensor(0.0), False)
    return {name: ways.get(name, nothing) for name in names.split()}


_GEOMETRY = "ShearX ShearY TranslateX TranslateY Rotate"
_COLOURS = "Brightness Color Contrast Sharpness"
_TABLES = "Posterize Solarize AutoContrast Equalize"


class AutoAugmentPolicy(Enum):
    """What AutoAugment's policies were learned on."""

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


# Pairs of ops, each with its probability and the number of its magnitude.
_POLICIES = {
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


def _parsed(text: str) -> list[tuple[tuple[str, float, int | None], ...]]:
    policies = []
    for pair in text.split(";"):
        steps = [step.split() for step in pair.split(",")]
        policies.append(
            tuple((s[0], float(s[1]), int(s[2]) if len(s) > 2 else None) for s in steps)
        )
    return policies


class _Augment(Shown):
    """Draws ops and their magnitudes, and carries them out."""

    interpolation: InterpolationMode
    fill: Any

    def _apply(self, img: Any, op: str, magnitude: float, fill: Any) -> Any:
        return _OPS[op](img, magnitude, self.interpolation, fill)

    def _draw(
        self,
        img: Any,
        space: dict[str, tuple[Tensor, bool]],
        bin_of: Callable[[int], int],
        fill: Any,
    ) -> Any:
        """One op of the space; `bin_of(bins)` says which magnitude."""
        op = list(space)[integer(0, len(space))]
        magnitudes, signed = space[op]
        magnitude = 0.0
        if magnitudes.ndim > 0:
            magnitude = float(magnitudes[bin_of(len(magnitudes))].item())
        if signed and integer(0, 2):
            magnitude = -magnitude
        return self._apply(img, op, magnitude, fill)


class AutoAugment(_Augment):
    """One of 25 learned pairs of ops.

    Args:
        policy: what it was learned on.
        interpolation: nearest or bilinear for tensors.
        fill: the value of pixels from outside: one, or one for each channel.
    """

    _shows = ("policy", "fill")

    def __init__(
        self,
        policy: AutoAugmentPolicy = AutoAugmentPolicy.IMAGENET,
        interpolation: InterpolationMode = _NEAREST,
        fill: Any = None,
    ) -> None:
        super().__init__()
        if policy not in _POLICIES:
            raise ValueError(f"The provided policy {policy} is not recognized.")
        self.policy = policy
        self.interpolation = interpolation
        self.fill = fill
        self.policies = _parsed(_POLICIES[policy])

    @staticmethod
    def get_params(transform_num: int) -> tuple[int, Tensor, Tensor]:
        """The number of the pair, whether each op happens, and its sign."""
        return integer(0, transform_num), rushlight.rand((2,)), rushlight.randint(2, (2,))

    def forward(self, img: Any) -> Any:
        fill = fill_for(img, self.fill)
        _, height, width = F.get_dimensions(img)
        number, probabilities, signs = self.get_params(len(self.policies))
        space = _space(
            f"{_GEOMETRY} {_COLOURS} {_TABLES} Invert",
            10,
            shear=0.3,
            move=(150.0 / 331.0 * width, 150.0 / 331.0 * height),
            turn=30.0,
            colour=0.9,
            bits=(8, 4),
        )
        for i, (op, p, at) in enumerate(self.policies[number]):
            if probabilities[i] <= p:
                magnitudes, signed = space[op]
                magnitude = float(magnitudes[at].item()) if at is not None else 0.0
                if signed and signs[i] == 0:
                    magnitude = -magnitude
                img = self._apply(img, op, magnitude, fill)
        return img


class RandAugment(_Augment):
    """Some ops after another, all of one magnitude.

    Args:
        num_ops: how many.
        magnitude: the number of the bin.
        num_magnitude_bins: how many bins.
        interpolation, fill: those of AutoAugment.
    """

    _shows = ("num_ops", "magnitude", "num_magnitude_bins", "interpolation", "fill")

    def __init__(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: InterpolationMode = _NEAREST,
        fill: Any = None,
    ) -> None:
        super().__init__()
        self.num_ops = num_ops
        self.magnitude = magnitude
        self.num_magnitude_bins = num_magnitude_bins
        self.interpolation = interpolation
        self.fill = fill

    def forward(self, img: Any) -> Any:
        fill = fill_for(img, self.fill)
        _, height, width = F.get_dimensions(img)
        space = _space(
            f"Identity {_GEOMETRY} {_COLOURS} {_TABLES}",
            self.num_magnitude_bins,
            shear=0.3,
            move=(150.0 / 331.0 * width, 150.0 / 331.0 * height),
            turn=30.0,
            colour=0.9,
            bits=(8, 4),
        )
        for _ in range(self.num_ops):
            img = self._draw(img, space, lambda bins: self.magnitude, fill)
        return img


class TrivialAugmentWide(_Augment):
    """One op of a drawn magnitude, from a wide range.

    Args:
        num_magnitude_bins: how many magnitudes.
        interpolation, fill: those of AutoAugment.
    """

    _shows = ("num_magnitude_bins", "interpolation", "fill")

    def __init__(
        self,
        num_magnitude_bins: int = 31,
        interpolation: InterpolationMode = _NEAREST,
        fill: Any = None,
    ) -> None:
        super().__init__()
        self.num_magnitude_bins = num_magnitude_bins
        self.interpolation = interpolation
        self.fill = fill

    def forward(self, img: Any) -> Any:
        fill = fill_for(img, self.fill)
        space = _space(
            f"Identity {_GEOMETRY} {_COLOURS} {_TABLES}",
            self.num_magnitude_bins,
            shear=0.99,
            move=(32.0, 32.0),
            turn=135.0,
            colour=0.99,
            bits=(8, 6),
        )
        return self._draw(img, space, lambda bins: integer(0, bins), fill)


class AugMix(_Augment):
    """The image mixed with chains of ops on it, by weights from Dirichlet distributions.

    Args:
        severity: magnitudes are drawn below it, 1 to 10 (else ValueError).
        mixture_width: how many chains.
        chain_depth: ops in a chain; drawn from 1 to 3 if not positive.
        alpha: of the distributions.
        all_ops: also brightness, contrast, colour and sharpness.
        interpolation, fill: those of AutoAugment.
    """

    _shows = (
        "severity",
        "mixture_width",
        "chain_depth",
        "alpha",
        "all_ops",
        "interpolation",
        "fill",
    )
    _bins = 10

    def __init__(
        self,
        severity: int = 3,
        mixture_width: int = 3,
        chain_depth: int = -1,
        alpha: float = 1.0,
        all_ops: bool = True,
        interpolation: InterpolationMode = InterpolationMode.BILINEAR,
        fill: Any = None,
    ) -> None:
        super().__init__()
        if not 1 <= severity <= self._bins:
            raise ValueError(
                f"The severity must be between [1, {self._bins}]. Got {severity} instead."
            )
        self.severity = severity
        self.mixture_width = mixture_width
        self.chain_depth = chain_depth
        self.alpha = alpha
        self.all_ops = all_ops
        self.interpolation = interpolation
        self.fill = fill

    def _sample_dirichlet(self, params: Tensor) -> Tensor:
        return _C.ops._sample_dirichlet(params)

    def forward(self, orig_img: Any) -> Any:
        fill = fill_for(orig_img, self.fill)
        _, height, width = F.get_dimensions(orig_img)
        img = orig_img if isinstance(orig_img, Tensor) else F.pil_to_tensor(orig_img)
        space = _space(
            f"{_GEOMETRY} {_TABLES}{' ' + _COLOURS if self.all_ops else ''}",
            self._bins,
            shear=0.3,
            move=(width / 3.0, height / 3.0),
            turn=30.0,
            colour=0.9,
            bits=(4, 4),
        )
        batch = img.view([1] * max(4 - img.ndim, 0) + list(img.shape))
        each = [batch.size(0)] + [1] * (batch.ndim - 1)

        def weights(n: int) -> Tensor:
            alphas = rushlight.tensor([self.alpha] * n, device=batch.device)
            return self._sample_dirichlet(alphas.expand(each[0], -1))

        shares = weights(2)
        chains = weights(self.mixture_width) * shares[:, 1].view(each[0], -1)
        mix = shares[:, 0].view(each) * batch
        for i in range(self.mixture_width):
            made = batch
            for _ in range(self.chain_depth if self.chain_depth > 0 else integer(1, 4)):
                made = self._draw(made, space, lambda bins: integer(0, self.severity), fill)
            mix.add_(chains[:, i].view(each) * made)
        mix = mix.view(img.shape).to(img.dtype)
        return mix if isinstance(orig_img, Tensor) else F.to_pil_image(mix)
