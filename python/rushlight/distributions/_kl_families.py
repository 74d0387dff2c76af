"""Divergences between distributions of different families, and infinite ones; see `kl.py`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import rushlight

from ._binary import Bernoulli, ContinuousBernoulli
from ._counts import Binomial, Poisson
from ._gamma import Beta, Exponential, Gamma
from ._location_scale import Gumbel, Laplace
from ._normal import Normal
from ._powers import Pareto, Uniform
from .kl import (
    _cross_beta,
    _cross_continuous_bernoulli,
    _cross_exponential,
    _cross_gamma,
    _cross_gumbel,
    _cross_normal,
    _inf_where,
    _infinite_like,
    _mean_log,
    _where_inside,
    _x_log_x,
    register_kl,
)
from .utils import euler_constant as _euler_gamma

if TYPE_CHECKING:
    from rushlight.distributions.distribution import Distribution, ExponentialFamily


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> rushlight.Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p: Beta, q: ContinuousBernoulli) -> rushlight.Tensor:
    return _cross_continuous_bernoulli(p, q) - p.entropy()


@register_kl(Beta, Exponential)
@register_kl(Gamma, Exponential)
def _any_exponential(p: ExponentialFamily, q: Exponential) -> rushlight.Tensor:
    return _cross_exponential(p, q) - p.entropy()


@register_kl(Beta, Gamma)
def _beta_gamma(p: Beta, q: Gamma) -> rushlight.Tensor:
    return _cross_gamma(p, q, _mean_log(p)) - p.entropy()


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Uniform, Normal)
def _any_normal(p: Distribution, q: Normal) -> rushlight.Tensor:
    return _cross_normal(p, q) - p.entropy()


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _unit_interval_uniform(p: ExponentialFamily, q: Uniform) -> rushlight.Tensor:
    return _where_inside(p, q, (q.high - q.low).log() - p.entropy())


@register_kl(ContinuousBernoulli, Exponential)
def _continuous_bernoulli_exponential(p: ContinuousBernoulli, q: Exponential) -> rushlight.Tensor:
    return _cross_exponential(p, q) - p.entropy()


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Exponential, q: Gamma) -> rushlight.Tensor:
    return _cross_gamma(p, q, -p.rate.log() - _euler_gamma) - p.entropy()


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Exponential, q: Gumbel) -> rushlight.Tensor:
    mean_of_exp = p.rate * q.scale / (1 + p.rate * q.scale)
    return _cross_gumbel(p, q, mean_of_exp) - p.entropy()


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Gamma, q: Gumbel) -> rushlight.Tensor:
    mean_of_exp = (1 + (p.rate * q.scale).reciprocal()).pow(-p.concentration)
    return _cross_gumbel(p, q, mean_of_exp) - p.entropy()


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Normal, q: Gumbel) -> rushlight.Tensor:
    mean_of_exp = (-p.mean / q.scale + 0.5 * (p.scale / q.scale).pow(2)).exp()
    return _cross_gumbel(p, q, mean_of_exp) - p.entropy()


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> rushlight.Tensor:
    z = (p.loc - q.loc) / p.scale
    folded = math.sqrt(2 / math.pi) * (-0.5 * z.pow(2)).exp() + z * rushlight.erf(z / 2**0.5)
    return (2 * q.scale).log() + p.scale / q.scale * folded - p.entropy()


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Pareto, q: Exponential) -> rushlight.Tensor:
    kl = _cross_exponential(p, q) - p.entropy()
    return _inf_where(p.alpha <= 1, kl)


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Pareto, q: Gamma) -> rushlight.Tensor:
    kl = _cross_gamma(p, q, p.scale.log() + p.alpha.reciprocal()) - p.entropy()
    return _inf_where(p.alpha <= 1, kl)


@register_kl(Pareto, Normal)
def _pareto_normal(p: Pareto, q: Normal) -> rushlight.Tensor:
    return _inf_where(p.alpha <= 2, _cross_normal(p, q) - p.entropy())


@register_kl(Uniform, Beta)
def _uniform_beta(p: Uniform, q: Beta) -> rushlight.Tensor:
    def mean_log(low: rushlight.Tensor, high: rushlight.Tensor) -> rushlight.Tensor:
        return (_x_log_x(high) - _x_log_x(low)) / (high - low) - 1

    kl = _cross_beta(q, mean_log(p.low, p.high), mean_log(1 - p.high, 1 - p.low)) - p.entropy()
    return _where_inside(p, q, kl)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> rushlight.Tensor:
    return _where_inside(p, q, _cross_continuous_bernoulli(p, q) - p.entropy())


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Uniform, q: Exponential) -> rushlight.Tensor:
    return _inf_where(p.low < 0, _cross_exponential(p, q) - p.entropy())


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Uniform, q: Gamma) -> rushlight.Tensor:
    log_mean = (_x_log_x(p.high) - _x_log_x(p.low)) / (p.high - p.low) - 1
    return _inf_where(p.low < 0, _cross_gamma(p, q, log_mean) - p.entropy())


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Uniform, q: Gumbel) -> rushlight.Tensor:
    ends = (-p.low / q.scale).exp() - (-p.high / q.scale).exp()
    return _cross_gumbel(p, q, q.scale * ends / (p.high - p.low)) - p.entropy()


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Uniform, q: Pareto) -> rushlight.Tensor:
    log_mean = (_x_log_x(p.high) - _x_log_x(p.low)) / (p.high - p.low) - 1
    cross = (q.alpha + 1) * log_mean - q.alpha.log() - q.alpha * q.scale.log()
    return _inf_where(p.low < q.scale, cross - p.entropy())


# ---- infinite ----

# Kinds, and those that hold some of their values impossible.
_INFINITE: dict[type, tuple[type, ...]] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}


def _infinite(p: Distribution, q: Distribution) -> rushlight.Tensor:
    return _infinite_like(p.mean)


for _p, _others in _INFINITE.items():
    for _q in _others:
        register_kl(_p, _q)(_infinite)
