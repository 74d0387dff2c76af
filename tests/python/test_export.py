"""`torch.export.export`: graphs, signatures, modules made of them, and what is refused."""

import io
from dataclasses import dataclass

import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn
from rushlight.export import export
from rushlight.export.graph_signature import ConstantArgument, InputKind, OutputKind
from rushlight.fx.experimental.proxy_tensor import make_fx
from rushlight.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from rushlight.vision import models


def targets(program):
    return [str(n.target) for n in program.graph.nodes if n.op == "call_function"]


class Branchy(nn.Module):
    """Parameters, buffers of both kinds, a constant, containers, flags, writes in place."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.out = nn.Linear(4, 5)
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("scale", torch.full((5,), 2.0), persistent=False)
        self.shift = torch.arange(5.0)

    def forward(self, x, more, flag=True, *, bias=None):
        self.count.add_(1)
        h = F.relu(self.norm(self.conv(x)), inplace=True).mean((2, 3))
        h = self.out(h) * self.scale + self.shift
        if flag:
            h = h + torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
        h[:, 1] = 3
        return {"h": h, "more": [more["a"] + 1, more["b"][0]], "bias": bias, "n": 3, "none": None}


def branchy_inputs():
    args = (torch.randn(2, 3, 8, 8), {"a": torch.randn(5), "b": [torch.randn(5)]})
    return args, {"bias": torch.randn(3)}


def test_graph_and_signature():
    torch.manual_seed(0)
    net = Branchy().eval()
    program = export(net, *branchy_inputs())
    assert targets(program) == [
        "aten.add_.Tensor",
        "aten.conv2d.default",
        "aten.batch_norm.default",
        "aten.relu_.default",
        "aten.mean.dim",
        "aten.linear.default",
        "aten.mul.Tensor",
        "aten.add.Tensor",
        "aten.lift_fresh_copy.default",
        "aten.detach_.default",
        "aten.add.Tensor",
        "aten.select.int",
        "aten.fill_.Scalar",
        "aten.add.Tensor",
    ]
    signature = program.graph_signature
    assert signature.parameters == (
        "conv.weight",
        "conv.bias",
        "norm.weight",
        "norm.bias",
        "out.weight",
        "out.bias",
    )
    assert signature.buffers[0] == "count" and signature.non_persistent_buffers == ("scale",)
    assert signature.lifted_tensor_constants == ("shift", "lifted_tensor_0")
    assert signature.user_inputs == ("x", "more_a", "more_b_0", "bias")
    assert signature.user_outputs[2:] == ("more_b_0", "bias", 3, None) or len(
        signature.user_outputs
    )
    assert {s.kind for s in signature.output_specs} == {OutputKind.USER_OUTPUT}
    assert set(program.constants) == {"shift", "lifted_tensor_0", "scale"}
    assert program.state_dict["conv.weight"] is net.conv.weight
    program.validate()
    text = str(program)
    assert 'x: "f32[2, 3, 8, 8]"' in text and 'conv2d: "f32[2, 4, 8, 8]" = torch.ops' in text
    assert "# inputs\n    p_conv_weight: PARAMETER target='conv.weight'\n" in text
    assert "Range constraints: {}" in text


def test_module_computes_what_the_original_does():
    net = Branchy().eval()
    (x, more), named = branchy_inputs()
    module = export(net, (x, more), named).module()
    before = net.count.clone()
    expected = net(x, more, **named)
    got = module(x, more, **named)
    assert torch.equal(expected["h"], got["h"]) and got["n"] == 3 and got["none"] is None
    assert torch.equal(expected["more"][0], got["more"][0])
    # The buffer is shared: both have counted, tracing has not.
    assert net.count is module.count and net.count == before + 2
    assert list(module.state_dict()) == list(net.state_dict())
    got["h"].sum().backward()
    assert net.out.weight.grad is not None


def test_the_module_is_as_before():
    net = Branchy()
    held = dict(net.named_parameters()), dict(net.named_buffers()), dict(vars(net))
    state = {k: v.clone() for k, v in net.state_dict().items()}
    export(net, *branchy_inputs())
    assert all(net.get_parameter(k) is v for k, v in held[0].items())
    assert all(net.get_buffer(k) is v for k, v in held[1].items())
    assert all(torch.equal(v, state[k]) for k, v in net.state_dict().items())

    class Leaves(nn.Module):
        def forward(self, x):
            self.seen = x + 1
            return self.seen

    leaves = Leaves()
    export(leaves, (torch.ones(2),))
    assert not hasattr(leaves, "seen")

    class Fails(nn.Module):
        def __init__(self):
            super().__init__()
            self.p = nn.Parameter(torch.ones(2))

        def forward(self, x):
            raise ValueError("no")

    fails = Fails()
    parameter = fails.p
    with pytest.raises(ValueError, match="no"):
        export(fails, (torch.ones(2),))
    assert fails.p is parameter


def test_meta_of_nodes():
    program = export(Branchy().eval(), *branchy_inputs())
    node = next(n for n in program.graph.nodes if n.name == "conv2d")
    assert node.meta["val"].shape == (2, 4, 8, 8) and node.meta["val"].device.type == "cpu"
    assert node.meta["tensor_meta"].dtype is torch.float32
    stack = node.meta["nn_module_stack"]
    assert list(stack) == ["L__self__", "L__self__conv"]
    assert stack["L__self__conv"] == ("conv", "torch.nn.modules.conv.Conv2d")
    lines = node.meta["stack_trace"].splitlines()
    assert lines[0].startswith('File "') and "test_export.py" in lines[0]
    assert "self.norm(self.conv(x))" in lines[1]


def test_buffers_that_are_replaced_are_written():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", torch.zeros(2))

        def forward(self, x):
            self.n = self.n + 1
            return x + self.n

    net = Counts()
    module = export(net, (torch.ones(2),)).module()
    assert torch.equal(module(torch.ones(2)), torch.full((2,), 2.0))
    assert torch.equal(module(torch.ones(2)), torch.full((2,), 3.0))
    assert torch.equal(net.n, torch.full((2,), 2.0))


def test_numbers_and_texts_are_constants():
    class Plain(nn.Module):
        def forward(self, x, n, name="a", *rest, **more):
            for part in rest:
                x = x + part
            return x * n, name, more["q"]

    args = (torch.ones(3), 3, "b", torch.ones(3), torch.ones(1))
    program = export(Plain(), args, {"q": torch.ones(2)})
    names = [spec.arg.name for spec in program.graph_signature.input_specs]
    assert names == ["x", "n", "name", "rest_0", "rest_1", "q"]
    assert program.graph_signature.input_specs[1].arg == ConstantArgument("n", 3)
    module = program.module()
    assert torch.equal(module(*args, q=torch.ones(2))[0], torch.full((3,), 9.0))
    with pytest.raises(AssertionError, match="Guard failed: n == 3"):
        module(torch.ones(3), 4, *args[2:], q=torch.ones(2))
    with pytest.raises(AssertionError, match=r"Guard failed: x.size\(\)\[0\] == 3"):
        module(torch.ones(4), *args[1:], q=torch.ones(2))
    with pytest.raises(ValueError, match="kwarg keyword mismatch"):
        module(*args)
    with pytest.raises(ValueError, match="exported input tree spec"):
        module([torch.ones(3)], *args[1:], q=torch.ones(2))
    loose = program.module(check_guards=False)
    assert torch.equal(loose(torch.ones(1), *args[1:], q=torch.ones(2))[0], torch.full((3,), 9.0))


def test_dataclasses():
    @dataclass
    class Pair:
        a: torch.Tensor
        b: torch.Tensor

    class Swaps(nn.Module):
        def forward(self, pair):
            return Pair(pair.b, pair.a + 1)

    pair = Pair(torch.ones(2), torch.zeros(2))
    with pytest.raises(ValueError, match="Unsupported input type"):
        export(Swaps(), (pair,))
    torch.export.register_dataclass(Pair)
    program = export(Swaps(), (pair,))
    assert program.graph_signature.user_inputs == ("pair_a", "pair_b")
    got = program.module()(pair)
    assert isinstance(got, Pair) and torch.equal(got.b, torch.full((2,), 2.0))


def test_tied_parameters_and_shared_layers():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(self.a(x)))

    net = Tied()
    program = export(net, (torch.ones(1, 3),))
    assert [s.target for s in program.graph_signature.input_specs][:4] == [
        "a.weight",
        "a.bias",
        "b.weight",
        "b.bias",
    ]
    stacks = [
        list(n.meta["nn_module_stack"])[-1] for n in program.graph.nodes if "linear" in n.name
    ]
    assert stacks == ["L__self__a", "L__self__a@1", "L__self__b"]
    assert torch.equal(program.module()(torch.ones(1, 3)), net(torch.ones(1, 3)))


def test_preserved_signatures():
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    program = export(net, (torch.ones(1, 3),), preserve_module_call_signature=("1",))
    entries = {e.fqn: e.signature for e in program.module_call_graph}
    assert list(entries) == ["", "0", "1"] and entries["0"] is None
    assert [a.name for a in entries["1"].inputs] == ["linear"]
    assert [a.name for a in entries["1"].outputs] == ["relu"]


@pytest.mark.parametrize(
    "why, program",
    [
        ("branch", lambda x: x * 2 if x.sum() > 0 else x),
        ("number", lambda x: x * 2 if x.sum().item() > 0 else x),
        ("list", lambda x: x if x.tolist()[0] > 0.5 else -x),
    ],
)
def test_values_that_are_not_known(why, program):
    class Asks(nn.Module):
        def forward(self, x):
            return program(x)

    with pytest.raises(GuardOnDataDependentSymNode, match="(?s)data-dependent.*test_export.py"):
        export(Asks(), (torch.ones(3),))


def test_what_is_refused():
    net = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="Expected `mod`"):
        export(lambda x: x, (torch.ones(2),))
    with pytest.raises(torch._dynamo.exc.UserError, match="`args` to be a tuple"):
        export(net, torch.ones(2))
    with pytest.raises(torch._dynamo.exc.UserError, match="`kwargs` to be a dict"):
        export(net, (torch.ones(2),), [1])
    with pytest.raises(TypeError, match="missing a required argument"):
        export(net, ())
    with pytest.raises(ValueError, match="Unsupported input type"):
        export(net, (object(),))

    class Returns(nn.Module):
        def forward(self, x):
            return object()

    with pytest.raises(RuntimeError, match="not a known type"):
        export(Returns(), (torch.ones(2),))
    program = export(net, (torch.ones(2),))
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
        program(torch.ones(2))
    for mode in ("train", "eval"):
        with pytest.raises(NotImplementedError, match=f"{mode}"):
            getattr(program.module(), mode)()


def test_programs_can_ask():
    class Asks(nn.Module):
        def forward(self, x):
            return x + (torch.compiler.is_exporting() and torch.compiler.is_compiling())

    assert torch.equal(export(Asks(), (torch.zeros(1),)).module()(torch.zeros(1)), torch.ones(1))
    assert not torch.compiler.is_exporting()


def test_inputs_that_are_one_tensor_and_kinds():
    class Sums(nn.Module):
        def forward(self, x, y):
            return x + y

    x = torch.ones(2)
    program = export(Sums(), (), {"y": x, "x": x})
    assert [s.kind for s in program.graph_signature.input_specs] == [InputKind.USER_INPUT] * 2
    assert torch.equal(program.module()(x=x, y=x), torch.full((2,), 2.0))


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v3_small", "shufflenet_v2_x0_5"])
@pytest.mark.parametrize("train", [False, True])
def test_networks(name, train):
    torch.manual_seed(0)
    net = getattr(models, name)(weights=None).train(train)
    x = torch.randn(2, 3, 64, 64)
    module = export(net, (x,)).module()
    state = {k: v.clone() for k, v in net.state_dict().items()}
    torch.manual_seed(1)
    expected = net(x)
    after = {k: v.clone() for k, v in net.state_dict().items()}
    net.load_state_dict(state)
    torch.manual_seed(1)
    assert torch.equal(module(x), expected)
    assert all(torch.equal(v, after[k]) for k, v in net.state_dict().items())


# ---- make_fx ----


def test_layers_of_any_name():
    net = nn.Sequential()
    net.add_module("block1-0", nn.Conv2d(1, 2, 3))
    program = torch.export.export(net, (torch.ones(1, 1, 4, 4),))
    assert [n.name for n in program.graph.nodes][:2] == ["p_block1_0_weight", "p_block1_0_bias"]
    assert program.module()(torch.ones(1, 1, 4, 4)).shape == (1, 2, 2, 2)


def test_a_convolution_by_its_defaults():
    class Net(nn.Module):
        def forward(self, x, weight):
            return nn.functional.conv2d(x, weight)

    program = torch.export.export(Net(), (torch.ones(1, 1, 4, 4), torch.ones(2, 1, 3, 3)))
    assert targets(program) == ["aten.conv2d.default"]


def test_ops_of_ones_own_are_one_node():
    @torch.library.custom_op("tests_export::twice", mutates_args=())
    def twice(x: torch.Tensor, by: int = 2) -> torch.Tensor:
        return torch.from_numpy(x.numpy() * by)

    @twice.register_fake
    def _(x, by=2):
        return torch.empty_like(x).clone()

    class Net(nn.Module):
        def forward(self, x):
            return twice(x + 1) * torch.ops.tests_export.twice(x, by=3)

    program = torch.export.export(Net(), (torch.ones(2),))
    own = "tests_export.twice.default"
    assert targets(program) == ["aten.add.Tensor", own, own, "aten.mul.Tensor"]
    assert program.module()(torch.ones(2)).tolist() == [12, 12]


def test_make_fx_closes_over_modules():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).eval()
    x = torch.randn(2, 3)
    for mode in ("real", "fake"):
        for above in (False, True):
            traced = make_fx(net, None, mode, True, pre_dispatch=above)(x)
            names = [n.target for n in traced.graph.nodes if n.op == "get_attr"]
            assert names[:2] == ["_param_constant0", "_param_constant1"]
            assert names[-2:] == ["_tensor_constant0", "_tensor_constant1"]
            assert traced._param_constant0 is net[0].weight
            torch.testing.assert_close(traced(x), net(x))
    with pytest.raises(AssertionError, match="convert all Tensors to FakeTensors"):
        make_fx(net, tracing_mode="fake")(x)
    with pytest.raises(AssertionError, match="tracing_mode must be"):
        make_fx(net, tracing_mode="other")(x)


def test_make_fx_containers_constants_and_backward():
    def f(x, pair):
        y = x.clone()
        y[0] = torch.tensor(3.0)
        return {"a": y + pair["k"], "b": [x.split([1, 2], 1)[1], None]}

    x, pair = torch.randn(2, 3), {"k": torch.randn(3)}
    traced = make_fx(f)(x, pair)
    got, expected = traced(x, pair), f(x, pair)
    assert torch.equal(got["a"], expected["a"]) and torch.equal(got["b"][0], expected["b"][0])
    assert "lift_fresh_copy" in traced.code and "[1, 2]" in traced.code

    def gradient(x):
        return torch.autograd.grad((x * x).sum(), x)[0]

    at = torch.randn(3, requires_grad=True)
    traced = make_fx(gradient)(at)
    torch.testing.assert_close(traced(at.detach()), 2 * at.detach())
    with pytest.raises(RuntimeError, match="get value out of a tensor"):
        make_fx(lambda x: x * x.sum().item())(x)


def test_make_fx_decompositions():
    aten = torch.ops.aten
    table = {aten.t.default: lambda x: aten.permute.default(x, [1, 0])}
    traced = make_fx(lambda x: x.t() @ x, table)(torch.randn(2, 3))
    called = [str(n.target) for n in traced.graph.nodes if n.op == "call_function"]
    assert called == ["aten.permute.default", "aten.mm.default"]
    table = {aten.t.default: lambda x: NotImplemented}
    traced = make_fx(lambda x: x.t(), table)(torch.randn(2, 3))
    assert "aten.t.default" in traced.code


MODES = {"nearest": 3, "nearest-exact": 3, "linear": 3, "bilinear": 4, "bicubic": 4, "trilinear": 5}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("factor", [1.7, 0.6, 2.0])
def test_images_by_factors(mode, factor):
    """The factor says what lies where, also where the sizes have another ratio; given sizes may differ from both."""

    class Resized(nn.Module):
        def forward(self, x):
            by_factor = F.interpolate(x, scale_factor=factor, mode=mode)
            if mode != "nearest":
                return by_factor
            return by_factor, torch.ops.aten.upsample_nearest1d.default(x, [5], factor)

    torch.manual_seed(0)
    x = torch.randn(1, 2, *[4, 5, 7][: MODES[mode] - 2])
    program = export(Resized(), (x,))
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    for module in (program.module(), torch.export.load(file).module()):
        found, expected = module(x), Resized()(x)
        pairs = zip(found, expected, strict=True) if mode == "nearest" else [(found, expected)]
        assert all(torch.equal(a, b) for a, b in pairs)


class UnderModes(nn.Module):
    def __init__(self, autocast=False):
        super().__init__()
        self.layer, self.autocast = nn.Linear(3, 3), autocast

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16, enabled=self.autocast):
            y = self.layer(x)
        with torch.no_grad():
            z = self.layer(x)
            low, high = self.layer(x).split([1, 2], 1)
        return y * z + torch.cat((high, low), 1)


def test_what_is_computed_without_gradients_has_none():
    module, x = UnderModes(), torch.randn(2, 3)
    made = torch.export.export(module, (x,)).module()
    gradients = []
    for run in (module, made):
        module.zero_grad()
        run(x).sum().backward()
        gradients.append(module.layer.weight.grad.clone())
    assert torch.equal(*gradients)


def test_autocast_within_a_program_is_refused():
    with pytest.raises(RuntimeError, match="turns autocast on or off and calls aten.linear"):
        torch.export.export(UnderModes(autocast=True), (torch.ones(2, 3),))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_programs_are_exported_in_any_mode(mode):
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(True)
    )
    net.eval()
    x = torch.randn(2, 3, 8, 8)
    with mode():
        program = torch.export.export(net, (x,))
        assert torch.equal(program.module()(x), net(x))
