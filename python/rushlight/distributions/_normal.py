"""The normal distribution and functions of it: Normal, LogNormal, HalfNormal, LogisticNormal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import rushlight
from rushlight import Tensor

from . import constraints
from ._composed import FoldedDistribution, TransformedDistribution
from ._location_scale import LocationScale
from .distribution import ExponentialFamily
from .transforms import ExpTransform, StickBreakingTransform
from .utils import _standard_normal

__all__ = ["HalfNormal", "LogNormal", "LogisticNormal", "Normal"]


class Normal(LocationScale, ExponentialFamily):
    """The normal distribution.

    Density: `exp(-((x - loc) / scale)**2 / 2) / (scale * sqrt(2 * pi))`.
    Mean: `loc`.
    Variance: `scale**2`.
    Support: all numbers.

    Args:
        loc: the mean.
        scale: the standard deviation, positive.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.Normal(0.0, 1.0)
        >>> d.log_prob(torch.tensor(1.0))
        tensor(-1.4189)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    _mean_carrier_measure = 0

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with rushlight.no_grad():
            return rushlight.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.loc + _standard_normal(shape, self.loc.dtype, self.loc.device) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        square = ((value - self.loc) / self.scale) ** 2 / 2
        return -square - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return rushlight.special.ndtr((value - self.loc) / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * rushlight.special.ndtri(value)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()

    @property
    def _natural_params(self):
        return self.loc / self.scale.pow(2), -0.5 * self.scale.pow(2).reciprocal()

    def _log_normalizer(self, *natural_params):
        x, y = natural_params
        return -0.25 * x.pow(2) / y + 0.5 * (-math.pi / y).log()


class LogNormal(TransformedDistribution):
    """Numbers whose logarithms are normal.

    Density: `exp(-((log(x) - loc) / scale)**2 / 2) / (x * scale * sqrt(2 * pi))`.
    Mean: `exp(loc + scale**2 / 2)`.
    Variance: `(exp(scale**2) - 1) * exp(2 * loc + scale**2)`.
    Support: x > 0.

    Args:
        loc: the mean of the logarithm.
        scale: the standard deviation of the logarithm, positive.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.LogNormal(0.0, 1.0)
        >>> d.log_prob(torch.tensor(1.0))
        tensor(-0.9189)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    arg_constraints: ClassVar[dict[str, Any]] = LocationScale.arg_constraints
    support = constraints.positive
    has_rsample = True
    _fields: ClassVar[dict[str, int | None]] = {}

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Tensor:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        square = self.scale.pow(2)
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class HalfNormal(FoldedDistribution):
    """Absolute values of normal numbers around 0.

    Density: `sqrt(2 / pi) / scale * exp(-((x / scale)**2) / 2)`.
    Mean: `scale * sqrt(2 / pi)`.
    Variance: `scale**2 * (1 - 2 / pi)`.
    Support: x >= 0.

    Args:
        scale: the standard deviation of the normal numbers, positive.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.HalfNormal(1.0)
        >>> d.log_prob(torch.tensor(1.0))
        tensor(-0.7258)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    _fields: ClassVar[dict[str, int | None]] = {}

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return rushlight.erf(value / self.scale / math.sqrt(2))

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * rushlight.erfinv(value) * math.sqrt(2)


class LogisticNormal(TransformedDistribution):
    """Probabilities that `StickBreakingTransform` makes of normal numbers.

    Density: that of the normal numbers over the determinant of the transform.
    Mean: not known in closed form: `mean` raises NotImplementedError.
    Variance: not known in closed form.
    Support: n + 1 numbers from 0 to 1 whose sum is 1.

    Args:
        loc: the means, n of them in the last dimension: samples have n + 1 probabilities.
        scale: the standard deviations, positive.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.LogisticNormal(torch.zeros(1), torch.ones(1))
        >>> d.log_prob(torch.tensor([0.4, 0.6]))
        tensor(0.4260)
        >>> d.sample((3,)).shape
        torch.Size([3, 2])
    """

    arg_constraints: ClassVar[dict[str, Any]] = LocationScale.arg_constraints
    support = constraints.simplex
    has_rsample = True
    _fields: ClassVar[dict[str, int | None]] = {}

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Tensor:
        """The means of the normal numbers."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviations of the normal numbers."""
        return self.base_dist.base_dist.scale
