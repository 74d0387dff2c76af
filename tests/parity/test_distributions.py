"""Distributions beside PyTorch's: numbers, draws of a seed, divergences, transforms and errors."""

import copy

import pytest

import rushlight
from tests.python.distribution_cases import CASES, arguments, make

torch = pytest.importorskip("torch")
import torch.distributions.kl as torch_kl  # noqa: E402

LIBRARIES = (torch, rushlight)
IDS = [f"{name}-{case}" for name, case in CASES]
# Where PyTorch 2.13's numbers are not those of its own documentation; see coming-from-pytorch.md.
OTHER_DRAWS = {
    "LKJCholesky": "rows from the third on are not uniform for concentration 1",
    "Wishart": "samples are drawn again because they are not singular",
}
OTHER_MODES = {"Kumaraswamy": "not-a-number everywhere"}


def outcome(function, lib):
    """The result of a call, or the type of its error."""
    try:
        return function(lib)
    except Exception as error:
        return type(error)


def both(function):
    return [outcome(function, lib) for lib in LIBRARIES]


def same(found, tolerance=1e-6):
    theirs, ours = found
    if theirs is RuntimeError:  # PyTorch stumbles, over mixed dtypes or batch shapes
        return
    if isinstance(theirs, type) or isinstance(ours, type):
        assert theirs is ours, found
        return
    assert tuple(theirs.shape) == tuple(ours.shape)
    assert str(theirs.dtype).split(".")[1] == str(ours.dtype).split(".")[1]
    there = theirs.detach().double()
    here = torch.tensor(ours.detach().double().tolist(), dtype=torch.float64).reshape(there.shape)
    assert torch.allclose(there, here, rtol=tolerance, atol=tolerance, equal_nan=True), found


def seeded(function, seed=3):
    for lib in LIBRARIES:
        lib.manual_seed(seed)
    return both(function)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "case"), CASES, ids=IDS)
def test_numbers(name, case):
    p = {lib: make(lib, name, case) for lib in LIBRARIES}
    assert repr(p[torch]) == repr(p[rushlight])
    assert str(p[torch].support) == str(p[rushlight].support)
    for attribute in ("batch_shape", "event_shape", "has_rsample", "has_enumerate_support"):
        assert getattr(p[torch], attribute) == getattr(p[rushlight], attribute), attribute
    for attribute in [
        "mean",
        "variance",
        "stddev",
        "mode",
        "probs",
        "logits",
        "scale_tril",
        "covariance_matrix",
        "precision_matrix",
    ]:
        if attribute != "mode" or name not in OTHER_MODES:
            same(both(lambda lib, a=attribute: getattr(p[lib], a)))
    for method in ("entropy", "perplexity"):
        same(both(lambda lib, m=method: getattr(p[lib], m)()))
    torch.manual_seed(0)
    drawn = p[torch].sample((7,))
    values = {torch: drawn, rushlight: rushlight.tensor(drawn.tolist(), dtype=_dtype(drawn))}
    chances = {lib: lib.linspace(0.05, 0.9, 7, dtype=lib.float64) for lib in LIBRARIES}
    if drawn.dim() > 1:
        chances = {lib: c.reshape(7, *[1] * (drawn.dim() - 1)) for lib, c in chances.items()}
    same(both(lambda lib: p[lib].log_prob(values[lib])))
    same(both(lambda lib: p[lib].cdf(values[lib])))
    same(both(lambda lib: p[lib].icdf(chances[lib])))
    for expand in (True, False):
        same(both(lambda lib, e=expand: p[lib].enumerate_support(e)))


def _dtype(t):
    return getattr(rushlight, str(t.dtype).split(".")[1])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "case"), CASES, ids=IDS)
def test_a_seed_draws_the_same(name, case):
    if name in OTHER_DRAWS:
        pytest.skip(OTHER_DRAWS[name])
    for shape in ((), (5,), (20, 3)):
        same(seeded(lambda lib, s=shape: make(lib, name, case).sample(s)))
        same(seeded(lambda lib, s=shape: make(lib, name, case).rsample(s)))

    def expanded(lib):
        p = make(lib, name, case)
        return p.expand((4, *p.batch_shape)).sample((3,))

    same(seeded(expanded))


@pytest.mark.parametrize(("name", "case"), CASES, ids=IDS)
def test_gradients_of_draws(name, case):
    if name in ("Wishart", "GeneralizedPareto") or not make(torch, name, case).has_rsample:
        pytest.skip("PyTorch has none, or raises")
    found = []
    for lib in LIBRARIES:
        given = arguments(lib, name, case)
        leaves = [v.requires_grad_() for v in given.values() if isinstance(v, lib.Tensor)]
        lib.manual_seed(5)
        x = getattr(lib.distributions, name)(**given).rsample((3,))
        weights = lib.arange(x.numel()).reshape(x.shape)
        found.append(lib.autograd.grad((x * weights).sum(), leaves, allow_unused=True))
    for theirs, ours in zip(*found, strict=True):
        assert (theirs is None) == (ours is None)
        if theirs is not None:
            same((theirs, ours), 5e-3)  # PyTorch's implicit derivatives are good to that


PAIRS = sorted((p.__name__, q.__name__) for p, q in torch_kl._KL_REGISTRY)


@pytest.mark.parametrize(("p", "q"), PAIRS)
def test_divergences(p, q):
    same(both(lambda lib: lib.distributions.kl_divergence(make(lib, p), make(lib, q))), 1e-6)


def test_the_registry_has_no_other_pairs():
    ours = {(p.__name__, q.__name__) for p, q in rushlight.distributions.kl._KL_REGISTRY}
    assert ours == set(PAIRS)


TRANSFORMS = {
    "ExpTransform()": (3, 4),
    "PowerTransform(2.5)": (3, 4),
    "SigmoidTransform()": (3, 4),
    "SoftplusTransform()": (3, 4),
    "TanhTransform()": (3, 4),
    "AbsTransform()": (3, 4),
    "AffineTransform(0.5, -2.0)": (3, 4),
    "AffineTransform(0.5, -2.0, event_dim=1)": (3, 4),
    "StickBreakingTransform()": (3, 4),
    "SoftmaxTransform()": (3, 4),
    "CorrCholeskyTransform()": (3, 6),
    "LowerCholeskyTransform()": (2, 3, 3),
    "PositiveDefiniteTransform()": (2, 3, 3),
    "ReshapeTransform((3, 4), (2, 6))": (5, 3, 4),
    "IndependentTransform(ExpTransform(), 1)": (3, 4),
    "ComposeTransform([ExpTransform(), StickBreakingTransform().inv.inv, ExpTransform()])": (3, 4),
    "CatTransform([ExpTransform(), AffineTransform(0.0, 2.0)], 1, [1, 3])": (3, 4),
    "StackTransform([ExpTransform(), AffineTransform(0.0, 2.0)], 1)": (3, 2),
    "CumulativeDistributionTransform(Normal(0.0, 1.0))": (3, 4),
}


@pytest.mark.parametrize("text", TRANSFORMS)
def test_transforms(text):
    def make_one(lib):
        return eval(text, vars(lib.distributions))

    def numbers(lib):
        values = torch.rand(TRANSFORMS[text], generator=torch.Generator().manual_seed(1)).tolist()
        return lib.tensor(values)

    assert repr(make_one(torch)) == repr(make_one(rushlight))
    for attribute in ("domain", "codomain", "bijective", "sign", "event_dim", "inv"):
        theirs, ours = both(lambda lib, a=attribute: getattr(make_one(lib), a))
        assert str(theirs) == str(ours).replace("rushlight.", "torch."), attribute
    same(both(lambda lib: make_one(lib)(numbers(lib))))
    same(both(lambda lib: make_one(lib).inv(make_one(lib)(numbers(lib)))), 1e-4)

    def jacobian(lib):
        x = numbers(lib)
        return make_one(lib).log_abs_det_jacobian(x, make_one(lib)(x))

    same(both(jacobian), 1e-5)
    shape = TRANSFORMS[text]
    theirs, ours = both(lambda lib: tuple(make_one(lib).forward_shape(lib.Size(shape))))
    assert theirs == ours


CONSTRAINTS = [
    "real",
    "positive",
    "nonnegative",
    "unit_interval",
    "simplex",
    "corr_cholesky",
    "real_vector",
    "lower_cholesky",
    "positive_definite",
    "positive_semidefinite",
    "boolean",
] + [
    "greater_than(2.0)",
    "less_than(1.0)",
    "interval(1.0, 3.0)",
    "half_open_interval(0.0, 1.0)",
]
CONSTRAINTS += [
    "independent(positive, 1)",
    "cat([real, positive], -1)",
    "stack([real, positive], -1)",
]


@pytest.mark.parametrize("text", CONSTRAINTS)
@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
def test_constraints_and_their_transforms(text, registry):
    def constraint(lib):
        return eval(text, vars(lib.distributions.constraints))

    theirs, ours = both(constraint)
    assert str(theirs) == str(ours)
    assert (theirs.event_dim, theirs.is_discrete) == (ours.event_dim, ours.is_discrete)
    theirs, ours = both(lambda lib: getattr(lib.distributions, registry)(constraint(lib)))
    assert str(theirs) == str(ours)
    for values in ([[0.5, 0.5], [0.2, 0.7]], [[1.0, 0.0], [0.6, 0.8]], [[-1.0, 3.0], [2.0, 1.0]]):
        same(both(lambda lib, v=values: constraint(lib).check(lib.tensor(v))))


WRONG = (
    "Normal(0.0, -1.0)",
    "Normal(0.0, 'a')",
    "Uniform(1.0, 0.0)",
    "Bernoulli()",
    "Bernoulli(0.5, 0.5)",
    "Bernoulli(3.0)",
    "ContinuousBernoulli(3.0, validate_args=True)",
    "Geometric(0.0)",
    "NegativeBinomial(3, 1.0)",
    "LKJCholesky(1)",
    "Normal(0.0, 1.0).log_prob(1.0)",
    "Normal(0.0, 1.0).enumerate_support()",
    "Poisson(1.0).entropy()",
    "ContinuousBernoulli(0.3).mode",
    "Independent(Normal(0.0, 1.0), 1)",
    "TransformedDistribution(Normal(0.0, 1.0), 3)",
    "TransformedDistribution(Normal(0.0, 1.0), [3])",
    "TransformedDistribution(Normal(0.0, 1.0), StickBreakingTransform())",
    "MixtureSameFamily(Normal(0.0, 1.0), Normal(0.0, 1.0))",
    "kl_divergence(Normal(0.0, 1.0), Poisson(1.0))",
    "biject_to(3)",
    "transform_to.register(3, 4)",
    "Distribution.set_default_validate_args(3)",
    "Transform().sign",
    "ExpTransform(cache_size=2)",
    "ReshapeTransform((2, 3), (5,))",
    "CorrCholeskyTransform().forward_shape((4,))",
    "CatTransform([ExpTransform(), 3])",
    "CatTransform([ExpTransform()], 0, [1, 2])",
    "constraints.dependent.check(0)",
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", WRONG)
def test_errors(text):
    theirs, ours = both(lambda lib: eval(text, vars(lib.distributions)))
    assert isinstance(theirs, type) and theirs is ours


def test_names():
    ours = rushlight.distributions
    assert set(torch.distributions.__all__) == set(ours.__all__)
    assert not [name for name in dir(torch.distributions) if not hasattr(ours, name)]
    for name in torch.distributions.__all__:
        theirs, mine = getattr(torch.distributions, name), getattr(ours, name)
        if isinstance(theirs, type):
            assert theirs.__module__.replace("torch", "rushlight", 1) == mine.__module__
            public = {a for a in vars(theirs) if a[0] != "_"}
            assert not {a for a in public if not hasattr(mine, a)}, name
    for module in ("constraints", "utils", "kl", "transforms", "constraint_registry"):
        names = getattr(torch.distributions, module).__all__
        assert not [a for a in names if not hasattr(getattr(ours, module), a)]


def test_objects_of_pytorch_can_be_read():
    """Pickles name the same classes, whose attributes have the same names."""
    theirs = torch.distributions.HalfNormal(torch.tensor([1.0, 2.0]))
    ours = copy.copy(rushlight.distributions.HalfNormal(rushlight.tensor([1.0, 2.0])))
    assert set(vars(theirs)) == set(vars(ours))
    assert set(vars(theirs.base_dist)) == set(vars(ours.base_dist))
