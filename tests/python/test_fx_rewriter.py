"""Traces that keep assertions and annotations (`fx.experimental.rewriter`)."""

import pytest

import rushlight as torch
from rushlight import fx, nn
from rushlight.fx.experimental.rewriter import RewritingTracer

LIMIT = 3


def traced(root):
    tracer = RewritingTracer()
    graph = tracer.trace(root)
    return fx.GraphModule(tracer.root, graph)


def test_assertions_stay_in_the_graph():
    def function(x, scale=2):
        assert x.sum() < LIMIT, "too much"
        return x * scale

    module = traced(function)
    assert any(node.target is torch._assert for node in module.graph.nodes)
    assert module(torch.ones(2), 5).tolist() == [5, 5]
    with pytest.raises(AssertionError, match="too much"):
        module(torch.ones(9))


def test_annotations_are_types_of_nodes():
    def function(x):
        y: torch.Tensor = x + 1
        z: int
        z = 2
        return y * z

    module = traced(function)
    assert torch.Tensor in [node.type for node in module.graph.nodes]
    assert module(torch.ones(1)).tolist() == [4]
    with pytest.raises(RuntimeError, match="already had a type"):
        fx.symbolic_trace(lambda x: fx.annotate(fx.annotate(x, int), float))
    assert fx.annotate(3, int) == 3


def test_modules_and_their_parts_are_rewritten():
    factor = 2

    class Part(nn.Module):
        def forward(self, x):
            assert x.shape[0] == 2
            return x * factor

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.part, self.layer = Part(), nn.Linear(3, 4)

        def forward(self, x):
            assert x.dim() == 2
            return self.layer(self.part(x))

    net = Net()
    module = traced(net)
    assert sum(node.target is torch._assert for node in module.graph.nodes) == 2
    assert [node.target for node in module.graph.nodes if node.op == "call_module"] == ["layer"]
    x = torch.randn(2, 3)
    assert torch.equal(module(x), net(x)) and "forward" not in vars(net)
    with pytest.raises(AssertionError):
        module(torch.randn(3, 3))

    def plain(x):
        return x + 1

    assert torch.equal(traced(plain)(x), x + 1)
