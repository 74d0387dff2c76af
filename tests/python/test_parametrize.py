"""Parametrizations: what they keep, what can be assigned, copied and removed."""

import copy
import itertools
import pickle

import pytest

import rushlight as rl
from rushlight.nn.utils import parametrizations, parametrize

SHAPES = [(3, 3), (5, 3), (3, 5), (4, 1), (1, 4), (2, 4, 3), (2, 3, 4)]
MAPS = ["matrix_exp", "cayley", "householder"]


def with_weight(*shape, dtype=rl.float64):
    module = rl.nn.Module()
    module.weight = rl.nn.Parameter(rl.randn(*shape, dtype=dtype))
    return module


def assert_orthonormal(w):
    tall = w if w.size(-2) >= w.size(-1) else w.mT
    product = tall.mH @ tall
    identity = rl.eye(product.size(-1), dtype=w.dtype).expand_as(product)
    rl.testing.assert_close(product, identity, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [rl.float64, rl.complex128])
@pytest.mark.parametrize("shape", SHAPES)
def test_orthogonal_stays_so_while_it_is_trained(shape, dtype):
    for name, trivial in itertools.product([None, *MAPS], [True, False]):
        if dtype.is_complex and name == "householder":
            continue
        module = with_weight(*shape, dtype=dtype)
        before = module.weight.detach().clone()
        parametrizations.orthogonal(module, "weight", name, use_trivialization=trivial)
        assert_orthonormal(module.weight)
        trained = module.parametrizations.weight.original
        loss = (module.weight - before).abs().square().sum()
        loss.backward()
        with rl.no_grad():
            trained -= 1e-3 * trained.grad
        assert_orthonormal(module.weight)
        moved = (module.weight - before).abs().square().sum()
        # Where the gradient is zero, at a single number for one, there is no way to go.
        assert moved < loss or trained.grad.abs().max() < 1e-12


@pytest.mark.parametrize("shape", SHAPES)
def test_an_orthogonal_weight_can_be_assigned(shape):
    for name, trivial in [*((name, True) for name in MAPS), ("householder", False)]:
        module = with_weight(*shape)
        parametrizations.orthogonal(module, "weight", name, use_trivialization=trivial)
        value = parametrizations.orthogonal(with_weight(*shape), "weight").weight.detach()
        module.weight = value
        rl.testing.assert_close(module.weight, value)
    parametrizations.orthogonal(module := with_weight(3, 3), use_trivialization=False)
    with pytest.raises(NotImplementedError):
        module.weight = rl.eye(3, dtype=rl.float64)
    with pytest.raises(ValueError, match="matrix or batch of matrices of shape"):
        parametrizations.orthogonal(module := with_weight(3, 2)).weight = rl.eye(3)


def test_orthogonal_refuses():
    with pytest.raises(ValueError, match="no parameter or buffer"):
        parametrizations.orthogonal(rl.nn.Linear(2, 2), "wait")
    with pytest.raises(ValueError, match="matrix or batch of matrices"):
        parametrizations.orthogonal(rl.nn.Linear(2, 2), "bias")
    with pytest.raises(ValueError, match="orthogonal_map has to be one of"):
        parametrizations.orthogonal(rl.nn.Linear(2, 2), orthogonal_map="polar")
    with pytest.raises(ValueError, match="does not support complex"):
        parametrizations.orthogonal(with_weight(3, 2, dtype=rl.complex64), "weight", "householder")


class Doubled(rl.nn.Module):
    def forward(self, x):
        return 2 * x

    def right_inverse(self, x):
        return x / 2


class Sum(rl.nn.Module):
    def forward(self, a, b):
        return a + b

    def right_inverse(self, x):
        return x / 3, x / 3 * 2


@pytest.mark.parametrize("function", [Doubled, Sum])
def test_assignment_and_removal(function):
    linear = rl.nn.Linear(3, 2)
    weight = linear.weight.detach().clone()
    parametrize.register_parametrization(linear, "weight", function())
    trained = list(linear.parametrizations.weight.parameters())
    rl.testing.assert_close(linear.weight, weight)
    linear.weight = weight + 1
    rl.testing.assert_close(linear.weight, weight + 1)
    assert [id(p) for p in linear.parametrizations.weight.parameters()] == [id(p) for p in trained]
    parametrize.remove_parametrizations(linear, "weight")
    assert type(linear) is rl.nn.Linear
    assert isinstance(linear.weight, rl.nn.Parameter)
    rl.testing.assert_close(linear.weight.detach(), weight + 1)
    linear(rl.ones(1, 3)).sum().backward()
    assert linear.weight.grad is not None


def test_removal_that_leaves_the_original():
    linear = parametrize.register_parametrization(rl.nn.Linear(2, 2), "weight", Doubled())
    original = linear.parametrizations.weight.original.detach().clone()
    parametrize.remove_parametrizations(linear, "weight", leave_parametrized=False)
    assert rl.equal(linear.weight, original)


class Slotted(rl.nn.Linear):
    __slots__ = ("note",)


def test_a_copy_is_apart_and_has_everything():
    module = Slotted(3, 2)
    module.note = ["kept"]
    module.itself = [module]
    parametrize.register_parametrization(module, "weight", Doubled())
    twin = copy.deepcopy(module)
    assert type(twin) is type(module)
    assert twin.note == ["kept"] and twin.note is not module.note
    assert twin.itself[0] is twin
    assert rl.equal(twin.weight, module.weight)
    twin.weight = rl.zeros(2, 3)
    assert module.weight.abs().sum() > 0 and twin.weight.abs().sum() == 0
    with pytest.raises(RuntimeError, match="state_dict"):
        pickle.dumps(module)


def test_cached_computes_once():
    calls = []

    class Counted(rl.nn.Module):
        def forward(self, x):
            calls.append(1)
            return x * 1

    linear = parametrize.register_parametrization(rl.nn.Linear(2, 2), "weight", Counted())
    del calls[:]
    with parametrize.cached():
        assert linear.weight is linear.weight
    assert len(calls) == 1
    assert linear.weight is not linear.weight


def test_transfer():
    source = parametrize.register_parametrization(rl.nn.Linear(2, 2), "weight", Doubled())
    target = rl.nn.Linear(2, 2)
    parametrize.transfer_parametrizations_and_params(source, target)
    assert parametrize.type_before_parametrizations(target) is rl.nn.Linear
    assert target.parametrizations.weight.original is source.parametrizations.weight.original
    assert rl.equal(target.weight, source.weight)


@pytest.mark.parametrize(
    "right_inverse, message",
    [
        (lambda self, x: (x, x), "right_inverse must return a tensor"),
        (lambda self, x: x.bool(), "must have the same dtype"),
        (lambda self, x: x[:-1], "must have the same shape"),
    ],
)
def test_a_second_parametrization_sets_what_is_there(right_inverse, message):
    layer = rl.nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", rl.nn.Identity())
    wrong = type("Wrong", (rl.nn.Identity,), {"right_inverse": right_inverse})()
    with pytest.raises(ValueError, match=message):
        parametrize.register_parametrization(layer, "weight", wrong)
    assert len(layer.parametrizations.weight) == 1
    parametrize.register_parametrization(layer, "weight", wrong, unsafe=True)
    assert len(layer.parametrizations.weight) == 2


@pytest.mark.parametrize("unsafe", [False, True])
def test_what_is_trained_keeps_its_dtype(unsafe):
    layer = rl.nn.Linear(3, 3)
    members = {"right_inverse": lambda self, x: x.int()}
    wrong = type("Wrong", (rl.nn.Identity,), members)()
    with pytest.raises(ValueError, match=r"may not change the dtype: .*float32 became .*int32"):
        parametrize.register_parametrization(layer, "weight", wrong, unsafe=unsafe)
    assert not parametrize.is_parametrized(layer)


def test_lengths_along_a_dimension_that_is_not_there():
    for dim in (2, -3):
        layer = rl.nn.Linear(3, 2)
        with pytest.raises(IndexError, match="out of range"):
            parametrizations.weight_norm(layer, dim=dim)
        with pytest.warns(FutureWarning), pytest.raises(IndexError, match="out of range"):
            rl.nn.utils.weight_norm(layer, dim=dim)
        assert sorted(layer.state_dict()) == ["bias", "weight"]
