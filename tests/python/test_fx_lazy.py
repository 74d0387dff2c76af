"""Graph modules whose `forward` is written when it is first wanted."""

import copy
import pickle

import pytest

import rushlight as torch
from rushlight import fx
from rushlight.fx._lazy_graph_module import (
    _LazyGraphModule,
    _make_graph_module,
    _use_lazy_graph_module,
)
from rushlight.fx.experimental.proxy_tensor import make_fx


@pytest.fixture
def lazy():
    with _use_lazy_graph_module(True):
        yield fx.symbolic_trace(lambda x: x.sin())


def test_it_is_written_by_the_first_call(lazy):
    x = torch.randn(3)
    assert isinstance(lazy, _LazyGraphModule) and lazy._needs_recompile()
    kept = lazy.forward
    assert torch.equal(lazy(x), x.sin()) and not lazy._needs_recompile()
    next(n for n in lazy.graph.nodes if n.target == "sin").target = "cos"
    lazy.recompile()
    assert lazy._needs_recompile() and torch.equal(kept(x), x.cos())
    assert not lazy._needs_recompile()


@pytest.mark.parametrize("want", [lambda m: m.code, str, pickle.dumps, fx.symbolic_trace])
def test_and_by_whoever_wants_its_code(lazy, want):
    want(lazy)
    assert not lazy._needs_recompile() and "sin" in lazy.code


def test_what_is_made_of_it_is_lazy_too(lazy):
    x = torch.randn(3)
    copies = (copy.copy(lazy), copy.deepcopy(lazy), pickle.loads(pickle.dumps(lazy)))
    for made in (*copies, make_fx(lazy)(x), fx.symbolic_trace(lazy)):
        assert isinstance(made, _LazyGraphModule) and made._needs_recompile()
        assert torch.equal(made(x), x.sin())


def test_kinds(lazy):
    plain = _make_graph_module(lazy, lazy.graph, class_name="Own", graph_module_cls=fx.GraphModule)
    assert not isinstance(plain, _LazyGraphModule) and type(plain).__name__ == "Own"
    made = _LazyGraphModule.from_graphmodule(plain)
    assert made._needs_recompile() and _LazyGraphModule.from_graphmodule(made) is made
    _LazyGraphModule.force_recompile(made)
    assert not made._needs_recompile()
    with _use_lazy_graph_module(False):
        assert not isinstance(fx.symbolic_trace(lazy), _LazyGraphModule)
    assert isinstance(fx.symbolic_trace(lazy), _LazyGraphModule)


def test_ops_of_modules_that_a_function_uses_are_traced():
    model = torch.nn.Sequential(
        torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 1, bias=False)
    ).eval()
    constant, x = torch.ones(3, 2), torch.randn(3, 2)

    def forward(x):
        return model(x + constant) + model[0].weight.sum()

    def gradients(x):
        return torch.autograd.grad(model(x).sum(), list(model.parameters()))

    for function in (forward, model, gradients, lambda x: (model[0].weight, x)):
        traced, y = make_fx(function)(x), torch.randn(3, 2)
        found, expected = traced(y), function(y)
        torch.testing.assert_close(found, expected)
        used = {name for name, _ in traced.named_parameters()}
        reads = {str(n.target) for n in traced.graph.nodes if n.op == "get_attr"}
        assert used and used <= reads and all(name.startswith("_param_constant") for name in used)
        assert {id(p) for p in traced.parameters()} <= {id(p) for p in model.parameters()}
