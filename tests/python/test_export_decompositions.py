"""`ExportedProgram.run_decompositions`: fewer ops, no writes in place, the same results."""

import copy

import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn
from rushlight.export import Dim, default_decompositions, export
from rushlight.export.graph_signature import OutputKind
from rushlight.vision import models
from tests.python.test_export import Branchy, branchy_inputs, targets


def module(function):
    class Net(nn.Module):
        def forward(self, *args):
            return function(*args)

    return Net()


def decomposed(function, *args):
    """A decomposed program; it has computed what the function computes, writes included."""
    net = module(function)
    program = export(net, args).run_decompositions()
    program.validate()
    assert not any(n.target._schema.is_mutable for n in program.graph.nodes if is_op(n))
    theirs, mine = copy.deepcopy(args), copy.deepcopy(args)
    torch.manual_seed(0)
    expected = net(*theirs)
    torch.manual_seed(0)
    got = program.module()(*mine)
    torch.testing.assert_close(got, expected)
    torch.testing.assert_close(list(mine), list(theirs))
    return program


def is_op(node):
    return hasattr(node.target, "_schema")


def test_layers_become_core_ops():
    program = export(Branchy(), *branchy_inputs()).run_decompositions()
    called = set(targets(program))
    assert {"aten.convolution.default", "aten.addmm.default", "aten.relu.default"} <= called
    assert not {"aten.conv2d.default", "aten.linear.default", "aten.relu_.default"} & called
    kinds = [(s.kind, s.target) for s in program.graph_signature.output_specs]
    assert kinds[:4] == [
        (OutputKind.BUFFER_MUTATION, name)
        for name in ("count", "norm.running_mean", "norm.running_var", "norm.num_batches_tracked")
    ]
    assert program.dialect == "ATEN"
    node = next(n for n in program.graph.nodes if n.name == "convolution")
    assert "test_export.py" in node.meta["stack_trace"]
    assert "L__self__conv" in node.meta["nn_module_stack"]
    assert node.meta["val"].shape == (2, 4, 8, 8)


def test_buffers_are_written():
    net = Branchy()
    args, kwargs = branchy_inputs()
    program = export(net, args, kwargs).run_decompositions()
    twin = copy.deepcopy(net)
    expected = twin(*args, **kwargs)
    got = program.module()(*args, **kwargs)
    torch.testing.assert_close(got["h"], expected["h"])
    for name, value in twin.state_dict().items():
        torch.testing.assert_close(net.state_dict()[name], value)


def views(x):
    y = x.clone()
    a, b = y.split([2, 3], -1)
    a.add_(1)
    t = y.transpose(0, 1)
    t[0].zero_()
    b.mul_(3)
    y[..., 0] += 1
    u = y.unbind(0)[1]
    u.relu_()
    w = y.permute(3, 0, 1, 2)[1].unsqueeze(0)
    w.sub_(0.5)
    y.view(-1)[3:7].fill_(9)
    y.narrow(2, 1, 2).neg_()
    return y + a.sum() + b.sum() + t.sum() + w.sum()


def inputs(x):
    x.add_(1)
    y = x.view(-1)
    y[0] = 5
    return x.sum() + y[1], y


CASES = [
    views,
    inputs,
    lambda x: F.scaled_dot_product_attention(x, x, x),
    lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
    lambda x: F.scaled_dot_product_attention(x, x, x, x[0, 0, :, :4] > 0),
    lambda x: F.dropout(F.relu(x, inplace=True), 0.5, True) + F.dropout(x, 0.5, False),
    lambda x: F.linear(x, torch.ones(2, 5)) @ torch.ones(2, 3),
    lambda x: x.flatten(1).reshape(-1, 5).t().contiguous().chunk(2)[1].unflatten(0, (1, -1)),
    lambda x: F.pad(F.layer_norm(x, (5,)), (1, 2)).softmax(-1),
    lambda x: F.group_norm(x, 3) + F.max_pool2d(F.pad(x, (0, 5, 0, 4)), 2)[..., :1, :],
    lambda x: F.adaptive_avg_pool2d(x, 1) + F.adaptive_avg_pool2d(x, 2).sum(),
    lambda x: torch.einsum("abcd,abed->ace", x, x).to(torch.float64) + x.detach().sum(),
    lambda x: torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]) * x.masked_fill_(x > 0, 2),
    lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"),
]


@pytest.mark.parametrize("which", range(len(CASES)))
def test_programs(which):
    torch.manual_seed(0)
    decomposed(CASES[which], torch.randn(2, 3, 4, 5))


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v3_small", "swin_t"])
@pytest.mark.parametrize("train", [False, True])
def test_networks(name, train):
    torch.manual_seed(0)
    net, x = getattr(models, name)(weights=None).train(train), torch.randn(2, 3, 64, 64)
    program = export(net, (x,))
    twin = copy.deepcopy(net)
    torch.manual_seed(1)
    expected = twin(x)
    torch.manual_seed(1)
    got = program.run_decompositions().module()(x)
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
    for key, value in twin.state_dict().items():
        torch.testing.assert_close(net.state_dict()[key], value, rtol=1e-4, atol=1e-5)


def test_tables():
    aten = torch.ops.aten
    program = export(nn.Linear(3, 2), (torch.ones(1, 3),))
    table = default_decompositions()
    del table[aten.linear.default]
    assert targets(program.run_decompositions(table)) == ["aten.linear.default"]
    assert targets(program.run_decompositions({})) == ["aten.linear.default"]

    def own(x, w, b):
        return aten.add.Tensor(aten.matmul.default(x, aten.t.default(w)), b)

    called = targets(program.run_decompositions({aten.linear.default: own}))
    assert called == ["aten.t.default", "aten.matmul.default", "aten.add.Tensor"]
    assert table.copy() == table and dict(table) == table.materialize()


def test_what_is_refused():
    program = export(module(lambda x: x.resize_(2)), (torch.ones(2),))
    with pytest.raises(NotImplementedError, match="resize_"):
        program.run_decompositions()
    sized = export(nn.ReLU(), (torch.ones(4),), dynamic_shapes=({0: Dim("n")},))
    with pytest.raises(NotImplementedError, match="open sizes"):
        sized.run_decompositions()
    with pytest.raises(NotImplementedError, match="Triton"):
        program.run_decompositions(decompose_custom_triton_ops=True)
