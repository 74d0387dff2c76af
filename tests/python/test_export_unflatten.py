"""`torch.export.unflatten`: exported programs as trees of modules."""

import operator

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.export import FlatArgsAdapter, export, unflatten
from rushlight.vision import models


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x, scale=2):
        self.count.add_(1)
        return {"y": [self.lin(x) * scale + self.count, x]}


class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
        self.seq = nn.Sequential(nn.ReLU(), nn.Linear(3, 2))
        self.tied = nn.Linear(3, 2)
        self.tied.weight = self.seq[1].weight

    def forward(self, x):
        y = self.part(x, 3)["y"]
        return self.seq(y[0]) + self.seq(y[1] + y[0]) + self.tied(y[1])


def same(net, modules, x):
    """Outputs and state after a call, of the original and of copies of it."""
    expected = net(x)
    assert torch.equal(modules(x), expected)
    state = modules.state_dict()
    assert list(state) and all(torch.equal(state[k], v) for k, v in net.state_dict().items())


def test_modules_and_their_graphs():
    torch.manual_seed(0)
    net, x = Whole(), torch.randn(2, 3)
    program = export(net, (x,))
    modules = unflatten(program)
    assert set(dict(net.named_modules())) == set(dict(modules.named_modules()))
    assert modules.part.lin.weight is not net.part.lin.weight
    assert modules.tied.weight is modules.seq.get_submodule("1").weight
    calls = [n.target for n in modules.graph.nodes if n.op == "call_module"]
    assert calls == ["part", "seq", "seq", "tied"]
    assert [n.target for n in modules.seq.graph.nodes if n.op == "call_module"] == ["0", "1"]
    assert modules.part.type_name().endswith("test_export_unflatten.Part")
    for module in modules.modules():
        for node in module.graph.nodes:
            assert node.op == "output" or node.meta.get("val") is not None
    same(net, modules, x)
    same(net, modules, torch.randn(2, 3))
    modules(x).sum().backward()
    assert modules.part.lin.weight.grad is not None and net.part.lin.weight.grad is None
    assert "call_module" not in modules.print_readable(print_output=False)


def test_signatures_that_are_kept_let_modules_be_replaced():
    net, x = Whole(), torch.randn(2, 3)
    program = export(net, (x,), preserve_module_call_signature=("part",))
    modules = unflatten(program)
    modules.part = Part()
    modules.part.load_state_dict(net.part.state_dict())
    same(net, modules, x)
    taken = [n for n in modules.graph.nodes if n.target is operator.getitem]
    assert len(taken) == 2


def test_arguments_in_other_containers():
    class Pair(nn.Module):
        def forward(self, a, b):
            return a[0] + b["k"]

    program = export(Pair(), ((torch.ones(2),), {"k": torch.ones(2)}))
    modules = unflatten(program)
    assert torch.equal(modules((torch.ones(2),), {"k": torch.ones(2)}), torch.full((2,), 2.0))
    with pytest.raises(TypeError, match="no flat args adapter"):
        modules(torch.ones(2), torch.ones(2))
    with pytest.raises(RuntimeError, match="as it was exported"):
        modules((torch.ones(3),), {"k": torch.ones(3)})

    class Any(FlatArgsAdapter):
        def adapt(self, target_spec, input_spec, input_args, metadata=None, obj=None):
            return input_args[: target_spec.num_leaves]

    modules = unflatten(program, Any())
    assert torch.equal(modules(torch.ones(2), torch.ones(2), 3), torch.full((2,), 2.0))
    with pytest.raises(TypeError, match="did not adapt number of args"):
        modules(torch.ones(2))


def test_a_module_that_computes_in_two_ways_has_two_graphs():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            return self.inner(x, True) + self.inner(x, False)

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.full((2,), 3.0))

        def forward(self, x, multiply):
            return x * self.w if multiply else x + self.w

    modules = unflatten(export(Twice(), (torch.ones(2),)))
    assert torch.equal(modules(torch.ones(2)), torch.full((2,), 7.0))
    calls = [n.target for n in modules.graph.nodes if n.op == "call_module"]
    assert calls == ["inner", "inner@1"]


@pytest.mark.parametrize("name", ["resnet18", "shufflenet_v2_x0_5", "densenet121"])
def test_networks(name):
    torch.manual_seed(0)
    net, x = getattr(models, name)(weights=None).eval(), torch.randn(1, 3, 64, 64)
    modules = unflatten(export(net, (x,)))
    assert torch.equal(modules(x), net(x))
    names = dict(net.named_modules())
    assert set(dict(modules.named_modules())) <= set(names)
