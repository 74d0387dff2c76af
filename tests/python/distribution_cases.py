"""Distributions that tests here and in tests/parity make, from one library or the other.

A case is a function of the library that gives the arguments by name; most have a batch of two.
"""


def _t(*numbers):
    return lambda lib: lib.tensor(numbers, dtype=lib.float64)


_ARGUMENTS = {
    "Bernoulli": [{"probs": _t(0.2, 0.7)}, {"logits": _t(-1.0, 2.0)}],
    "Beta": [{"concentration1": _t(0.5, 2.0), "concentration0": _t(1.5, 3.0)}],
    "Binomial": [
        {"total_count": 5, "probs": _t(0.2, 0.7)},
        {"total_count": _t(40.0, 3.0), "logits": _t(-0.2, 0.7)},
    ],
    "Categorical": [
        {"probs": _t([0.2, 0.3, 0.5], [1.0, 2.0, 0.0])},
        {"logits": _t(0.2, -0.3, 0.5)},
    ],
    "Cauchy": [{"loc": _t(0.5, 2.0), "scale": _t(1.5, 3.0)}],
    "Chi2": [{"df": _t(0.5, 3.0)}],
    "ContinuousBernoulli": [{"probs": _t(0.2, 0.7)}, {"logits": _t(0.001, -3.0)}],
    "Dirichlet": [{"concentration": _t([0.5, 2.0, 1.0], [2.0, 3.0, 4.0])}],
    "Exponential": [{"rate": _t(0.5, 2.0)}],
    "FisherSnedecor": [{"df1": _t(3.0, 5.0), "df2": _t(9.5, 7.0)}],
    "Gamma": [{"concentration": _t(0.5, 2.0), "rate": _t(1.5, 3.0)}],
    "GeneralizedPareto": [
        {"loc": _t(0.5, 2.0, 0.0), "scale": _t(1.5, 3.0, 1.0), "concentration": _t(0.2, -0.4, 0.0)}
    ],
    "Geometric": [{"probs": _t(0.2, 0.7)}, {"logits": _t(0.2, 0.7)}],
    "Gumbel": [{"loc": _t(0.5, 2.0), "scale": _t(1.5, 3.0)}],
    "HalfCauchy": [{"scale": _t(1.5, 3.0)}],
    "HalfNormal": [{"scale": _t(1.5, 3.0)}],
    "Independent": [],
    "InverseGamma": [{"concentration": _t(4.5, 3.5), "rate": _t(1.5, 3.0)}],
    "Kumaraswamy": [{"concentration1": _t(1.5, 3.0), "concentration0": _t(2.5, 3.0)}],
    "LKJCholesky": [{"dim": 3, "concentration": _t(0.5, 2.0)}],
    "Laplace": [{"loc": _t(0.5, 2.0), "scale": _t(1.5, 3.0)}],
    "LogNormal": [{"loc": _t(0.5, 1.0), "scale": _t(0.5, 0.3)}],
    "LogisticNormal": [{"loc": _t([0.5, 2.0], [0.0, 1.0]), "scale": _t(1.5, 3.0)}],
    "LowRankMultivariateNormal": [
        {
            "loc": _t(0.5, 2.0, 0.0),
            "cov_factor": _t([1.5], [3.0], [0.3]),
            "cov_diag": _t([1.0, 2.0, 0.5], [1.0, 1.0, 2.0]),
        }
    ],
    "Multinomial": [{"total_count": 6, "probs": _t(0.2, 0.3, 0.5)}],
    "MultivariateNormal": [
        {
            "loc": _t(0.5, 2.0, 1.0),
            "covariance_matrix": _t([2.0, 0.5, 0], [0.5, 1, 0.1], [0, 0.1, 2]),
        },
        {"loc": _t([0.5, 2.0], [0.0, 0.0]), "precision_matrix": _t([2.0, 0.5], [0.5, 1.0])},
        {"loc": _t(0.5, 2.0), "scale_tril": _t([2.0, 0.0], [0.5, 1.0])},
    ],
    "NegativeBinomial": [{"total_count": _t(3.0, 4.5), "probs": _t(0.2, 0.7)}],
    "Normal": [{"loc": _t(0.5, 2.0), "scale": _t(1.5, 3.0)}],
    "OneHotCategorical": [{"probs": _t([0.2, 0.3, 0.5], [1.0, 2.0, 1.0])}],
    "OneHotCategoricalStraightThrough": [{"probs": _t([0.2, 0.3, 0.5], [1.0, 2.0, 1.0])}],
    "Pareto": [{"scale": _t(0.5, 2.0), "alpha": _t(3.5, 5.0)}],
    "Poisson": [{"rate": _t(2.5, 30.0)}],
    "RelaxedBernoulli": [{"temperature": lambda lib: lib.tensor(1.5), "probs": _t(0.2, 0.7)}],
    "RelaxedOneHotCategorical": [
        {"temperature": lambda lib: lib.tensor(0.7), "probs": _t(0.2, 0.3, 0.5)}
    ],
    "StudentT": [{"df": _t(4.5, 5.0), "loc": _t(0.0, 1.0), "scale": _t(1.0, 2.0)}],
    "Uniform": [{"low": _t(-2.5, 3.0), "high": _t(1.5, 4.0)}],
    "VonMises": [{"loc": _t(-2.5, 3.0), "concentration": _t(0.1, 4.0)}],
    "Weibull": [{"scale": _t(2.5, 3.0), "concentration": _t(1.3, 4.0)}],
    "Wishart": [{"df": _t(4.5, 3.5), "covariance_matrix": _t([2.0, 0.5], [0.5, 1.0])}],
}


def arguments(lib, name, case=0):
    """The arguments of a case."""
    found = _ARGUMENTS[name][case]
    return {key: value(lib) if callable(value) else value for key, value in found.items()}


def make(lib, name, case=0):
    """The distribution of a case; abstract names give one of the kind."""
    d = lib.distributions
    if name == "Independent":
        return d.Independent(make(lib, "Normal"), 1)
    if name == "TransformedDistribution":
        return make(lib, "LogNormal")
    if name == "ExponentialFamily":
        return make(lib, "Exponential")
    return getattr(d, name)(**arguments(lib, name, case))


CASES = [(name, case) for name, found in _ARGUMENTS.items() for case in range(len(found))]
