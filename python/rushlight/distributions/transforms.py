"""Invertible transforms of random tensors, with the log-determinants of their Jacobians.

`t(x)` and `t.inv(y)` go both ways, `t.log_abs_det_jacobian(x, y)` is log |dy / dx| of each event.
`t.domain` and `t.codomain` are constraints; their `event_dim` says how many of the last dimensions
are transformed together.
"""

from __future__ import annotations

import math
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight._texts.docstrings import with_arguments
from rushlight.nn.functional import logsigmoid, pad, softmax, softplus

from . import constraints
from ._part_transforms import CatTransform, StackTransform
from ._transform import (
    ComposeTransform,
    IndependentTransform,
    ReshapeTransform,
    Transform,
    _InverseTransform,  # noqa: F401  # pickled objects name it
    _SameType,
    _with_event_dim,
    identity_transform,
)
from .utils import (
    _sum_rightmost,
    broadcast_all,
    lazy_property,
    tril_matrix_to_vec,
    vec_to_tril_matrix,
)

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]


# ---- of each element ----


class ExpTransform(_SameType):
    """y = exp(x).

    Example:
        >>> t = torch.distributions.ExpTransform()
        >>> t(torch.tensor([0.0])), t.log_abs_det_jacobian(torch.tensor([0.5]), None)
        (tensor([1.]), tensor([0.5000]))
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x):
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        return x


class PowerTransform(Transform):
    """y = x ^ exponent, for positive numbers.

    Args:
        exponent: a number or tensor, not 0.
        cache_size: 0 or 1.

    Example:
        >>> torch.distributions.PowerTransform(2.0)(torch.tensor([3.0]))
        tensor([9.])
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return PowerTransform(self.exponent, cache_size=cache_size)

    @lazy_property
    def sign(self) -> Any:
        """The sign of the derivative: 1 or -1; of each element where it depends on arguments."""
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool(self.exponent.eq(other.exponent).all())

    __hash__ = None

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape):
        return rushlight.broadcast_shapes(shape, self.exponent.shape)

    def inverse_shape(self, shape):
        return rushlight.broadcast_shapes(shape, self.exponent.shape)


def _clamp_probabilities(probabilities: Tensor) -> Tensor:
    """Probabilities without 0 and 1, which have no logarithm."""
    info = rushlight.finfo(probabilities.dtype)
    return probabilities.clamp(min=info.tiny, max=1 - info.eps)


def _clipped_sigmoid(x: Tensor) -> Tensor:
    return _clamp_probabilities(x.sigmoid())


class SigmoidTransform(_SameType):
    """y = 1 / (1 + exp(-x)), kept inside of (0, 1).

    Example:
        >>> torch.distributions.SigmoidTransform()(torch.tensor([0.0]))
        tensor([0.5000])
    """

    domain = constraints.real
    codomain = constraints.unit_interval
    bijective = True
    sign = 1

    def _call(self, x):
        return _clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        y = _clamp_probabilities(y)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x, y):
        return -softplus(-x) - softplus(x)


class SoftplusTransform(_SameType):
    """y = log(1 + exp(x)); x itself above 20.

    Example:
        >>> torch.distributions.SoftplusTransform()(torch.tensor([0.0]))
        tensor([0.6931])
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x):
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x, y):
        return -softplus(-x)


class TanhTransform(_SameType):
    """y = tanh(x): the same as an affine function of a sigmoid of 2 x, more exact.

    Example:
        >>> torch.distributions.TanhTransform()(torch.tensor([0.5]))
        tensor([0.4621])
    """

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = 1

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x, y):
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))  # log(1 - tanh^2)


class AbsTransform(_SameType):
    """y = |x|; the inverse returns the positive value.

    Example:
        >>> torch.distributions.AbsTransform()(torch.tensor([-4.0]))
        tensor([4.])
    """

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


def _same_values(a: Any, b: Any) -> bool:
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == b
    return bool(rushlight.as_tensor(a == b).all())


class AffineTransform(Transform):
    """y = loc + scale * x.

    Args:
        loc: a number or tensor.
        scale: a number or tensor, not 0.
        event_dim: how many of the last dimensions make one event.
        cache_size: 0 or 1.

    Example:
        >>> t = torch.distributions.AffineTransform(loc=5.0, scale=2.0)
        >>> t(torch.tensor([4.0])), t.inv(torch.tensor([13.0]))
        (tensor([13.]), tensor([4.]))
    """

    bijective = True

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, event_dim: int = 0, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        """The constraint of inputs."""
        return _with_event_dim(constraints.real, self.event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        """The constraint of results."""
        return _with_event_dim(constraints.real, self.event_dim)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, AffineTransform)
            and _same_values(self.loc, other.loc)
            and _same_values(self.scale, other.scale)
        )

    __hash__ = None

    @property
    def sign(self) -> Any:
        """The sign of the derivative: 1 or -1; of each element where it depends on arguments."""
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        if isinstance(self.scale, Tensor):
            result = self.scale.abs().log().expand(self.forward_shape(x.shape))
        else:
            result = rushlight.full_like(x, math.log(abs(self.scale)))
        return _sum_rightmost(result, self.event_dim)

    def forward_shape(self, shape):
        return rushlight.broadcast_shapes(
            shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ())
        )

    def inverse_shape(self, shape):
        return self.forward_shape(shape)


# ---- of vectors and matrices ----


def _with_dims(least: int, shape: Any) -> Any:
    """The shape, if it has so many dimensions."""
    if len(shape) < least:
        raise ValueError(f"Too few dimensions: a shape of at least {least}, but got {shape}")
    return shape


def _before(t: Tensor) -> Tensor:
    """Of each element the one before it in its row; 1 before the first."""
    return pad(t[..., :-1], [1, 0], value=1.0)


class CorrCholeskyTransform(Transform):
    """From vectors of D (D - 1) / 2 numbers to Cholesky factors of D x D correlation matrices.

    The tangents r of the numbers lie below the diagonal and are canonical partial correlations: an
    element is r times the root of what the row's elements to the left have left of its length 1
    (Lewandowski, Kurowicka, Joe 2009).

    Example:
        >>> torch.distributions.CorrCholeskyTransform()(torch.zeros(1))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x):
        eps = rushlight.finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.tanh().clamp(min=-1 + eps, max=1 - eps), diag=-1)
        rest = _before((1 - r.square()).sqrt().cumprod(-1))
        return r * rest + rest.diagonal(dim1=-2, dim2=-1).diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        both = rushlight.stack((y, _before(1 - y.square().cumsum(-1))))
        below, rest = tril_matrix_to_vec(both, diag=-1)
        r = below / rest.sqrt()
        return (r.log1p() - (-r).log1p()) / 2

    def log_abs_det_jacobian(self, x, y, intermediates=None):
        # An element grows with its r by the root of what is left before it; elements of the first
        # column have 1 there. dr / dx is 1 - tanh^2.
        left = tril_matrix_to_vec(1 - (y * y).cumsum(-1), diag=-2)
        tangents = TanhTransform().log_abs_det_jacobian(x, None).sum(-1)
        return 0.5 * left.log().sum(-1) + tangents

    def forward_shape(self, shape):
        *batch, n = _with_dims(1, shape)
        d = (1 + math.isqrt(1 + 8 * n)) // 2
        if math.comb(d, 2) != n:
            raise ValueError(
                f"{n} numbers are not a flattened lower-diagonal matrix: one of {d} rows has "
                f"{math.comb(d, 2)} below its diagonal"
            )
        return (*batch, d, d)

    def inverse_shape(self, shape):
        *batch, rows, columns = _with_dims(2, shape)
        if rows != columns:
            raise ValueError(f"Input is not square: matrices of {rows} rows, {columns} columns")
        return (*batch, math.comb(rows, 2))


class SoftmaxTransform(_SameType):
    """From vectors to probabilities by softmax; the inverse is the logarithm.

    Vectors that differ by a constant have the same probabilities, so that there is no Jacobian.

    Example:
        >>> torch.distributions.SoftmaxTransform()(torch.zeros(4))
        tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x):
        return softmax(x, dim=-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape):
        return _with_dims(1, shape)

    def inverse_shape(self, shape):
        return self.forward_shape(shape)


def _choices_left(x: Tensor) -> Tensor:
    """The logarithms of n, n - 1 … 1, for a last dimension of n."""
    return rushlight.arange(x.shape[-1], 0, -1, dtype=x.dtype, device=x.device).log()


class StickBreakingTransform(_SameType):
    """From vectors of n numbers to n + 1 probabilities, by breaking a stick of length 1.

    Each number's sigmoid is the share that is broken off what is left; the sigmoids are shifted so
    that zeros become equal probabilities.

    Example:
        >>> torch.distributions.StickBreakingTransform()(torch.zeros(3))
        tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _call(self, x):
        share = _clipped_sigmoid(x - _choices_left(x))
        length = pad((1 - share).cumprod(-1), [1, 0], value=1.0)  # what is left before each
        return rushlight.cat((share * length[..., :-1], length[..., -1:]), dim=-1)

    def _inverse(self, y: Tensor) -> Tensor:
        tiny = rushlight.finfo(y.dtype).tiny
        left = (1 - y.cumsum(-1)).clamp(min=tiny)
        broken, left = y[..., :-1], left[..., :-1]
        return broken.log() - left.log() + _choices_left(broken)

    def log_abs_det_jacobian(self, x, y):
        # Triangular: dy / dx = y (1 - share) on the diagonal.
        shifted = x - _choices_left(x)
        return (logsigmoid(-shifted) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape):
        *batch, n = _with_dims(1, shape)
        return (*batch, n + 1)

    def inverse_shape(self, shape):
        *batch, n = _with_dims(1, shape)
        return (*batch, n - 1)


class LowerCholeskyTransform(_SameType):
    """From matrices to lower triangular ones with the exponentials of their diagonal.

    Example:
        >>> torch.distributions.LowerCholeskyTransform()(torch.zeros(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x):
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_SameType):
    """From matrices to L L^T with the factor of `LowerCholeskyTransform`.

    Example:
        >>> torch.distributions.PositiveDefiniteTransform()(torch.zeros(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x):
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(rushlight.linalg.cholesky(y))


class CumulativeDistributionTransform(Transform):
    """From numbers to values of the cumulative distribution function.

    Args:
        distribution: of numbers, with `cdf`, `icdf` and `log_prob`.
        cache_size: 0 or 1.

    Example:
        >>> normal = torch.distributions.Normal(0.0, 1.0)
        >>> torch.distributions.CumulativeDistributionTransform(normal)(torch.tensor([0.0]))
        tensor([0.5000])
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self):
        """The constraint of inputs: the distribution's support."""
        return self.distribution.support

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        return self.distribution.log_prob(x)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size=cache_size)


_ARGUMENTS = {"cache_size": "with 1, the last pair of a number and its image is kept."}
for _class in (ExpTransform, SigmoidTransform, SoftplusTransform, TanhTransform, AbsTransform):
    with_arguments(_class, _ARGUMENTS)
for _class in (CorrCholeskyTransform, SoftmaxTransform, StickBreakingTransform):
    with_arguments(_class, _ARGUMENTS)
for _class in (LowerCholeskyTransform, PositiveDefiniteTransform):
    with_arguments(_class, _ARGUMENTS)
