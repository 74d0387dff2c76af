"""Constraints: the values that a parameter or a sample may have.

A constraint's `check` says for each event of a tensor whether it is allowed; an event is its last
`event_dim` dimensions. What depends on a distribution's parameters is a `dependent_property`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight._C import _functorch

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


def _holds_everywhere(check: Any) -> bool:
    """Whether a check holds for all elements, under vmap of all samples."""
    while isinstance(check, Tensor) and _functorch.is_batchedtensor(check):
        check = _functorch.get_unwrapped(check)
    return bool(check.all()) if isinstance(check, Tensor) else bool(check)


class Constraint:
    """A set of allowed values.

    Attributes:
        is_discrete: whether the set is discrete.
        event_dim: how many of the last dimensions of a value are checked together.

    Example:
        >>> torch.distributions.constraints.positive.check(torch.tensor([4.0, -4.0]))
        tensor([ True, False])
    """

    is_discrete: Any = False
    event_dim: Any = 0
    _shown: tuple[str, ...] = ()  # attributes that the representation lists

    def check(self, value: Tensor) -> Tensor:
        """A bool tensor of shape `value.shape[:-event_dim]`: which events are allowed."""
        raise NotImplementedError

    def __repr__(self) -> str:
        listed = ", ".join(f"{name}={getattr(self, name)}" for name in self._shown)
        return f"{type(self).__name__.lstrip('_')}({listed})"


class _Dependent(Constraint):
    """Depends on other values; cannot be checked. A call gives one that knows more."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented):
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    @property
    def is_discrete(self) -> bool:
        """Whether values are integers; NotImplementedError if that depends on the object."""
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self) -> int:
        """How many dimensions a value has; NotImplementedError if that depends on the object."""
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(
        self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> Constraint:
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint depends on other values, so that it cannot be checked by itself.

    Args:
        constraint: the constraint.

    Example:
        >>> constraints = torch.distributions.constraints
        >>> constraints.is_dependent(constraints.positive)
        False
    """
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A constraint that objects of a class have by their attributes.

    Read from the class, it is a dependent one:

        @dependent_property(is_discrete=True)
        def support(self):
            return integer_interval(1, self.sides)

    Args:
        fn: the method that makes the constraint of a distribution.
        is_discrete: as of a `Constraint`; None: unknown.
        event_dim: as of a `Constraint`; None: unknown.

    Example:
        >>> isinstance(
        ...     vars(torch.distributions.Uniform)["support"],
        ...     torch.distributions.constraints.dependent_property,
        ... )
        True
    """

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Callable[..., Any]) -> _DependentProperty:
        return type(self)(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def _all_of_last(check: Tensor, dims: int) -> Tensor:
    """Whether all of the last `dims` dimensions hold."""
    return check.flatten(-dims).all(-1) if dims else check


class _IndependentConstraint(Constraint):
    """Another constraint whose last batch dimensions belong to the event.

    Args:
        base_constraint: the constraint.
        reinterpreted_batch_ndims: how many more of the last dimensions are checked together.

    Example:
        >>> constraints = torch.distributions.constraints
        >>> rows = constraints.independent(constraints.positive, 1)
        >>> rows.check(torch.tensor([[4.0, 5.0], [4.0, -5.0]]))
        tensor([ True, False])
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int):
        if not isinstance(base_constraint, Constraint):
            raise AssertionError(
                f"base_constraint must be a Constraint, got {type(base_constraint).__name__}"
            )
        if not isinstance(reinterpreted_batch_ndims, int) or reinterpreted_batch_ndims < 0:
            raise AssertionError("reinterpreted_batch_ndims must be an integer of at least 0")
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:
        """Whether values are integers, as the inner constraint says."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        """How many dimensions a value has: those that became part of it, too."""
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        result = self.base_constraint.check(value)
        if result.dim() < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return _all_of_last(result, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        name = type(self).__name__.lstrip("_")
        return f"{name}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The constraint that all components of a mixture satisfy.

    Args:
        base_constraint: that of the components, whose last batch dimension counts them.

    Example:
        >>> constraints = torch.distributions.constraints
        >>> constraints.MixtureSameFamilyConstraint(constraints.positive).check(torch.tensor([4.0]))
        tensor([True])
    """

    def __init__(self, base_constraint: Constraint):
        if not isinstance(base_constraint, Constraint):
            raise AssertionError(
                f"base_constraint must be a Constraint, got {type(base_constraint).__name__}"
            )
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:
        """Whether values are integers, as those of the components are."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        """How many dimensions a value has: as many as one of a component."""
        return self.base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        result = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return _all_of_last(result, result.dim() - (value.dim() - self.event_dim))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


# ---- integers ----


class _Boolean(Constraint):
    """0 or 1."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    """Vectors with one 1 among zeros."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & value.sum(-1).eq(1)


class _IntegerInterval(Constraint):
    """Integers in [lower_bound, upper_bound].

    Args:
        lower_bound: the least value.
        upper_bound: the greatest value.

    Example:
        >>> torch.distributions.constraints.integer_interval(2, 5).check(torch.tensor([2, 6]))
        tensor([ True, False])
    """

    is_discrete = True
    _shown = ("lower_bound", "upper_bound")

    def __init__(self, lower_bound: Tensor | float, upper_bound: Tensor | float) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerLessThan(Constraint):
    """Integers up to upper_bound."""

    is_discrete = True
    _shown = ("upper_bound",)

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, value):
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerGreaterThan(Constraint):
    """Integers from lower_bound."""

    is_discrete = True
    _shown = ("lower_bound",)

    def __init__(self, lower_bound):
        self.lower_bound = lower_bound

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Multinomial(Constraint):
    """Vectors of counts whose sum is at most upper_bound.

    Args:
        upper_bound: what the counts add up to.

    Example:
        >>> torch.distributions.constraints.multinomial(3).check(torch.tensor([1.0, 2.0]))
        tensor(True)
    """

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Tensor | float) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


# ---- real numbers ----


class _Real(Constraint):
    """Everything but not-a-number."""

    def check(self, value: Tensor) -> Tensor:
        return value == value


class _GreaterThan(Constraint):
    """Above lower_bound.

    Args:
        lower_bound: what values are greater than.

    Example:
        >>> torch.distributions.constraints.greater_than(2).check(torch.tensor([2.0, 2.5]))
        tensor([False,  True])
    """

    _shown = ("lower_bound",)

    def __init__(self, lower_bound: Tensor | float) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value


class _GreaterThanEq(Constraint):
    """At least lower_bound.

    Args:
        lower_bound: the least value.

    Example:
        >>> torch.distributions.constraints.greater_than_eq(2).check(torch.tensor([2.0, 1.5]))
        tensor([ True, False])
    """

    _shown = ("lower_bound",)

    def __init__(self, lower_bound: Tensor | float) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class _LessThan(Constraint):
    """Below upper_bound.

    Args:
        upper_bound: what values are less than.

    Example:
        >>> torch.distributions.constraints.less_than(2).check(torch.tensor([2.0, 1.5]))
        tensor([False,  True])
    """

    _shown = ("upper_bound",)

    def __init__(self, upper_bound: Tensor | float) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(Constraint):
    """In [lower_bound, upper_bound].

    Args:
        lower_bound: the least value.
        upper_bound: the greatest value.

    Example:
        >>> torch.distributions.constraints.interval(2, 3).check(torch.tensor([2.0, 3.5]))
        tensor([ True, False])
    """

    _shown = ("lower_bound", "upper_bound")

    def __init__(self, lower_bound: Tensor | float, upper_bound: Tensor | float) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(Constraint):
    """In [lower_bound, upper_bound).

    Args:
        lower_bound: the least value.
        upper_bound: what values are less than.

    Example:
        >>> torch.distributions.constraints.half_open_interval(2, 3).check(torch.tensor([2.0, 3.0]))
        tensor([ True, False])
    """

    _shown = ("lower_bound", "upper_bound")

    def __init__(self, lower_bound: Tensor | float, upper_bound: Tensor | float) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Simplex(Constraint):
    """Vectors without negative numbers whose sum is 1, to 1e-6."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


# ---- matrices ----


class _LowerTriangular(Constraint):
    """Square matrices that are 0 above the diagonal."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return _all_of_last(value.tril() == value, 2)


class _LowerCholesky(Constraint):
    """Lower triangular matrices with a positive diagonal."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        positive_diagonal = (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)
        return lower_triangular.check(value) & positive_diagonal


class _CorrCholesky(Constraint):
    """Cholesky factors of correlation matrices: their rows have length 1."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        tolerance = rushlight.finfo(value.dtype).eps * value.size(-1) * 10
        length = rushlight.linalg.norm(value.detach(), dim=-1)
        return ((length - 1).abs() <= tolerance).all(-1) & lower_cholesky.check(value)


class _Square(Constraint):
    """Square matrices."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return rushlight.full(
            value.shape[:-2],
            value.shape[-2] == value.shape[-1],
            dtype=rushlight.bool,
            device=value.device,
        )


class _Symmetric(_Square):
    """Symmetric matrices, to 1e-6."""

    def check(self, value: Tensor) -> Tensor:
        is_square = super().check(value)
        if not is_square.all():
            return is_square
        return _all_of_last(rushlight.isclose(value, value.mT, atol=1e-6), 2)


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without negative eigenvalues."""

    def check(self, value: Tensor) -> Tensor:
        is_symmetric = super().check(value)
        if not _holds_everywhere(is_symmetric):
            return is_symmetric
        return rushlight.linalg.eigvalsh(value).ge(0).all(-1)


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices that have a Cholesky factor."""

    def check(self, value: Tensor) -> Tensor:
        is_symmetric = super().check(value)
        if not _holds_everywhere(is_symmetric):
            return is_symmetric
        return rushlight.linalg.cholesky_ex(value).info.eq(0)


# ---- several in one tensor ----


class _Sequence(Constraint):
    """Constraints of parts of a tensor along a dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int):
        if not all(isinstance(c, Constraint) for c in cseq):
            raise AssertionError("All elements of cseq must be Constraint objects")
        self.cseq = list(cseq)
        self.dim = dim

    @property
    def is_discrete(self) -> bool:
        """Whether any part has integers."""
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:
        """How many dimensions a value has: the most of any part."""
        return max(c.event_dim for c in self.cseq)


class _Cat(_Sequence):
    """Pieces that are joined along an existing dimension.

    Args:
        cseq: a constraint for each piece.
        dim: the dimension.
        lengths: of the pieces along it; 1 by default.

    Example:
        >>> constraints = torch.distributions.constraints
        >>> both = constraints.cat([constraints.positive, constraints.real], lengths=[1, 1])
        >>> both.check(torch.tensor([-4.0, -4.0]))
        tensor([False,  True])
    """

    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ):
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(
                f"lengths must match cseq, but there are {len(self.lengths)} and {len(self.cseq)}"
            )

    def check(self, value: Tensor) -> Tensor:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"dim {self.dim} is out of range for {value.dim()} dimensions")
        rest = value.size(self.dim) - sum(self.lengths)
        pieces = value.split_with_sizes([*self.lengths, rest], self.dim)
        checks = [c.check(piece) for c, piece in zip(self.cseq, pieces, strict=False)]
        return rushlight.cat(checks, self.dim)


class _Stack(_Sequence):
    """Slices that are stacked along a dimension, one constraint each.

    Args:
        cseq: the constraints.
        dim: the dimension.

    Example:
        >>> constraints = torch.distributions.constraints
        >>> both = constraints.stack([constraints.positive, constraints.real])
        >>> both.check(torch.tensor([-4.0, -4.0]))
        tensor([False,  True])
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0):
        super().__init__(cseq, dim)

    @property
    def event_dim(self) -> int:
        """How many dimensions a value has: the one of the stack, too, if it lies within a value."""
        outer = super().event_dim
        return outer + 1 if self.dim + outer < 0 else outer

    def check(self, value: Tensor) -> Tensor:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"dim {self.dim} is out of range for {value.dim()} dimensions")
        checks = [c.check(value.select(self.dim, i)) for i, c in enumerate(self.cseq)]
        return rushlight.stack(checks, self.dim)


dependent = _Dependent()
dependent_property: Any = _DependentProperty  # subclasses may replace one by a constraint
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
