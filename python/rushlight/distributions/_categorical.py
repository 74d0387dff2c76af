"""One of several: Categorical, OneHotCategorical, Multinomial, RelaxedOneHotCategorical."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import rushlight
from rushlight import Size, Tensor
from rushlight.nn.functional import one_hot

from . import constraints
from ._composed import RelaxedDistribution
from ._counts import Binomial
from ._digits import times, times_log
from ._probabilities import ProbsOrLogits
from .distribution import Distribution
from .transforms import ExpTransform
from .utils import broadcast_all, probs_to_logits

if TYPE_CHECKING:
    from rushlight.distributions.constraints import Constraint

__all__ = [
    "Categorical",
    "ExpRelaxedCategorical",
    "Multinomial",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "RelaxedOneHotCategorical",
]

_CHOICES: dict[str, Any] = {"probs": constraints.simplex, "logits": constraints.real_vector}


class Categorical(ProbsOrLogits, Distribution):
    """One of n choices, as an integer below n.

    Probability: the number of `probs` at place x.
    Mean: none, for choices are no amounts (nan).
    Variance: none (nan).
    Support: 0, 1, …, n - 1.

    Args:
        probs: the probabilities in the last dimension, not negative; they are divided by their sum.
        logits: their logarithms, up to a constant, instead of `probs`.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.Categorical(probs=torch.tensor([0.1, 0.9]))
        >>> d.log_prob(torch.tensor(1))
        tensor(-0.1054)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    arg_constraints: ClassVar[dict[str, Any]] = _CHOICES
    has_enumerate_support = True
    _binary = False
    _fields: ClassVar[dict[str, int | None]] = {
        "probs": 1,
        "logits": 1,
        "_param": 1,
        "_by_logits": None,
        "_num_events": None,
    }

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._check_given(probs, logits)
        given: Any = logits if probs is None else probs
        if given.dim() < 1:
            name = "`logits`" if probs is None else "`probs`"
            raise ValueError(f"{name} parameter must be at least one-dimensional.")
        if probs is not None:
            self._set_parameter(probs / probs.sum(-1, keepdim=True), None)
        else:
            self._set_parameter(None, given - given.logsumexp(dim=-1, keepdim=True))
        self._num_events = given.shape[-1]
        Distribution.__init__(self, given.shape[:-1], (), validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Constraint:
        return constraints.integer_interval(0, self._num_events - 1)

    def _nothing(self) -> Tensor:
        return rushlight.full(
            self._extended_shape(), math.nan, dtype=self.probs.dtype, device=self.probs.device
        )

    @property
    def mean(self) -> Tensor:
        """NaN: categories have no mean."""
        return self._nothing()

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Tensor:
        """NaN: categories have no variance."""
        return self._nothing()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        sample_shape = Size(sample_shape)
        with rushlight.no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            # One at least, of which a sample of none takes none.
            drawn = rushlight.multinomial(rows, max(sample_shape.numel(), 1), True)
            return drawn.T[: sample_shape.numel()].reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        given = self.logits if self._by_logits else self.probs
        value, given = rushlight.broadcast_tensors(value.long().unsqueeze(-1), given)
        chosen = given.gather(-1, value[..., :1]).squeeze(-1)
        return chosen if self._by_logits else chosen.log()

    def _weigh(self, weights: Tensor) -> Tensor:
        """The sum of weights times logarithms, where 0 of what is impossible adds 0."""
        if self._by_logits:
            return times(weights, self.logits).sum(-1)
        return times_log(weights, self.probs).sum(-1)

    def entropy(self) -> Tensor:
        return -self._weigh(self.probs)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._expand_support(
            rushlight.arange(self._num_events, device=self._param.device), expand
        )


class _OfCategorical(Distribution):
    """What is made of a categorical distribution."""

    _categorical: Any

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Size:
        """The shape of the probabilities."""
        return self._categorical.param_shape


class OneHotCategorical(_OfCategorical):
    """One of n categories, as a one-hot vector.

    Probability: `prod(probs**x)`.
    Mean: `probs`.
    Variance: of each element `probs * (1 - probs)`.
    Support: vectors with one 1 among zeros.

    Args:
        probs: the probabilities in the last dimension, not negative; they are divided by their sum.
        logits: their logarithms, up to a constant, instead of `probs`.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.OneHotCategorical(torch.tensor([0.1, 0.9]))
        >>> d.log_prob(torch.tensor([0.0, 1.0]))
        tensor(-0.1054)
        >>> d.sample((3,)).shape
        torch.Size([3, 2])
    """

    arg_constraints: ClassVar[dict[str, Any]] = _CHOICES
    support = constraints.one_hot
    has_enumerate_support = True
    _fields: ClassVar[dict[str, int | None]] = {"_categorical": 0}

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return one_hot(self._categorical.mode, self._categorical._num_events).to(self.probs)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        chosen = self._categorical.sample(sample_shape)
        return one_hot(chosen, self._categorical._num_events).to(self._param)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        (n,) = self._event_shape
        choices = rushlight.eye(n, dtype=self._param.dtype, device=self._param.device)
        return self._expand_support(choices, expand)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical` whose draws have the gradient of the probabilities (Bengio et al. 2013).

    Probability: `prod(probs**x)`.
    Mean: `probs`.
    Variance: of each element `probs * (1 - probs)`.
    Support: vectors with one 1 among zeros.

    Args:
        probs: as for `OneHotCategorical`.
        logits: as for `OneHotCategorical`.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.OneHotCategoricalStraightThrough(torch.tensor([0.1, 0.9]))
        >>> d.log_prob(torch.tensor([0.0, 1.0]))
        tensor(-0.1054)
        >>> d.sample((3,)).shape
        torch.Size([3, 2])
    """

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        probs = self._categorical.probs
        return self.sample(sample_shape) + (probs - probs.detach())


class Multinomial(_OfCategorical):
    """The counts of n categories in total_count draws.

    Probability: `gamma(total_count + 1) / prod(gamma(x + 1)) * prod(probs**x)`.
    Mean: `total_count * probs`.
    Variance: of each count `total_count * probs * (1 - probs)`.
    Support: n counts whose sum is total_count.

    Args:
        total_count: how many draws: an int.
        probs: the probabilities in the last dimension, not negative; they are divided by their sum.
        logits: their logarithms, up to a constant, instead of `probs`.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.Multinomial(3, torch.tensor([0.5, 0.5]))
        >>> d.log_prob(torch.tensor([1.0, 2.0]))
        tensor(-0.9808)
        >>> d.sample((3,)).shape
        torch.Size([3, 2])
    """

    arg_constraints: ClassVar[dict[str, Any]] = _CHOICES
    _fields: ClassVar[dict[str, int | None]] = {
        "total_count": None,
        "_categorical": 0,
        "_binomial": 1,
    }

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self._categorical = choices = Categorical(probs, logits)
        self._binomial = Binomial(total_count, choices.probs)
        self.total_count = total_count
        super().__init__(choices.batch_shape, (choices._num_events,), validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Constraint:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        chosen = self._categorical.sample(Size((self.total_count, *sample_shape)))
        chosen = chosen.movedim(0, -1)
        counts = self._new(self._extended_shape(sample_shape)).zero_()
        counts.scatter_add_(-1, chosen, rushlight.ones_like(chosen, dtype=counts.dtype))
        return counts

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        choices = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        return choices + self._categorical._weigh(value)

    def entropy(self) -> Tensor:
        """By the binomial distribution of each count: E log k! is a sum over k."""
        n = self.probs.new_tensor(float(self.total_count))
        one = n * self._categorical.entropy() - (n + 1).lgamma()
        counts = self._binomial.enumerate_support(expand=False)[1:]
        weights = (counts + 1).lgamma()
        return one + (self._binomial.log_prob(counts).exp() * weights).sum([0, -1])


class ExpRelaxedCategorical(_OfCategorical):
    """The logarithms of `RelaxedOneHotCategorical`.

    Args:
        temperature: a tensor; the lower, the closer to a corner samples are.
        probs: as for `Categorical`.
        logits: as for `Categorical`.
        validate_args: see `Distribution`.
    """

    arg_constraints: ClassVar[dict[str, Any]] = _CHOICES
    support = constraints.real_vector
    has_rsample = True
    _fields: ClassVar[dict[str, int | None]] = {"_categorical": 0, "temperature": None}

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        shape = self._categorical.param_shape
        Distribution.__init__(self, shape[:-1], shape[-1:], validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape, logits = self._extended_shape(sample_shape), self.logits
        noise = rushlight.rand(shape, dtype=logits.dtype, device=logits.device)
        noise = -(-probs_to_logits(noise)).log()  # by the Gumbel distribution
        scores = (noise + logits) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        n = self._categorical._num_events
        logits, value = broadcast_all(self.logits, value)
        temperature = rushlight.as_tensor(self.temperature)
        scale = math.lgamma(n) + (n - 1) * temperature.log()
        return (logits - value * temperature).log_softmax(-1).sum(-1) + scale


class RelaxedOneHotCategorical(RelaxedDistribution):
    """Probabilities near one choice, with gradients (Maddison, Mnih, Teh 2017).

    Density: `gamma(n) * t**(n - 1) * prod(probs * x**(-t - 1)) / sum(probs * x**-t)**n`, with
        `t = temperature` and `n = probs.shape[-1]`.
    Mean: not known in closed form: `mean` raises NotImplementedError.
    Variance: not known in closed form.
    Support: n numbers from 0 to 1 whose sum is 1.

    Args:
        temperature: a tensor; the lower, the closer to a corner samples are.
        probs: as for `Categorical`.
        logits: as for `Categorical`.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.RelaxedOneHotCategorical(
        ...     torch.tensor(1.0), probs=torch.tensor([0.1, 0.9])
        ... )
        >>> d.log_prob(torch.tensor([0.4, 0.6]))
        tensor(-0.6729)
        >>> d.sample((3,)).shape
        torch.Size([3, 2])
    """

    arg_constraints: ClassVar[dict[str, Any]] = _CHOICES
    support = constraints.simplex

    _fields: ClassVar[dict[str, int | None]] = {}

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)
