"""Counts: Binomial, Geometric, NegativeBinomial, Poisson."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import rushlight
from rushlight import Size, Tensor

from . import constraints
from ._digits import log_poisson, times
from ._gamma import Gamma
from ._probabilities import PROBS_FIELDS, ProbsOrLogits
from .constraints import _holds_everywhere
from .distribution import Distribution, ExponentialFamily
from .utils import broadcast_all, lazy_property, uniform_from

if TYPE_CHECKING:
    from rushlight.distributions.constraints import Constraint

__all__ = ["Binomial", "Geometric", "NegativeBinomial", "Poisson"]


class _Trials(ProbsOrLogits):
    """`ProbsOrLogits` with a number of trials or successes."""

    total_count: Tensor

    def _set_with_count(self, total_count: Any, probs: Any, logits: Any) -> Size:
        """Takes what is given; the batch shape."""
        self._check_given(probs, logits)
        count, given = broadcast_all(total_count, logits if probs is None else probs)
        self.total_count = count.type_as(given)
        self._set_parameter(None if probs is None else given, given)
        return given.shape


class Binomial(_Trials, Distribution):
    """The number of successes in total_count trials.

    Probability: `binomial(total_count, x) * probs**x * (1 - probs)**(total_count - x)`.
    Mean: `total_count * probs`.
    Variance: `total_count * probs * (1 - probs)`.
    Support: 0, 1, …, total_count.

    Args:
        total_count: the number of trials.
        probs: the probability that one succeeds.
        logits: log(p / (1 - p)), instead of `probs`.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.Binomial(10, 0.5)
        >>> d.log_prob(torch.tensor(5.0))
        tensor(-1.4020)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    _fields: ClassVar[dict[str, int | None]] = {**PROBS_FIELDS, "total_count": 0}

    def __init__(
        self,
        total_count: Any = 1,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        shape = self._set_with_count(total_count, probs, logits)
        Distribution.__init__(self, shape, (), validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Constraint:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * self._failure_probs

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with rushlight.no_grad():
            return rushlight.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return self._chances.log_binomial(value, self.total_count - value)

    def _equal_count(self, what: str) -> int:
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{what}`.")
        return count

    def entropy(self) -> Tensor:
        self._equal_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -times(log_prob.exp(), log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self._equal_count("enumerate_support")
        values = rushlight.arange(count + 1, dtype=self._param.dtype, device=self._param.device)
        return self._expand_support(values, expand)


class Geometric(ProbsOrLogits, Distribution):
    """The number of failures before the first success.

    Probability: `(1 - probs)**x * probs`.
    Mean: `1 / probs - 1`.
    Variance: `(1 - probs) / probs**2`.
    Support: 0, 1, 2, ….

    Args:
        probs: the probability that one succeeds, above 0.
        logits: log(p / (1 - p)), instead of `probs`.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.Geometric(0.5)
        >>> d.log_prob(torch.tensor(2.0))
        tensor(-2.0794)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _fields: ClassVar[dict[str, int | None]] = PROBS_FIELDS

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._check_given(probs, logits)
        (given,) = broadcast_all(logits if probs is None else probs)
        self._set_parameter(None if probs is None else given, given)
        Distribution.__init__(self, given.shape, (), validate_args)
        if self._validate_args and probs is not None and not _holds_everywhere(given > 0):
            raise self._parameter_error("probs", given, "to be positive")

    @property
    def mean(self) -> Tensor:
        return (-self.logits).exp() if self._by_logits else (1 - self.probs) / self.probs

    @property
    def mode(self) -> Tensor:
        return rushlight.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return self.mean * (self.mean + 1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        probs = self.probs.detach()
        tiny = rushlight.finfo(probs.dtype).tiny
        u = uniform_from(tiny, probs, self._extended_shape(sample_shape))
        return (u.log() / (-probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return self._chances.weigh(rushlight.ones_like(value), value)

    def entropy(self) -> Tensor:
        return -self._chances.weigh(rushlight.ones_like(self.mean), self.mean)


class NegativeBinomial(_Trials, Distribution):
    """The number of successes before total_count failures.

    Probability: `gamma(r + x) / (gamma(r) * gamma(x + 1)) * (1 - probs)**r * probs**x`, with
        `r = total_count`.
    Mean: `r * probs / (1 - probs)`.
    Variance: `r * probs / (1 - probs)**2`.
    Support: 0, 1, 2, ….

    Args:
        total_count: the number of failures; need not be an integer.
        probs: the probability that a trial succeeds, in [0, 1).
        logits: log(p / (1 - p)), instead of `probs`.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.NegativeBinomial(3.0, 0.5)
        >>> d.log_prob(torch.tensor(2.0))
        tensor(-1.6740)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _fields: ClassVar[dict[str, int | None]] = {**PROBS_FIELDS, "total_count": 0}

    def __init__(
        self,
        total_count: Any,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        shape = self._set_with_count(total_count, probs, logits)
        Distribution.__init__(self, shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self._odds

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self._odds).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean * (self._odds + 1)

    @lazy_property
    def _gamma(self) -> Gamma:
        """Of the rates of Poisson numbers, which then are negative binomial."""
        return Gamma(self.total_count, self._odds.reciprocal(), validate_args=False)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with rushlight.no_grad():
            return rushlight.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        n = self.total_count
        # That of n failures and as many successes in any order, of which the last one fails.
        none = (value == 0) & (n == 0)
        last = rushlight.where(none, 1.0, n) / rushlight.where(none, 1.0, n + value)
        return self._chances.log_binomial(value, n) + last.log()


class Poisson(ExponentialFamily):
    """The Poisson distribution, of how often something happens.

    Probability: `rate**x * exp(-rate) / gamma(x + 1)`.
    Mean: `rate`.
    Variance: `rate`.
    Support: 0, 1, 2, ….

    Args:
        rate: the mean, not negative.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.Poisson(4.0)
        >>> d.log_prob(torch.tensor(4.0))
        tensor(-1.6329)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    _fields: ClassVar[dict[str, int | None]] = {"rate": 0}

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with rushlight.no_grad():
            return rushlight.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        rate, value = broadcast_all(self.rate, value)
        log_rate = rate.masked_fill((rate == 0) & (value == 0), 1).log()
        return log_poisson(value, rate, log_rate, value + 1)

    @property
    def _natural_params(self):
        return (self.rate.log(),)

    def _log_normalizer(self, *natural_params):
        return natural_params[0].exp()
