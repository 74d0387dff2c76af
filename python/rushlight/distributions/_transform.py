"""The base of transforms, and those that are made of others: inverses, compositions, parts."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import rushlight

from . import constraints
from .utils import _sum_rightmost, lazy_property, open_property

if TYPE_CHECKING:
    from rushlight.distributions.constraints import Constraint

__all__ = [
    "ComposeTransform",
    "IndependentTransform",
    "ReshapeTransform",
    "Transform",
    "identity_transform",
]


class Transform:
    """A function whose Jacobian is known, and an inverse of it.

    A subclass defines `domain`, `codomain`, `_call` and, as far as they exist, `_inverse`,
    `log_abs_det_jacobian`, `sign` and `bijective`.

    Args:
        cache_size: with 1, the last pair (x, y) is kept: the inverse of that y is that x, and the
            Jacobian need not be computed from scratch.

    Attributes:
        bijective: whether t is one to one between domain and codomain, so that `t.inv` undoes it.
        sign: of the derivative, for increasing or decreasing functions of one number: 1 or -1.

    Example:
        >>> t = torch.distributions.AffineTransform(0.0, 10.0).inv
        >>> t(torch.tensor([30.0])), t.bijective, t.sign
        (tensor([3.]), True, 1)
    """

    bijective: Any = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv: Any = None
        self._cached_x_y: tuple[Any, Any] = (None, None)
        super().__init__()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inv": None}

    @open_property
    def event_dim(self) -> int:
        """How many dimensions are transformed together; ValueError if this differs by side."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")
        return self.domain.event_dim

    @open_property
    def inv(self) -> Transform:
        """The inverse; its inverse is this object."""
        inverse = None if self._inv is None else self._inv()
        if inverse is None:
            inverse = _InverseTransform(self)
            self._inv = weakref.ref(inverse)
        return inverse

    @open_property
    def sign(self) -> Any:
        """The sign of the derivative: 1 or -1; of each element where it depends on arguments."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Any:
        """This transform with that size of cache."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __call__(self, x: Any) -> Any:
        """The transform of x."""
        if self._cache_size == 0:
            return self._call(x)
        old_x, old_y = self._cached_x_y
        if x is old_x:
            return old_y
        y = self._call(x)
        self._cached_x_y = x, y
        return y

    def _inv_call(self, y: Any) -> Any:
        """The inverse of y, by the cache where it is there."""
        if self._cache_size == 0:
            return self._inverse(y)
        old_x, old_y = self._cached_x_y
        if y is old_y:
            return old_x
        x = self._inverse(y)
        self._cached_x_y = x, y
        return x

    def _call(self, x: Any) -> Any:
        raise NotImplementedError

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """log |dy / dx| where y = t(x), of the shape of x without its event dimensions."""
        raise NotImplementedError

    def forward_shape(self, shape: Sequence[int]) -> Any:
        """The shape of `t(x)` for an x of this shape."""
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Any:
        """The shape of `t.inv(y)` for a y of this shape."""
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _SameType(Transform):
    """Transforms without parameters: two of a type are equal."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    __hash__ = None


class _InverseTransform(Transform):
    """The inverse of a transform."""

    _inv: Transform

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Constraint:
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Constraint:
        return self._inv.domain

    @open_property
    def bijective(self) -> bool:
        """Whether every result has one input: that of the other direction."""
        return self._inv.bijective

    @open_property
    def sign(self) -> Any:
        return self._inv.sign

    @open_property
    def inv(self) -> Transform:
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"

    def __call__(self, x: Any) -> Any:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: rushlight.Tensor, y: rushlight.Tensor) -> rushlight.Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Sequence[int]) -> rushlight.Size:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> rushlight.Size:
        return self._inv.forward_shape(shape)


def _with_event_dim(constraint: Any, event_dim: int) -> Any:
    """A constraint of events of at least `event_dim` dimensions."""
    missing = event_dim - constraint.event_dim
    return constraints.independent(constraint, missing) if missing > 0 else constraint


class ComposeTransform(Transform):
    """Several transforms, the first one first.

    Args:
        parts: the transforms.
        cache_size: 0 or 1, for all of them.

    Example:
        >>> parts = [
        ...     torch.distributions.AffineTransform(0.0, 2.0),
        ...     torch.distributions.ExpTransform(),
        ... ]
        >>> torch.distributions.ComposeTransform(parts)(torch.tensor([0.0]))
        tensor([1.])
    """

    def __init__(self, parts: list[Transform], cache_size: int = 0) -> None:
        if cache_size:
            parts = [part.with_cache(cache_size) for part in parts]
        super().__init__(cache_size=cache_size)
        self.parts = parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = None

    def _event_dims(self) -> tuple[int, int]:
        """The event dimensions before and after all parts: enough for each of them."""
        before = change = 0
        for part in self.parts:
            before = max(before, part.domain.event_dim - change)
            change += part.codomain.event_dim - part.domain.event_dim
        return before, before + change

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Constraint:
        """The constraint of inputs."""
        if not self.parts:
            return constraints.real
        return _with_event_dim(self.parts[0].domain, self._event_dims()[0])

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Constraint:
        """The constraint of results."""
        if not self.parts:
            return constraints.real
        return _with_event_dim(self.parts[-1].codomain, self._event_dims()[1])

    @lazy_property
    def bijective(self) -> bool:
        """Whether every result has one input: that of all parts."""
        return all(part.bijective for part in self.parts)

    @lazy_property
    def sign(self) -> Any:
        """The sign of the derivative: 1 or -1; of each element where it depends on arguments."""
        return math.prod((part.sign for part in self.parts), start=1)

    @open_property
    def inv(self) -> Transform:
        inverse = None if self._inv is None else self._inv()
        if inverse is None:
            inverse = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv = weakref.ref(inverse)
            inverse._inv = weakref.ref(self)
        return inverse

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return ComposeTransform(self.parts, cache_size=cache_size)

    def __call__(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: rushlight.Tensor, y: rushlight.Tensor) -> rushlight.Tensor:
        if not self.parts:
            return rushlight.zeros_like(x)
        total: Any = 0
        dims = self.domain.event_dim
        last = len(self.parts) - 1
        for place, part in enumerate(self.parts):
            spare = dims - part.domain.event_dim  # of the event, but not of the part's
            dims = part.codomain.event_dim + spare
            before, x = x, y if place == last else part(x)
            total = total + _sum_rightmost(part.log_abs_det_jacobian(before, x), spare)
        return total

    def forward_shape(self, shape):
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape):
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        listed = ",\n    ".join(map(repr, self.parts))
        return f"{type(self).__name__}(\n    {listed}\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose Jacobian is summed over some dimensions of the batch.

    Args:
        base_transform: the transform.
        reinterpreted_batch_ndims: how many more of the last dimensions belong to an event.
        cache_size: 0 or 1.

    Example:
        >>> t = torch.distributions.IndependentTransform(torch.distributions.ExpTransform(), 1)
        >>> x = torch.tensor([0.5, 2.0])
        >>> t.log_abs_det_jacobian(x, t(x))
        tensor(2.5000)
    """

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Constraint:
        """The constraint of inputs."""
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Constraint:
        """The constraint of results."""
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @open_property
    def bijective(self) -> bool:
        """Whether every result has one input, as the inner transform says."""
        return self.base_transform.bijective

    @open_property
    def sign(self) -> Any:
        """The sign of the derivative: 1 or -1; of each element where it depends on arguments."""
        return self.base_transform.sign

    def _call(self, x):
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y: rushlight.Tensor) -> rushlight.Tensor:
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: rushlight.Tensor, y: rushlight.Tensor) -> rushlight.Tensor:
        result = self.base_transform.log_abs_det_jacobian(x, y)
        return _sum_rightmost(result, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        base = repr(self.base_transform)
        return f"{type(self).__name__}({base}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape: Sequence[int]) -> rushlight.Size:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> rushlight.Size:
        return self.base_transform.inverse_shape(shape)


class ReshapeTransform(Transform):
    """Events of one shape become events of another, with the same elements.

    Args:
        in_shape: the shape of an event before.
        out_shape: the shape of an event after; ValueError if the numbers of elements differ.
        cache_size: 0 or 1.

    Example:
        >>> torch.distributions.ReshapeTransform((4,), (2, 2))(torch.arange(4.0)).shape
        torch.Size([2, 2])
    """

    bijective = True

    def __init__(
        self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0
    ) -> None:
        self.in_shape = rushlight.Size(in_shape)
        self.out_shape = rushlight.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Constraint:
        """The constraint of inputs."""
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Constraint:
        """The constraint of results."""
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)

    def _batch(self, t):
        return t.shape[: t.dim() - len(self.in_shape)]

    def _call(self, x):
        return x.reshape(self._batch(x) + self.out_shape)

    def _inverse(self, y: rushlight.Tensor) -> rushlight.Tensor:
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: rushlight.Tensor, y: rushlight.Tensor) -> rushlight.Tensor:
        return x.new_zeros(self._batch(x))

    def forward_shape(self, shape: Sequence[int]) -> rushlight.Size:
        return _replace_suffix(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> rushlight.Size:
        return _replace_suffix(shape, self.out_shape, self.in_shape)


def _replace_suffix(shape, old, new):
    """A shape that ends with `old`, ending with `new`."""
    if len(shape) < len(old):
        raise ValueError("Too few dimensions on input")
    cut = len(shape) - len(old)
    if tuple(shape[cut:]) != tuple(old):
        raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
    return shape[:cut] + new
