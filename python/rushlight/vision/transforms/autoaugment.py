"""Augmentation policies: ops with magnitudes that are random or learned.

Tensors are bytes; pictures have mode "L" or "RGB".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import Tensor

from . import functional as F
from ._basic import PrintedTransform
from ._drawn import fill_for, integer
from ._modes import InterpolationMode
from ._policies import (
    OPS,
    POLICIES,
    AutoAugmentPolicy,
    Mixing,
    auto_space,
    mix_space,
    parse,
    rand_space,
    wide_space,
)

__all__ = ["AugMix", "AutoAugment", "AutoAugmentPolicy", "RandAugment", "TrivialAugmentWide"]

_NEAREST = InterpolationMode.NEAREST


class _Augment(PrintedTransform):
    """Draws ops and their magnitudes, and carries them out."""

    interpolation: InterpolationMode
    fill: Any

    def _apply(self, img: Any, op: str, magnitude: float, fill: Any) -> Any:
        return OPS[op](F, img, magnitude, self.interpolation, fill)

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
    """Applies one of 25 learned pairs of ops.

    Args:
        policy: the data set on which the policy was learned.
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
        if policy not in POLICIES:
            raise ValueError(f"policy: {policy!r} is none of AutoAugmentPolicy")
        self.policy = policy
        self.interpolation = interpolation
        self.fill = fill
        self.policies = parse(POLICIES[policy])

    @staticmethod
    def get_params(transform_num: int) -> tuple[int, Tensor, Tensor]:
        """The index of the pair, whether each op is applied, and its sign."""
        return integer(0, transform_num), rushlight.rand((2,)), rushlight.randint(2, (2,))

    def forward(self, img: Any) -> Any:
        fill = fill_for(img, self.fill)
        _, height, width = F.get_dimensions(img)
        number, probabilities, signs = self.get_params(len(self.policies))
        space = auto_space(width, height)
        drawn = zip(self.policies[number], probabilities, signs, strict=True)
        for op, at, sign in ((op, at, sign) for (op, p, at), q, sign in drawn if q <= p):
            levels, signed = space[op]
            level = 0.0 if at is None else float(levels[at].item())
            img = self._apply(img, op, -level if signed and sign == 0 else level, fill)
        return img


class RandAugment(_Augment):
    """Applies several random ops of one magnitude.

    Args:
        num_ops: the number of transforms.
        magnitude: the number of the bin.
        num_magnitude_bins: the number of magnitudes.
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
        space = rand_space(self.num_magnitude_bins, width, height)
        for _ in range(self.num_ops):
            img = self._draw(img, space, lambda bins: self.magnitude, fill)
        return img


class TrivialAugmentWide(_Augment):
    """Applies one random op with a magnitude from a wide range.

    Args:
        num_magnitude_bins: the number of magnitudes.
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
        space = wide_space(self.num_magnitude_bins)
        return self._draw(img, space, lambda bins: integer(0, bins), fill)


class AugMix(Mixing, _Augment):
    """Mixes the image with results of chains of ops, with weights from Dirichlet distributions.

    Args:
        severity: magnitudes are drawn below it, 1 to 10 (else ValueError).
        mixture_width: the number of chains.
        chain_depth: ops in a chain; drawn from 1 to 3 if not positive.
        alpha: the alpha of the distributions.
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
        self._settle(severity, mixture_width, chain_depth, alpha, all_ops)
        self.interpolation = interpolation
        self.fill = fill

    def forward(self, orig_img: Any) -> Any:
        fill = fill_for(orig_img, self.fill)
        _, height, width = F.get_dimensions(orig_img)
        img = orig_img if isinstance(orig_img, Tensor) else F.pil_to_tensor(orig_img)
        space = mix_space(self._bins, width, height, self.all_ops)
        batch = img.view([1] * max(4 - img.ndim, 0) + list(img.shape))

        def step(made: Tensor) -> Tensor:
            return self._draw(made, space, lambda bins: integer(0, self.severity), fill)

        mix = self._mix(batch, step)
        mix = mix.view(img.shape).to(img.dtype)
        return mix if isinstance(orig_img, Tensor) else F.to_pil_image(mix)
