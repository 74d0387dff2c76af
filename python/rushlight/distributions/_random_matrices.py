"""Random matrices: Wishart, LKJCholesky."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import rushlight
from rushlight import Size, Tensor
from rushlight._warnings import warn

from . import constraints
from ._gamma import Beta, Chi2
from ._multivariate import (
    _MATRICES,
    _MATRIX_CONSTRAINTS,
    _ByMatrix,
    _covariance,
    _diagonal,
    _factor,
    _log_det_of_factor,
    _one_matrix,
)
from .distribution import Distribution, ExponentialFamily
from .utils import broadcast_all

__all__ = ["LKJCholesky", "Wishart"]


def _mvdigamma(x: Tensor, p: int) -> Tensor:
    """The derivative of `mvlgamma`."""
    halves = rushlight.arange(p, dtype=x.dtype, device=x.device) / 2
    return (x.unsqueeze(-1) - halves).digamma().sum(-1)


class Wishart(_ByMatrix, ExponentialFamily):
    """The Wishart distribution: of sums X^T X of df normal vectors with mean 0.

    Density: det(X)^((df - p - 1) / 2) exp(-tr(V⁻¹ X) / 2) over its integral, for p x p matrices,
        with V the covariance matrix.
    Mean: `df[..., None, None] * covariance_matrix`.
    Variance: of each element df (Vᵢⱼ² + Vᵢᵢ Vⱼⱼ).
    Support: positive definite matrices.

    Args:
        df: degrees of freedom, above n - 1; need not be an integer.
        covariance_matrix: of the vectors, (batch, n, n), positive definite; or
        precision_matrix: the inverse of the covariance; or
        scale_tril: the Cholesky factor of the covariance.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.Wishart(torch.tensor(3.0), torch.eye(2))
        >>> d.log_prob(torch.eye(2))
        tensor(-3.5310)
        >>> d.sample((3,)).shape
        torch.Size([3, 2, 2])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _fields: ClassVar[dict[str, int | None]] = {
        "df": 0,
        **dict.fromkeys(_MATRICES, 2),
        "_unbroadcasted_scale_tril": None,
        "_dist_chi2": 1,
    }

    @property
    def arg_constraints(self) -> dict[str, Any]:
        return {**_MATRIX_CONSTRAINTS, "df": constraints.greater_than(self.event_shape[-1] - 1)}

    def __init__(
        self,
        df: Tensor | float,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = _one_matrix(
            AssertionError,
            scale_tril=scale_tril,
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
        )
        if isinstance(df, (int, float)):
            df = rushlight.tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch = rushlight.broadcast_shapes(matrix.shape[:-2], df.shape)
        event_shape = matrix.shape[-2:]
        n = event_shape[-1]
        if df.le(n - 1).any():
            raise ValueError(
                f"Value of df={df} expected to be greater than {n - 1}, the number of rows minus 1"
            )
        setattr(self, name, matrix.expand(batch + event_shape))
        self.df = df.expand(batch)
        Distribution.__init__(self, batch, event_shape, validate_args)
        if self.df.lt(n).any():
            warn(f"Low df values detected: draws of df < {n} are often singular to rounding.")
        self._unbroadcasted_scale_tril = _factor(name, matrix)
        steps = rushlight.arange(n, dtype=self.df.dtype, device=self.df.device)
        self._dist_chi2 = Chi2(self.df.unsqueeze(-1) - steps, validate_args=False)

    @property
    def _matrix_df(self) -> Tensor:
        return self.df.view((*self._batch_shape, 1, 1))

    @property
    def mean(self) -> Tensor:
        return self._matrix_df * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self._matrix_df - self._event_shape[-1] - 1
        return factor.masked_fill(factor <= 0, math.nan) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        diagonal = _diagonal(v)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self._matrix_df * (v.pow(2) + outer)

    def _bartlett_sampling(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """L A A^T L^T with chi numbers on the diagonal of A and normal ones below (Bartlett)."""
        n = self._event_shape[-1]
        noise = self._dist_chi2.rsample(sample_shape).sqrt().diag_embed()
        row, column = rushlight.tril_indices(n, n, offset=-1, device=noise.device)
        shape = (*sample_shape, *self._batch_shape, n * (n - 1) // 2)
        noise[..., row, column] = rushlight.randn(shape, dtype=noise.dtype, device=noise.device)
        return _covariance(self._unbroadcasted_scale_tril @ noise)

    def rsample(
        self, sample_shape: Sequence[int] = (), max_try_correction: int | None = None
    ) -> Tensor:
        """Draws; those that are singular to rounding are drawn again.

        Args:
            sample_shape: the shape of the sample.
            max_try_correction: the maximum number of new draws; 3 by default for matrices of more
                than 10 rows, else 10.
        """
        if max_try_correction is None:
            max_try_correction = 3 if self._event_shape[-1] > 10 else 10
        sample_shape = Size(sample_shape)
        sample = self._bartlett_sampling(sample_shape)
        for _ in range(max_try_correction):
            singular = ~self.support.check(sample)
            if not singular.any():
                break
            warn("Singular sample detected.")
            again = self._bartlett_sampling(sample_shape)
            sample = rushlight.where(singular[..., None, None], again, sample)
        return sample

    def _half_log_det(self) -> Tensor:
        """n / 2 log 2 + log det L"""
        size = 0.5 * self._event_shape[-1] * math.log(2)
        return size + _log_det_of_factor(self._unbroadcasted_scale_tril)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        n = self._event_shape[-1]
        factor = self._unbroadcasted_scale_tril
        shape = rushlight.broadcast_shapes(value.shape, factor.shape)
        solved = rushlight.cholesky_solve(value.expand(shape), factor.expand(shape))
        log_det = rushlight.linalg.slogdet(value).logabsdet
        return (
            -self.df * self._half_log_det()
            - rushlight.mvlgamma(self.df / 2, n)
            + (self.df - n - 1) / 2 * log_det
            - _diagonal(solved).sum(-1) / 2
        )

    def entropy(self) -> Tensor:
        n = self._event_shape[-1]
        return (
            (n + 1) * self._half_log_det()
            + rushlight.mvlgamma(self.df / 2, n)
            - (self.df - n - 1) / 2 * _mvdigamma(self.df / 2, n)
            + self.df * n / 2
        )

    @property
    def _natural_params(self):
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, *natural_params):
        x, y = natural_params
        n = self._event_shape[-1]
        half_df = y + (n + 1) / 2
        log_det = -rushlight.linalg.slogdet(-2 * x).logabsdet
        return half_df * (log_det + n * math.log(2)) + rushlight.mvlgamma(half_df, n)


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices, whose density is det^(concentration - 1).

    Density: as of the matrix L Lᵀ, det(L Lᵀ)^(concentration - 1) over its integral, in coordinates
        of L.
    Mean: not known here: `mean` raises NotImplementedError.
    Variance: not known here.
    Support: lower triangular matrices with positive diagonals and rows of norm 1.

    Args:
        dim: how many rows the matrices have, at least 2.
        concentration: positive: 1 for uniform matrices, more for those near the identity.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.LKJCholesky(2, 1.0)
        >>> d.log_prob(torch.eye(2))
        tensor(-0.6931)
        >>> d.sample((3,)).shape
        torch.Size([3, 2, 2])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _fields: ClassVar[dict[str, int | None]] = {"dim": None, "concentration": 0, "_beta": 1}

    def __init__(
        self, dim: int, concentration: Tensor | float = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(f"LKJCholesky: dim must be greater than or equal to 2, but got {dim}")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        like = {"dtype": self.concentration.dtype, "device": self.concentration.device}
        # The onion method (Lewandowski, Kurowicka, Joe 2009, section 3.2): the squared length of
        # the part of row i (from 0) below the diagonal is a beta number, its direction uniform. The
        # first row has none; its number is drawn, and multiplied by 0.
        row = rushlight.arange(1, dim, **like)
        row = rushlight.cat([row.new_ones((1,)), row])
        conc0 = (self.concentration + 0.5 * (dim - 1)).unsqueeze(-1) - 0.5 * row
        self._beta = Beta((0.5 * row).expand_as(conc0), conc0)
        super().__init__(self.concentration.shape, (dim, dim), validate_args=validate_args)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with rushlight.no_grad():
            length = self._beta.sample(sample_shape).unsqueeze(-1)
            below = rushlight.randn(shape, dtype=length.dtype, device=length.device).tril(-1)
            direction = below / below.norm(dim=-1, keepdim=True)
            direction[..., 0, :] = 0.0
            w = length.sqrt() * direction
            tiny = rushlight.finfo(w.dtype).tiny
            rest = (1 - (w**2).sum(-1)).clamp(min=tiny).sqrt()
            return w + rest.diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        """Of the factor: that of the matrix with the Jacobian, prod L_ii^(dim - i)."""
        self._check_value(value)
        n = self.dim - 1
        row = rushlight.arange(2, self.dim + 1, device=self.concentration.device)
        powers = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - row
        logs = _diagonal(value)[..., 1:].log()
        return (powers * logs).sum(-1) - self._log_volume(n)

    def _log_volume(self, n: int) -> Tensor:
        """The logarithm of what the powers of the diagonal integrate to over all factors."""
        alpha = self.concentration + 0.5 * n
        return 0.5 * n * math.log(math.pi) + rushlight.mvlgamma(alpha - 0.5, n) - n * alpha.lgamma()
