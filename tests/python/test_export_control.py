"""Branches and loops in exported programs, in `make_fx` and in files."""

import io

import pytest

import rushlight as torch
from rushlight import nn
from rushlight._dynamo.exc import UncapturedHigherOrderOpError
from rushlight._higher_order_ops import map as map_
from rushlight._higher_order_ops import scan, while_loop
from rushlight.export import export, load, save
from rushlight.fx.experimental.proxy_tensor import make_fx


class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.shift = nn.Linear(3, 3), torch.ones(3)

    def forward(self, x):
        def inner(x):
            return torch.cond(
                x.max() > 1,
                lambda x: self.lin(x) + self.shift,
                lambda x: x * torch.tensor(2.0),
                (x,),
            )

        return torch.cond(x.sum() > 0, inner, lambda x: x.sin() + self.shift, (x,)) + 1


class While(nn.Module):
    def forward(self, i, x, n):
        return while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x * 2 + n), (i, x))


class Map(nn.Module):
    def forward(self, xs, y):
        return map_(lambda x, y: (x["a"] + y, x["a"] * x["b"]), xs, y)


class Scan(nn.Module):
    def __init__(self):
        super().__init__()
        self.rate = nn.Parameter(torch.full((3,), 0.5))

    def forward(self, init, xs):
        return scan(lambda c, x: (c * self.rate + x, c - x), init, xs)


class NoGrad(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x.exp(), lambda x: x.cos(), (x.view(-1),))


CASES = {
    "cond": (Branch, [(torch.full((2, 3), v),) for v in (2.0, 0.1, -1.0)]),
    "while": (
        While,
        [(torch.tensor(0), torch.ones(2), torch.tensor(n)) for n in (3, 0, 1)],
    ),
    "map": (Map, [({"a": torch.randn(4, 3), "b": torch.randn(4, 3)}, torch.randn(3))]),
    "scan": (Scan, [(torch.zeros(3), torch.randn(4, 3))]),
    "views": (NoGrad, [(torch.ones(2, 2),), (-torch.ones(2, 2),)]),
}


def leaves(tree):
    return torch.utils._pytree.tree_leaves(tree)


@pytest.mark.parametrize("name", CASES)
def test_programs_and_files(name):
    torch.manual_seed(0)
    kind, inputs = CASES[name]
    net = kind()
    program = export(net, inputs[0])
    program.validate()
    file = io.BytesIO()
    save(program, file)
    file.seek(0)
    again = load(file)
    rows = [[(n.op, n.name, str(n.target)) for n in p.graph.nodes] for p in (program, again)]
    assert rows[0] == rows[1]
    modules = [program.module(), again.module()]
    for args in inputs:
        for module in modules:
            for a, b in zip(leaves(module(*args)), leaves(net(*args)), strict=True):
                assert torch.equal(a, b)


def test_nodes():
    program = export(Branch(), (torch.ones(2, 3),))
    node = next(n for n in program.graph.nodes if n.name == "cond")
    assert node.target is torch.ops.higher_order.cond
    pred, true_graph, false_graph, operands = node.args
    assert pred.name == "gt" and [n.op for n in (true_graph, false_graph)] == ["get_attr"] * 2
    names = [n.name for n in operands]
    assert names[0] == "x" and {"p_lin_weight", "p_lin_bias", "c_shift"} <= set(names)
    inner = program.graph_module.true_graph_0
    assert len(inner.graph.find_nodes(op="placeholder")) == len(operands)
    assert "torch.ops.higher_order.cond(" in program.graph_module.code
    assert "class true_graph_0(torch.nn.Module):" in str(program)
    x = torch.full((2, 3), 2.0, requires_grad=True)
    program.module()(x).sum().backward()
    assert x.grad is not None


def test_what_does_not_fit():
    def run(true, false):
        class Net(nn.Module):
            def forward(self, x):
                return torch.cond(x.sum() > 0, true, false, (x,))

        return export(Net(), (torch.ones(2, 3),))

    with pytest.raises(UncapturedHigherOrderOpError, match="aliasing"):
        run(lambda x: x, lambda x: x + 1)
    with pytest.raises(UncapturedHigherOrderOpError, match="same sizes and dtypes"):
        run(lambda x: x[0] + 1, lambda x: x + 1)
    with pytest.raises(UncapturedHigherOrderOpError, match="gives tensors"):
        run(lambda x: 1, lambda x: x + 1)
    with pytest.raises(NotImplementedError, match="takes graphs"):
        run(lambda x: x + 1, lambda x: x - 1).run_decompositions()
    # Outside of a trace they run as Python.
    assert torch.cond(torch.tensor(True), lambda x: x, lambda x: -x, (3,)) == 3


@pytest.mark.parametrize("mode", ["real", "fake"])
@pytest.mark.parametrize("above", [False, True])
def test_make_fx(mode, above):
    outside = torch.full((2,), 3.0)

    def f(pred, x):
        return torch.cond(pred, lambda x: x.sin() + outside, lambda x: x.cos(), (x,)) * 2

    x = torch.randn(2)
    traced = make_fx(f, None, mode, True, pre_dispatch=above)(torch.tensor(True), x)
    assert "higher_order.cond" in traced.code
    for pred in (torch.tensor(True), torch.tensor(False)):
        torch.testing.assert_close(traced(pred, x), f(pred, x))
