"""Kullback-Leibler divergences: `kl_divergence(p, q)` is E_p[log p(x) - log q(x)] in nats.

Formulas are registered for pairs of types; a pair without one takes that of its nearest bases:

    @register_kl(Normal, MyDistribution)
    def formula(p, q):
        ...

Where p gives probability to what q holds impossible, the divergence is infinite. Most formulas are
E_p of q's log-density, moment by moment, less p's entropy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight._warnings import warn

from ._binary import Bernoulli, ContinuousBernoulli
from ._categorical import Categorical, OneHotCategorical
from ._composed import Independent, TransformedDistribution
from ._counts import Binomial, Geometric, Poisson
from ._gamma import Beta, Dirichlet, Exponential, Gamma
from ._location_scale import Cauchy, Gumbel, Laplace
from ._multivariate import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    _batch_lowrank_mahalanobis,
    _batch_mahalanobis,
    _log_det_of_factor,
)
from ._normal import HalfNormal, Normal
from ._powers import Pareto, Uniform
from .distribution import Distribution, ExponentialFamily
from .utils import _sum_rightmost

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}
_KL_MEMOIZE: dict[tuple[type, type], Any] = {}


def register_kl(
    type_p: type, type_q: type
) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """A decorator that registers a function for the divergence of a `type_p` from a `type_q`.

    Args:
        type_p: the class of the first distribution.
        type_q: the class of the second.

    Example:
        >>> class Point(torch.distributions.Normal):
        ...     pass
        >>> @torch.distributions.kl.register_kl(Point, Point)
        ... def _(p, q):
        ...     return (p.loc - q.loc).abs()
        >>> torch.distributions.kl_divergence(Point(4.0, 1.0), Point(6.0, 1.0))
        tensor(2.)
    """
    for name, cls in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(cls, type):  # others' classes of distributions need not be ours
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {cls}")

    def decorator(fun: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
        _KL_REGISTRY[type_p, type_q] = fun
        _KL_MEMOIZE.clear()
        return fun

    return decorator


def _dispatch_kl(type_p: type, type_q: type) -> Any:
    """The formula whose types are the nearest bases; NotImplemented where there is none.

    If no pair is nearest on both sides, that of the nearest base of p is taken, with a warning.
    """
    # Distances in the orders of resolution, nearest first: by p, then by q; and the other way.
    found = {
        (type_p.__mro__.index(p), type_q.__mro__.index(q)): (p, q)
        for p, q in _KL_REGISTRY
        if issubclass(type_p, p) and issubclass(type_q, q)
    }
    if not found:
        return NotImplemented
    left = found[min(found)]
    right = found[min(found, key=lambda at: at[::-1])]
    if left != right and _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
        warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please "
            f"register_kl({left[0].__name__}, {right[1].__name__})",
            RuntimeWarning,
        )
    return _KL_REGISTRY[left]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The Kullback-Leibler divergence of p from q, with their common batch shape.

    NotImplementedError if no formula is registered for their types or bases of these.

    Args:
        p: the order of the norm, or a probability.
        q: how many.

    Example:
        >>> Normal = torch.distributions.Normal
        >>> torch.distributions.kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
        tensor(0.5000)
    """
    types = type(p), type(q)
    if types not in _KL_MEMOIZE:
        _KL_MEMOIZE[types] = _dispatch_kl(*types)
    formula = _KL_MEMOIZE[types]
    if formula is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented of a {types[0].__name__} from a {types[1].__name__}: "
            "register_kl adds one"
        )
    return formula(p, q)


# ---- parts of formulas ----


def _infinite_like(tensor: Tensor) -> Tensor:
    return rushlight.full_like(tensor, math.inf)


def _inf_where(condition: Tensor, result: Tensor) -> Tensor:
    return rushlight.where(condition, math.inf, result)


def _where_inside(p: Any, q: Any, result: Tensor) -> Tensor:
    """The result where p's interval lies in q's."""
    low, high = p.support.lower_bound, p.support.upper_bound
    inside = q.support
    outside = (inside.lower_bound > low) | (inside.upper_bound < high)
    return _inf_where(rushlight.as_tensor(outside), result)


def _x_log_x(t: Tensor) -> Tensor:
    return rushlight.xlogy(t, t)


def _second_moment(p: Any) -> Tensor:
    return p.variance + p.mean.pow(2)


def _squares(matrix: Tensor) -> Tensor:
    """trace(M M^T)"""
    return matrix.pow(2).sum((-2, -1))


def _cross_normal(p: Any, q: Any) -> Tensor:
    """-E_p log q of a normal q."""
    distance = p.variance + (p.mean - q.loc).pow(2)
    return 0.5 * math.log(2 * math.pi) + q.scale.log() + 0.5 * distance / q.scale.pow(2)


def _cross_exponential(p: Any, q: Any) -> Tensor:
    return q.rate * p.mean - q.rate.log()


def _cross_gamma(p: Any, q: Any, log_mean: Tensor) -> Tensor:
    """With E_p log x."""
    a = q.concentration
    return a.lgamma() - a * q.rate.log() - (a - 1) * log_mean + q.rate * p.mean


def _cross_gumbel(p: Any, q: Any, mean_of_exp: Tensor) -> Tensor:
    """With E_p exp(-x / q.scale)."""
    return q.scale.log() + (p.mean - q.loc) / q.scale + (q.loc / q.scale).exp() * mean_of_exp


def _cross_beta(q: Any, log_mean: Tensor, log_rest_mean: Tensor) -> Tensor:
    """With E_p log x and E_p log(1 - x)."""
    a, b = q.concentration1, q.concentration0
    log_beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
    return log_beta - (a - 1) * log_mean - (b - 1) * log_rest_mean


def _cross_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    return -q._cont_bern_log_norm() - (-q.probs).log1p() - p.mean * q.logits


def _mean_log(p: Any) -> Tensor:
    """E log x of a gamma or beta p."""
    if isinstance(p, Gamma):
        return p.concentration.digamma() - p.rate.log()
    return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()


# ---- of the same family ----


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p, q):
    """The Bregman divergence of the log-normalizer."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed "
            "from their log-normalizers"
        )
    normalizer, natural, slopes = p._normalizer_and_slopes()
    others = q._natural_params
    result = q._log_normalizer(*others) - normalizer
    for own, other, slope in zip(natural, others, slopes, strict=True):
        result = result - _sum_rightmost((other - own) * slope, len(q.event_shape))
    return result


@register_kl(Bernoulli, Bernoulli)
def _bernoulli_bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    rest = 1 - p.probs
    one = _times_log_ratio(p.probs, q.probs)
    return one + _times_log_ratio(rest, 1 - q.probs)


def _times_log_ratio(p: Tensor, q: Tensor) -> Tensor:
    """p log(p / q): 0 where p is 0, else infinite where q is."""
    return _x_log_x(p) - rushlight.xlogy(p, q)


@register_kl(Beta, Beta)
def _beta_beta(p: Beta, q: Beta) -> Tensor:
    log_rest = p.concentration0.digamma() - (p.concentration1 + p.concentration0).digamma()
    return _cross_beta(q, _mean_log(p), log_rest) - p.entropy()


@register_kl(Binomial, Binomial)
def _binomial_binomial(p, q):
    """Infinite where q has fewer trials; else the coefficients of as many trials cancel."""
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count")
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return _inf_where(p.total_count > q.total_count, kl)


@register_kl(Categorical, Categorical)
def _categorical_categorical(p: Categorical, q: Categorical) -> Tensor:
    t = p.probs * (p.logits - q.logits)
    t = rushlight.where((q.probs == 0).expand_as(t), math.inf, t)
    return rushlight.where((p.probs == 0).expand_as(t), 0.0, t).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _onehot_onehot(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categorical_categorical(p._categorical, q._categorical)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli_continuous_bernoulli(
    p: ContinuousBernoulli, q: ContinuousBernoulli
) -> Tensor:
    return _cross_continuous_bernoulli(p, q) - p.entropy()


@register_kl(Dirichlet, Dirichlet)
def _dirichlet_dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    total = p.concentration.sum(-1)
    gap = p.concentration - q.concentration
    slopes = p.concentration.digamma() - total.digamma().unsqueeze(-1)
    own = total.lgamma() - p.concentration.lgamma().sum(-1)
    other = q.concentration.sum(-1).lgamma() - q.concentration.lgamma().sum(-1)
    return own - other + (gap * slopes).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential_exponential(p: Exponential, q: Exponential) -> Tensor:
    return _cross_exponential(p, q) - p.entropy()


@register_kl(Gamma, Gamma)
def _gamma_gamma(p: Gamma, q: Gamma) -> Tensor:
    return _cross_gamma(p, q, _mean_log(p)) - p.entropy()


@register_kl(Gumbel, Gumbel)
def _gumbel_gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio = p.scale / q.scale
    mean_of_exp = (-p.loc / q.scale + (ratio + 1).lgamma()).exp()
    return _cross_gumbel(p, q, mean_of_exp) - p.entropy()


@register_kl(Geometric, Geometric)
def _geometric_geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _half_normal_half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _normal_normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace_laplace(p: Laplace, q: Laplace) -> Tensor:
    distance = (p.loc - q.loc).abs()
    own = p.scale * (-distance / p.scale).exp()
    return (q.scale / p.scale).log() + (distance + own) / q.scale - 1


@register_kl(Normal, Normal)
def _normal_normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    distance = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + distance - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _pareto_pareto(p: Pareto, q: Pareto) -> Tensor:
    """Infinite where p begins below q."""
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return _inf_where(p.scale < q.scale, result)


@register_kl(Poisson, Poisson)
def _poisson_poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform_uniform(p: Uniform, q: Uniform) -> Tensor:
    return _where_inside(p, q, ((q.high - q.low) / (p.high - p.low)).log())


@register_kl(Cauchy, Cauchy)
def _cauchy_cauchy(p, q):
    """Chyzak, Nielsen 2019"""
    square = (p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)
    return square.log() - (4 * p.scale * q.scale).log()


@register_kl(Independent, Independent)
def _independent_independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "KL between Independents that join different numbers of dimensions"
        )
    result = kl_divergence(p.base_dist, q.base_dist)
    return _sum_rightmost(result, p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed(p, q):
    """That of the bases: the same bijections take nothing away."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("KL between distributions of different transforms")
    return kl_divergence(p.base_dist, q.base_dist)


# ---- normal vectors ----


def _check_event(p: Any, q: Any) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between {type(p).__name__}s with different event shapes cannot be "
            f"computed: {p.event_shape} vs {q.event_shape}"
        )


def _log_det(p: Any) -> Tensor:
    """log det of the covariance."""
    if isinstance(p, LowRankMultivariateNormal):
        return p._log_det()
    return 2 * _log_det_of_factor(p._unbroadcasted_scale_tril)


def _columns(p: Any) -> list[Tensor]:
    """Matrices whose squares M M^T add up to the covariance."""
    if isinstance(p, LowRankMultivariateNormal):
        return [p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag.sqrt().diag_embed()]
    return [p._unbroadcasted_scale_tril]


def _distances(q: Any, x: Tensor) -> Tensor:
    """x^T C^-1 x with q's covariance C."""
    if isinstance(q, LowRankMultivariateNormal):
        return _batch_lowrank_mahalanobis(
            q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, x, q._capacitance_tril
        )
    return _batch_mahalanobis(q._unbroadcasted_scale_tril, x)


def _trace(q: Any, matrix: Tensor) -> Tensor:
    """trace(C^-1 M M^T) with q's covariance C: the distances of M's columns."""
    if isinstance(q, LowRankMultivariateNormal):
        scaled = q._unbroadcasted_cov_factor.mT / q._unbroadcasted_cov_diag.unsqueeze(-2)
        inner = scaled @ matrix
        shape = rushlight.broadcast_shapes(q._capacitance_tril.shape[:-2], inner.shape[:-2])
        factor = q._capacitance_tril.expand(shape + q._capacitance_tril.shape[-2:])
        solved = rushlight.linalg.solve_triangular(
            factor, inner.expand(shape + inner.shape[-2:]), upper=False
        )
        own = matrix.pow(2).sum(-1) / q._unbroadcasted_cov_diag
        return own.sum(-1) - _squares(solved)
    factor = q._unbroadcasted_scale_tril
    shape = rushlight.broadcast_shapes(factor.shape[:-2], matrix.shape[:-2])
    solved = rushlight.linalg.solve_triangular(
        factor.expand(shape + factor.shape[-2:]),
        matrix.expand(shape + matrix.shape[-2:]),
        upper=False,
    )
    return _squares(solved)


def _vectors_vectors(p: Any, q: Any) -> Tensor:
    """(log det C_q / C_p + tr(C_q^-1 C_p) + distance of the means - n) / 2"""
    _check_event(p, q)
    trace: Any = 0
    for matrix in _columns(p):
        trace = trace + _trace(q, matrix)
    gap = _log_det(q) - _log_det(p)
    return 0.5 * (gap + trace + _distances(q, q.loc - p.loc) - p.event_shape[0])


for _p in (MultivariateNormal, LowRankMultivariateNormal):
    for _q in (MultivariateNormal, LowRankMultivariateNormal):
        register_kl(_p, _q)(_vectors_vectors)
