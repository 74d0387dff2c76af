"""Lazy modules: sizes from the first call or from a state, and what cannot be done before."""

import copy
import pickle

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn.parameter import is_lazy

# A lazy module, the ordinary one that it becomes, a shape of its input.
CASES = [
    (lambda: nn.LazyLinear(4), lambda: nn.Linear(3, 4), (2, 3)),
    (lambda: nn.LazyConv1d(4, 3, groups=2), lambda: nn.Conv1d(4, 4, 3, groups=2), (4, 9)),
    (
        lambda: nn.LazyConv2d(6, 3, 2, 1, 1, 1, False),
        lambda: nn.Conv2d(3, 6, 3, 2, 1, 1, 1, False),
        (2, 3, 8, 8),
    ),
    (lambda: nn.LazyConv3d(2, 3), lambda: nn.Conv3d(3, 2, 3), (1, 3, 4, 4, 4)),
    (
        lambda: nn.LazyConvTranspose1d(6, 3, 2, 1, 1, 1, True, 2),
        lambda: nn.ConvTranspose1d(3, 6, 3, 2, 1, 1, 1, True, 2),
        (2, 3, 8),
    ),
    (lambda: nn.LazyConvTranspose2d(4, 3), lambda: nn.ConvTranspose2d(5, 4, 3), (2, 5, 6, 6)),
    (lambda: nn.LazyConvTranspose3d(2, 2), lambda: nn.ConvTranspose3d(3, 2, 2), (1, 3, 2, 2, 2)),
    (lambda: nn.LazyBatchNorm1d(), lambda: nn.BatchNorm1d(3), (2, 3)),
    (
        lambda: nn.LazyBatchNorm2d(momentum=0.3),
        lambda: nn.BatchNorm2d(3, momentum=0.3),
        (2, 3, 4, 4),
    ),
    (
        lambda: nn.LazyBatchNorm3d(affine=False),
        lambda: nn.BatchNorm3d(3, affine=False),
        (2, 3, 2, 2, 2),
    ),
    (
        lambda: nn.LazyInstanceNorm1d(),
        lambda: nn.InstanceNorm1d(3, affine=True, track_running_stats=True),
        (2, 3, 5),
    ),
    (
        lambda: nn.LazyInstanceNorm2d(affine=False, track_running_stats=False),
        lambda: nn.InstanceNorm2d(3),
        (2, 3, 5, 5),
    ),
]
IDS = [type(make()).__name__ for make, _, _ in CASES]


def tensors(module):
    return list(module.state_dict().items())


@pytest.mark.parametrize(("lazy", "ordinary", "shape"), CASES, ids=IDS)
def test_the_first_call_makes_an_ordinary_module(lazy, ordinary, shape):
    x = torch.randn(*shape)
    module = lazy()
    assert module.has_uninitialized_params() == bool(tensors(module))
    torch.manual_seed(0)
    y = module(x)
    torch.manual_seed(0)
    other = ordinary()
    assert type(module) is type(other) and repr(module) == repr(other)
    assert torch.equal(y, other(x))
    for (name, a), (other_name, b) in zip(tensors(module), tensors(other), strict=True):
        assert name == other_name and torch.equal(a, b)
    assert not module._forward_pre_hooks and not module._load_state_dict_pre_hooks
    module.zero_grad()
    module(x).sum().backward() if y.requires_grad else module(x)


@pytest.mark.parametrize(("lazy", "ordinary", "shape"), CASES, ids=IDS)
def test_a_state_gives_sizes(lazy, ordinary, shape):
    source = ordinary()
    module = lazy()
    assert not any(module.load_state_dict(source.state_dict()))
    assert not module.has_uninitialized_params()
    x = torch.randn(*shape)
    assert torch.equal(module(x), source(x))
    assert type(module) is type(source) and repr(module) == repr(source)


@pytest.mark.parametrize(("lazy", "shape"), [(c[0], c[2]) for c in CASES[:8]], ids=IDS[:8])
def test_before_the_first_call(lazy, shape):
    module = lazy()
    for copied in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert copied.has_uninitialized_params() and repr(copied) == repr(module)
    module.double()
    states = module.state_dict()
    assert all(is_lazy(v) == ("num_batches" not in k) for k, v in states.items())
    assert not any(lazy().load_state_dict(states))
    y = module(torch.randn(*shape).double())
    assert y.dtype == torch.float64
    assert all(p.dtype == torch.float64 and not is_lazy(p) for p in module.parameters())


def test_errors():
    weight = nn.LazyLinear(3).weight
    assert repr(weight) == "<UninitializedParameter>"
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter"):
        _ = weight.shape
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
        _ = weight + 1
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
        torch.sum(weight)
    with pytest.raises(RuntimeError, match="Can't share memory on an uninitialized parameter"):
        weight.share_memory_()
    with pytest.raises(ValueError, match="out_channels must be divisible by groups"):
        nn.LazyConv2d(5, 3, groups=2)
    with pytest.raises(ValueError, match="in_channels must be divisible by groups"):
        nn.LazyConv2d(4, 3, groups=2)(torch.randn(1, 3, 5, 5))
    with pytest.raises(RuntimeError, match=r"Expected 3D \(unbatched\) or 4D \(batched\) input"):
        nn.LazyConv2d(4, 3)(torch.randn(3, 5))
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        nn.LazyConv2d(4, 3, colour=1)
    ordinary = nn.Linear(2, 3)
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized"):
        ordinary.load_state_dict(nn.LazyLinear(3).state_dict())


def test_a_class_of_ones_own():
    class Scale(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.factor = nn.Parameter(torch.ones(n))

        def forward(self, x):
            return x * self.factor

    class LazyScale(nn.modules.lazy.LazyModuleMixin, Scale):
        cls_to_become = Scale

        def __init__(self):
            super().__init__(0)
            self.factor = nn.UninitializedParameter()

        def initialize_parameters(self, x):
            self.factor.materialize((x.shape[-1],))
            with torch.no_grad():
                self.factor.fill_(2)

    net = nn.Sequential(LazyScale())
    assert net(torch.ones(2, 3)).tolist() == [[2.0] * 3] * 2
    assert type(net[0]) is Scale

    class Forgetful(nn.modules.lazy.LazyModuleMixin, Scale):
        def __init__(self):
            super().__init__(0)
            self.factor = nn.UninitializedParameter()

        def initialize_parameters(self, x):
            pass

    with pytest.raises(RuntimeError, match="module Forgetful has not been fully initialized"):
        Forgetful()(torch.ones(2))
