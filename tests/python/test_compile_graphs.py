"""Graphs of compiled programs: backends that are functions, `aot_function`, `explain`."""

import copy

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight._dynamo._aot import (
    aot_function,
    aot_module,
    default_partition,
    make_boxed_compiler,
    make_boxed_func,
    nop,
)
from rushlight._dynamo.testing import CompileCounter
from rushlight._functorch.package import compile as functorch_compile


def values(seed=3, shape=(5000,)):
    return torch.from_numpy(
        np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    ).clone()


# ---- backends that are functions ----


def test_a_function_gets_the_graph():
    graphs = []

    def backend(graph, inputs):
        graphs.append((graph, [t.shape for t in inputs]))
        return graph.forward

    @torch.compile(backend=backend)
    def function(x, scale, *, both=False):
        y = torch.relu(x * scale)
        return {"y": y, "more": [y + x, 5]} if both else y

    x = values(shape=(3, 4)).requires_grad_()
    assert torch.equal(function(x, 2), torch.relu(x * 2)) and len(graphs) == 1
    assert torch.equal(function(x + 1, 2), torch.relu((x + 1) * 2)) and len(graphs) == 1
    found = function(x, 3.0, both=True)
    assert len(graphs) == 2 and found["more"][1] == 5
    assert torch.equal(found["more"][0], torch.relu(x * 3.0) + x)
    grad = torch.autograd.grad(found["y"].sum(), x)[0]
    assert torch.equal(grad, (x > 0) * 3.0)
    names = [node.target._opname for node in graphs[0][0].graph.nodes if node.op == "call_function"]
    assert names == ["mul", "relu"] and graphs[0][1] == [(3, 4)]


def test_a_module_behind_a_function():
    counter = CompileCounter()
    net = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU())
    twin = copy.deepcopy(net)
    compiled = torch.compile(net, backend=counter)
    x = values(shape=(6, 4))
    for _ in range(3):
        compiled(x).sum().backward()
        twin(x).sum().backward()
    assert counter.frame_count == 1 and counter.op_count >= 3
    assert torch.equal(net[0].weight.grad, twin[0].weight.grad)
    assert torch.equal(net[1].running_mean, twin[1].running_mean)
    net.eval()
    twin.eval()
    assert torch.equal(compiled(x), twin(x)) and counter.frame_count == 2


def test_programs_that_no_graph_holds():
    def function(x):
        return x * 2 if x.sum() > 0 else x

    x = values().abs()
    with pytest.warns(UserWarning, match="runs as it is written"):
        assert torch.equal(torch.compile(function, backend=lambda g, i: g.forward)(x), x * 2)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="fullgraph"):
        torch.compile(function, backend=lambda g, i: g.forward, fullgraph=True)(x)


def test_explain_counts():
    found = torch._dynamo.explain(lambda x: torch.relu(x * 2 + 1))(values(shape=(10_000,)))
    assert (found.chains, found.steps, found.unseen, found.bytes_left) == (1, 3, 2, 80_000)
    assert str(found) == "1 chain of 3 steps; 2 results were never written (80000 bytes)"


# ---- forward and backward ----


def same_gradients(made, function, *args):
    """Whether results and gradients are alike."""
    found, expected = made(*args), function(*args)
    leaves = [t for t in args if isinstance(t, torch.Tensor) and t.requires_grad]
    for a, b in zip(found, expected, strict=True):
        assert torch.equal(a, b) and a.requires_grad == b.requires_grad
    sums = [
        sum((t * i).sum() for i, t in enumerate(ts, 1) if t.requires_grad)
        for ts in (found, expected)
    ]
    grads = [torch.autograd.grad(total, leaves, allow_unused=True) for total in sums]
    for a, b in zip(*grads, strict=True):
        assert (a is None and b is None) or torch.allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize(
    "compiler", [nop, make_boxed_compiler(lambda g, _: g.forward), lambda g, _: g.forward]
)
def test_forward_and_backward_are_compiled(compiler):
    def function(x, w, scale):
        hidden = torch.tanh(x @ w)
        return hidden.sum(1) * scale, x * 2, x > 0

    made = aot_function(function, compiler)
    x, w = values(1, (3, 4)).requires_grad_(), values(2, (4, 2)).requires_grad_()
    same_gradients(made, function, x, w, 3)
    same_gradients(made, function, x, w.detach(), 3)
    same_gradients(made, function, x + 1, w, 2.5)
    with torch.no_grad():
        assert torch.equal(made(x, w, 3)[0], function(x, w, 3)[0])


def test_compilers_get_what_they_are_called_with():
    seen = []

    def compiler(graph, inputs):
        names = [node.name for node in graph.graph.nodes if node.op == "placeholder"]
        seen.append((names, [tuple(t.shape) for t in inputs]))
        return make_boxed_func(graph.forward)

    made = aot_function(lambda x, y: (x * y).sin(), compiler)
    x = values(1, (3,)).requires_grad_()
    out = made(x, values(2, (3,)))
    assert [names for names, _ in seen] == [["primals_1", "primals_2"]]
    out.sum().backward()
    names, shapes = seen[1]
    assert names[-1] == "tangents_1" and len(names) == len(shapes) and len(seen) == 2
    made(x, values(2, (3,))).sum().backward()
    assert len(seen) == 2


def test_modules_are_compiled_with_their_state():
    torch.manual_seed(7)
    net = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 1))
    twin = copy.deepcopy(net)
    made, x = aot_module(net, nop), values(3, (6, 4))
    for module in (made, twin):
        module(x).sum().backward()
    for a, b in zip(net.parameters(), twin.parameters(), strict=True):
        assert torch.allclose(a.grad, b.grad, rtol=1e-4, atol=1e-5)
    for a, b in zip(net.buffers(), twin.buffers(), strict=True):
        assert torch.allclose(a, b, rtol=1e-5)
    made.eval()
    twin.eval()
    assert torch.allclose(made(x), twin(x), rtol=1e-5)


def test_arguments_that_cannot_be_told_apart():
    with pytest.raises(ValueError, match="hashable"):
        aot_function(lambda x, s: x, nop)(values(), {1, 2})


def test_names_of_functorch():
    assert functorch_compile.aot_function is aot_function
    assert functorch_compile.default_partition is default_partition
