"""The base classes of distributions: `Distribution` and `ExponentialFamily`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import rushlight
from rushlight import Size, Tensor
from rushlight._warnings import warn

from . import constraints
from .constraints import _holds_everywhere
from .utils import _sum_rightmost, lazy_property, open_property

__all__ = ["Distribution", "ExponentialFamily"]


def _text_of(value: Tensor) -> str:
    """A tensor in messages."""
    return f"a {type(value).__name__} of shape {tuple(value.shape)}:\n{value}"


class Distribution:
    """A probability distribution of tensors.

    A sample has the shape `sample_shape + batch_shape + event_shape`: events are drawn together,
    for each element of the batch from other parameters.

    Args:
        batch_shape: of the parameters, less what belongs to one event.
        event_shape: of one draw.
        validate_args: whether parameters, and values given to `log_prob` and its like, are checked
            against `arg_constraints` and `support` (ValueError). By default they are, unless Python
            runs with -O.

    Example:
        >>> d = torch.distributions.Normal(torch.zeros(3), 1.0)
        >>> d.batch_shape, d.event_shape, d.sample((2,)).shape
        (torch.Size([3]), torch.Size([]), torch.Size([2, 3]))
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args: bool = __debug__
    # For `expand`: the attributes that are expanded, with how many of their last dimensions belong
    # to an event; None for those that are taken over. A lazy one is left out until it is known.
    _fields: ClassVar[dict[str, int | None]]

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions check their arguments by default."""
        if value not in (True, False):
            raise ValueError(f"expected True or False, but got {value!r}")
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Sequence[int] = (),
        event_shape: Sequence[int] = (),
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()

    def _validate_parameters(self) -> None:
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            warn(
                f"{type(self)} does not define `arg_constraints`. Set `arg_constraints = {{}}` or "
                "initialize the distribution with `validate_args=False`.",
            )
            return
        for name, constraint in arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(
                getattr(type(self), name, None), lazy_property
            ):
                continue  # not computed for a check alone
            value = getattr(self, name)
            if not _holds_everywhere(constraint.check(value)):
                raise self._parameter_error(
                    name, value, f"to satisfy the constraint {constraint!r}"
                )

    def _parameter_error(self, name: str, value: Tensor, demand: str) -> ValueError:
        """What is raised for a parameter that does not do what is demanded."""
        return ValueError(
            f"Expected parameter {name} {demand}: {self!r} was given {_text_of(value)}"
        )

    def _expanding_class(self) -> type:
        """The nearest class that says what `expand` expands."""
        for cls in type(self).__mro__:
            if "_fields" in vars(cls):
                return cls
        raise NotImplementedError(f"{type(self).__name__} does not define expand")

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """The distribution with its parameters expanded to another batch shape, without copies.

        Args:
            batch_shape: to which the own one can be broadcast.
            _instance: from a subclass's own `expand`: the object to fill.
        """
        cls = self._expanding_class()
        new = self._get_checked_instance(cls, _instance)
        batch_shape = Size(batch_shape)
        self._expand_into(new, batch_shape)
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expand_into(self, new: Any, batch_shape: Size) -> None:
        """Gives the expanded distribution its parameters; it has nothing else yet."""
        for name, dims in self._expanding_class()._fields.items():
            if name not in self.__dict__:
                continue
            value = self.__dict__[name]
            if dims is not None:
                own = value.batch_shape if isinstance(value, Distribution) else value.shape
                value = value.expand((*batch_shape, *own[len(own) - dims :]))
            setattr(new, name, value)

    @property
    def batch_shape(self) -> Size:
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one sample."""
        return self._event_shape

    @open_property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """The constraint of each parameter."""
        raise NotImplementedError

    @open_property
    def support(self) -> Any:
        """The constraint that samples satisfy."""
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError

    @open_property
    def mode(self) -> Tensor:
        """The most probable value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @open_property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError

    @open_property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Samples without a gradient: (sample_shape, batch_shape, event_shape)."""
        with rushlight.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Reparametrised samples: differentiable functions of the parameters, if `has_rsample`."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """`sample((n,))`."""
        warn("sample_n(n) is old: use sample((n,))", FutureWarning)
        return self.sample(Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The log-density, or log-probability, at `value`: (…, batch_shape)."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The cumulative distribution function at `value`."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile function: the inverse of `cdf`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values with a positive probability, along a new first dimension.

        Args:
            expand: to the batch shape; without, that has ones in the batch's places.
        """
        raise NotImplementedError

    def _expand_support(self, values: Tensor, expand: bool) -> Tensor:
        """For `enumerate_support`: values along the first dimension, each of an event's shape."""
        batch = self._batch_shape if expand else (1,) * len(self._batch_shape)
        values = values[(slice(None), *[None] * len(batch))]
        return values.expand(-1, *batch, *self._event_shape)

    def entropy(self) -> Tensor:
        """The entropy in nats: (batch_shape)."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> Size:
        """The shape of samples."""
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _check_value(self, value: Any) -> None:
        """`_validate_sample`, where arguments are checked."""
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: Any) -> None:
        """ValueError if a value's shape does not fit or it lies outside of the support."""
        if not isinstance(value, Tensor):
            raise ValueError(
                "The value argument to log_prob must be of class Tensor, not "
                f"{type(value).__name__}"
            )
        own = self._extended_shape()
        cut = value.dim() - len(self._event_shape)
        if value.shape[cut:] != self._event_shape:
            raise ValueError(
                f"a value of shape {value.shape} has the wrong right-most size: an event of "
                f"{self!r} has the shape {self._event_shape}"
            )
        pairs = zip(value.shape[::-1], own[::-1], strict=False)
        if any(1 not in pair and len(set(pair)) > 1 for pair in pairs):
            raise ValueError(
                f"a value of shape {value.shape} is not broadcastable with {own}, the batch and "
                f"event shapes of {self!r}"
            )
        try:
            support = self.support
        except NotImplementedError:
            warn(
                f"{type(self)} does not define `support`, so that samples are not checked. "
                "Initialize the distribution with `validate_args=False`.",
            )
            return
        if not _holds_everywhere(support.check(value)):
            raise ValueError(
                f"{self!r} expected a value to be within the support {support!r}, but got "
                f"{_text_of(value)}"
            )

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """An object for `expand` to fill; NotImplementedError for classes with another __init__."""
        if _instance is not None:
            return _instance
        own: Any = type(self)
        if own.__init__ is not cls.__init__:
            raise NotImplementedError(
                f"{own.__name__} has an __init__ of its own, with which {cls.__name__}.expand "
                "makes no object: it must also define a custom .expand() method"
            )
        return own.__new__(own)

    def __repr__(self) -> str:
        known = {
            name: self.__dict__[name] for name in self.arg_constraints if name in self.__dict__
        }
        listed = ", ".join(
            f"{name}: {value if value.numel() == 1 else value.size()}"
            for name, value in known.items()
        )
        return f"{type(self).__name__}({listed})"


class ExponentialFamily(Distribution):
    """Exponential families: densities exp(t(x) . n - F(n) + k(x)), with natural parameters n.

    A subclass gives `_natural_params`, `_log_normalizer` and, for the entropy,
    `_mean_carrier_measure`, the mean of k. Entropies and divergences within the family follow by
    differentiating F (Nielsen, Nock 2010).

    Args:
        batch_shape: the shape of a batch.
        event_shape: the shape of a sample.
        validate_args: whether arguments are checked; see `Distribution`.

    Example:
        >>> isinstance(torch.distributions.Gamma(1.0, 1.0), torch.distributions.ExponentialFamily)
        True
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError

    @open_property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError

    def _normalizer_and_slopes(self) -> tuple[Tensor, tuple[Tensor, ...], tuple[Tensor, ...]]:
        """F at the natural parameters, these, and dF / dn."""
        natural = tuple(p.detach().requires_grad_() for p in self._natural_params)
        with rushlight.enable_grad():
            normalizer = self._log_normalizer(*natural)
            slopes: Any = rushlight.autograd.grad(normalizer.sum(), natural, create_graph=True)
        return normalizer, natural, slopes

    def entropy(self) -> Tensor:
        carrier = self._mean_carrier_measure
        result, natural, slopes = self._normalizer_and_slopes()
        result = result - carrier
        for n, slope in zip(natural, slopes, strict=True):
            result = result - _sum_rightmost(n * slope, n.dim() - len(self._batch_shape))
        return result
