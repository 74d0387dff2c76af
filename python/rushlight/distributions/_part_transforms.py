"""Transforms of parts of a tensor: side by side, or one after the other along a new dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import rushlight
from rushlight import Tensor

from . import constraints
from ._transform import Transform
from .utils import _sum_rightmost, lazy_property, open_property

if TYPE_CHECKING:
    from rushlight.distributions.constraints import Constraint


class _Parts(Transform):
    """Transforms of parts along a dimension."""

    transforms: list[Transform]

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform objects")
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) if cache_size else t for t in tseq]
        self.dim = dim

    @open_property
    def bijective(self) -> bool:
        """Whether every result has one input: that of all parts."""
        return all(t.bijective for t in self.transforms)

    def _check_dim(self, *tensors: Tensor) -> None:
        for t in tensors:
            if not -t.dim() <= self.dim < t.dim():
                raise AssertionError(f"dim {self.dim} is out of range for {t.dim()} dimensions")


class CatTransform(_Parts):
    """Transforms of pieces that lie one after the other along a dimension.

    Args:
        tseq: a transform for each piece.
        dim: the dimension.
        lengths: of the pieces along it; 1 by default.
        cache_size: 0 or 1.

    Example:
        >>> parts = [torch.distributions.ExpTransform(), torch.distributions.AbsTransform()]
        >>> torch.distributions.CatTransform(parts, lengths=[1, 1])(torch.tensor([0.0, -4.0]))
        tensor([1., 4.])
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})"
            )

    @lazy_property
    def event_dim(self) -> int:
        """How many dimensions belong to one event: the most of its parts."""
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> int:
        """How long the pieces are together."""
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _pieces(self, t: Tensor, name: str) -> Sequence[Tensor]:
        self._check_dim(t)
        if t.size(self.dim) != self.length:
            raise AssertionError(
                f"{name}.size({self.dim}) = {t.size(self.dim)} must equal length {self.length}"
            )
        return t.split_with_sizes(self.lengths, self.dim)

    def _call(self, x):
        pieces = zip(self.transforms, self._pieces(x, "x"), strict=True)
        return rushlight.cat([t(piece) for t, piece in pieces], dim=self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        pieces = zip(self.transforms, self._pieces(y, "y"), strict=True)
        return rushlight.cat([t.inv(piece) for t, piece in pieces], dim=self.dim)

    def log_abs_det_jacobian(self, x, y):
        pieces = zip(self.transforms, self._pieces(x, "x"), self._pieces(y, "y"), strict=True)
        parts = [
            _sum_rightmost(t.log_abs_det_jacobian(a, b), self.event_dim - t.domain.event_dim)
            for t, a, b in pieces
        ]
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        return rushlight.cat(parts, dim=dim) if dim < 0 else sum(parts)

    @constraints.dependent_property
    def domain(self) -> Constraint:
        """The constraint of inputs."""
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        """The constraint of results."""
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_Parts):
    """Transforms of slices that are stacked along a dimension, one each.

    Args:
        tseq: a transform for each slice.
        dim: the dimension.
        cache_size: 0 or 1.

    Example:
        >>> parts = [torch.distributions.ExpTransform(), torch.distributions.AbsTransform()]
        >>> torch.distributions.StackTransform(parts)(torch.tensor([0.0, -4.0]))
        tensor([1., 4.])
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    def _slices(self, t: Tensor, name: str) -> Sequence[Tensor]:
        self._check_dim(t)
        if t.size(self.dim) != len(self.transforms):
            raise AssertionError(
                f"{name}.size({self.dim}) = {t.size(self.dim)} must equal len(transforms) "
                f"{len(self.transforms)}"
            )
        return t.unbind(self.dim)

    def _call(self, x):
        slices = zip(self.transforms, self._slices(x, "x"), strict=True)
        return rushlight.stack([t(part) for t, part in slices], dim=self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        slices = zip(self.transforms, self._slices(y, "y"), strict=True)
        return rushlight.stack([t.inv(part) for t, part in slices], dim=self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        slices = zip(self.transforms, self._slices(x, "x"), self._slices(y, "y"), strict=True)
        return rushlight.stack([t.log_abs_det_jacobian(a, b) for t, a, b in slices], dim=self.dim)

    @constraints.dependent_property
    def domain(self) -> Constraint:
        """The constraint of inputs."""
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        """The constraint of results."""
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
