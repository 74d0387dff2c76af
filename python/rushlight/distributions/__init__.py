"""Probability distributions: densities, samples and their gradients, divergences and transforms.

    p = Normal(loc, scale)
    x = p.rsample((100,))          # a differentiable function of loc and scale
    p.log_prob(x).sum().backward()

Shapes, checks and the way to write a distribution of one's own: `Distribution`.
"""

# ruff: noqa: F401  # its modules are names of the package, too

import sys as _sys

from rushlight.distributions import (
    _binary,
    _categorical,
    _composed,
    _counts,
    _gamma,
    _kl_families,  # enters its divergences
    _location_scale,
    _mixture,
    _multivariate,
    _normal,
    _powers,
    _random_matrices,
    constraint_registry,
    constraints,
    distribution,
    kl,
    transforms,
    utils,
)

from ._binary import Bernoulli, ContinuousBernoulli, RelaxedBernoulli
from ._categorical import (
    Categorical,
    Multinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
    RelaxedOneHotCategorical,
)
from ._composed import Independent, TransformedDistribution
from ._counts import Binomial, Geometric, NegativeBinomial, Poisson
from ._gamma import Beta, Chi2, Dirichlet, Exponential, FisherSnedecor, Gamma, InverseGamma
from ._location_scale import Cauchy, Gumbel, HalfCauchy, Laplace, StudentT, VonMises
from ._mixture import MixtureSameFamily
from ._multivariate import LowRankMultivariateNormal, MultivariateNormal
from ._normal import HalfNormal, LogisticNormal, LogNormal, Normal
from ._powers import GeneralizedPareto, Kumaraswamy, Pareto, Uniform, Weibull
from ._random_matrices import LKJCholesky, Wishart
from .constraint_registry import biject_to, transform_to
from .distribution import Distribution, ExponentialFamily
from .kl import kl_divergence, register_kl
from .transforms import *  # noqa: F403
from .transforms import __all__ as _transforms

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ContinuousBernoulli",
    "Dirichlet",
    "Distribution",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "StudentT",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "kl_divergence",
    "register_kl",
    "transform_to",
    *_transforms,
]

# PyTorch has a module for each distribution, and its files of pickled objects name them. Here they
# are names of the module of the family.
_MODULES = {
    _binary: {
        "bernoulli": "Bernoulli",
        "continuous_bernoulli": "ContinuousBernoulli",
        "relaxed_bernoulli": "LogitRelaxedBernoulli RelaxedBernoulli",
    },
    _categorical: {
        "categorical": "Categorical",
        "multinomial": "Multinomial",
        "one_hot_categorical": "OneHotCategorical OneHotCategoricalStraightThrough",
        "relaxed_categorical": "ExpRelaxedCategorical RelaxedOneHotCategorical",
    },
    _composed: {
        "independent": "Independent",
        "transformed_distribution": "TransformedDistribution",
    },
    _counts: {
        "binomial": "Binomial",
        "geometric": "Geometric",
        "negative_binomial": "NegativeBinomial",
        "poisson": "Poisson",
    },
    distribution: {"exp_family": "ExponentialFamily"},
    _gamma: {
        "beta": "Beta",
        "chi2": "Chi2",
        "dirichlet": "Dirichlet",
        "exponential": "Exponential",
        "fishersnedecor": "FisherSnedecor",
        "gamma": "Gamma",
        "inverse_gamma": "InverseGamma",
    },
    _location_scale: {
        "cauchy": "Cauchy",
        "gumbel": "Gumbel",
        "half_cauchy": "HalfCauchy",
        "laplace": "Laplace",
        "studentT": "StudentT",
        "von_mises": "VonMises",
    },
    _mixture: {"mixture_same_family": "MixtureSameFamily"},
    _multivariate: {
        "lowrank_multivariate_normal": "LowRankMultivariateNormal",
        "multivariate_normal": "MultivariateNormal",
    },
    _random_matrices: {"lkj_cholesky": "LKJCholesky", "wishart": "Wishart"},
    _normal: {
        "half_normal": "HalfNormal",
        "log_normal": "LogNormal",
        "logistic_normal": "LogisticNormal",
        "normal": "Normal",
    },
    _powers: {
        "generalized_pareto": "GeneralizedPareto",
        "kumaraswamy": "Kumaraswamy",
        "pareto": "Pareto",
        "uniform": "Uniform",
        "weibull": "Weibull",
    },
}


def _tell(kind: type, module: str) -> None:
    """Lets a class name a module of this package as its own; the package may be called torch."""
    kind.__module__ = f"{kind.__module__.rpartition('.')[0]}.{module}"


for _family, _names in _MODULES.items():
    for _name, _classes in _names.items():
        _sys.modules[f"{__name__}.{_name}"] = globals()[_name] = _family
        for _class in _classes.split():
            _tell(getattr(_family, _class), _name)
for _kind in vars(transforms).values():
    if isinstance(_kind, type) and issubclass(_kind, transforms.Transform):
        _tell(_kind, "transforms")
del _class, _classes, _family, _kind, _name, _names
