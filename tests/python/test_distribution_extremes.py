"""Distributions at the ends of what their parameters may be: certain, impossible, tiny, huge."""

import decimal
import itertools
import math

import pytest
import scipy.stats as st

import rushlight as torch
from rushlight import distributions as d
from tests.python.distribution_cases import CASES, make

INF = math.inf


def t(x, dtype=torch.float64):
    return torch.tensor(x, dtype=dtype)


# ---- probabilities of 0 and 1 -------------------------------------------------------------------

# The logarithm of what is certain is 0, that of what is impossible minus infinity, and the
# derivative by the probability is the formula's: not a number nowhere, None where it is infinite.
# (distribution of p, value, log_prob at p = 0 and 1, d log_prob / dp there)
BINARY = [
    (lambda p: d.Bernoulli(p), 0.0, (0, -INF), (-1, None)),
    (lambda p: d.Bernoulli(p), 1.0, (-INF, 0), (None, 1)),
    (lambda p: d.Binomial(5, p), 0.0, (0, -INF), (-5, None)),
    (lambda p: d.Binomial(5, p), 5.0, (-INF, 0), (None, 5)),
    (lambda p: d.Binomial(5, p), 2.0, (-INF, -INF), (None, None)),
    (lambda p: d.Binomial(50, p), 0.0, (0, -INF), (-50, None)),
    (lambda p: d.Binomial(50, p), 50.0, (-INF, 0), (None, 50)),
    (lambda p: d.Binomial(0, p), 0.0, (0, 0), (0, 0)),
    (lambda p: d.Geometric(p, validate_args=False), 0.0, (-INF, 0), (None, 1)),
    (lambda p: d.Geometric(p, validate_args=False), 3.0, (-INF, -INF), (None, None)),
    (lambda p: d.NegativeBinomial(4, p, validate_args=False), 0.0, (0, -INF), (-4, None)),
    (lambda p: d.NegativeBinomial(4, p, validate_args=False), 2.0, (-INF, -INF), (None, None)),
    (lambda p: d.Categorical(torch.stack([p, 1 - p])), 0.0, (-INF, 0), (None, 1)),
    (lambda p: d.Categorical(torch.stack([p, 1 - p])), 1.0, (0, -INF), (-1, None)),
    (lambda p: d.OneHotCategorical(torch.stack([p, 1 - p])), [1.0, 0], (-INF, 0), (None, 1)),
    (lambda p: d.OneHotCategorical(torch.stack([p, 1 - p])), [0.0, 1], (0, -INF), (-1, None)),
    (lambda p: d.Multinomial(3, torch.stack([p, 1 - p])), [3.0, 0], (-INF, 0), (None, 3)),
    (lambda p: d.Multinomial(3, torch.stack([p, 1 - p])), [0.0, 3], (0, -INF), (-3, None)),
    (lambda p: d.Multinomial(3, torch.stack([p, 1 - p])), [1.0, 2], (-INF, -INF), (None, None)),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("case", range(len(BINARY)))
def test_what_is_certain_and_what_is_impossible(case, dtype):
    of, value, expected, slopes = BINARY[case]
    for chance, log, slope in zip((0.0, 1.0), expected, slopes, strict=True):
        p = t(chance, dtype).requires_grad_()
        found = of(p).log_prob(t(value, dtype))
        assert found.item() == log, (chance, found)
        if slope is not None:
            assert torch.autograd.grad(found, p)[0].item() == pytest.approx(slope, abs=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_logits_of_any_size(dtype):
    for logit, chance in ((-INF, 0.0), (INF, 1.0)):
        one = t(logit, dtype)
        two = torch.stack([one, t(0.0, dtype)]) if chance == 0 else t([0.0, -INF], dtype)
        for count, of in (
            (1, lambda x: d.Bernoulli(logits=x)),
            (5, lambda x: d.Binomial(5, logits=x)),
        ):
            sure, never = (0.0, float(count)) if chance == 0 else (float(count), 0.0)
            assert of(one).log_prob(t(sure, dtype)).item() == 0
            assert of(one).log_prob(t(never, dtype)).item() == -INF
            assert of(one).entropy().item() == 0
        which = 1 if chance == 0 else 0
        assert d.Categorical(logits=two).log_prob(t(which, dtype)).item() == 0
        assert d.Categorical(logits=two).log_prob(t(1 - which, dtype)).item() == -INF
        assert d.Categorical(logits=two).entropy().item() == 0
    for logit in (-300.0, -20.0, 20.0, 300.0):
        x = t(logit, dtype).requires_grad_()
        log = min(logit, 0) - math.log1p(math.exp(-abs(logit)))
        p = d.Bernoulli(logits=x)
        assert p.probs is not None  # that it is known changes nothing
        near = torch.finfo(dtype).eps  # of what is added to large logits
        assert p.log_prob(t(1.0, dtype)).item() == pytest.approx(log, rel=1e-6, abs=near)
        assert d.Geometric(logits=x).log_prob(t(0.0, dtype)).item() == pytest.approx(log, rel=1e-6)
        slope = torch.autograd.grad(p.log_prob(t(1.0, dtype)), x)[0].item()
        assert slope == pytest.approx(1 / (1 + math.exp(logit)), rel=1e-6, abs=near)


@pytest.mark.parametrize("chance", [0.0, 1.0])
def test_moments_and_entropies_of_certain_outcomes(chance):
    p = t(chance)
    for q in (d.Bernoulli(p), d.Binomial(7, p)):
        assert q.entropy().item() == 0 and q.variance.item() == 0
    for q in (d.Categorical, d.OneHotCategorical, lambda x: d.Multinomial(4, x)):
        assert q(torch.stack([p, 1 - p])).entropy().item() == pytest.approx(0, abs=1e-15)
    assert d.Geometric(t(1.0)).entropy().item() == 0 == d.Geometric(t(1.0)).mean.item()
    zero = d.NegativeBinomial(3, t(0.0))
    assert zero.mean.item() == 0 == zero.variance.item()
    assert d.Poisson(t(0.0)).log_prob(t([0.0, 2.0])).tolist() == [0, -INF]


# ---- draws of small concentrations --------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1e-2, 1e-3, 1e-4, 1e-8, 1e-30])
def test_draws_of_small_concentrations(size, dtype):
    """They lie at the corners, at each as often as its share of the sum says."""
    torch.manual_seed(0)
    shares = t([0.2, 0.5, 0.3], dtype)
    x = d.Dirichlet(size * shares).sample((4000,))
    assert ((x.sum(-1) - 1).abs() <= 2 * torch.finfo(dtype).eps).all() and (x > 0).all()
    error = (shares * (1 - shares) / 4000).sqrt()
    assert ((x.mean(0) - shares).abs() < 5 * error).all()
    if size < 1e-6:
        assert (x.max(-1).values > 0.999).all()
    y = d.Beta(t(size, dtype), t(size, dtype)).sample((4000,))
    assert abs(y.mean() - 0.5) < 5 * 0.5 / 4000**0.5
    assert d.Beta(t(size, dtype), t(size, dtype)).log_prob(y).isfinite().all()


def test_draws_of_large_concentrations_keep_their_numbers():
    """What is drawn in logarithms is what was drawn before, where that had digits."""
    torch.manual_seed(3)
    x = d.Dirichlet(t([0.02, 0.03, 1.5])).sample((1000,))
    torch.manual_seed(3)
    g = torch._standard_gamma(t([0.02, 0.03, 1.5]).expand(1000, 3))
    whole = (g / g.sum(-1, True)).clamp(torch.finfo(torch.float64).tiny, 1 - 2**-53)
    torch.testing.assert_close(x, whole, rtol=1e-12, atol=0)


def test_gradients_of_draws_of_small_concentrations_are_finite():
    torch.manual_seed(0)
    a = torch.full((2, 3), 1e-4, dtype=torch.float64, requires_grad=True)
    d.Dirichlet(a).rsample((50,)).square().sum().backward()
    assert a.grad.isfinite().all() and (a.grad != 0).any()


@pytest.mark.parametrize("k", [1e-30, 1.0, 1e6, 1e9, 1e20, 1e300])
def test_von_mises_numbers_of_any_concentration(k):
    torch.manual_seed(0)
    x = d.VonMises(t(0.0), t(k)).sample((4000,))
    if k > 1 and k < 1e30:  # beyond, angles have no digits
        assert abs(x.square().mean() * k - 1) < 0.12 and x.abs().max() < 6 / k**0.5
    assert (x.abs() <= math.pi).all()


@pytest.mark.parametrize("k", [1e-12, 1e-6, 2e-5, 1e-3, 1.0, 1e4])
def test_what_von_mises_numbers_are_chosen_from_has_all_digits(k):
    with decimal.localcontext() as context:  # Best and Fisher's formulas as they stand
        context.prec = 60
        exact = decimal.Decimal(k)
        tau = 1 + (1 + 4 * exact**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * exact)
        r = float((1 + rho**2) / (2 * rho))
    assert d.VonMises(t(0.0), t(k))._proposal_r.item() == pytest.approx(r, rel=5e-16)


# ---- tiny and huge parameters -------------------------------------------------------------------

# Numbers that all floating-point dtypes here have, so that none is rounded.
SIZES = (2.0**-100, 2.0**-13, 1.0, 2.0**13, 2.0**100)
LOC = (0.0, 2.0**-13, 1.0, 2.0**13, -(2.0**20))
LOGITS = (-200.0, -(2.0**-12), 0.0, 20.0, 1000.0)
COUNTS = (0.0, 1.0, 10.0, 2.0**13, 2.0**20)
GRID = {
    "Bernoulli": {"logits": LOGITS},
    "Beta": {"concentration1": SIZES[:4], "concentration0": SIZES[:4]},
    "Binomial": {"total_count": COUNTS, "logits": LOGITS},
    "Cauchy": {"loc": LOC, "scale": SIZES},
    "Chi2": {"df": SIZES},
    "ContinuousBernoulli": {"logits": LOGITS},
    "Exponential": {"rate": SIZES},
    "FisherSnedecor": {"df1": SIZES, "df2": SIZES},
    "Gamma": {"concentration": SIZES, "rate": SIZES},
    "GeneralizedPareto": {"loc": (0.0,), "scale": SIZES, "concentration": SIZES[1:4]},
    "Geometric": {"logits": LOGITS[1:]},
    "Gumbel": {"loc": (0.0,), "scale": SIZES},
    "HalfCauchy": {"scale": SIZES},
    "HalfNormal": {"scale": SIZES},
    "InverseGamma": {"concentration": SIZES[2:4], "rate": SIZES},
    "Kumaraswamy": {"concentration1": SIZES[1:], "concentration0": SIZES[1:]},
    "Laplace": {"loc": (0.0,), "scale": SIZES},
    "LogNormal": {"loc": (0.0, 1.0), "scale": SIZES[1:4]},
    "NegativeBinomial": {"total_count": COUNTS[1:], "logits": LOGITS[:4]},
    "Normal": {"loc": LOC[:1], "scale": SIZES},
    "Pareto": {"scale": SIZES, "alpha": SIZES},
    "Poisson": {"rate": SIZES[:4]},
    "StudentT": {"df": SIZES, "loc": (0.0,), "scale": SIZES},
    "Uniform": {"low": (0.0, -1.0), "high": SIZES},
    "VonMises": {"loc": (0.0,), "concentration": SIZES[:4]},
    "Weibull": {"scale": SIZES, "concentration": SIZES[1:]},
}
# Not there everywhere, and differences of nearly equal moments.
UNDEFINED = {"Cauchy", "HalfCauchy", "StudentT", "FisherSnedecor", "GeneralizedPareto"}
WITHOUT_DIGITS = {("Kumaraswamy", "variance")}


def of_grid(name):
    for numbers in itertools.product(*GRID[name].values()):
        yield dict(zip(GRID[name], numbers, strict=True))


def quantity(p, what, x):
    found = getattr(p, what)
    return found(x) if what in ("log_prob", "cdf") else found() if what == "entropy" else found


QUANTITIES = [
    (name, what)
    for name in GRID
    for what in ("log_prob", "cdf", "entropy", "mean", "variance")
    if (name, what) not in WITHOUT_DIGITS
]


@pytest.mark.parametrize(("name", "what"), QUANTITIES)
def test_float_agrees_with_double(name, what):
    """Where double precision gives a number, single precision gives it to its digits."""
    tried = 0
    at_values = what in ("log_prob", "cdf")
    floor = 1.0 if what in ("log_prob", "entropy") else 1e-37
    for given in of_grid(name):
        if what == "entropy" and given.get("total_count", 0) > 100:
            continue  # a sum over so many terms
        p, q = (
            getattr(d, name)(**{k: t(v, dtype) for k, v in given.items()}, validate_args=False)
            for dtype in (torch.float64, torch.float32)
        )
        torch.manual_seed(0)
        x = q.sample((10,)) if at_values else t([1.0], torch.float32)
        try:
            exact, single = quantity(p, what, x.double()), quantity(q, what, x).double()
        except NotImplementedError:
            pytest.skip("the distribution has none")
        mask = x.isfinite() & p.support.check(x.double()) if at_values else torch.ones(()).bool()
        assert (what in ("mean", "variance") and name in UNDEFINED) or not exact[mask].isnan().any()
        mask = mask & (exact.abs() < 1e37)
        off = (single - exact).abs() / (floor + exact.abs())
        assert (off[mask] < 2e-3).all(), (given, x[mask], exact[mask], single[mask])
        tried += mask.any().item()
    assert tried or name in UNDEFINED


def test_limits_that_are_known():
    x = t([-3.0, 0.0, 0.5, 40.0])
    normal = st.norm(0, 1)
    student = d.StudentT(df=t(1e300))
    assert torch.allclose(student.log_prob(x), t(normal.logpdf(x.numpy())), rtol=1e-13)
    assert student.entropy().item() == pytest.approx(normal.entropy(), rel=1e-13)
    assert d.StudentT(t(1e7, torch.float32)).entropy().item() == pytest.approx(1.41894, rel=1e-5)
    for size in (1e3, 1e6, 1e12, 1e15):
        n = t(size)
        at_mean = -0.5 * math.log(2 * math.pi * size)
        assert d.Poisson(n).log_prob(n).item() == pytest.approx(at_mean, abs=1e-4)
        half = d.Binomial(n, t(0.5)).log_prob(n / 2).item()
        assert half == pytest.approx(-0.5 * math.log(math.pi * size / 2), abs=1e-3)
        density = d.Gamma(n, n).log_prob(t(1.0)).item()
        assert density == pytest.approx(at_mean + math.log(size), abs=1e-3)
        spread = 0.5 * math.log(2 * math.pi * math.e * size)
        assert d.Gamma(n, t(1.0)).entropy().item() == pytest.approx(spread, abs=1e-3)
    for scale in (1e-200, 1e200):
        far = d.Cauchy(t(0.0), t(scale)).log_prob(t(1e250)).item()
        assert far == pytest.approx(math.log(scale) - math.log(math.pi) - 500 * math.log(10))


@pytest.mark.parametrize("name", ["Gamma", "Beta", "StudentT", "Poisson", "Bernoulli"])
def test_batches_of_vmap_and_gradients_of_mixed_sizes(name):
    """Large and small parameters side by side give what each gives alone."""
    make = {
        "Gamma": lambda a: d.Gamma(a, a, validate_args=False),
        "Beta": lambda a: d.Beta(a, a / 2, validate_args=False),
        "StudentT": lambda a: d.StudentT(a, validate_args=False),
        "Poisson": lambda a: d.Poisson(a, validate_args=False),
        "Bernoulli": lambda a: d.Bernoulli(logits=a.log(), validate_args=False),
    }[name]
    a = t([1e-3, 0.5, 40.0, 5e3, 1e8])
    x = {"Poisson": a.floor(), "Bernoulli": t([0.0, 1, 1, 0, 1])}.get(name, t([0.5] * 5))

    def log_prob(a, x):
        return make(a).log_prob(x)

    alone = torch.stack([log_prob(*one) for one in zip(a, x, strict=True)])
    slopes = torch.stack([torch.func.grad(log_prob)(*one) for one in zip(a, x, strict=True)])
    for found in (log_prob(a, x), torch.vmap(log_prob)(a, x)):
        torch.testing.assert_close(found, alone, rtol=1e-14, atol=1e-14)
    a.requires_grad_()
    found = torch.autograd.grad(log_prob(a, x).sum(), a)[0]
    assert found.isfinite().all()
    torch.testing.assert_close(found, slopes)


def test_continuous_bernoulli_of_any_logits():
    for n in (100.0, 1e4, 1e200):
        p, q = d.ContinuousBernoulli(logits=t(n)), d.ContinuousBernoulli(logits=t(-n))
        assert p.log_prob(t(1.0)).item() == pytest.approx(math.log(n), rel=1e-12)
        assert q.log_prob(t(0.0)).item() == pytest.approx(math.log(n), rel=1e-12)
        assert p.log_prob(t(0.5)).item() == pytest.approx(math.log(n) - n / 2, rel=1e-12)
        assert p.mean.item() == pytest.approx(1 - 1 / n) and q.mean.item() == pytest.approx(1 / n)
        assert p.stddev.item() == pytest.approx(1 / n)
        assert p.entropy().item() == pytest.approx(1 - math.log(n), rel=1e-12)
        assert q.icdf(t(0.5)).item() == pytest.approx(math.log(2) / n, rel=1e-9)
    single = d.ContinuousBernoulli(logits=t(100.0, torch.float32))
    assert single.log_prob(t(1.0, torch.float32)).item() == pytest.approx(math.log(100))
    assert single.rsample((100,)).isfinite().all()


# ---- distribution functions ---------------------------------------------------------------------

CHANCES = [1e-30, 1e-9, 1e-3, 0.2, 0.5, 0.7, 1 - 1e-6]


@pytest.mark.parametrize(("name", "case"), CASES)
def test_quantiles_have_their_probability(name, case):
    p = make(torch, name, case)
    chances = t(CHANCES).reshape(-1, *[1] * len(p.batch_shape)).expand(-1, *p.batch_shape)
    try:
        x = p.icdf(chances)
        found = p.cdf(x)
    except NotImplementedError:
        pytest.skip("the distribution has no quantiles, or no distribution function")
    # Of these, numbers near where the support begins have lost the digits of a small chance.
    begins_away = name in ("ContinuousBernoulli", "GeneralizedPareto", "Uniform", "Pareto")
    torch.testing.assert_close(found, chances, rtol=1e-9, atol=1e-13 if begins_away else 0)


@pytest.mark.parametrize("name", ["Normal", "Cauchy", "Laplace", "HalfNormal", "HalfCauchy"])
def test_tails_against_scipy(name):
    p = getattr(d, name)(*([t(0.0)] if "Half" not in name else []), t(1.0))
    q = getattr(st, name.lower().replace("normal", "norm"))
    x = [1e-12, 0.3, 5.0, 1e5] if "Half" in name else [-1e10, -30.0, -5.0, 0.3, 5.0]
    for value in x:
        assert p.cdf(t(value)).item() == pytest.approx(float(q.cdf(value)), rel=1e-12, abs=1e-300)
    for chance in (1e-12, 0.3, 0.9):
        assert p.icdf(t(chance)).item() == pytest.approx(float(q.ppf(chance)), rel=1e-9)


# ---- beside mpmath's numbers --------------------------------------------------------------------

# scale, concentration, x, logarithm of the density, distribution function, slope of the logarithm
WEIBULL = [
    (1, 1000000.0, 1.0, 12.815510557964274, 0.6321205588285577, -1.0),
    (2, 1000000.0, 2.000001, 11.973641687749106, 0.8077043148439643, -324360.870182204),
    (
        3,
        1000000000.0,
        2.999999998137355,
        18.46630150019954,
        0.41577572193591694,
        154176555.73019874,
    ),
    (0.5, 50, 0.6, -9086.89922353324, 1.0, -758288.1791668445),
    (1e-200, 2, 1e-200, 460.2101657793691, 0.6321205588285577, -1e200),
    (1e200, 3, 2e200, -466.03211194902116, 0.9996645373720975, -1.1e-199),
    (7, 0.5, 1e-20, 21.35974867481506, 3.779644730020844e-11, -5.000000000188983e19),
    (2, 10000.0, 1.9, -504.364457389702, 1.7220782772880572e-223, 5262.631578947368),
    (2, 400, 1.0, -271.26740767687016, 3.8725919148493183e-121, 399.0),
]
# concentration, rate, x, distribution function
INVERSE_GAMMA = [
    (2, 1, 0.05, 4.328422607120976e-08),
    (2, 1, 0.002, 3.569412779777421e-215),
    (0.5, 3, 0.01, 1.6741679846917982e-132),
    (30, 1, 0.004, 1.1841139415186633e-70),
    (1000.0, 1, 0.0006666666666666666, 2.204698611388959e-43),
    (3, 1, 100000.0, 0.9999999999999998),
]


@pytest.mark.parametrize(("scale", "k", "x", "log", "below", "slope"), WEIBULL)
def test_weibull_numbers_of_any_concentration(scale, k, x, log, below, slope):
    p, value = d.Weibull(t(scale), t(k)), t(x).requires_grad_()
    found = p.log_prob(value)
    near = 1e-15 * k + 1e-13  # times the rounding of x / scale
    assert found.item() == pytest.approx(log, rel=near)
    assert p.cdf(value).item() == pytest.approx(below, rel=near)
    assert torch.autograd.grad(found, value)[0].item() == pytest.approx(slope, rel=near)
    if 1e-30 < scale < 1e30 and k < 1e5:
        single = d.Weibull(t(scale, torch.float32), t(k, torch.float32))
        found = single.log_prob(t(x, torch.float32)).item()
        assert found == pytest.approx(log, rel=1e-6 * k + 1e-6)


def test_weibull_numbers_where_their_support_ends():
    p = d.Weibull(t(2.0), t([0.5, 1.0, 3.0]), validate_args=False)
    assert p.log_prob(t(0.0)).tolist() == [INF, pytest.approx(-math.log(2)), -INF]
    assert p.cdf(t(0.0)).tolist() == [0, 0, 0] and p.cdf(t(INF)).tolist() == [1, 1, 1]
    assert p.log_prob(t(1e300)).tolist()[1:] == [pytest.approx(-5e299), -INF]


@pytest.mark.parametrize(("a", "rate", "x", "below"), INVERSE_GAMMA)
def test_small_chances_of_inverse_gamma_numbers(a, rate, x, below):
    p, value = d.InverseGamma(t(a), t(rate)), t(x).requires_grad_()
    found = p.cdf(value)
    assert found.item() == pytest.approx(below, rel=1e-11)
    density = p.log_prob(value).exp().item()
    assert torch.autograd.grad(found, value)[0].item() == pytest.approx(density, rel=1e-9)


# ---- draws of what is no number, infinite or huge -----------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_shares_by_no_numbers_are_none(dtype):
    a = t([[1.0, math.nan, 2.0], [1.0, 1.0, 2.0], [INF, 1.0, 2.0], [INF, 3.0, INF]], dtype)
    x = torch._sample_dirichlet(a)
    assert x[0].isnan().all()
    assert x[1].sum().item() == pytest.approx(1)
    assert x[2].tolist() == pytest.approx([1, 0, 0], abs=1e-6)
    assert x[3].tolist() == pytest.approx([0.5, 0, 0.5], abs=1e-6)


@pytest.mark.parametrize("rate", [1e9, 1e12, 1e15, 1e18, 1e25, 1e100, 1e300])
def test_poisson_numbers_of_huge_rates(rate):
    torch.manual_seed(0)
    x = torch.poisson(torch.full((20000,), rate, dtype=torch.float64))
    spread = math.sqrt(rate)
    step = math.ulp(rate)
    z = (x - rate) / max(spread, step)
    if step < spread / 100:
        shares = torch.tensor(
            [(z < q).double().mean().item() for q in (-2, -1, -0.5, 0, 0.5, 1, 2)]
        )
        wanted = d.Normal(t(0.0), t(1.0)).cdf(t([-2, -1, -0.5, 0, 0.5, 1, 2]))
        assert (shares - wanted).abs().max() < 5 * 0.5 / 20000**0.5
        assert z.std().item() == pytest.approx(1, abs=0.03)
    assert z.abs().max() < 7


@pytest.mark.parametrize("count", [1e9, 1e13, 1e16, 1e20])
@pytest.mark.parametrize("p", [0.5, 0.2, 0.9, 5e-8])
def test_binomial_numbers_of_many_trials(count, p):
    torch.manual_seed(0)
    n = torch.full((20000,), count, dtype=torch.float64)
    x = torch.binomial(n, torch.full_like(n, p))
    spread = math.sqrt(count * p * (1 - p))
    if spread < 100:  # about 50 successes
        assert x.mean().item() == pytest.approx(count * p, abs=5 * spread / 20000**0.5)
        assert x.std().item() == pytest.approx(spread, rel=0.03)
        return
    z = (x - count * p) / spread
    shares = torch.tensor([(z < q).double().mean().item() for q in (-2, -1, -0.5, 0.5, 1, 2)])
    wanted = d.Normal(t(0.0), t(1.0)).cdf(t([-2, -1, -0.5, 0.5, 1, 2]))
    assert (shares - wanted).abs().max() < 5 * 0.5 / 20000**0.5


def test_counts_of_infinite_rates():
    assert torch.poisson(t([0.0, INF])).tolist() == [0, INF]
    for rate in (-1.0, math.nan, -INF):
        with pytest.raises(RuntimeError, match="expected rate to be non-negative, got"):
            torch.poisson(t([1.0, rate]))
    with pytest.raises(RuntimeError, match="finite number of trials"):
        torch.binomial(t([INF]), t([0.5]))
    torch.manual_seed(0)
    x = d.NegativeBinomial(t([1e20, 1e5]), probs=t([0.75, 1 - 1e-15])).sample((2000,))
    assert x[:, 0].mean().item() == pytest.approx(3e20, rel=1e-9)
    mean = d.NegativeBinomial(t(1e5), probs=t(1 - 1e-15)).mean.item()
    assert x[:, 1].mean().item() == pytest.approx(mean, rel=1e-3)
    single = d.NegativeBinomial(t(1e20, torch.float32), probs=t(0.75, torch.float32)).sample((50,))
    assert single.isfinite().all() and single.mean().item() == pytest.approx(3e20, rel=1e-6)


def test_slopes_at_the_middle_and_the_edge():
    values = torch.tensor([0.0, 1.0, 0.2], dtype=torch.float64)
    logits = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    torch.distributions.ContinuousBernoulli(logits=logits).log_prob(values).sum().backward()
    assert torch.allclose(logits.grad, values - 0.5)
    x = torch.zeros((), dtype=torch.float64, requires_grad=True)
    d = torch.distributions.NegativeBinomial(torch.tensor(2.5, dtype=torch.float64), 0.3)
    d.log_prob(x).backward()
    step = 1e-6
    with torch.no_grad():
        free = torch.distributions.NegativeBinomial(d.total_count, d.probs, validate_args=False)
        slope = (free.log_prob(x + step) - free.log_prob(x - step)) / (2 * step)
    assert torch.allclose(x.grad, slope, rtol=1e-5)


@pytest.mark.parametrize(
    "log_prob",
    [
        lambda x: torch.distributions.Normal(x, x).log_prob(x),
        lambda x: torch.distributions.Categorical(x).log_prob(torch.tensor(1)),
        lambda x: torch.distributions.Beta(x, 1.0).log_prob(torch.tensor(0.5)),
        lambda x: torch.distributions.Geometric(x / 9).log_prob(torch.tensor(2.0)),
        lambda x: torch.distributions.ContinuousBernoulli(x / 9, validate_args=True).log_prob(
            torch.tensor(0.5)
        ),
        lambda x: torch.distributions.MultivariateNormal(x, torch.eye(3) * x).log_prob(x),
    ],
)
def test_batches_are_checked(log_prob):
    x = torch.tensor([[1.0, 2.0, 3.0], [0.5, 0.25, 0.125]])
    assert torch.allclose(torch.vmap(log_prob)(x), torch.stack([log_prob(row) for row in x]))
    wrong = x.clone()
    wrong[1, 2] = -1
    with pytest.raises(ValueError, match="constraint|positive"):
        torch.vmap(log_prob)(wrong)


@pytest.mark.parametrize("made", [d.Weibull, d.InverseGamma])
def test_chances_up_to_the_end_of_a_support(made):
    """Where a density ends at 0, no number is smaller."""
    found = made(t([2.0, 1.0]), t([0.5, 3.0]))
    assert found.cdf(t([0.0, 0.0])).tolist() == [0, 0]
    with pytest.raises(ValueError, match="within the support"):
        found.cdf(t([-1.0, 1.0]))
    with pytest.raises(ValueError, match="within the support"):
        found.log_prob(t([0.0, 0.0]))
