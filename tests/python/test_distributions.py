"""Distributions against SciPy, their own integrals, samples, gradients and divergences."""

import copy
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.integrate
import scipy.stats as st

import rushlight as torch
from rushlight import distributions as d
from rushlight.distributions.kl import _KL_REGISTRY
from tests.python.distribution_cases import CASES, arguments, make

SCIPY = {
    "Beta": lambda p: st.beta(p.concentration1, p.concentration0),
    "Cauchy": lambda p: st.cauchy(p.loc, p.scale),
    "Chi2": lambda p: st.chi2(p.df),
    "Exponential": lambda p: st.expon(scale=1 / p.rate),
    "FisherSnedecor": lambda p: st.f(p.df1, p.df2),
    "Gamma": lambda p: st.gamma(p.concentration, scale=1 / p.rate),
    "GeneralizedPareto": lambda p: st.genpareto(p.concentration, p.loc, p.scale),
    "Gumbel": lambda p: st.gumbel_r(p.loc, p.scale),
    "HalfCauchy": lambda p: st.halfcauchy(scale=p.scale),
    "HalfNormal": lambda p: st.halfnorm(scale=p.scale),
    "InverseGamma": lambda p: st.invgamma(p.concentration, scale=p.rate),
    "Laplace": lambda p: st.laplace(p.loc, p.scale),
    "LogNormal": lambda p: st.lognorm(p.scale, scale=p.loc.exp()),
    "Normal": lambda p: st.norm(p.loc, p.scale),
    "Pareto": lambda p: st.pareto(p.alpha, scale=p.scale),
    "StudentT": lambda p: st.t(p.df, p.loc, p.scale),
    "Uniform": lambda p: st.uniform(p.low, p.high - p.low),
    "VonMises": lambda p: st.vonmises(p.concentration, p.loc),
    "Weibull": lambda p: st.weibull_min(p.concentration, scale=p.scale),
    "Bernoulli": lambda p: st.bernoulli(p.probs),
    "Binomial": lambda p: st.binom(p.total_count, p.probs),
    "Geometric": lambda p: st.geom(p.probs, loc=-1),
    "NegativeBinomial": lambda p: st.nbinom(p.total_count, 1 - p.probs),
    "Poisson": lambda p: st.poisson(p.rate),
}
WITHOUT_SCIPY = ("ContinuousBernoulli", "Kumaraswamy", "RelaxedBernoulli")
DRAWS = 4000


def numpy_args(p, name):
    """SciPy's distribution of the same parameters, which become arrays."""

    class Arrays:
        def __getattr__(self, attribute):
            value = getattr(p, attribute)
            return _Array(value.numpy())

    class _Array(np.ndarray):
        def __new__(cls, value):
            return np.asarray(value).view(cls)

        def exp(self):
            return np.exp(self)

    return SCIPY[name](Arrays())


def points(p, seed=0, n=DRAWS):
    torch.manual_seed(seed)
    return p.sample((n,))


def close(found, expected, tolerance=1e-9):
    np.testing.assert_allclose(np.asarray(found.detach()), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("name", "case"), [c for c in CASES if c[0] in SCIPY])
def test_scipy_says_the_same(name, case):
    p = make(torch, name, case)
    reference = numpy_args(p, name)
    x = points(p, n=50)
    discrete = hasattr(reference, "pmf") and not hasattr(reference.dist, "pdf")
    log_density = reference.logpmf if discrete else reference.logpdf
    close(p.log_prob(x), log_density(x.numpy()), 1e-7)
    for method, there, at in (
        ("cdf", "cdf", x),
        ("icdf", "ppf", torch.rand(20, *x.shape[1:]).double()),
    ):
        try:
            found = getattr(p, method)(at)
        except NotImplementedError:
            continue
        close(found, getattr(reference, there)(at.numpy()), 1e-7)
    if name == "VonMises":
        return  # circular
    mean, variance = reference.stats("mv")
    finite = np.isfinite(variance)
    close(p.mean[torch.tensor(finite)], mean[finite], 1e-7)
    close(p.variance[torch.tensor(finite)], variance[finite], 1e-7)
    try:
        entropy = p.entropy()
    except NotImplementedError:
        return
    close(entropy, reference.entropy(), 1e-4 if name == "Geometric" else 1e-6)


@pytest.mark.parametrize(("name", "case"), [c for c in CASES if c[0] in SCIPY])
def test_samples_follow_scipy(name, case):
    p = make(torch, name, case)
    reference = numpy_args(p, name)
    x = points(p, seed=1).numpy()
    if name == "VonMises":  # SciPy's begins half a turn below the mode
        loc = p.loc.numpy()
        x = (x - loc + np.pi) % (2 * np.pi) - np.pi + loc
    for i in range(x.shape[1]):
        if p.support.is_discrete:
            values, counts = np.unique(x[:, i], return_counts=True)
            chances = reference.pmf(np.broadcast_to(values[:, None], (len(values), x.shape[1])))[
                :, i
            ]
            often = chances * DRAWS >= 5
            rest = DRAWS - counts[often].sum(), DRAWS * (1 - chances[often].sum())
            observed, expected = counts[often], DRAWS * chances[often]
            if rest[1] > 1:
                observed, expected = np.append(observed, rest[0]), np.append(expected, rest[1])
            expected = expected * observed.sum() / expected.sum()
            assert st.chisquare(observed, expected).pvalue > 1e-4
        else:
            assert (
                st.kstest(x[:, i], lambda v, i=i: column(reference.cdf, v, i, x.shape[1])).pvalue
                > 1e-4
            )


def column(function, values, i, width):
    return function(np.broadcast_to(np.asarray(values)[:, None], (len(values), width)))[:, i]


@pytest.mark.parametrize("name", WITHOUT_SCIPY)
@pytest.mark.parametrize("case", [0, 1])
def test_densities_of_the_unit_interval(name, case):
    if (name, case) not in CASES:
        pytest.skip("has one case")
    p = make(torch, name, case)
    grid = torch.linspace(0, 1, 40001, dtype=torch.float64)[1:-1, None].expand(-1, 2)
    density = p.log_prob(grid).exp().numpy()
    cumulated = scipy.integrate.cumulative_trapezoid(density, grid[:, 0].numpy(), axis=0, initial=0)
    np.testing.assert_allclose(cumulated[-1], 1, atol=2e-3)
    if name != "RelaxedBernoulli":
        close(p.cdf(grid), cumulated, 2e-3)
        chances = torch.rand(50, 2, dtype=torch.float64)
        close(p.cdf(p.icdf(chances)), chances.numpy(), 1e-6)
        mean = scipy.integrate.trapezoid(density * grid.numpy(), grid[:, 0].numpy(), axis=0)
        close(p.mean, mean, 1e-3)
        square = scipy.integrate.trapezoid(density * grid.numpy() ** 2, grid[:, 0].numpy(), axis=0)
        close(p.variance, square - mean**2, 2e-3)
        surprise = scipy.integrate.trapezoid(-density * np.log(density), grid[:, 0].numpy(), axis=0)
        close(p.entropy(), surprise, 5e-3)
    x = points(p, seed=2).numpy()
    for i in range(2):
        own = np.interp(x[:, i], grid[:, 0].numpy(), cumulated[:, i])
        assert st.kstest(own, "uniform").pvalue > 1e-4


def test_the_mode_is_where_the_density_is_largest():
    for name in ("Kumaraswamy", "Beta", "Weibull", "Gamma", "InverseGamma", "FisherSnedecor"):
        p = make(torch, name)
        mode = p.mode[1]  # the first of a batch may lie at an end
        near = mode * torch.tensor([0.99, 1.0, 1.01], dtype=torch.float64)
        assert p.log_prob(near[:, None].expand(3, 2))[:, 1].argmax() == 1, name


def test_vectors_and_matrices_against_scipy():
    for case in range(3):
        p = make(torch, "MultivariateNormal", case)
        x = points(p, n=6)
        loc = np.broadcast_to(p.loc.numpy(), p.batch_shape + p.event_shape).reshape(
            -1, *p.event_shape
        )
        cov = p.covariance_matrix.numpy().reshape(-1, *p.event_shape * 2)
        for i in range(len(loc)):
            q = st.multivariate_normal(loc[i], cov[i])
            own = p.log_prob(x).reshape(6, -1)[:, i]
            close(own, q.logpdf(x.reshape(6, -1, *p.event_shape)[:, i].numpy()))
            close(p.entropy().reshape(-1)[i], q.entropy())
    p = make(torch, "LowRankMultivariateNormal")
    q = d.MultivariateNormal(p.loc, p.covariance_matrix)
    x = points(p, n=6)
    close(p.log_prob(x), q.log_prob(x).numpy())
    close(p.entropy(), q.entropy().numpy())
    close(p.scale_tril, q.scale_tril.numpy())
    close(p.precision_matrix, q.precision_matrix.numpy())
    close(p.variance, q.variance.numpy())
    p = make(torch, "Dirichlet")
    x = points(p, n=6)
    w = make(torch, "Wishart")
    y = points(w, n=6)
    for i in range(2):
        q = st.dirichlet(p.concentration[i].numpy())
        close(p.log_prob(x)[:, i], [q.logpdf(row / row.sum()) for row in x[:, i].numpy()], 1e-7)
        close(p.entropy()[i], q.entropy())
        close(p.variance[i], q.var())
        q = st.wishart(w.df[i].item(), w.covariance_matrix[i].numpy())
        close(w.log_prob(y)[:, i], [q.logpdf(m) for m in y[:, i].numpy()])
        close(w.entropy()[i], q.entropy())
        close(w.mode[i] if i == 0 else w.mean[i], q.mode() if i == 0 else q.mean())
        close(w.variance[i], q.var())
    p = make(torch, "Multinomial")
    q = st.multinomial(6, p.probs.numpy())
    x = points(p, n=6)
    close(p.log_prob(x), q.logpmf(x.numpy()))
    close(p.entropy(), q.entropy())


@pytest.mark.parametrize(("name", "case"), CASES)
def test_moments_of_samples(name, case):
    p = make(torch, name, case)
    try:
        mean, variance = p.mean, p.variance
    except NotImplementedError:
        return
    if name == "VonMises" or mean.isnan().any():
        return
    x = points(p, seed=3)
    error = (variance / DRAWS).sqrt()
    known = variance.isfinite() & mean.isfinite()
    away = ((x.mean(0) - mean) / error.clamp(min=1e-12))[known]
    assert (away.abs() < 5).all(), away


def test_correlations_are_uniform_where_the_concentration_is_1():
    p = d.LKJCholesky(3, torch.tensor(1.0).double())
    factor = points(p)
    r = (factor @ factor.mT)[:, 2, 0]
    # Each correlation of a uniform 3 x 3 matrix has the density of 2 Beta(3/2, 3/2) - 1.
    assert st.kstest(r.numpy(), st.beta(1.5, 1.5, loc=-1, scale=2).cdf).pvalue > 1e-4
    half = torch.linspace(-0.999, 0.999, 4001).double()
    two = d.LKJCholesky(2, torch.tensor(1.7).double())
    rows = torch.stack([half, (1 - half**2).sqrt()], -1)
    factors = torch.stack([torch.tensor([1.0, 0.0]).double().expand_as(rows), rows], -2)
    # Of the element below the diagonal.
    density = two.log_prob(factors).exp()
    assert abs(np.trapezoid(density.numpy(), half.numpy()) - 1) < 5e-3


GRADIENTS = [
    "Beta",
    "Chi2",
    "ContinuousBernoulli",
    "Dirichlet",
    "Exponential",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Gumbel",
    "HalfNormal",
    "InverseGamma",
    "Kumaraswamy",
    "Laplace",
    "LogNormal",
    "MultivariateNormal",
    "Normal",
    "Pareto",
    "StudentT",
    "Uniform",
    "Weibull",
    "Wishart",
    "LowRankMultivariateNormal",
]


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_draws(name):
    """The gradient of a mean of squares is that of variance + mean^2: drawn, and known."""
    given = arguments(torch, name)
    leaves = [v.requires_grad_() for v in given.values() if isinstance(v, torch.Tensor)]
    torch.manual_seed(4)
    heavy = name in ("FisherSnedecor", "GeneralizedPareto", "InverseGamma")  # the mean alone
    x = getattr(d, name)(**given).rsample((40000,))
    drawn = torch.autograd.grad((x if heavy else x.pow(2)).mean(0).sum(), leaves)
    p = getattr(d, name)(**given)
    moment = p.mean if heavy else p.variance + p.mean.pow(2)
    exact = torch.autograd.grad(moment.sum(), leaves, allow_unused=True)
    for a, b in zip(drawn, exact, strict=True):
        b = torch.zeros_like(a) if b is None else b
        if name in ("Wishart", "MultivariateNormal") and a.dim() > 1:
            b = (b + b.mT) / 2
            a = (a + a.mT) / 2
        assert torch.allclose(a, b, rtol=0.15, atol=0.02 + 0.1 * float(b.abs().max())), (a, b)


FINITE = [
    (p.__name__, q.__name__)
    for p, q in _KL_REGISTRY
    if (p.__name__, q.__name__) not in (("Cauchy", "Cauchy"), ("Binomial", "Binomial"))
]


@pytest.mark.parametrize(("p", "q"), FINITE)
def test_divergences_against_samples(p, q, monkeypatch):
    monkeypatch.setattr(d.Distribution, "_validate_args", False)
    other = {"Pareto": 1, "Uniform": 1}
    a = make(torch, p)
    b = make(torch, q)
    if p == q and p in other:
        b = (
            d.Pareto(a.scale * 0.5, a.alpha + 1)
            if p == "Pareto"
            else d.Uniform(a.low - 1, a.high + 1)
        )
    elif q == "Uniform":
        b = d.Uniform(torch.tensor([-0.5, -1.0]).double(), torch.tensor([1.5, 2.0]).double())
    elif p == "Uniform" and q in ("Beta", "ContinuousBernoulli", "Exponential", "Gamma"):
        a = d.Uniform(torch.tensor([0.1, 0.2]).double(), torch.tensor([0.5, 0.9]).double())
    elif (p, q) == ("Uniform", "Pareto"):
        a = d.Uniform(torch.tensor([0.6, 2.5]).double(), torch.tensor([1.5, 3.5]).double())
    elif p == q:
        torch.manual_seed(0)
        name = {"ExponentialFamily": "Exponential", "TransformedDistribution": "LogNormal"}.get(
            p, p
        )
        if name == "Independent":
            b = d.Independent(d.Normal(a.base_dist.loc + 0.3, a.base_dist.scale * 1.2), 1)
        elif name not in ("Categorical", "OneHotCategorical"):
            given = arguments(torch, name)
            for key, value in given.items():
                if isinstance(value, torch.Tensor):
                    given[key] = value * 1.1
            b = getattr(d, name)(**given)
    found = d.kl_divergence(a, b)
    a = a.expand(found.shape)
    x = points(a, seed=5, n=20000)
    gap = a.log_prob(x) - b.log_prob(x)
    inside = b.support.check(x).reshape(*gap.shape, -1).all(-1)
    if not inside.all():
        assert (found.isinf() | inside.all(0)).all()
        return
    error = 6 * gap.std(0) / math.sqrt(len(x)) + 1e-9
    off = (gap.mean(0) - found).abs()
    fine = (off < error) | found.isinf() | (found.isnan() & gap.mean(0).isnan())
    assert fine.all(), (found, gap.mean(0), error)
    assert found.isfinite().any()


@pytest.mark.parametrize(("name", "case"), CASES)
def test_expansion_has_its_parameters_before_it_is_a_distribution(name, case, monkeypatch):
    """What a subclass checks or derives as it is made may ask for them."""
    p, there, init = make(torch, name, case), {}, d.Distribution.__init__

    def noted(self, *args, **kwargs):
        there[id(self)] = set(vars(self))
        init(self, *args, **kwargs)

    monkeypatch.setattr(d.Distribution, "__init__", noted)
    wide = p.expand((3, *p.batch_shape))
    assert set(vars(wide)) - there[id(wide)] <= {"_batch_shape", "_event_shape", "_validate_args"}
    assert there[id(wide)]


def test_mixtures():
    weights = d.Categorical(torch.tensor([0.3, 0.7]).double())
    parts = d.Normal(torch.tensor([-2.0, 1.0]).double(), torch.tensor([0.5, 1.0]).double())
    p = d.MixtureSameFamily(weights, parts)
    grid = torch.linspace(-9, 9, 20001).double()
    density = p.log_prob(grid).exp().numpy()
    x = grid.numpy()
    assert abs(np.trapezoid(density, x) - 1) < 1e-6
    mean = np.trapezoid(density * x, x)
    close(p.mean, mean, 1e-6)
    close(p.variance, np.trapezoid(density * (x - mean) ** 2, x), 1e-6)
    assert st.kstest(points(p).numpy(), lambda v: p.cdf(torch.tensor(v)).numpy()).pvalue > 1e-4
    vectors = d.MixtureSameFamily(
        d.Categorical(torch.ones(3, 2)),
        d.MultivariateNormal(torch.zeros(3, 2, 4), torch.eye(4)),
    )
    assert vectors.batch_shape == (3,) and vectors.event_shape == (4,)
    assert vectors.sample((5, 6)).shape == (5, 6, 3, 4)
    assert vectors.log_prob(torch.zeros(3, 4)).shape == (3,)
    wide = vectors.expand((2, 3))
    assert wide.mean.shape == (2, 3, 4) and wide.sample().shape == (2, 3, 4)


@pytest.mark.parametrize(("name", "case"), CASES)
def test_expansion_copies_and_pickles(name, case):
    p = make(torch, name, case)
    wide = p.expand((3, *p.batch_shape))
    assert type(wide) is type(p) and wide.batch_shape == (3, *p.batch_shape)
    assert wide.event_shape == p.event_shape
    x = points(wide, n=2)
    assert x.shape == (2, 3, *p.batch_shape, *p.event_shape)
    assert torch.allclose(wide.log_prob(x), p.log_prob(x))
    p = make(torch, name, case)
    others = copy.deepcopy(p), pickle.loads(pickle.dumps(p))
    assert [repr(other) for other in others] == [repr(p)] * 2
    for other in others:
        assert torch.equal(other.log_prob(x), p.log_prob(x))
        assert torch.equal(points(other, n=2), points(p, n=2))


@pytest.mark.parametrize(("name", "case"), CASES)
def test_samples_lie_in_the_support(name, case):
    p = make(torch, name, case)
    x = points(p, n=100)
    if name != "OneHotCategoricalStraightThrough":
        assert not x.requires_grad
    assert p.support.check(x).all()
    assert p.log_prob(x).shape == (100, *p.batch_shape)
    assert p.support.event_dim == len(p.event_shape)
    if p.has_enumerate_support and name != "Binomial":
        values = p.enumerate_support()
        assert torch.allclose(p.log_prob(values).exp().sum(0), torch.ones(()).double())


def test_what_is_wrong_is_said():
    nan = float("nan")
    two = torch.ones(2)
    for make_one, message in (
        (lambda: d.Normal(torch.tensor([0.0, nan]), 1.0), "Expected parameter loc"),
        (lambda: d.Normal(0.0, -1.0), "to satisfy the constraint GreaterThan"),
        (lambda: d.Normal(0.0, "a"), "Input arguments must all be instances of numbers"),
        (lambda: d.Uniform(1.0, 0.0), "LessThan"),
        (lambda: d.Bernoulli(), "Either `probs` or `logits` must be specified"),
        (lambda: d.Bernoulli(0.5, 0.5), "Either `probs` or `logits`"),
        (lambda: d.Geometric(0.0), "to be positive"),
        (lambda: d.Categorical(torch.tensor(1.0)), "must be at least one-dimensional"),
        (lambda: d.Dirichlet(torch.tensor(1.0)), "must be at least one-dimensional"),
        (lambda: d.MultivariateNormal(two), "Exactly one of covariance_matrix"),
        (lambda: d.MultivariateNormal(two, two), "must be at least two-dimensional"),
        (lambda: d.MultivariateNormal(two, torch.ones(2, 2)), "PositiveDefinite"),
        (lambda: d.LowRankMultivariateNormal(two, torch.ones(3, 1), two), "of 2 rows"),
        (lambda: d.LKJCholesky(1), "greater than or equal to 2"),
        (lambda: d.Wishart(torch.tensor(0.5), torch.eye(2)), "greater than 1, the number of rows"),
        (lambda: d.Independent(d.Normal(two, two), 2), "reinterpreted_batch_ndims"),
        (lambda: d.MixtureSameFamily(d.Normal(two, two), d.Normal(two, two)), "Mixture"),
        (lambda: d.TransformedDistribution(d.Normal(two, two), 3), "Transform or list"),
        (lambda: d.Normal(two, two).log_prob(1.0), "must be of class Tensor"),
        (lambda: d.Normal(two, two).log_prob(torch.ones(3)), "not broadcastable"),
        (lambda: d.Dirichlet(torch.ones(3)).log_prob(two / 2), "right-most size"),
        (lambda: d.Uniform(0.0, 1.0).log_prob(torch.tensor(2.0)), "to be within the support"),
        (lambda: d.Distribution.set_default_validate_args(3), "True or False"),
    ):
        with pytest.raises(ValueError, match=message):
            make_one()
    for refused in (
        lambda: d.Multinomial(torch.tensor([1, 2]), torch.ones(3)),
        lambda: d.Binomial(torch.tensor([2, 3]), torch.tensor([0.5, 0.5])).entropy(),
        lambda: d.Poisson(1.0).entropy(),
        lambda: d.Beta(1.0, 1.0).cdf(torch.tensor(0.5)),
        lambda: d.Normal(0.0, 1.0).enumerate_support(),
        lambda: d.kl_divergence(d.Normal(0.0, 1.0), d.Categorical(torch.ones(2))),
    ):
        with pytest.raises(NotImplementedError):
            refused()
    unchecked = d.Normal(0.0, -1.0, validate_args=False)
    assert unchecked.log_prob(torch.tensor(0.0)).isnan()


def test_a_class_of_ones_own():
    class Shifted(d.Normal):
        def __init__(self, loc):
            super().__init__(loc, 1.0)

    with pytest.raises(NotImplementedError, match="custom .expand"):
        Shifted(torch.zeros(2)).expand((3, 2))

    class Plain(d.Normal):
        pass

    assert type(Plain(torch.zeros(2), 1.0).expand((3, 2))) is Plain

    class Die(d.Distribution):
        arg_constraints = {}  # noqa: RUF012
        support = d.constraints.integer_interval(1, 6)

        def sample(self, sample_shape=()):
            return torch.randint(1, 7, self._extended_shape(sample_shape))

        def log_prob(self, value):
            self._validate_sample(value)
            return torch.full(value.shape, -math.log(6))

    assert Die().sample((4,)).shape == (4,)
    with pytest.raises(ValueError, match="within the support"):
        Die().log_prob(torch.tensor(7))
    with pytest.raises(NotImplementedError):
        Die().expand((2,))
    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        type("Bare", (d.Distribution,), {})()


def test_divergences_of_subclasses_and_ambiguous_ones(monkeypatch):
    monkeypatch.setattr(d.kl, "_KL_REGISTRY", dict(_KL_REGISTRY))
    monkeypatch.setattr(d.kl, "_KL_MEMOIZE", {})

    class A(d.Normal):
        pass

    class B(A):
        pass

    zero, one = torch.tensor(0.0), torch.tensor(1.0)
    assert d.kl_divergence(B(zero, one), A(zero, one)) == 0

    @d.register_kl(A, A)
    def nearest(p, q):
        return torch.tensor(7.0)

    assert d.kl_divergence(B(zero, one), A(zero, one)) == 7
    assert d.kl_divergence(B(zero, one), d.Normal(zero, one)) == 0
    d.register_kl(B, d.Normal)(lambda p, q: torch.tensor(1.0))
    with pytest.warns(RuntimeWarning, match="Ambiguous"):
        assert d.kl_divergence(B(zero, one), A(zero, one)) == 1
    with pytest.raises(TypeError, match="Distribution subclass"):
        d.register_kl(3, A)


def test_probabilities_and_logits_are_made_when_read():
    logits = torch.tensor([0.3, -1.0], requires_grad=True)
    p = d.Bernoulli(logits=logits)
    assert "probs" not in p.__dict__
    with torch.no_grad():
        probs = p.probs
    assert probs.requires_grad and p.__dict__["probs"] is probs
    assert repr(p) == "Bernoulli(probs: torch.Size([2]), logits: torch.Size([2]))"


def test_modules_are_those_of_pytorch():
    import rushlight.distributions.half_normal as module
    from rushlight.distributions.multivariate_normal import _batch_mahalanobis, _batch_mv
    from rushlight.distributions.utils import broadcast_all, lazy_property

    assert module.HalfNormal is d.HalfNormal
    assert d.HalfNormal.__module__ == "rushlight.distributions.half_normal"
    assert all(map(callable, (_batch_mahalanobis, _batch_mv, broadcast_all, lazy_property)))
    assert b"distributions.half_normal" in pickle.dumps(d.HalfNormal(1.0))
    program = """
import rushlight.as_torch
import pickle, torch
from torch.distributions.half_normal import HalfNormal
from torch.distributions.relaxed_bernoulli import LogitRelaxedBernoulli
from torch.distributions import AffineTransform, ExpTransform

assert HalfNormal is torch.distributions.HalfNormal
for thing in (HalfNormal, LogitRelaxedBernoulli, AffineTransform, type(ExpTransform().inv)):
    assert thing.__module__.startswith("torch.distributions."), thing.__module__
    assert pickle.loads(pickle.dumps(thing)) is thing
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_small_concentrations_give_numbers():
    for dtype in (torch.float32, torch.float64):
        torch.manual_seed(0)
        tiny = torch.full((1000,), 1e-6, dtype=dtype)
        x = d.Beta(tiny, tiny).sample()
        assert ((x > 0) & (x < 1)).all()
        assert (d.Gamma(tiny, 1.0).sample() > 0).all()


def test_growth_with_parameters_is_exact():
    """Of gamma and beta numbers, against derivatives of incomplete functions in 40 digits."""
    for a, x, expected in (
        (0.01, 1e-20, 4.5490816402012235e-17),
        (0.1, 0.01, 0.4227934381297028),
        (0.5, 3.0, 2.9129424164403646),
        (1.0, 1.0, 1.1735630272247268),
        (3.0, 0.1, 0.12186533324500184),
        (3.0, 9.0, 1.7397554120638796),
        (2.5, 30.0, 2.870701721535223),
        (50.0, 50.5, 1.0083400061288224),
        (200.0, 150.0, 0.8637637477907577),
        (1000.0, 1010.0, 1.0051509296765344),
        (10000.0, 10100.0, 1.0050001660066192),
    ):
        numbers = torch.tensor([a, x], dtype=torch.float64)
        found = torch._standard_gamma_grad(*numbers)
        assert abs(found / expected - 1) < 1e-12, (a, x)
    for x, a, b, expected in (
        (0.1, 0.5, 0.5, 0.6205902359786204),
        (0.9, 0.5, 0.5, 2.608924853171408),
        (0.5, 2.0, 3.0, 0.2603849155132832),
        (0.01, 2.0, 3.0, 0.020460822773963917),
        (0.99, 2.0, 3.0, 0.35950788452043625),
        (0.3, 30.0, 70.0, 0.010089336864100977),
        (0.001, 0.1, 20.0, 0.035890594927021076),
        (0.51, 500.0, 500.0, 0.0010106092177437978),
        (3e-6, 3.0, 1e6, 1.0570257325210305e-06),
    ):
        numbers = torch.tensor([x, a, a + b], dtype=torch.float64)
        found = torch._dirichlet_grad(*numbers)
        assert abs(found / expected - 1) < 1e-12, (x, a, b)
    # Beyond 2e5 the leading term of an expansion takes over, without a jump.
    near = torch.tensor([1.999e5, 2.001e5], dtype=torch.float64)
    growth = torch._standard_gamma_grad(near, near * 1.001)
    assert abs(growth[0] / growth[1] - 1) < 1e-5
    growth = torch._dirichlet_grad(torch.tensor(0.5001).double(), near, 2 * near) * near
    assert abs(growth[0] / growth[1] - 1) < 1e-4


@pytest.mark.parametrize(("name", "case"), CASES)
def test_samples_of_none(name, case):
    """None of them, in one dimension or among others, is a sample, and has densities."""
    made = make(torch, name, case)
    batch = made.batch_shape
    for shape in ((0,), (2, 0), (0, 3)):
        draws = [made.sample(torch.Size(shape))]
        draws += [made.rsample(torch.Size(shape))] if made.has_rsample else []
        for x in draws:
            assert x.shape == shape + batch + made.event_shape
            assert made.log_prob(x).shape == shape + batch
