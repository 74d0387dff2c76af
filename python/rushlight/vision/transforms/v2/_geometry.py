"""Transforms that turn and bend: flips, rotations, perspectives."""

from __future__ import annotations

from typing import Any

from rushlight.vision import transforms as v1

from .. import _measures
from .._drawn import angles, check_sequence, per_axis
from . import functional as F
from ._transform import Sometimes, Transform
from ._utils import fill_for, fills_by_kind, query_size


class RandomHorizontalFlip(Sometimes):
    """Flips horizontally with probability p.

    Args:
        p: the probability of doing it.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.RandomHorizontalFlip(p=1.0)(torch.tensor([[[1, 2]]]))
        tensor([[[2, 1]]])
    """

    _v1_transform_cls = v1.RandomHorizontalFlip

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.horizontal_flip, inpt)


class RandomVerticalFlip(Sometimes):
    """Flips vertically with probability p.

    Args:
        p: the probability of doing it.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.RandomVerticalFlip(p=1.0)(torch.tensor([[[1], [2]]]))
        tensor([[[2],
                 [1]]])
    """

    _v1_transform_cls = v1.RandomVerticalFlip

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.vertical_flip, inpt)


class RandomRotation(Transform):
    """Rotates by a random angle from a range.

    Args:
        degrees: the range, or one number for -degrees to degrees.
        interpolation, expand, center: those of `functional.rotate`.
        fill: the value of pixels from outside: one, or one for each channel, or a dict of these by
            kind of input.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.RandomRotation(30)(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 8, 8])
    """

    _v1_transform_cls = v1.RandomRotation

    def __init__(
        self,
        degrees: Any,
        interpolation: Any = "nearest",
        expand: bool = False,
        center: Any = None,
        fill: Any = 0,
    ) -> None:
        super().__init__()
        self.degrees, self.interpolation = angles(degrees, "degrees"), interpolation
        self.expand, self.fill, self._fill = expand, fill, fills_by_kind(fill)
        if center is not None:
            check_sequence(center, "center", (2,))
        self.center = center

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"angle": v1.RandomRotation.get_params(self.degrees)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.rotate,
            inpt,
            **params,
            interpolation=self.interpolation,
            expand=self.expand,
            center=self.center,
            fill=fill_for(self._fill, inpt),
        )


class RandomAffine(Transform):
    """Rotates, translates, scales and shears by random numbers from ranges, around the centre.

    Args:
        degrees: range of angles, or one number for -degrees to degrees.
        translate: the largest shares of width and height that it is moved by, from 0 to 1; None for
            no move.
        scale: range of factors; None for 1.
        shear: range of angles along x, or of x and y (four numbers), or one number; None for none.
        interpolation, center: those of `functional.affine`.
        fill: that of RandomRotation.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.RandomAffine(degrees=10)(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 8, 8])
    """

    _v1_transform_cls = v1.RandomAffine

    def __init__(
        self,
        degrees: Any,
        translate: Any = None,
        scale: Any = None,
        shear: Any = None,
        interpolation: Any = "nearest",
        fill: Any = 0,
        center: Any = None,
    ) -> None:
        super().__init__()
        checked = v1.RandomAffine(degrees, translate, scale, shear, center=center)
        self.degrees = checked.degrees
        self.translate = translate
        self.scale = scale
        self.shear = checked.shear
        self.interpolation = interpolation
        self.fill = fill
        self._fill = fills_by_kind(fill)
        self.center = center

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        drawn = v1.RandomAffine.get_params(
            self.degrees, self.translate, self.scale, self.shear, [width, height]
        )
        return dict(zip(("angle", "translate", "scale", "shear"), drawn, strict=True))

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.affine,
            inpt,
            **params,
            interpolation=self.interpolation,
            fill=fill_for(self._fill, inpt),
            center=self.center,
        )


class RandomPerspective(Sometimes):
    """Corners moved inwards by up to half the edges times `distortion_scale`, 0 to 1, with
    probability p; `interpolation` is that of `functional.perspective`, `fill` of RandomRotation.

    Args:
        distortion_scale: how far corners move, from 0 to 1.
        p: the probability of doing it.
        interpolation: how pixels are read.
        fill: the value of what lies outside.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.RandomPerspective()(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 8, 8])
    """

    _v1_transform_cls = v1.RandomPerspective

    def __init__(
        self,
        distortion_scale: float = 0.5,
        p: float = 0.5,
        interpolation: Any = "bilinear",
        fill: Any = 0,
    ) -> None:
        super().__init__(p)
        if not 0 <= distortion_scale <= 1:
            raise ValueError("Argument distortion_scale value should be between 0 and 1")
        self.distortion_scale = distortion_scale
        self.interpolation = interpolation
        self.fill = fill
        self._fill = fills_by_kind(fill)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        corners = v1.RandomPerspective.get_params(width, height, self.distortion_scale)
        return {"coefficients": _measures.perspective_coefficients(*corners)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.perspective,
            inpt,
            startpoints=None,
            endpoints=None,
            fill=fill_for(self._fill, inpt),
            interpolation=self.interpolation,
            **params,
        )


class ElasticTransform(Transform):
    """Moves every pixel by smoothed noise, as if seen through water.

    Args:
        alpha: the size of the displacements, one number or one for each axis.
        sigma: how smooth, in pixels, likewise.
        interpolation: that of `functional.elastic`.
        fill: that of RandomRotation.

    Example:
        >>> from rushlight.vision.transforms import v2
        >>> v2.ElasticTransform(sigma=0.5)(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 8, 8])
    """

    _v1_transform_cls = v1.ElasticTransform

    def __init__(
        self,
        alpha: Any = 50.0,
        sigma: Any = 5.0,
        interpolation: Any = "bilinear",
        fill: Any = 0,
    ) -> None:
        super().__init__()
        self.alpha = [float(v) for v in per_axis(alpha, "alpha", ValueError)]
        self.sigma = [float(v) for v in per_axis(sigma, "sigma", ValueError)]
        self.interpolation = interpolation
        self.fill = fill
        self._fill = fills_by_kind(fill)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        size = list(query_size(flat_inputs))
        return {"displacement": v1.ElasticTransform.get_params(self.alpha, self.sigma, size)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.elastic,
            inpt,
            **params,
            fill=fill_for(self._fill, inpt),
            interpolation=self.interpolation,
        )
