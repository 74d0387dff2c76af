"""Transforms: inverses, Jacobians by autograd, shapes, caches; constraints and what leads to them."""

import copy
import math
import pickle

import pytest

import rushlight as torch
from rushlight.distributions import Normal, biject_to, constraints, transform_to
from rushlight.distributions import transforms as t
from rushlight.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix

DOUBLE = torch.float64
# A transform, the shape of an event, and how many numbers its image is determined by.
BIJECTIONS = {
    "exp": (t.ExpTransform(), ()),
    "power": (t.PowerTransform(torch.tensor(1.7, dtype=DOUBLE)), ()),
    "inverse power": (t.PowerTransform(torch.tensor(-0.5, dtype=DOUBLE)), ()),
    "sigmoid": (t.SigmoidTransform(), ()),
    "softplus": (t.SoftplusTransform(), ()),
    "tanh": (t.TanhTransform(), ()),
    "affine": (t.AffineTransform(0.5, -2.0), ()),
    "affine of vectors": (t.AffineTransform(0.5, torch.tensor([1.0, -2.0, 3.0]).double(), 1), (3,)),
    "stick breaking": (t.StickBreakingTransform(), (3,)),
    "correlations": (t.CorrCholeskyTransform(), (6,)),
    "cdf": (t.CumulativeDistributionTransform(Normal(torch.tensor(0.3).double(), 2.0)), ()),
    "reshape": (t.ReshapeTransform((2, 3), (3, 2)), (2, 3)),
    "independent": (t.IndependentTransform(t.ExpTransform(), 1), (4,)),
    "composed": (
        t.ComposeTransform([t.AffineTransform(1.0, 0.3), t.StickBreakingTransform()]),
        (3,),
    ),
    "pieces": (
        t.IndependentTransform(
            t.CatTransform([t.ExpTransform(), t.AffineTransform(0.0, 2.0)], -1, [1, 3]), 1
        ),
        (4,),
    ),
    "slices": (
        t.IndependentTransform(t.StackTransform([t.ExpTransform(), t.TanhTransform()], -1), 1),
        (2,),
    ),
    "inverse": (t.SigmoidTransform().inv, ()),
}


def inputs(shape):
    """Numbers of the domain."""
    torch.manual_seed(0)
    return torch.rand(5, *shape, dtype=DOUBLE) * 0.8 + 0.1


def free_part(name, y):
    """The numbers of an image that the others do not determine, as a vector."""
    if name in ("stick breaking", "composed"):
        return y[..., :-1]
    if name == "correlations":
        return tril_matrix_to_vec(y, -1)
    return y.reshape(-1)


@pytest.mark.parametrize("name", BIJECTIONS)
def test_inverses(name):
    transform, shape = BIJECTIONS[name]
    x = inputs(shape)
    y = transform(x)
    assert transform.bijective and transform.inv.inv == transform
    assert torch.allclose(transform.inv(y), x)
    assert transform.domain.check(x).all() and transform.codomain.check(y).all()
    assert y.shape == torch.Size(transform.forward_shape(x.shape))
    assert x.shape == torch.Size(transform.inverse_shape(y.shape))
    again = pickle.loads(pickle.dumps(transform))
    assert torch.equal(again(x), y) and repr(again) == repr(transform)
    assert torch.equal(copy.deepcopy(transform)(x), y)


@pytest.mark.parametrize("name", BIJECTIONS)
def test_jacobians(name):
    transform, shape = BIJECTIONS[name]
    x = inputs(shape)
    y = transform(x)
    found = transform.log_abs_det_jacobian(x, y)
    assert found.shape == x.shape[: x.dim() - len(shape)]
    assert torch.allclose(transform.inv.log_abs_det_jacobian(y, x), -found)
    for i in range(len(x)):
        matrix = torch.autograd.functional.jacobian(
            lambda v: free_part(name, transform(v)).reshape(-1), x[i : i + 1]
        )
        n = math.prod(shape)
        expected = torch.linalg.slogdet(matrix.reshape(n, n)).logabsdet
        assert torch.allclose(found[i], expected), name


def test_signs_say_which_way():
    for name in ("exp", "power", "inverse power", "sigmoid", "softplus", "tanh", "affine", "cdf"):
        transform, _ = BIJECTIONS[name]
        low, high = transform(torch.tensor([0.2, 0.6], dtype=DOUBLE))
        assert (high - low).sign() == float(transform.sign), name
    assert t.ComposeTransform([t.ExpTransform(), t.AffineTransform(0.0, -1.0)]).sign == -1
    with pytest.raises(NotImplementedError):
        t.AbsTransform().sign  # noqa: B018


def test_what_is_not_one_to_one():
    x = torch.randn(4, 3, 3, dtype=DOUBLE)
    for transform, y in ((t.LowerCholeskyTransform(), None), (t.PositiveDefiniteTransform(), None)):
        y = transform(x)
        assert transform.codomain.check(y).all()
        assert torch.allclose(transform(transform.inv(y)), y)
    probabilities = t.SoftmaxTransform()(x)
    assert torch.allclose(probabilities.sum(-1), torch.ones(4, 3, dtype=DOUBLE))
    assert torch.allclose(
        t.SoftmaxTransform()(t.SoftmaxTransform().inv(probabilities)), probabilities
    )
    assert torch.equal(t.AbsTransform()(-x.abs()), x.abs())
    with pytest.raises(NotImplementedError):
        t.AbsTransform().log_abs_det_jacobian(x, x)


@pytest.mark.parametrize("name", BIJECTIONS)
def test_caches(name):
    transform, shape = BIJECTIONS[name]
    cached = transform.with_cache(1)
    x = inputs(shape)
    y = cached(x)
    assert cached(x) is y or isinstance(cached, t.ReshapeTransform) or cached(x).equal(y)
    assert torch.equal(y, transform(x))
    assert cached.with_cache(1) is cached or name == "inverse"
    if type(cached) not in (t.ComposeTransform,):
        assert cached.inv(y) is x
    with pytest.raises(ValueError, match="cache_size"):
        t.ExpTransform(cache_size=2)


def test_transforms_compare_by_what_they_do():
    assert t.ExpTransform() == t.ExpTransform() and t.ExpTransform() != t.TanhTransform()
    assert t.AffineTransform(0, 1) == t.AffineTransform(0.0, 1.0)
    assert t.AffineTransform(0.0, 1.0) != t.AffineTransform(0.0, 2.0)
    assert t.PowerTransform(2.0) == t.PowerTransform(torch.tensor(2.0))
    assert t.ExpTransform().inv == t.ExpTransform().inv != t.ExpTransform()
    both = [t.ExpTransform(), t.TanhTransform()]
    assert t.ComposeTransform(both) == t.ComposeTransform(list(both))


def test_wrong_shapes():
    for call, message in (
        (lambda: t.CorrCholeskyTransform().forward_shape((4,)), "flattened lower-diagonal"),
        (lambda: t.CorrCholeskyTransform().inverse_shape((3, 4)), "not square"),
        (lambda: t.StickBreakingTransform().forward_shape(()), "Too few dimensions"),
        (lambda: t.ReshapeTransform((2, 3), (5,)), "different numbers of elements"),
        (lambda: t.ReshapeTransform((2, 3), (6,)).forward_shape((3, 2)), "Shape mismatch"),
        (lambda: t.IndependentTransform(t.ExpTransform(), 1)(torch.tensor(1.0)), "Too few"),
        (lambda: t.CorrCholeskyTransform().event_dim, "domain.event_dim or"),
        (lambda: vec_to_tril_matrix(torch.ones(4)), "lower triangular part"),
        (lambda: tril_matrix_to_vec(torch.ones(3, 3), 3), "outside"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    for call in (
        lambda: t.CatTransform([t.ExpTransform(), 3]),
        lambda: t.CatTransform([t.ExpTransform()], 0, [1, 2]),
        lambda: t.CatTransform([t.ExpTransform()], 0, [2])(torch.ones(3)),
        lambda: t.StackTransform([t.ExpTransform()])(torch.ones(3)),
    ):
        with pytest.raises(AssertionError):
            call()


def test_triangles_and_vectors():
    for diag in (-2, -1, 0, 1):
        matrix = torch.randn(2, 4, 4).tril(diag)
        assert torch.equal(vec_to_tril_matrix(tril_matrix_to_vec(matrix, diag), diag), matrix)


EXAMPLES = [
    # a constraint, what it allows, what not
    (constraints.boolean, [0.0, 1.0], [0.5, 2.0]),
    (constraints.integer_interval(0, 3), [0.0, 3.0], [0.5, 4.0]),
    (constraints.nonnegative_integer, [0.0, 7.0], [-1.0, 0.5]),
    (constraints.real, [0.0, math.inf], [math.nan]),
    (constraints.positive, [0.1], [0.0, -1.0]),
    (constraints.nonnegative, [0.0], [-1.0]),
    (constraints.less_than(1.0), [0.5], [1.0]),
    (constraints.unit_interval, [0.0, 1.0], [-0.1, 1.1]),
    (constraints.half_open_interval(0.0, 1.0), [0.0], [1.0]),
    (constraints.simplex, [[0.5, 0.5]], [[0.5, 0.6], [-0.5, 1.5]]),
    (constraints.one_hot, [[0.0, 1.0]], [[1.0, 1.0], [0.5, 0.5]]),
    (constraints.multinomial(3), [[1.0, 2.0]], [[2.0, 2.0], [-1.0, 1.0]]),
    (constraints.real_vector, [[0.0, 1.0]], [[0.0, math.nan]]),
    (constraints.lower_cholesky, [[[1.0, 0.0], [5.0, 2.0]]], [[[1.0, 1.0], [0.0, 1.0]]]),
    (constraints.lower_triangular, [[[1.0, 0.0], [5.0, -2.0]]], [[[1.0, 1.0], [0.0, 1.0]]]),
    (constraints.corr_cholesky, [[[1.0, 0.0], [0.6, 0.8]]], [[[1.0, 0.0], [0.6, 0.9]]]),
    (constraints.positive_definite, [[[2.0, 1.0], [1.0, 2.0]]], [[[1.0, 2.0], [2.0, 1.0]]]),
    (constraints.positive_semidefinite, [[[1.0, 1.0], [1.0, 1.0]]], [[[1.0, 2.0], [2.0, 1.0]]]),
    (constraints.symmetric, [[[1.0, 2.0], [2.0, 1.0]]], [[[1.0, 2.0], [3.0, 1.0]]]),
    (constraints.cat([constraints.real, constraints.positive], -1), [[-1.0, 1.0]], None),
    (constraints.stack([constraints.real, constraints.positive], -1), [[-1.0, 1.0]], None),
]


@pytest.mark.parametrize(("constraint", "good", "bad"), EXAMPLES, ids=lambda v: str(v)[:30])
def test_constraints(constraint, good, bad):
    assert constraint.check(torch.tensor(good)).all()
    if bad is not None:
        assert not constraint.check(torch.tensor(bad)).any()
    joined = constraints.independent(constraint, 1)
    assert joined.event_dim == constraint.event_dim + 1
    assert joined.check(torch.tensor(good)).all()
    for registry in (biject_to, transform_to):
        try:
            transform = registry(constraint)
        except NotImplementedError:
            continue
        shape = torch.Size(transform.inverse_shape(torch.tensor(good).shape))
        y = transform(torch.randn(7, *shape, dtype=DOUBLE))
        assert constraint.check(y).all()
        assert registry is transform_to or transform.bijective


def test_registries_take_ones_own():
    class Even(constraints.Constraint):
        pass

    with pytest.raises(NotImplementedError, match="Cannot transform Even"):
        transform_to(Even())
    registry = type(transform_to)()

    @registry.register(Even)
    def factory(constraint):
        return t.AffineTransform(0.0, 2.0)

    assert registry(Even()) == factory(None)
    with pytest.raises(TypeError, match="Constraint subclass or instance"):
        registry.register(3, factory)


def test_dependent_constraints():
    class Box:
        low = torch.tensor(2.0)

        @constraints.dependent_property(is_discrete=False, event_dim=0)
        def support(self):
            return constraints.greater_than(self.low)

    assert constraints.is_dependent(Box.support) and Box.support.event_dim == 0
    assert not constraints.is_dependent(Box().support)
    assert not Box().support.check(torch.tensor(1.0))
    with pytest.raises(ValueError, match="dependent constraint"):
        constraints.dependent.check(torch.tensor(1.0))
    with pytest.raises(NotImplementedError, match="event_dim"):
        constraints.dependent.event_dim  # noqa: B018
    assert constraints.dependent(event_dim=2).event_dim == 2
