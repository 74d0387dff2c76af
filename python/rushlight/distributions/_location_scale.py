"""Distributions of all real numbers around a place: Cauchy, HalfCauchy, Gumbel, Laplace, StudentT,
VonMises."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import rushlight
from rushlight import Tensor

from . import constraints
from ._composed import FoldedDistribution, TransformedDistribution
from ._digits import digamma_step, lgamma_step, may_be_any
from ._gamma import Chi2
from ._powers import Uniform
from .distribution import Distribution
from .transforms import AffineTransform, ExpTransform
from .utils import (
    _standard_normal,
    broadcast_all,
    euler_constant,
    lazy_property,
    uniform_from,
)

__all__ = ["Cauchy", "Gumbel", "HalfCauchy", "Laplace", "StudentT", "VonMises"]


def _log1p_square(x: Tensor, scale: Tensor, root: Any = 1.0) -> Tensor:
    """log(1 + (x / scale / root)^2), where squares overflow too."""
    ratio = x / scale / root
    far = ratio.abs() > 1e9
    if not may_be_any(far):
        return ratio.square().log1p()
    near = ratio.masked_fill(far, 0).square().log1p()
    log = x.masked_fill(~far, 1).abs().log() - scale.log() - rushlight.as_tensor(root).log()
    return rushlight.where(far, 2 * log, near)


class LocationScale(Distribution):
    """Distributions of all real numbers that `loc` shifts and `scale` widens, highest at loc."""

    arg_constraints: ClassVar[dict[str, Any]] = {
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True
    _fields: ClassVar[dict[str, int | None]] = {"loc": 0, "scale": 0}

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mode(self) -> Tensor:
        return self.loc


class Cauchy(LocationScale):
    """The Cauchy distribution, whose tails are so heavy that it has no mean.

    Density: `1 / (pi * scale * (1 + z**2))`, with `z = (x - loc) / scale`.
    Mean: none (nan).
    Variance: infinite.
    Support: all numbers.

    Args:
        loc: the median.
        scale: half of the width at half of the height, positive.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.Cauchy(0.0, 1.0)
        >>> d.log_prob(torch.tensor(1.0))
        tensor(-1.8379)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    @property
    def mean(self) -> Tensor:
        return rushlight.full_like(self.loc, math.nan)

    @property
    def variance(self) -> Tensor:
        return rushlight.full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.loc + self.loc.new_empty(shape).cauchy_() * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        tail = _log1p_square(value - self.loc, self.scale)
        return -math.log(math.pi) - self.scale.log() - tail

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        # The angle from below, of which small ones have their digits.
        return rushlight.atan2(self.scale, self.loc - value) / math.pi

    def icdf(self, value: Tensor) -> Tensor:
        middle = (value > 0.25) & (value < 0.75)
        near = (math.pi * (value - 0.5)).tan()
        end = rushlight.minimum(value, 1 - value).masked_fill(middle, 0.25)
        far = (value - 0.5).sign() / (math.pi * end).tan()
        return rushlight.where(middle, near, far) * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()


class HalfCauchy(FoldedDistribution):
    """Absolute values of Cauchy numbers around 0.

    Density: `2 / (pi * scale * (1 + (x / scale)**2))`.
    Mean: infinite.
    Variance: infinite.
    Support: x >= 0.

    Args:
        scale: half of the width of the Cauchy distribution, positive.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.HalfCauchy(1.0)
        >>> d.log_prob(torch.tensor(1.0))
        tensor(-1.1447)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    _fields: ClassVar[dict[str, int | None]] = {}

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Tensor:
        return rushlight.full_like(self.scale, math.inf)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return self._log_prob_of_both_signs(
            rushlight.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        )

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return rushlight.atan(value / self.scale) * (2 / math.pi)

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * (value * (math.pi / 2)).tan()


class Gumbel(TransformedDistribution):
    """The Gumbel distribution, of maxima.

    Density: `exp(-z - exp(-z)) / scale`, with `z = (x - loc) / scale`.
    Mean: `loc + 0.5772156649 * scale`.
    Variance: `(pi * scale)**2 / 6`.
    Support: all numbers.

    Args:
        loc: the mode.
        scale: positive.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.Gumbel(0.0, 1.0)
        >>> d.log_prob(torch.tensor(1.0))
        tensor(-1.3679)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    arg_constraints: ClassVar[dict[str, Any]] = LocationScale.arg_constraints
    support = constraints.real
    _fields: ClassVar[dict[str, int | None]] = {"loc": 0, "scale": 0}

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        info = rushlight.finfo(self.loc.dtype)
        like: Any = 0.0
        if any(isinstance(value, Tensor) for value in (loc, scale)):
            like = rushlight.zeros_like(self.loc)
        base = Uniform(like + info.tiny, like + (1 - info.eps), validate_args=validate_args)
        super().__init__(base, _to_gumbel(self.loc, self.scale), validate_args=validate_args)

    def _expand_into(self, new, batch_shape):
        super()._expand_into(new, batch_shape)
        new.transforms = _to_gumbel(new.loc, new.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return (-((self.loc - value) / self.scale).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * (-value.log()).log()

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)


def _to_gumbel(loc: Tensor, scale: Tensor) -> list[Any]:
    """From uniform numbers u: loc - scale log(-log u)."""
    return [
        ExpTransform().inv,
        AffineTransform(0, -rushlight.ones_like(scale)),
        ExpTransform().inv,
        AffineTransform(loc, -scale),
    ]


class Laplace(LocationScale):
    """The Laplace distribution: two exponential distributions, back to back.

    Density: `exp(-abs(x - loc) / scale) / (2 * scale)`.
    Mean: `loc`.
    Variance: `2 * scale**2`.
    Support: all numbers.

    Args:
        loc: the mean.
        scale: the mean distance from it, positive.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.Laplace(0.0, 1.0)
        >>> d.log_prob(torch.tensor(1.0))
        tensor(-1.6931)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Tensor:
        return (2**0.5) * self.scale

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        inside = rushlight.finfo(self.loc.dtype).eps - 1
        u = uniform_from(inside, self.loc, self._extended_shape(sample_shape))
        return self.loc + self.scale * rushlight.copysign((-u.abs()).log1p(), u)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        away = value - self.loc
        below = -away.abs() / self.scale
        return rushlight.where(away < 0, below.exp() / 2, (1 - below.expm1()) / 2)

    def icdf(self, value: Tensor) -> Tensor:
        below = (2 * value).log()
        above = -(2 * (1 - value)).log()
        return self.loc + self.scale * rushlight.where(value < 0.5, below, above)

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()


class StudentT(Distribution):
    """Student's t distribution: a normal number over the root of chi-squared / df.

    Density: `c * (1 + z**2 / df)**(-(df + 1) / 2)`, with `z = (x - loc) / scale` and
        `c = gamma((df + 1) / 2) / (gamma(df / 2) * sqrt(pi * df) * scale)`.
    Mean: `loc` for df above 1.
    Variance: `scale**2 * df / (df - 2)` for df above 2.
    Support: all numbers.

    Args:
        df: degrees of freedom, positive.
        loc: the median.
        scale: positive.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.StudentT(5.0)
        >>> d.log_prob(torch.tensor(1.0))
        tensor(-1.5156)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "df": constraints.positive,
        **LocationScale.arg_constraints,
    }
    support = constraints.real
    has_rsample = True
    _fields: ClassVar[dict[str, int | None]] = {"df": 0, "loc": 0, "scale": 0, "_chi2": 0}

    def __init__(
        self,
        df: Tensor | float,
        loc: Tensor | float = 0.0,
        scale: Tensor | float = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df, validate_args=False)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc.masked_fill(self.df <= 1, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.scale.pow(2) * self.df / (self.df - 2)
        return finite.masked_fill(self.df <= 2, math.inf).masked_fill(self.df <= 1, math.nan)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        x = _standard_normal(shape, self.df.dtype, self.df.device)
        z = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (x * rushlight.rsqrt(z / self.df))

    def _log_beta(self) -> Tensor:
        """log B(df / 2, 1 / 2)"""
        half = 0.5 * self.df
        return math.lgamma(0.5) - lgamma_step(half, 0.5)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        tail = _log1p_square(value - self.loc, self.scale, self.df.sqrt())
        normalizer = self.scale.log() + 0.5 * self.df.log() + self._log_beta()
        return -0.5 * (self.df + 1) * tail - normalizer

    def entropy(self) -> Tensor:
        slope = digamma_step(0.5 * self.df, 0.5)
        return (
            self.scale.log() + 0.5 * (self.df + 1) * slope + 0.5 * self.df.log() + self._log_beta()
        )


class VonMises(Distribution):
    """The von Mises distribution, of angles.

    Density: `exp(concentration * cos(x - loc)) / (2 * pi * i0(concentration))`.
    Mean: `loc`, as an angle.
    Variance: `1 - i1(concentration) / i0(concentration)`, that of directions.
    Support: angles; draws are from -pi to pi.

    Args:
        loc: the mode, an angle in radians.
        concentration: k, positive.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.VonMises(torch.tensor(0.0), torch.tensor(1.0))
        >>> d.log_prob(torch.tensor(1.0))
        tensor(-1.5335)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "loc": constraints.real,
        "concentration": constraints.positive,
    }
    support = constraints.real
    has_rsample = False
    _fields: ClassVar[dict[str, int | None]] = {"loc": 0, "concentration": 0}

    def __init__(
        self, loc: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        # log I0(k) = k + log i0e(k)
        k = self.concentration
        scaled = -2 * k * ((value - self.loc) / 2).sin() ** 2  # k (cos(x - loc) - 1)
        return scaled - math.log(2 * math.pi) - rushlight.special.i0e(k).log()

    @lazy_property
    def _loc(self) -> Tensor:
        return self.loc.to(rushlight.double)

    @lazy_property
    def _concentration(self) -> Tensor:
        return self.concentration.to(rushlight.double)

    @lazy_property
    def _proposal_r(self) -> Tensor:
        """Best and Fisher's (1979) parameter of the wrapped Cauchy distribution."""
        half = 0.5 / self._concentration
        # Their (1 + rho^2) / (2 rho), where rho is a difference, simplified to what has none.
        return half + half.hypot(rushlight.ones_like(half))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draws by rejection from a wrapped Cauchy distribution, in double precision.

        Where the concentration is so large that no curve is left, from the normal distribution.
        """
        shape = self._extended_shape(sample_shape)
        with rushlight.no_grad():
            k = self._concentration.expand(shape)
            sharp = k > 1e7
            options: dict[str, Any] = {"dtype": k.dtype, "device": k.device}
            x = rushlight.zeros(shape, **options)
            if sharp.any():
                x = rushlight.where(sharp, rushlight.randn(shape, **options) / k.sqrt(), x)
            x = self._by_rejection(x, k, sharp)
            angle = (x + math.pi + self._loc) % (2 * math.pi) - math.pi
            return angle.to(self.loc.dtype)

    def _by_rejection(self, x: Tensor, k: Tensor, known: Tensor) -> Tensor:
        """x with draws where it is not known."""
        r, done = self._proposal_r, known
        while not done.all():
            u1, u2, u3 = rushlight.rand((3, *x.shape), dtype=k.dtype, device=k.device).unbind()
            z = (math.pi * u1).cos()
            f = (1 + r * z) / (r + z)
            c = k * (r - f)
            accepted = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
            drawn = (u3 - 0.5).sign() * f.acos()
            x = rushlight.where(accepted & ~known, drawn, x)
            done = done | accepted
        return x

    @property
    def mean(self) -> Tensor:
        """The circular mean."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance."""
        k = self.concentration
        # 1 - I1(k) / I0(k), of which nothing is left where it is small
        r = 1 / k
        series = r / 2 * (1 + r / 4 * (1 + r * (1 + r * (25 / 16 + r * 13 / 4))))
        direct = 1 - rushlight.special.i1e(k) / rushlight.special.i0e(k)
        return rushlight.where(k > 200, series, direct)
