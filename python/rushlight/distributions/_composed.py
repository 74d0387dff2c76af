"""Distributions made of another: transformed, with larger events."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import rushlight
from rushlight import Size, Tensor

from . import constraints
from .distribution import Distribution
from .transforms import AbsTransform, ComposeTransform, Transform
from .utils import _sum_rightmost, open_property

if TYPE_CHECKING:
    from rushlight.distributions.constraints import Constraint

__all__ = ["Independent", "TransformedDistribution"]


class Independent(Distribution):
    """A distribution whose last batch dimensions belong to the event.

    `Independent(Normal(loc, scale), 1)` has the batch and event shapes of a multivariate normal
    distribution.

    Density: the product of those of the base distribution over the dimensions of an event.
    Mean: the base distribution's.
    Variance: the base distribution's.
    Support: the base distribution's, in all elements of an event.

    Args:
        base_distribution: the distribution.
        reinterpreted_batch_ndims: how many dimensions; ValueError if the batch has fewer.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.Independent(
        ...     torch.distributions.Normal(torch.zeros(3), torch.ones(3)), 1
        ... )
        >>> d.log_prob(torch.tensor([0.0, 0.0, 0.0]))
        tensor(-2.7568)
        >>> d.sample((3,)).shape
        torch.Size([3, 3])
    """

    arg_constraints: ClassVar[dict[str, constraints.Constraint]] = {}
    base_dist: Any

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        dims = len(base_distribution.batch_shape)
        if reinterpreted_batch_ndims > dims:
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                f"actual {reinterpreted_batch_ndims} vs {dims}"
            )
        shape = base_distribution.batch_shape + base_distribution.event_shape
        cut = dims - reinterpreted_batch_ndims
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    _fields: ClassVar[dict[str, int | None]] = {}

    def _expand_into(self, new: Any, batch_shape: Size) -> None:
        super()._expand_into(new, batch_shape)
        own = self.base_dist.batch_shape
        cut = len(own) - self.reinterpreted_batch_ndims
        new.base_dist = self.base_dist.expand(Size((*batch_shape, *own[cut:])))
        new.reinterpreted_batch_ndims = self.reinterpreted_batch_ndims

    @open_property
    def has_rsample(self) -> bool:
        """Whether samples have gradients: whether those of the base have."""
        return self.base_dist.has_rsample

    @open_property
    def has_enumerate_support(self) -> bool:
        """Whether all values can be listed: not where dimensions became part of a value."""
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Constraint:
        result = self.base_dist.support
        if self.reinterpreted_batch_ndims:
            result = constraints.independent(result, self.reinterpreted_batch_ndims)
        return result

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return _sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return _sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError(
                "Enumeration over cartesian product is not implemented: the values of "
                f"{self.reinterpreted_batch_ndims} dimensions belong together"
            )
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist!r}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """The distribution of transformed samples of another distribution.

    Density: p(x) / abs(dy / dx) at y = t(x), with p the base distribution's.
    Mean: not known in general: `mean` raises NotImplementedError.
    Variance: not known in general.
    Support: what the last transform gives.

    Args:
        base_distribution: of x.
        transforms: one transform or a list of them, the first one first.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.TransformedDistribution(
        ...     torch.distributions.Normal(0.0, 1.0), [torch.distributions.ExpTransform()]
        ... )
        >>> d.log_prob(torch.tensor(1.0))
        tensor(-0.9189)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    arg_constraints: ClassVar[dict[str, constraints.Constraint]] = {}
    base_dist: Any
    transforms: list[Transform]

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ) -> None:
        if isinstance(transforms, Transform):
            transforms = [transforms]
        elif not isinstance(transforms, list):
            raise ValueError(f"transforms must be a Transform or list, not {transforms!r}")
        elif not all(isinstance(t, Transform) for t in transforms):
            raise ValueError("transforms must be a Transform or several of them in a list")
        self.transforms = transforms

        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        transform = ComposeTransform(self.transforms)
        if len(base_shape) < transform.domain.event_dim:
            raise ValueError(
                "base_distribution needs to have shape with size at least "
                f"{transform.domain.event_dim}, but got {base_shape}."
            )
        shape = Size(transform.forward_shape(base_shape))
        expanded = Size(transform.inverse_shape(shape))
        if base_shape != expanded:
            batch = expanded[: len(expanded) - len(base_distribution.event_shape)]
            base_distribution = base_distribution.expand(batch)
        # Events of the base distribution may be smaller than those that are transformed.
        missing = transform.domain.event_dim - len(base_distribution.event_shape)
        if missing > 0:
            base_distribution = Independent(base_distribution, missing)
        self.base_dist = base_distribution
        event_dim = transform.codomain.event_dim + max(-missing, 0)
        cut = len(shape) - event_dim
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    _fields: ClassVar[dict[str, int | None]] = {}

    def _expand_into(self, new: Any, batch_shape: Size) -> None:
        super()._expand_into(new, batch_shape)
        shape = Size((*batch_shape, *self.event_shape))
        for t in reversed(self.transforms):
            shape = t.inverse_shape(shape)
        cut = len(shape) - len(self.base_dist.event_shape)
        new.base_dist = self.base_dist.expand(Size(shape[:cut]))
        new.transforms = self.transforms

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        result = self.transforms[-1].codomain
        missing = len(self.event_shape) - result.event_dim
        return constraints.independent(result, missing) if missing > 0 else result

    @open_property
    def has_rsample(self) -> bool:
        """Whether samples have gradients: whether those of the base have."""
        return self.base_dist.has_rsample

    def _transform(self, x: Tensor) -> Tensor:
        for t in self.transforms:
            x = t(x)
        return x

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with rushlight.no_grad():
            return self._transform(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._transform(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        stretched: Any = 0
        dims = len(self._event_shape)
        for t in self.transforms[::-1]:
            spare = dims - t.codomain.event_dim  # of the event, but not of the transform's
            dims = t.domain.event_dim + spare
            value, after = t.inv(value), value
            stretched = stretched + _sum_rightmost(t.log_abs_det_jacobian(value, after), spare)
        spare = dims - len(self.base_dist.event_shape)
        return _sum_rightmost(self.base_dist.log_prob(value), spare) - stretched

    def _increasing(self, probability: Tensor) -> Tensor:
        """A probability where the transforms increase, its complement where they decrease."""
        sign: Any = 1
        for t in self.transforms:
            sign = sign * t.sign
        if isinstance(sign, int):
            return probability if sign == 1 else 1 - probability
        return rushlight.where(sign > 0, probability, 1 - probability)

    def cdf(self, value: Tensor) -> Tensor:
        for t in reversed(self.transforms):
            value = t.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._increasing(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._transform(self.base_dist.icdf(self._increasing(value)))


class FoldedDistribution(TransformedDistribution):
    """Absolute values of numbers whose distribution is symmetric around 0, of a given scale.

    Args:
        base_distribution: the base distribution of the numbers; it has a `scale`.
        validate_args: see `Distribution`.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _fields: ClassVar[dict[str, int | None]] = {}

    def __init__(self, base_distribution: Distribution, validate_args: bool | None = None) -> None:
        super().__init__(base_distribution, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """That of the numbers."""
        return self.base_dist.scale

    @property
    def mode(self) -> Tensor:
        return rushlight.zeros_like(self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return self._log_prob_of_both_signs(value)

    def _log_prob_of_both_signs(self, value: Tensor) -> Tensor:
        """The density of both numbers that have this absolute value."""
        both = self.base_dist.log_prob(value) + math.log(2)
        return rushlight.where(value >= 0, both, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


class RelaxedDistribution(TransformedDistribution):
    """What relaxed distributions show of the one that they are made of."""

    has_rsample = True
    _fields: ClassVar[dict[str, int | None]] = {}

    @property
    def temperature(self) -> Any:
        """The temperature: how soft samples are."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """As for the distribution that it softens."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """As for the distribution that it softens."""
        return self.base_dist.probs
