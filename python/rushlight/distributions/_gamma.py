"""Gamma numbers and what is made of them: Gamma, Chi2, InverseGamma, Exponential, Dirichlet, Beta,
FisherSnedecor.

Gradients of draws are implicit derivatives (`_standard_gamma_grad`, `_dirichlet_grad`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import rushlight
from rushlight import Tensor
from rushlight._C import ops
from rushlight.nn.functional import logsigmoid

from . import constraints
from ._composed import TransformedDistribution
from ._digits import gamma_entropy, log_dirichlet, log_poisson
from .distribution import Distribution, ExponentialFamily
from .transforms import PowerTransform
from .utils import broadcast_all

__all__ = ["Beta", "Chi2", "Dirichlet", "Exponential", "FisherSnedecor", "Gamma", "InverseGamma"]

_SHAPE_RATE: dict[str, Any] = {
    "concentration": constraints.positive,
    "rate": constraints.positive,
}


class Gamma(ExponentialFamily):
    """The gamma distribution, of positive numbers.

    Density: `rate**a * x**(a - 1) * exp(-rate * x) / gamma(a)`, with `a = concentration`.
    Mean: `a / rate`.
    Variance: `a / rate**2`.
    Support: x >= 0.

    Args:
        concentration: a, positive.
        rate: the inverse of the scale, positive.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.Gamma(2.0, 1.0)
        >>> d.log_prob(torch.tensor(1.0))
        tensor(-1.)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    arg_constraints: ClassVar[dict[str, Any]] = _SHAPE_RATE
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _fields: ClassVar[dict[str, int | None]] = {"concentration": 0, "rate": 0}

    def __init__(
        self, concentration: Tensor | float, rate: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate / self.rate

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        drawn = ops._standard_gamma(self.concentration.expand(shape))
        value = drawn / self.rate.expand(shape)
        # 0 has no logarithm; the gradient is that of the number before.
        value.detach().clamp_(min=rushlight.finfo(value.dtype).tiny)
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        value = rushlight.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._check_value(value)
        a, log_rate = self.concentration, self.rate.log()
        log_value = value.masked_fill((value == 0) & (a == 1), 1).log()
        return log_poisson(a - 1, self.rate * value, log_rate + log_value, a) + log_rate

    def entropy(self) -> Tensor:
        return gamma_entropy(self.concentration) - self.rate.log()

    @property
    def _natural_params(self):
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, *natural_params):
        x, y = natural_params
        return (x + 1).lgamma() + (x + 1) * (-y.reciprocal()).log()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return rushlight.igamma(self.concentration, self.rate * value)


class Chi2(Gamma):
    """The sum of the squares of df standard normal numbers: Gamma(df / 2, 1 / 2).

    Density: `x**(df / 2 - 1) * exp(-x / 2) / (2**(df / 2) * gamma(df / 2))`.
    Mean: `df`.
    Variance: `2 * df`.
    Support: x >= 0.

    Args:
        df: degrees of freedom, positive.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.Chi2(3.0)
        >>> d.log_prob(torch.tensor(1.0))
        tensor(-1.4189)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {"df": constraints.positive}
    _fields: ClassVar[dict[str, int | None]] = Gamma._fields

    def __init__(self, df: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.concentration * 2


class InverseGamma(TransformedDistribution):
    """Numbers whose reciprocals are gamma numbers.

    Density: `rate**a * x**(-a - 1) * exp(-rate / x) / gamma(a)`, with `a = concentration`.
    Mean: `rate / (a - 1)` for a above 1.
    Variance: `rate**2 / ((a - 1)**2 * (a - 2))` for a above 2.
    Support: x > 0.

    Args:
        concentration: of the gamma distribution, positive.
        rate: of the gamma distribution, positive: the scale of this one.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.InverseGamma(2.0, 1.0)
        >>> d.log_prob(torch.tensor(1.0))
        tensor(-1.)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    arg_constraints: ClassVar[dict[str, Any]] = _SHAPE_RATE
    support = constraints.positive
    has_rsample = True
    _fields: ClassVar[dict[str, int | None]] = {}

    def __init__(
        self, concentration: Tensor | float, rate: Tensor | float, validate_args: bool | None = None
    ) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        negative_one = -base.rate.new_ones(())
        super().__init__(base, PowerTransform(negative_one), validate_args=validate_args)

    @property
    def concentration(self) -> Tensor:
        """That of the gamma distribution."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """That of the gamma distribution."""
        return self.base_dist.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        a, log_rate, log_value = self.concentration, self.rate.log(), value.log()
        gamma = log_poisson(a - 1, self.rate / value, log_rate - log_value, a)
        return gamma + log_rate - 2 * log_value

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value + (value == 0))  # a density has no value there, the chance has
        return rushlight.igammac(self.concentration, self.rate / value)

    @property
    def mean(self) -> Tensor:
        a = self.concentration
        return rushlight.where(a > 1, self.rate / (a - 1), rushlight.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        finite = (self.rate / (a - 1)).square() / (a - 2)
        return rushlight.where(a > 2, finite, rushlight.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return gamma_entropy(a) + self.rate.log() - 2 * a.digamma()


class Exponential(ExponentialFamily):
    """The exponential distribution, of the time until something happens.

    Density: `rate * exp(-rate * x)`.
    Mean: `1 / rate`.
    Variance: `1 / rate**2`.
    Support: x >= 0.

    Args:
        rate: the inverse of the mean, positive.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.Exponential(2.0)
        >>> d.log_prob(torch.tensor(1.0))
        tensor(-1.3069)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _fields: ClassVar[dict[str, int | None]] = {"rate": 0}

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        return rushlight.zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Tensor:
        return self.rate.pow(-2)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.rate.new_empty(self._extended_shape(sample_shape)).exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return -(-self.rate * value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1.0 - self.rate.log()

    @property
    def _natural_params(self):
        return (-self.rate,)

    def _log_normalizer(self, *natural_params):
        return -(-natural_params[0]).log()


def _Dirichlet_backward(x: Tensor, concentration: Tensor, grad_output: Tensor) -> Tensor:
    """The gradient of the concentrations that drew x, for programs that call it by name."""
    total = concentration.sum(-1, True).expand_as(concentration)
    growth = ops._dirichlet_grad(x, concentration, total)
    return growth * (grad_output - (x * grad_output).sum(-1, True))


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution, of n probabilities.

    Density: `gamma(total) / prod(gamma(a)) * prod(x**(a - 1))`, with `a = concentration` and
        `total = sum(a)`.
    Mean: `a / total[..., None]`.
    Variance: `m * (1 - m) / (total[..., None] + 1)`, with `m = a / total[..., None]`.
    Support: n numbers from 0 to 1 whose sum is 1.

    Args:
        concentration: a, positive: (batch, n).
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.Dirichlet(torch.ones(3))
        >>> d.log_prob(torch.tensor([0.2, 0.3, 0.5]))
        tensor(0.6931)
        >>> d.sample((3,)).shape
        torch.Size([3, 3])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "concentration": constraints.independent(constraints.positive, 1)
    }
    support = constraints.simplex
    has_rsample = True
    _fields: ClassVar[dict[str, int | None]] = {"concentration": 1}

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return ops._sample_dirichlet(self.concentration.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        a = self.concentration
        return log_dirichlet(a, value, value.masked_fill((value == 0) & (a == 1), 1).log())

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        # Where all concentrations are below 1, one of the corners with the largest.
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        corner = rushlight.nn.functional.one_hot(self.concentration.argmax(-1), above.shape[-1]).to(
            mode
        )
        return rushlight.where((self.concentration < 1).all(-1, keepdim=True), corner, mode)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        total = a.sum(-1, True)
        return a / total * ((total - a) / total) / (total + 1)

    def entropy(self) -> Tensor:
        a = self.concentration
        total = a.sum(-1)
        parts = gamma_entropy(a).sum(-1) - gamma_entropy(total)
        return parts - (a.size(-1) - 1) * total.digamma()

    @property
    def _natural_params(self):
        return (self.concentration,)

    def _log_normalizer(self, *natural_params):
        (x,) = natural_params
        return x.lgamma().sum(-1) - x.sum(-1).lgamma()


class Beta(ExponentialFamily):
    """The beta distribution, of numbers between 0 and 1.

    Density: `x**(a - 1) * (1 - x)**(b - 1) / beta(a, b)`, with `a = concentration1` and
        `b = concentration0`.
    Mean: `a / (a + b)`.
    Variance: `a * b / ((a + b)**2 * (a + b + 1))`.
    Support: 0 to 1.

    Args:
        concentration1: a, positive.
        concentration0: b, positive.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.Beta(2.0, 2.0)
        >>> d.log_prob(torch.tensor(0.5))
        tensor(0.4055)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True
    _fields: ClassVar[dict[str, int | None]] = {"_dirichlet": 0}

    def __init__(
        self,
        concentration1: Tensor | float,
        concentration0: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        both = rushlight.stack(broadcast_all(concentration1, concentration0), -1)
        # Of the parameters: there is nothing more that the other one could check.
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    @property
    def concentration1(self) -> Tensor:
        """a"""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Tensor:
        """b"""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        total = a + b
        return a / total * (b / total) / (total + 1)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return self._dirichlet.log_prob(rushlight.stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()

    @property
    def _natural_params(self):
        return self.concentration1, self.concentration0

    def _log_normalizer(self, *natural_params):
        x, y = natural_params
        return x.lgamma() + y.lgamma() - (x + y).lgamma()


class FisherSnedecor(Distribution):
    """The F distribution: of the ratio of two chi-squared numbers over their degrees of freedom.

    Density: `(df1 * x / s)**(df1 / 2) * (df2 / s)**(df2 / 2) / (x * beta(df1 / 2, df2 / 2))`, with
        `s = df1 * x + df2`.
    Mean: `df2 / (df2 - 2)` for df2 above 2.
    Variance: `2 * df2**2 * (df1 + df2 - 2) / (df1 * (df2 - 2)**2 * (df2 - 4))` for df2 above 4.
    Support: x > 0.

    Args:
        df1: degrees of freedom of the numerator, positive.
        df2: degrees of freedom of the denominator, positive.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.FisherSnedecor(3.0, 5.0)
        >>> d.log_prob(torch.tensor(1.0))
        tensor(-1.0184)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "df1": constraints.positive,
        "df2": constraints.positive,
    }
    support = constraints.positive
    has_rsample = True
    _fields: ClassVar[dict[str, int | None]] = {"df1": 0, "df2": 0, "_gamma1": 0, "_gamma2": 0}

    def __init__(
        self, df1: Tensor | float, df2: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)
        self._gamma1, self._gamma2 = (
            Gamma(df / 2, df, validate_args=False) for df in (self.df1, self.df2)
        )

    @property
    def mean(self) -> Tensor:
        df2 = self.df2.masked_fill(self.df2 <= 2, rushlight.nan)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return mode.masked_fill(self.df1 <= 2, rushlight.nan)

    @property
    def variance(self) -> Tensor:
        df2 = self.df2.masked_fill(self.df2 <= 4, rushlight.nan)
        return 2 * self.mean.square() * ((self.df1 + df2 - 2) / (df2 - 4)) / self.df1

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        tiny = rushlight.finfo(self.df2.dtype).tiny
        above = self._gamma1.rsample(sample_shape)
        below = self._gamma2.rsample(sample_shape)
        below.detach().clamp_(min=tiny)
        ratio = above / below
        ratio.detach().clamp_(min=tiny)
        return ratio

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        # That of the beta number r x / (1 + r x), r = df1 / df2, whose slope is r / (1 + r x)^2.
        log_ratio = self.df1.log() - self.df2.log()
        log_odds = log_ratio + value.log()
        odds = rushlight.stack([log_odds, -log_odds], -1)
        halves = rushlight.stack([self.df1, self.df2], -1) / 2
        logs = logsigmoid(odds)
        return log_dirichlet(halves, odds.sigmoid(), logs) + log_ratio + 2 * logs[..., 1]
