"""Normal vectors: MultivariateNormal, LowRankMultivariateNormal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import rushlight
from rushlight import Tensor
from rushlight.linalg import solve_triangular

from . import constraints
from .distribution import Distribution
from .utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal", "MultivariateNormal"]


# ---- matrices in batches ----


def _batch_mv(bmat: Tensor, bvec: Tensor) -> Tensor:
    """Matrices times vectors: (…, n, k) and (…, k) give (…, n)."""
    return (bmat @ bvec.unsqueeze(-1)).squeeze(-1)


def _diagonal(t: Tensor) -> Tensor:
    return t.diagonal(dim1=-2, dim2=-1)


def _log_det_of_factor(factor: Tensor) -> Tensor:
    """log det L of triangular matrices."""
    return _diagonal(factor).log().sum(-1)


def _solve_vectors(factor: Tensor, vectors: Tensor) -> Tensor:
    """L^-1 x of lower triangular L (…, n, n) and x (…, n)."""
    if factor.dim() == 2:  # one matrix for all vectors: they are its right sides
        rows = vectors.reshape(-1, vectors.shape[-1])
        return solve_triangular(factor, rows.mT, upper=False).mT.reshape(vectors.shape)
    batch = rushlight.broadcast_shapes(factor.shape[:-2], vectors.shape[:-1])
    factor = factor.expand(batch + factor.shape[-2:])
    right = vectors.expand(batch + vectors.shape[-1:]).unsqueeze(-1)
    return solve_triangular(factor, right, upper=False).squeeze(-1)


def _batch_mahalanobis(bL: Tensor, bx: Tensor) -> Tensor:
    """x^T (L L^T)^-1 x for factors (…, n, n) and vectors (…, n)."""
    return _solve_vectors(bL, bx).pow(2).sum(-1)


def _precision_to_scale_tril(P: Tensor) -> Tensor:
    """The Cholesky factor of P^-1, from P turned around: P = U^T U with U upper triangular gives
    P^-1 = U^-1 U^-T, and turning rows and columns around makes a lower factor an upper one."""
    turned = rushlight.linalg.cholesky(P.flip((-2, -1)))
    inverse_factor = turned.flip((-2, -1)).mT
    eye = rushlight.eye(P.shape[-1], dtype=P.dtype, device=P.device)
    return solve_triangular(inverse_factor, eye.expand_as(P), upper=False)


def _covariance(factor: Tensor) -> Tensor:
    return factor @ factor.mT


# Attributes of distributions that are given by one of three matrices.
_MATRICES = ("covariance_matrix", "precision_matrix", "scale_tril")
_MATRIX_CONSTRAINTS: dict[str, Any] = {
    "covariance_matrix": constraints.positive_definite,
    "precision_matrix": constraints.positive_definite,
    "scale_tril": constraints.lower_cholesky,
}


def _one_matrix(error: type, **given: Any) -> tuple[str, Tensor]:
    """The one matrix that is given, with its name."""
    found = [(name, value) for name, value in given.items() if value is not None]
    if len(found) != 1:
        raise error("Exactly one of covariance_matrix or precision_matrix or scale_tril is needed")
    name, matrix = found[0]
    if matrix.dim() < 2:
        raise ValueError(
            f"{name} must be at least two-dimensional: (batch, n, n), but got {matrix.shape}"
        )
    return name, matrix


def _factor(name: str, matrix: Tensor) -> Tensor:
    """The Cholesky factor of the covariance."""
    if name == "scale_tril":
        return matrix
    if name == "covariance_matrix":
        return rushlight.linalg.cholesky(matrix)
    return _precision_to_scale_tril(matrix)


class _NormalVector(Distribution):
    """Of vectors around their mean, `loc`."""

    loc: Tensor

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc


class _ByMatrix(Distribution):
    """The three matrices, of which one is given."""

    _unbroadcasted_scale_tril: Tensor

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance matrix."""
        shape = self._batch_shape + self._event_shape[-1:] * 2
        return self._unbroadcasted_scale_tril.expand(shape)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrix."""
        shape = self._batch_shape + self._event_shape[-1:] * 2
        return _covariance(self._unbroadcasted_scale_tril).expand(shape)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix."""
        shape = self._batch_shape + self._event_shape[-1:] * 2
        return rushlight.cholesky_inverse(self._unbroadcasted_scale_tril).expand(shape)


def _log_2pi(normal: Distribution) -> float:
    """The logarithm of (2 pi)^n, for vectors of n numbers."""
    return normal.event_shape[0] * math.log(2 * math.pi)


class MultivariateNormal(_NormalVector, _ByMatrix):
    """The multivariate normal distribution.

    Density: exp(-(x - loc)ᵀ Σ⁻¹ (x - loc) / 2) / sqrt(det(2 π Σ)), with Σ the covariance matrix.
    Mean: `loc`.
    Variance: of each element `covariance_matrix.diagonal(dim1=-2, dim2=-1)`.
    Support: vectors of n numbers.

    Args:
        loc: the mean: (batch, n).
        covariance_matrix: (batch, n, n), positive definite; or
        precision_matrix: the inverse of the covariance; or
        scale_tril: its Cholesky factor, the cheapest.
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
        >>> d.log_prob(torch.tensor([0.0, 0.0]))
        tensor(-1.8379)
        >>> d.sample((3,)).shape
        torch.Size([3, 2])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "loc": constraints.real_vector,
        **_MATRIX_CONSTRAINTS,
    }
    support = constraints.real_vector
    has_rsample = True
    _fields: ClassVar[dict[str, int | None]] = {
        "loc": 1,
        **dict.fromkeys(_MATRICES, 2),
        "_unbroadcasted_scale_tril": None,
    }

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = _one_matrix(
            ValueError,
            covariance_matrix=covariance_matrix,
            scale_tril=scale_tril,
            precision_matrix=precision_matrix,
        )
        batch = rushlight.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(batch + matrix.shape[-2:]))
        self.loc = loc.expand(batch + loc.shape[-1:])
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = _factor(name, matrix)

    @property
    def variance(self) -> Tensor:
        square = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return square.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        eps = _standard_normal(shape, self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, eps)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        factor = self._unbroadcasted_scale_tril
        exponent = _log_2pi(self) + _batch_mahalanobis(factor, value - self.loc)
        return -0.5 * exponent - _log_det_of_factor(factor)

    def entropy(self) -> Tensor:
        log_det = _log_det_of_factor(self._unbroadcasted_scale_tril)
        entropy = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + log_det
        return entropy.expand(self._batch_shape)


# ---- covariances W W^T + D of low rank (Woodbury's formulas) ----


def _batch_capacitance_tril(W: Tensor, D: Tensor) -> Tensor:
    """The Cholesky factor of I + W^T D^-1 W."""
    capacitance = (W.mT / D.unsqueeze(-2)) @ W
    eye = rushlight.eye(W.shape[-1], dtype=W.dtype, device=W.device)
    return rushlight.linalg.cholesky(capacitance + eye)


def _batch_lowrank_logdet(W: Tensor, D: Tensor, capacitance_tril: Tensor) -> Tensor:
    """log det(W W^T + D)"""
    return 2 * _log_det_of_factor(capacitance_tril) + D.log().sum(-1)


def _batch_lowrank_mahalanobis(
    W: Tensor,
    D: Tensor,
    x: Tensor,
    capacitance_tril: Tensor,
) -> Tensor:
    """x^T (W W^T + D)^-1 x"""
    inner = _batch_mv(W.mT / D.unsqueeze(-2), x)
    return (x.pow(2) / D).sum(-1) - _batch_mahalanobis(capacitance_tril, inner)


class LowRankMultivariateNormal(_NormalVector):
    """Normal vectors whose covariance is cov_factor cov_factor^T + diag(cov_diag).

    Nothing of the size n x n is made for draws and densities.

    Density: as of `MultivariateNormal`.
    Mean: `loc`.
    Variance: of each element `(cov_factor**2).sum(-1) + cov_diag`.
    Support: vectors of n numbers.

    Args:
        loc: the mean: (batch, n).
        cov_factor: (batch, n, rank).
        cov_diag: positive: (batch, n).
        validate_args: see `Distribution`.

    Example:
        >>> d = torch.distributions.LowRankMultivariateNormal(
        ...     torch.zeros(2), torch.ones(2, 1), torch.ones(2)
        ... )
        >>> d.log_prob(torch.tensor([0.0, 0.0]))
        tensor(-2.3872)
        >>> d.sample((3,)).shape
        torch.Size([3, 2])
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _fields: ClassVar[dict[str, int | None]] = {
        "loc": 1,
        "cov_diag": 1,
        "cov_factor": 2,
        "_unbroadcasted_cov_factor": None,
        "_unbroadcasted_cov_diag": None,
        "_capacitance_tril": None,
    }

    def __init__(
        self,
        loc: Tensor,
        cov_factor: Tensor,
        cov_diag: Tensor,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError(
                f"cov_factor must be at least two-dimensional: (batch, n, rank), but got "
                f"{cov_factor.shape}"
            )
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices of {event_shape[0]} rows")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors of {event_shape[0]} elements")
        try:
            batch = rushlight.broadcast_shapes(
                loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]
            )
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, "
                f"cov_diag {cov_diag.shape}"
            ) from error
        self.loc = loc.expand(batch + event_shape)
        self.cov_diag = cov_diag.expand(batch + event_shape)
        self.cov_factor = cov_factor.expand(batch + cov_factor.shape[-2:])
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)
        super().__init__(batch, event_shape, validate_args=validate_args)

    @lazy_property
    def variance(self) -> Tensor:
        """The variance of each number."""
        square = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return square.expand(self._batch_shape + self._event_shape)

    def _matrix(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape * 2)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance matrix."""
        # The root of D is taken out, so that the rest is well conditioned.
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        n = self._event_shape[0]
        eye = rushlight.eye(n, dtype=root.dtype, device=root.device)
        return self._matrix(root * rushlight.linalg.cholesky(_covariance(scaled) + eye))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrix."""
        return self._matrix(
            _covariance(self._unbroadcasted_cov_factor) + self._unbroadcasted_cov_diag.diag_embed()
        )

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix."""
        scaled = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        half = solve_triangular(self._capacitance_tril, scaled, upper=False)
        inverse = self._unbroadcasted_cov_diag.reciprocal().diag_embed()
        return self._matrix(inverse - half.mT @ half)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        *batch, n = self._extended_shape(sample_shape)
        factor, root = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag.sqrt()
        shared, own = (
            _standard_normal((*batch, size), root.dtype, root.device)
            for size in (factor.shape[-1], n)
        )
        return self.loc + _batch_mv(factor, shared) + root * own

    def _log_det(self) -> Tensor:
        return _batch_lowrank_logdet(
            self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, self._capacitance_tril
        )

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        W, D = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag
        distance = _batch_lowrank_mahalanobis(W, D, value - self.loc, self._capacitance_tril)
        return -0.5 * (_log_2pi(self) + self._log_det() + distance)

    def entropy(self) -> Tensor:
        size = self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return (0.5 * (size + self._log_det())).expand(self._batch_shape)
