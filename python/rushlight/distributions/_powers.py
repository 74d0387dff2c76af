"""Distributions whose cdf is easily inverted, drawn from uniform or exponential numbers: Uniform,
Kumaraswamy, Pareto, GeneralizedPareto, Weibull."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import rushlight
from rushlight import Tensor

from . import constraints
from ._composed import TransformedDistribution
from ._digits import lgamma_step, times
from ._gamma import Exponential
from .distribution import Distribution
from .transforms import AffineTransform, ExpTransform, PowerTransform
from .utils import broadcast_all, euler_constant

if TYPE_CHECKING:
    from rushlight.distributions.constraints import Constraint

__all__ = ["GeneralizedPareto", "Kumaraswamy", "Pareto", "Uniform", "Weibull"]


class Uniform(Distribution):
    """The uniform distribution of [low, high).

    Density: `1 / (high - low)`.
    Mean: `(low + high) / 2`.
    Variance: `(high - low)**2 / 12`.
    Support: low <= x < high.

    Args:
        low: where the interval begins.
        high: where it ends, above low.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.Uniform(0.0, 4.0)
        >>> d.log_prob(torch.tensor(1.0))
        tensor(-1.3863)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    has_rsample = True
    _fields: ClassVar[dict[str, int | None]] = {"low": 0, "high": 0}

    def __init__(
        self, low: Tensor | float, high: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)

    @property
    def arg_constraints(self) -> dict[str, Any]:
        return {
            "low": constraints.less_than(self.high),
            "high": constraints.greater_than(self.low),
        }

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Constraint:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        return math.nan * self.high

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).pow(2) / 12

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = rushlight.rand(shape, dtype=self.low.dtype, device=self.low.device)
        return self.low + u * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        inside = self.low.le(value) & self.high.gt(value)
        return inside.to(self.low.dtype).log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()


def _log1mexp(x: Tensor) -> Tensor:
    """log(1 - exp(x)) of x <= 0"""
    near = x > -0.7
    return rushlight.where(
        near, (-x.masked_fill(~near, -1).expm1()).log(), (-x.masked_fill(near, -1).exp()).log1p()
    )


def _power_moment(a: Tensor, b: Tensor, n: int) -> Tensor:
    """E x^n = b B(1 + n / a, b) of Kumaraswamy's distribution."""
    first = 1 + n / a
    less = rushlight.minimum(first, b)
    return (b.log() + less.lgamma() - lgamma_step(rushlight.maximum(first, b), less)).exp()


class Kumaraswamy(TransformedDistribution):
    """Kumaraswamy's distribution, which resembles the beta distribution.

    Density: `a * b * x**(a - 1) * (1 - x**a)**(b - 1)`, with `a = concentration1` and
        `b = concentration0`.
    Mean: `b * beta(1 + 1 / a, b)`.
    Variance: `b * beta(1 + 2 / a, b) - (b * beta(1 + 1 / a, b))**2`.
    Support: 0 to 1.

    Args:
        concentration1: a, positive.
        concentration0: b, positive.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.Kumaraswamy(1.0, 2.0)
        >>> d.log_prob(torch.tensor(0.5))
        tensor(0.)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True
    _fields: ClassVar[dict[str, int | None]] = {"concentration1": 0, "concentration0": 0}

    def __init__(
        self,
        concentration1: Tensor | float,
        concentration0: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        zero = rushlight.zeros_like(self.concentration0)
        base = Uniform(zero, zero + 1, validate_args=validate_args)
        super().__init__(base, self._from_uniform(), validate_args=validate_args)

    def _from_uniform(self) -> list[Any]:
        return [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]

    def _expand_into(self, new, batch_shape):
        super()._expand_into(new, batch_shape)
        new.transforms = new._from_uniform()

    def _log_of_rest(self, log_value: Tensor) -> Tensor:
        """log(1 - x^a)"""
        return _log1mexp(self.concentration1 * log_value)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        a, b, log = self.concentration1, self.concentration0, value.log()
        return a.log() + b.log() + times(a - 1, log) + times(b - 1, self._log_of_rest(log))

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return -(self.concentration0 * self._log_of_rest(value.log())).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return (_log1mexp((-value).log1p() / self.concentration0) / self.concentration1).exp()

    @property
    def mean(self) -> Tensor:
        return _power_moment(self.concentration1, self.concentration0, 1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        mode = ((a - 1) / (a * b - 1)).pow(a.reciprocal())
        return mode.masked_fill((b < 1) | (a < 1), math.nan)

    @property
    def variance(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return _power_moment(a, b, 2) - self.mean.pow(2)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()


class Pareto(TransformedDistribution):
    """Pareto's distribution, of numbers above a threshold.

    Density: `alpha * scale**alpha / x**(alpha + 1)`.
    Mean: `alpha * scale / (alpha - 1)` for alpha above 1, else infinite.
    Variance: `scale**2 * alpha / ((alpha - 1)**2 * (alpha - 2))` for alpha above 2, else infinite.
    Support: x > scale.

    Args:
        scale: the least value, positive.
        alpha: how fast the tail falls, positive.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.Pareto(1.0, 3.0)
        >>> d.log_prob(torch.tensor(2.0))
        tensor(-1.6740)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "alpha": constraints.positive,
        "scale": constraints.positive,
    }
    _fields: ClassVar[dict[str, int | None]] = {"scale": 0, "alpha": 0}

    def __init__(
        self, scale: Tensor | float, alpha: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        super().__init__(base, self._from_exponential(), validate_args=validate_args)

    def _from_exponential(self) -> list[Any]:
        return [ExpTransform(), AffineTransform(loc=0, scale=self.scale)]

    def _expand_into(self, new, batch_shape):
        super()._expand_into(new, batch_shape)
        new.transforms = new._from_exponential()

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Constraint:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)  # infinite up to there
        return self.scale * (a / (a - 1))

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)
        return (self.scale / (a - 1)).square() * (a / (a - 2))

    def entropy(self) -> Tensor:
        return self.scale.log() - self.alpha.log() + (1 + self.alpha.reciprocal())


class GeneralizedPareto(Distribution):
    """The generalized Pareto distribution of what exceeds a threshold.

    With z = (x - loc) / scale >= 0 its survival function is (1 + k z)^(-1 / k), exp(-z) for k = 0;
    for negative k it ends at z = -1 / k.

    Density: `exp(-(1 + 1 / k) * log(1 + k * z)) / scale`, with `z = (x - loc) / scale` and
        `k = concentration`; exp(-z) / scale for k = 0.
    Mean: `loc + scale / (1 - k)` for k below 1.
    Variance: `scale**2 / ((1 - k)**2 * (1 - 2 * k))` for k below 1/2.
    Support: x >= loc, and for negative k up to loc - scale / k.

    Args:
        loc: the threshold.
        scale: positive.
        concentration: k.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.GeneralizedPareto(0.0, 1.0, 0.1)
        >>> d.log_prob(torch.tensor(1.0))
        tensor(-1.0484)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True
    _fields: ClassVar[dict[str, int | None]] = {"loc": 0, "scale": 0, "concentration": 0}

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Constraint:
        end = self.loc - self.scale / self.concentration
        high = rushlight.where(self.concentration < 0, end, math.inf)
        return constraints.interval(self.loc, high)

    def _or_limit(self, x: Tensor, formula: Any) -> Tensor:
        """formula(x, k), which is x - k x^2 / 2 + ... near k = 0, where it would be 0 / 0."""
        k = self.concentration
        is_zero = rushlight.isclose(k, k.new_zeros(()))
        series = x - 0.5 * k * x * x
        return rushlight.where(is_zero, series, formula(x, k.masked_fill(is_zero, 1.0)))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(rushlight.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        log_density = (1 + self.concentration) * self.log_survival_function(value)
        return log_density - self.scale.log()

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of more than `value`."""
        self._check_value(value)
        z = (value - self.loc) / self.scale
        return -self._or_limit(z, lambda z, k: rushlight.log1p(k * z) / k)

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of `cdf`."""
        return rushlight.log1p(-self.log_survival_function(value).exp())

    def cdf(self, value: Tensor) -> Tensor:
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        # With -k in the place of k, the series is that of the inverse.
        log_rest = rushlight.log1p(-value)
        z = self._or_limit(log_rest, lambda x, k: -rushlight.expm1(-k * x) / k)
        return self.loc - self.scale * z

    @property
    def mean(self) -> Tensor:
        k = self.concentration
        return (self.loc + self.scale / (1 - k)).masked_fill(k >= 1, math.nan)

    @property
    def variance(self) -> Tensor:
        k = self.concentration
        square = self.scale**2 / ((1 - k) ** 2 * (1 - 2 * k))
        return square.masked_fill(k >= 0.5, math.nan)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1

    @property
    def mode(self) -> Tensor:
        return self.loc


class Weibull(TransformedDistribution):
    """The Weibull distribution, of the time until something fails.

    Density: `k / scale * z**(k - 1) * exp(-(z**k))`, with `z = x / scale` and `k = concentration`.
    Mean: `scale * gamma(1 + 1 / k)`.
    Variance: `scale**2 * (gamma(1 + 2 / k) - gamma(1 + 1 / k)**2)`.
    Support: x > 0.

    Args:
        scale: positive.
        concentration: k, positive.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.Weibull(1.0, 2.0)
        >>> d.log_prob(torch.tensor(1.0))
        tensor(-0.3069)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "scale": constraints.positive,
        "concentration": constraints.positive,
    }
    support = constraints.positive
    _fields: ClassVar[dict[str, int | None]] = {
        "scale": 0,
        "concentration": 0,
        "concentration_reciprocal": 0,
    }

    def __init__(
        self,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = 1 / self.concentration
        unit = Exponential(rushlight.ones_like(self.scale), validate_args)
        super().__init__(unit, self._from_exponential(), validate_args)

    def _from_exponential(self) -> list[Any]:
        return [
            PowerTransform(exponent=self.concentration_reciprocal),
            AffineTransform(loc=0, scale=self.scale),
        ]

    def _expand_into(self, new, batch_shape):
        super()._expand_into(new, batch_shape)
        new.transforms = new._from_exponential()

    def _log_power(self, value: Tensor) -> tuple[Tensor, Tensor]:
        """log(x / scale), to all digits where the quotient is nearly 1, and (x / scale)^k."""
        away = (value - self.scale) / self.scale
        near = away.abs() < 0.5
        quotient = value.log() - self.scale.log()
        log = rushlight.where(near, away.masked_fill(~near, 0).log1p(), quotient)
        return log, (self.concentration * log).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        log, power = self._log_power(value)
        k = self.concentration
        return k.log() - self.scale.log() + times(k - 1, log) - power

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value + (value == 0))  # a density has no value there, the chance has
        return -(-self._log_power(value)[1]).expm1()

    def _moment(self, n: int) -> Tensor:
        """E (x / scale)^n = gamma(1 + n / k)"""
        return (1 + n * self.concentration_reciprocal).lgamma().exp()

    @property
    def mean(self) -> Tensor:
        return self.scale * self._moment(1)

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * ((k - 1).clamp(min=0) / k) ** self.concentration_reciprocal

    @property
    def variance(self) -> Tensor:
        h = self.concentration_reciprocal
        small = h < 1e-3
        # log(E x^2 / (E x)^2) is n^2 times the series for a start.
        n = h.masked_fill(~small, 0)
        series = 1.6449340668482264 - n * (2.4041138063191886 - n * (3.788131319 - n * 6.2215665))
        near = n * (series * (1 + n * n * series / 2)).sqrt()
        h = h.masked_fill(small, 1)
        exact = ((1 + 2 * h).lgamma() - 2 * (1 + h).lgamma()).expm1().sqrt()
        return (self.scale * self._moment(1) * rushlight.where(small, near, exact)).square()

    def entropy(self) -> Tensor:
        inverse = self.concentration_reciprocal
        return euler_constant * (1 - inverse) + self.scale.log() + inverse.log() + 1
