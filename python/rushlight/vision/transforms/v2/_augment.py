"""Policies of augmentation, of the one image or video of a sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PIL.Image import Image as Picture

import rushlight
from rushlight import Tensor
from rushlight.utils._pytree import tree_flatten, tree_unflatten
from rushlight.vision import transforms as v1
from rushlight.vision import tv_tensors
from rushlight.vision.tv_tensors import BoundingBoxes, KeyPoints, Mask, TVTensor, Video

from .. import _tensors
from .._drawn import integer
from .._policies import (
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
from . import functional as F
from ._transform import Transform
from ._utils import IMAGES, check_type, fill_for, fills_by_kind, sample_of


class _Augment(Transform):
    """Draws ops and their magnitudes, and carries them out on the image of a sample.

    TypeError unless there is one image or video, and for boxes, points and masks.
    """

    def __init__(self, *, interpolation: Any = "nearest", fill: Any = None) -> None:
        super().__init__()
        self.interpolation = interpolation
        self.fill = fill
        self._fill = fills_by_kind(fill)

    def forward(self, *inputs: Any) -> Any:
        """The sample, whose images and videos are changed."""
        flat, spec = tree_flatten(sample_of(inputs))
        found = []
        for i, wanted in enumerate(self._needs_transform_list(flat)):
            if wanted and check_type(flat[i], IMAGES):
                found.append(i)
            elif isinstance(flat[i], BoundingBoxes | Mask | KeyPoints):
                raise TypeError(
                    f"Inputs of type {type(flat[i]).__name__} are not supported by "
                    f"{type(self).__name__}()"
                )
        if not found:
            raise TypeError("Found no image in the sample.")
        if len(found) > 1:
            raise TypeError(
                "Auto augment transformations are only properly defined for one image or video in "
                f"a sample; here are {len(found)}"
            )
        flat[found[0]] = self.augment(flat[found[0]])
        return tree_unflatten(flat, spec)

    def augment(self, image: Any) -> Any:
        """One image or video changed."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it changes")

    def _apply(
        self, image: Any, op: str, magnitudes: tuple[Tensor, bool], bin_of: Callable[[int], Any]
    ) -> Any:
        """An op of one of its magnitudes; `bin_of(bins)` says which."""
        values, signed = magnitudes
        magnitude = 0.0
        if values.ndim > 0:
            magnitude = float(values[bin_of(len(values))])
            if signed and rushlight.rand(()) <= 0.5:
                magnitude = -magnitude
        if op == "Solarize":  # a share of white
            white = _tensors.largest(image.dtype) if isinstance(image, Tensor) else 255.0
            magnitude *= white
        return OPS[op](F, image, magnitude, self.interpolation, fill_for(self._fill, image))

    def _draw(
        self, image: Any, space: dict[str, tuple[Tensor, bool]], bin_of: Callable[[int], Any]
    ) -> Any:
        """One op of the space."""
        op = list(space)[integer(0, len(space))]
        return self._apply(image, op, space[op], bin_of)


class AutoAugment(_Augment):
    """Applies one of 25 learned pairs of ops.

    Args:
        policy: the data set on which the policy was learned.
        interpolation: that of `functional.affine`.
        fill: the value of pixels from outside: one, or one for each channel, or a dict of these by
            kind of input.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.AutoAugment()(torch.zeros(3, 8, 8, dtype=torch.uint8)).shape
        torch.Size([3, 8, 8])
    """

    _v1_transform_cls = v1.AutoAugment

    def __init__(
        self,
        policy: AutoAugmentPolicy = AutoAugmentPolicy.IMAGENET,
        interpolation: Any = "nearest",
        fill: Any = None,
    ) -> None:
        super().__init__(interpolation=interpolation, fill=fill)
        if policy not in POLICIES:
            raise ValueError(f"policy: {policy!r} is none of AutoAugmentPolicy")
        self.policy = policy
        self._policies = parse(POLICIES[policy])

    def augment(self, image: Any) -> Any:
        height, width = F.get_size(image)
        pair = self._policies[integer(0, len(self._policies))]
        space = auto_space(width, height, white=1.0)
        for op, p, at in pair:
            if rushlight.rand(()) <= p:
                image = self._apply(image, op, space[op], lambda bins, at=at: at)
        return image


class RandAugment(_Augment):
    """Applies several random ops of one magnitude.

    Args:
        num_ops: the number of transforms.
        magnitude: the number of the bin.
        num_magnitude_bins: the number of magnitudes.
        interpolation, fill: those of AutoAugment.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.RandAugment()(torch.zeros(3, 8, 8, dtype=torch.uint8)).shape
        torch.Size([3, 8, 8])
    """

    _v1_transform_cls = v1.RandAugment

    def __init__(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: Any = "nearest",
        fill: Any = None,
    ) -> None:
        super().__init__(interpolation=interpolation, fill=fill)
        if not isinstance(num_ops, int) or num_ops < 0:
            raise ValueError(f"num_ops should be a non-negative integer, not {num_ops!r}")
        self.num_ops = num_ops
        self.magnitude = magnitude
        self.num_magnitude_bins = num_magnitude_bins

    def augment(self, image: Any) -> Any:
        height, width = F.get_size(image)
        space = rand_space(self.num_magnitude_bins, width, height, white=1.0)
        for _ in range(self.num_ops):
            image = self._draw(image, space, lambda bins: self.magnitude)
        return image


class TrivialAugmentWide(_Augment):
    """Applies one random op with a magnitude from a wide range.

    Args:
        num_magnitude_bins: the number of magnitudes.
        interpolation, fill: those of AutoAugment.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.TrivialAugmentWide()(torch.zeros(3, 8, 8, dtype=torch.uint8)).shape
        torch.Size([3, 8, 8])
    """

    _v1_transform_cls = v1.TrivialAugmentWide

    def __init__(
        self, num_magnitude_bins: int = 31, interpolation: Any = "nearest", fill: Any = None
    ) -> None:
        super().__init__(interpolation=interpolation, fill=fill)
        self.num_magnitude_bins = num_magnitude_bins

    def augment(self, image: Any) -> Any:
        space = wide_space(self.num_magnitude_bins, white=1.0)
        return self._draw(image, space, lambda bins: integer(0, bins))


class AugMix(Mixing, _Augment):
    """Mixes the image with results of chains of ops, with weights from Dirichlet distributions.

    Args:
        severity: magnitudes are drawn below it, 1 to 10 (else ValueError).
        mixture_width: the number of chains.
        chain_depth: ops in a chain; drawn from 1 to 3 if not positive.
        alpha: the alpha of the distributions.
        all_ops: also brightness, contrast, colour and sharpness.
        interpolation, fill: those of AutoAugment.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.AugMix()(torch.zeros(3, 8, 8, dtype=torch.uint8)).shape
        torch.Size([3, 8, 8])
    """

    _v1_transform_cls = v1.AugMix

    def __init__(
        self,
        severity: int = 3,
        mixture_width: int = 3,
        chain_depth: int = -1,
        alpha: float = 1.0,
        all_ops: bool = True,
        interpolation: Any = "bilinear",
        fill: Any = None,
    ) -> None:
        super().__init__(interpolation=interpolation, fill=fill)
        self._settle(severity, mixture_width, chain_depth, alpha, all_ops)

    def augment(self, image: Any) -> Any:
        height, width = F.get_size(image)
        tensor = F.pil_to_tensor(image) if isinstance(image, Picture) else image
        space = mix_space(self._bins, width, height, self.all_ops, white=1.0)
        ones = [1] * max((5 if isinstance(image, Video) else 4) - tensor.ndim, 0)
        batch = tensor.as_subclass(Tensor).reshape([*ones, *tensor.shape])
        mix = self._mix(
            batch, lambda made: self._draw(made, space, lambda bins: integer(0, self.severity))
        )
        mix = mix.reshape(tensor.shape).to(tensor.dtype)
        if isinstance(image, TVTensor):
            return tv_tensors.wrap(mix, like=image)
        return F.to_pil_image(mix) if isinstance(image, Picture) else mix
