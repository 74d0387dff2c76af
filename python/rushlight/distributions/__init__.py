"""Probability distributions: densities, samples and their gradients, divergences and transforms.

    p = Normal(loc, scale)
    x = p.rsample((100,))          # a differentiable function of loc and scale
    p.log_prob(x).sum().backward()

Shapes, checks and the way to write a distribution of one's own: `Distribution`.
"""

# ruff: noqa: F401  # its modules are names of the package, too
import sys as _sys
from typing import TYPE_CHECKING

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
    constraints,
    distribution,
    kl,
    transforms,
    utils,
)
from rushlight.distributions import (
    constraint_registry as constraint_registry,
)

from ._binary import (
    Bernoulli as Bernoulli,
)
from ._binary import (
    ContinuousBernoulli as ContinuousBernoulli,
)
from ._binary import (
    RelaxedBernoulli as RelaxedBernoulli,
)
from ._categorical import (
    Categorical as Categorical,
)
from ._categorical import (
    Multinomial as Multinomial,
)
from ._categorical import (
    OneHotCategorical as OneHotCategorical,
)
from ._categorical import (
    OneHotCategoricalStraightThrough as OneHotCategoricalStraightThrough,
)
from ._categorical import (
    RelaxedOneHotCategorical as RelaxedOneHotCategorical,
)
from ._composed import (
    Independent as Independent,
)
from ._composed import (
    TransformedDistribution as TransformedDistribution,
)
from ._counts import (
    Binomial as Binomial,
)
from ._counts import (
    Geometric as Geometric,
)
from ._counts import (
    NegativeBinomial as NegativeBinomial,
)
from ._counts import (
    Poisson as Poisson,
)
from ._gamma import (
    Beta as Beta,
)
from ._gamma import (
    Chi2 as Chi2,
)
from ._gamma import (
    Dirichlet as Dirichlet,
)
from ._gamma import (
    Exponential as Exponential,
)
from ._gamma import (
    FisherSnedecor as FisherSnedecor,
)
from ._gamma import (
    Gamma as Gamma,
)
from ._gamma import (
    InverseGamma as InverseGamma,
)
from ._location_scale import (
    Cauchy as Cauchy,
)
from ._location_scale import (
    Gumbel as Gumbel,
)
from ._location_scale import (
    HalfCauchy as HalfCauchy,
)
from ._location_scale import (
    Laplace as Laplace,
)
from ._location_scale import (
    StudentT as StudentT,
)
from ._location_scale import (
    VonMises as VonMises,
)
from ._mixture import MixtureSameFamily as MixtureSameFamily
from ._multivariate import (
    LowRankMultivariateNormal as LowRankMultivariateNormal,
)
from ._multivariate import (
    MultivariateNormal as MultivariateNormal,
)
from ._normal import (
    HalfNormal as HalfNormal,
)
from ._normal import (
    LogisticNormal as LogisticNormal,
)
from ._normal import (
    LogNormal as LogNormal,
)
from ._normal import (
    Normal as Normal,
)
from ._powers import (
    GeneralizedPareto as GeneralizedPareto,
)
from ._powers import (
    Kumaraswamy as Kumaraswamy,
)
from ._powers import (
    Pareto as Pareto,
)
from ._powers import (
    Uniform as Uniform,
)
from ._powers import (
    Weibull as Weibull,
)
from ._random_matrices import LKJCholesky as LKJCholesky
from ._random_matrices import Wishart as Wishart
from .constraint_registry import biject_to as biject_to
from .constraint_registry import transform_to as transform_to
from .distribution import Distribution as Distribution
from .distribution import ExponentialFamily as ExponentialFamily
from .kl import kl_divergence as kl_divergence
from .kl import register_kl as register_kl
from .transforms import *  # noqa: F403
from .transforms import __all__ as _transforms

if not TYPE_CHECKING:  # checkers take what stars import, and read no list that is computed
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
