"""One of two: Bernoulli, and its relatives on the whole interval, ContinuousBernoulli and
RelaxedBernoulli."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import rushlight
from rushlight import Size, Tensor
from rushlight.nn.functional import binary_cross_entropy_with_logits

from . import constraints
from ._composed import RelaxedDistribution
from ._digits import may_be_any
from ._probabilities import PROBS_FIELDS, ProbsOrLogits
from .constraints import _holds_everywhere
from .distribution import Distribution, ExponentialFamily
from .transforms import SigmoidTransform
from .utils import broadcast_all, clamp_probs, probs_to_logits

__all__ = ["Bernoulli", "ContinuousBernoulli", "LogitRelaxedBernoulli", "RelaxedBernoulli"]

_PROBS: dict[str, Any] = {"probs": constraints.unit_interval, "logits": constraints.real}


class _Binary(ProbsOrLogits):
    """`ProbsOrLogits` of numbers or tensors."""

    def _set_from_numbers(self, probs: Any, logits: Any) -> Size:
        """Takes what is given; the batch shape."""
        self._check_given(probs, logits)
        (given,) = broadcast_all(logits if probs is None else probs)
        self._set_parameter(None if probs is None else given, given)
        return given.shape


class Bernoulli(_Binary, ExponentialFamily):
    """The Bernoulli distribution: 1 with a given probability, else 0.

    Probability: `probs**x * (1 - probs)**(1 - x)`.
    Mean: `probs`.
    Variance: `probs * (1 - probs)`.
    Support: 0 and 1.

    Args:
        probs: the probability of 1.
        logits: log(p / (1 - p)), instead of `probs`.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.Bernoulli(0.3)
        >>> d.log_prob(torch.tensor(1.0))
        tensor(-1.2040)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    arg_constraints: ClassVar[dict[str, Any]] = _PROBS
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0
    _fields: ClassVar[dict[str, int | None]] = PROBS_FIELDS

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        Distribution.__init__(self, self._set_from_numbers(probs, logits), (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return (self.probs >= 0.5).to(self.probs).masked_fill(self.probs == 0.5, math.nan)

    @property
    def variance(self) -> Tensor:
        return self.probs * self._failure_probs

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with rushlight.no_grad():
            return rushlight.bernoulli(self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return self._log_likelihood(value)

    def entropy(self) -> Tensor:
        return -self._log_likelihood(self.probs)

    def _log_likelihood(self, value: Tensor) -> Tensor:
        """value log p + (1 - value) log(1 - p)"""
        if not self._by_logits:
            return self._chances.weigh(value, 1 - value)
        logits, value = broadcast_all(self.logits, value)
        found = -binary_cross_entropy_with_logits(logits, value, reduction="none")
        endless = logits.isinf()
        if not may_be_any(endless):
            return found
        certain = endless & (value == (logits > 0))
        return found.masked_fill(endless, -math.inf).masked_fill(certain, 0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = rushlight.arange(2, dtype=self._param.dtype, device=self._param.device)
        return self._expand_support(values, expand)

    @property
    def _natural_params(self):
        return (rushlight.logit(self.probs),)

    def _log_normalizer(self, *natural_params):
        return natural_params[0].exp().log1p()


class ContinuousBernoulli(_Binary, ExponentialFamily):
    """The continuous Bernoulli distribution (Loaiza-Ganem, Cunningham 2019).

    Density: `c * probs**x * (1 - probs)**(1 - x)`, with
        `c = 2 * atanh(1 - 2 * probs) / (1 - 2 * probs)`, which is 2 at probs 0.5.
    Mean: `probs / (2 * probs - 1) + 1 / (2 * atanh(1 - 2 * probs))`.
    Variance: `(probs - 1) * probs / (1 - 2 * probs)**2 + 1 / (2 * atanh(1 - 2 * probs))**2`.
    Support: 0 to 1.

    Args:
        probs: p.
        logits: log(p / (1 - p)), instead of `probs`.
        lims: between these Taylor series around 1/2 are used, where the formulas are 0 / 0.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.ContinuousBernoulli(torch.tensor(0.3))
        >>> d.log_prob(torch.tensor(0.5))
        tensor(-0.0297)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    arg_constraints: ClassVar[dict[str, Any]] = _PROBS
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    _fields: ClassVar[dict[str, int | None]] = {**PROBS_FIELDS, "_lims": None}

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        shape = self._set_from_numbers(probs, logits)
        self._lims = lims
        if probs is not None:
            # What is clamped below cannot be wrong any more.
            if validate_args and not _holds_everywhere(constraints.unit_interval.check(self.probs)):
                demand = f"to satisfy the constraint {constraints.unit_interval!r}"
                raise self._parameter_error("probs", self.probs, demand)
            self._set_parameter(clamp_probs(self.probs), None)
        Distribution.__init__(self, shape, (), validate_args)

    def _far(self) -> Tensor:
        """Where the formulas are used."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _or_series(self, formula: Any, series: Any) -> Tensor:
        """formula(|logits|), or series(p - 1/2) where p is close to 1/2."""
        far = self._far()
        size = rushlight.where(far, self.logits, 1.0).abs()
        return rushlight.where(far, formula(size), series(self.probs - 0.5))

    def _from_high_end(self, low: Tensor, high: Tensor) -> Tensor:
        """`high` where the density grows, `low` where it falls: one is the other's mirror image."""
        return rushlight.where(self.logits > 0, high, low)

    def _cont_bern_log_norm(self) -> Tensor:
        """log C(p) = log(2 artanh(1 - 2 p) / (1 - 2 p))"""
        return self._or_series(
            lambda n: n.log() - (n / 2).tanh().log(),
            lambda x: math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x**2) * x**2,
        )

    @property
    def mean(self) -> Tensor:
        return self._or_series(
            lambda n: self._from_high_end(1 / n - 1 / n.expm1(), 1 - 1 / n + 1 / n.expm1()),
            lambda x: 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x**2) * x,
        )

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    @property
    def variance(self) -> Tensor:
        return self._or_series(
            lambda n: 1 / n**2 - 0.25 / (n / 2).sinh() ** 2,
            lambda x: 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x**2) * x**2,
        )

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with rushlight.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(rushlight.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        # log(p^x (1 - p)^(1 - x)), without 1 - p, whose logarithm the next term takes back
        size = self._from_high_end(-self.logits, self.logits)  # not abs: at 0 there is a slope
        away = self._from_high_end(value, 1 - value) * size
        return self._cont_bern_log_norm() - away - (-size).exp().log1p()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)

        def formula(n: Tensor) -> Tensor:
            below = (-value * n).expm1() / (-n).expm1()
            return self._from_high_end(below, below * ((value - 1) * n).exp())

        inside = self._or_series(formula, lambda x: value)
        return rushlight.where(value <= 0.0, 0.0, rushlight.where(value >= 1.0, 1.0, inside))

    def icdf(self, value: Tensor) -> Tensor:
        def formula(n: Tensor) -> Tensor:
            part = self._from_high_end(value, 1 - value)
            rest = self._from_high_end(1 - value, value)
            near = (part * (-n).expm1()).log1p()
            far = (rest + part * (-n).exp()).log()
            x = (rushlight.where(part < 0.5, near, far) / -n).clamp(max=1)
            return self._from_high_end(x, 1 - x)

        return self._or_series(formula, lambda x: value)

    def entropy(self) -> Tensor:
        size = self.logits.abs()
        # By symmetry, of the one whose density falls.
        near = self._or_series(
            lambda n: 1 - n / n.expm1(),
            lambda x: size * (0.5 - (1.0 / 3.0 + 16.0 / 45.0 * x**2) * x.abs()),
        )
        return near + (-size).exp().log1p() - self._cont_bern_log_norm()

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, *natural_params):
        """log((exp(n) - 1) / n)"""
        (n,) = natural_params
        far = (n <= self._lims[0] - 0.5) | (n > self._lims[1] - 0.5)
        away = rushlight.where(far, n, self._lims[0] - 0.5)
        series = 0.5 * n + n.pow(2) / 24.0 - n.pow(4) / 2880.0
        size = away.abs()
        formula = away.clamp(min=0) + (-(-size).expm1()).log() - size.log()
        return rushlight.where(far, formula, series)


class LogitRelaxedBernoulli(_Binary, Distribution):
    """The logits of `RelaxedBernoulli`.

    Args:
        temperature: a tensor; the lower, the closer to 0 or 1 the sigmoids are.
        probs: the probability of 1.
        logits: log(p / (1 - p)), instead of `probs`.
        validate_args: see `Distribution`.

    Example:
        >>> LogitRelaxedBernoulli = torch.distributions.relaxed_bernoulli.LogitRelaxedBernoulli
        >>> LogitRelaxedBernoulli(torch.tensor(1.0), probs=torch.tensor(0.3)).sample((3,)).shape
        torch.Size([3])
    """

    arg_constraints: ClassVar[dict[str, Any]] = _PROBS
    support = constraints.real
    _fields: ClassVar[dict[str, int | None]] = {**PROBS_FIELDS, "temperature": None}

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        Distribution.__init__(self, self._set_from_numbers(probs, logits), (), validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape, logits = self._extended_shape(sample_shape), self.logits
        noise = rushlight.rand(shape, dtype=logits.dtype, device=logits.device)
        return (probs_to_logits(noise, is_binary=True) + logits) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        logits, value = broadcast_all(self.logits, value)
        away = logits - value * self.temperature
        size = away.abs()
        return rushlight.as_tensor(self.temperature).log() - size - 2 * (-size).exp().log1p()


class RelaxedBernoulli(RelaxedDistribution):
    """Numbers in (0, 1), near 0 or 1, whose samples are differentiable (Maddison, Mnih, Teh 2017).

    Density: `t * r * (x * (1 - x))**(-t - 1) / (r * x**-t + (1 - x)**-t)**2`, with
        `t = temperature` and `r = probs / (1 - probs)`.
    Mean: not known in closed form: `mean` raises NotImplementedError.
    Variance: not known in closed form.
    Support: 0 to 1.

    Args:
        temperature: a tensor; the lower, the closer to 0 or 1 samples are.
        probs: the probability of 1.
        logits: log(p / (1 - p)), instead of `probs`.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.RelaxedBernoulli(torch.tensor(1.0), probs=torch.tensor(0.3))
        >>> d.log_prob(torch.tensor(0.5))
        tensor(-0.1744)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    arg_constraints: ClassVar[dict[str, Any]] = _PROBS
    support = constraints.unit_interval

    _fields: ClassVar[dict[str, int | None]] = {}

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)
