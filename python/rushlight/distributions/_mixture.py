"""Mixtures of distributions of one family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import rushlight
from rushlight import Tensor

from . import constraints
from ._categorical import Categorical
from .distribution import Distribution

if TYPE_CHECKING:
    from rushlight.distributions.constraints import MixtureSameFamilyConstraint

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture of distributions of one family.

    Density: the sum of those of the components, each times its probability.
    Mean: the same sum of the means.
    Variance: that within components, and that of their means.
    Support: that of the components.

    Args:
        mixture_distribution: a `Categorical` whose batch shape is the mixture's: how probable each
            component is.
        component_distribution: the components, counted by the last dimension of its batch.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.MixtureSameFamily(
        ...     torch.distributions.Categorical(torch.ones(2)),
        ...     torch.distributions.Normal(torch.tensor([-1.0, 1.0]), torch.tensor([1.0, 1.0])),
        ... )
        >>> d.log_prob(torch.tensor(1.0))
        tensor(-1.4852)
        >>> d.sample((3,)).shape
        torch.Size([3])
    """

    arg_constraints: ClassVar[dict[str, constraints.Constraint]] = {}
    has_rsample = False

    def __init__(
        self,
        mixture_distribution: Any,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                "The Mixture distribution needs to be a Categorical, but got "
                f"{type(mixture_distribution).__name__}"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution needs to be a Distribution, but got "
                f"{type(component_distribution).__name__}"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        batch = component_distribution.batch_shape[:-1]
        for a, b in zip(reversed(mixture_distribution.batch_shape), reversed(batch), strict=False):
            if a != 1 and b != 1 and a != b:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixture_distribution.batch_shape}) is "
                    f"not compatible with `component_distribution.batch_shape`({batch})"
                )
        chances = mixture_distribution.param_shape[-1]
        components = component_distribution.batch_shape[-1]
        if chances != components:
            raise ValueError(
                f"`mixture_distribution component` ({chances}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({components})"
            )
        self._num_component = chances
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(batch, event_shape, validate_args=validate_args)

    _fields: ClassVar[dict[str, int | None]] = {
        "_mixture_distribution": 0,
        "_component_distribution": 1,
        "_num_component": None,
        "_event_ndims": None,
    }

    @constraints.dependent_property
    def support(self) -> MixtureSameFamilyConstraint:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Any:
        """The distribution over the components."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    def _component_mean(self, t: Tensor) -> Tensor:
        """The mean over the components."""
        chances = self.mixture_distribution.probs
        chances = chances.reshape(chances.shape + (1,) * self._event_ndims)
        return (chances * t).sum(-1 - self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return self._component_mean(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        # Within components, and of their means.
        spread = self.component_distribution.mean - self.mean.unsqueeze(-1 - self._event_ndims)
        return self._component_mean(self.component_distribution.variance) + self._component_mean(
            spread.pow(2)
        )

    def cdf(self, value: Tensor) -> Tensor:
        each = self.component_distribution.cdf(value.unsqueeze(-1 - self._event_ndims))
        return (each * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        each = self.component_distribution.log_prob(value.unsqueeze(-1 - self._event_ndims))
        chances = self.mixture_distribution.logits.log_softmax(-1)
        return rushlight.logsumexp(each + chances, dim=-1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with rushlight.no_grad():
            chosen = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            at = len(sample_shape) + len(self.batch_shape)
            chosen = chosen.expand((*sample_shape, *self.batch_shape))
            chosen = chosen.reshape(chosen.shape + (1,) * (self._event_ndims + 1))
            chosen = chosen.expand((*drawn.shape[:at], 1, *self.event_shape))
            return drawn.gather(at, chosen).squeeze(at)

    def __repr__(self) -> str:
        parts = f"{self.mixture_distribution},\n  {self.component_distribution}"
        return f"MixtureSameFamily(\n  {parts})"
