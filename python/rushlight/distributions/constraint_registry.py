"""The transforms from all real numbers to the values that constraints allow.

`biject_to(constraint)` gives a bijection, for changes of variables; `transform_to(constraint)` one
that may take several values to one, for optimisation without bounds. Both are registries:

    @transform_to.register(MyConstraint)
    def factory(constraint):
        return MyTransform(constraint.bound)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from . import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Factories of transforms by the type of constraint.

    For an example see `distributions.biject_to`.
    """

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], transforms.Transform]] = {}

    def register(self, constraint: Any, factory: Callable[[Any], Any] | None = None) -> Any:
        """Register a factory for a type of constraint, or for the type of an object.

        Args:
            constraint: a subclass of `Constraint` or one of its objects.
            factory: gets the constraint and gives its transform; without, this is a decorator.
        """
        if factory is None:
            return functools.partial(self.register, constraint)
        kind = constraint if isinstance(constraint, type) else type(constraint)
        if not issubclass(kind, constraints.Constraint):
            raise TypeError(
                f"a transform is registered for a Constraint subclass or instance, not for "
                f"{constraint!r}"
            )
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """The transform to a constraint; NotImplementedError if none is registered."""
        if type(constraint) not in self._registry:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return self._registry[type(constraint)](constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _register(constraint: Any, factory: Callable[[Any, ConstraintRegistry], Any]) -> None:
    """Registers for both; the factory is told for which."""
    for registry in (biject_to, transform_to):
        registry.register(constraint, lambda c, registry=registry: factory(c, registry))


def _affine_after(transform: Any, loc: Any, scale: Any) -> transforms.Transform:
    return transforms.ComposeTransform([transform, transforms.AffineTransform(loc, scale)])


def _to_interval(c: Any, registry: Any) -> transforms.Transform:
    low, high = c.lower_bound, c.upper_bound
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return _affine_after(transforms.SigmoidTransform(), low, high - low)


def _transform_to_above(c: Any, registry: Any) -> transforms.Transform:
    return _affine_after(transforms.ExpTransform(), c.lower_bound, 1)


_register(constraints.real, lambda c, registry: transforms.identity_transform)
_register(constraints.greater_than, _transform_to_above)
_register(constraints.greater_than_eq, _transform_to_above)
_register(
    constraints.less_than,
    lambda c, registry: _affine_after(transforms.ExpTransform(), c.upper_bound, -1),
)
_register(constraints.interval, _to_interval)
_register(constraints.half_open_interval, _to_interval)
_register(constraints.corr_cholesky, lambda c, registry: transforms.CorrCholeskyTransform())
_register(
    constraints.independent,
    lambda c, registry: transforms.IndependentTransform(
        registry(c.base_constraint), c.reinterpreted_batch_ndims
    ),
)
_register(
    constraints.cat,
    lambda c, registry: transforms.CatTransform(
        [registry(part) for part in c.cseq], c.dim, c.lengths
    ),
)
_register(
    constraints.stack,
    lambda c, registry: transforms.StackTransform([registry(part) for part in c.cseq], c.dim),
)
biject_to.register(constraints.simplex, lambda c: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda c: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda c: transforms.LowerCholeskyTransform())
for _constraint in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_constraint, lambda c: transforms.PositiveDefiniteTransform())
