"""`jit.trace` of modules: they share tensors with their programs; programs within traces, checks, what is left."""

import copy
import gc
import io
import os
import subprocess
import sys
import threading

import numpy
import pytest

import rushlight as torch
from rushlight import jit, nn
from rushlight.jit import _meanings
from rushlight.nn import functional as F
from tests.python.traces import same, saved_and_loaded, traced

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
randn = torch.randn
x = randn(2)


# ---- modules ----


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear, self.norm = nn.Linear(width, width), nn.BatchNorm1d(width)
        self.drop, self.same = nn.Dropout(0.2), nn.Identity()
        self.register_buffer("calls", torch.zeros(1))
        self.plain = torch.full((width,), 2.0)

    def forward(self, x):
        self.calls += 1
        y = self.same(self.drop(self.norm(self.linear(x)).relu()))
        return y * self.plain, y[:, : y.shape[1] // 2]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(4), Block(4)])
        self.head = nn.Linear(4, 2)
        self.tied = self.blocks[0].linear

    def forward(self, x):
        for block in self.blocks:
            y, part = block(x)
            x = x + y
        return self.head(self.tied(x)), part

    def features(self, x, scale):
        return self.blocks[0](x)[0] * scale


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Net().eval()


def test_a_module_becomes_a_program_that_shares_its_tensors(net):
    program = traced(net, randn(3, 4))
    assert isinstance(program, jit.TopLevelTracedModule) and isinstance(program, torch.ScriptModule)
    assert isinstance(program.blocks, jit.TracedModule) and program.original_name == "Net"
    assert list(program.state_dict()) == list(net.state_dict())
    assert all(a is b for a, b in zip(program.parameters(), net.parameters(), strict=True))
    x = randn(7, 4)
    same(program(x), net(x))
    with torch.no_grad():
        net.head.weight.zero_()
    same(program(x), net(x))
    assert float(net.blocks[0].calls) == float(program.blocks[0].calls) > 0
    program(x)[0].sum().backward()
    assert net.blocks[0].linear.weight.grad is not None
    again = saved_and_loaded(program)
    same(again(x), net(x))
    assert list(again.state_dict()) == list(net.state_dict())
    other = copy.deepcopy(program)
    same(other(x), net(x))
    assert other.head.weight is not net.head.weight


def test_calls_of_submodules_are_methods(net):
    program = traced(net, randn(3, 4))
    calls = program.graph.findAllNodes("prim::CallMethod")
    assert [c.s("name") for c in calls] == ["forward", "forward", "forward1", "forward"]
    x = randn(5, 4)
    same(program.head(x), net.head(x))
    same(program.blocks[1](x), net.blocks[1](x))
    assert "def forward" in program.blocks[0].code and "aten::linear" in str(program.head.graph)
    flat_graph = program.inlined_graph
    assert flat_graph.findNode("prim::CallMethod") is None
    scopes = {n.scopeName() for n in flat_graph.findAllNodes("aten::linear")}
    assert "__module.blocks.0/__module.blocks.0.linear" in scopes and "__module.head" in scopes


def test_several_methods(net):
    x, scale = randn(3, 4), torch.tensor(2.0)
    program = jit.trace_module(net, {"forward": x, "features": (x, scale)})
    same(program(x), net(x))
    same(program.features(x, scale * 2), net.features(x, scale * 2))
    same(saved_and_loaded(program).features(x, scale), net.features(x, scale))
    by_name = {"features": {"scale": scale, "x": x}}
    program = jit.trace_module(net, by_name, example_inputs_is_kwarg=True)
    same(program.features(x, scale), net.features(x, scale))
    same(jit.trace(net.forward, x)(x), net(x))


def test_a_trace_in_training_mode_updates_buffers():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    reference = copy.deepcopy(net)
    program = traced(net, randn(5, 3))
    reference.load_state_dict(net.state_dict())
    x = randn(6, 3)
    same(program(x), reference(x))
    same(net.state_dict(), reference.state_dict())
    assert int(net[1].num_batches_tracked) == 2


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count = self.count + 1
        return x + self.count


def test_a_buffer_may_be_replaced():
    net = nn.Sequential(Counting(), nn.ReLU())
    program = traced(net, x)
    assert float(net[0].count) == 1
    assert [float(program(torch.zeros(1))) for _ in range(3)] == [2, 3, 4]
    assert float(getattr(program, "0").count) == 4 and float(net[0].count) == 1
    assert float(saved_and_loaded(program)(torch.zeros(1))) == 5


class Exported(nn.Module):
    def __init__(self):
        super().__init__()
        self.size = 3

    def forward(self, x):
        return (lambda a: a + 1)(x)

    @jit.export
    def times(self, x, n: int):
        for _ in range(n):
            x = x * self.size
        return x


def test_exported_methods_are_compiled():
    program = traced(nn.Sequential(Exported()), x)
    assert torch.equal(program(x), x + 1)
    for one in (program, saved_and_loaded(program)):
        part = getattr(one, "0")
        assert part._c._has_method("times") and part._c._method_names() == ["times", "forward"]
        assert torch.equal(part.times(x, 2), x * 3 * 3)


def test_modules_that_cannot_be_traced():
    net = nn.Linear(2, 2)
    with pytest.raises(AttributeError, match="individual module's functions"):
        jit.trace(net.extra_repr, x)
    net.register_full_backward_hook(lambda *args: None)
    with pytest.raises(RuntimeError, match="backward hooks assigned"):
        jit.trace(net, x)


def test_frozen_programs_of_traces():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU()).eval()
    image, other = randn(1, 1, 5, 5), randn(2, 1, 6, 7)
    for _ in range(3):  # each has classes of its own
        frozen = jit.freeze(traced(net, image))
        torch.testing.assert_close(frozen(other), net(other))
        assert "aten::batch_norm" not in str(frozen.graph) and not list(frozen.parameters())


def test_a_parameter_may_be_an_argument():
    net = nn.Linear(2, 2)
    program = traced(net, net.weight)
    x = randn(3, 2)
    same(program(x), net(x))


def test_hooks_are_traced(net):
    net.head.register_forward_hook(lambda m, args, out: out + 100)
    x = randn(2, 4)
    same(traced(net, randn(3, 4))(x), net(x))


class Whole(nn.Module):
    def forward(self, x):
        return (x.abs() * 3).long()


LAYERS = {
    "lstm": (nn.LSTM(4, 5, 2, bidirectional=True, batch_first=True), (2, 3, 4), (3, 6, 4)),
    "gru": (nn.GRU(4, 5), (2, 3, 4), (3, 6, 4)),
    "encoder": (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (2, 3, 8), (4, 5, 8)),
    "norm": (nn.GroupNorm(3, 6), (2, 6, 4), (3, 6, 5)),
    "image": (
        nn.Sequential(nn.Conv2d(3, 4, 3, padding="same"), nn.AdaptiveAvgPool2d(2)),
        (1, 3, 8, 8),
        (2, 3, 9, 7),
    ),
    "upsample": (nn.Upsample(scale_factor=1.5, mode="bilinear"), (1, 2, 4, 4), (2, 2, 6, 8)),
    "circular": (
        nn.Conv2d(2, 2, 3, padding=1, padding_mode="circular"),
        (1, 2, 4, 4),
        (2, 2, 6, 6),
    ),
    "bags": (nn.Sequential(Whole(), nn.EmbeddingBag(10, 3)), (2, 3), (4, 2)),
    "shuffle": (nn.PixelShuffle(2), (1, 8, 3, 3), (2, 4, 5, 2)),
    "unflatten": (nn.Unflatten(1, (2, -1)), (2, 6), (3, 8)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_work_for_other_sizes(name):
    layer, size, other = LAYERS[name]
    layer.eval()
    program = traced(layer, randn(size))
    x = randn(other)
    same(program(x), layer(x))
    assert all(n.kind().startswith(("aten", "prim")) for n in program.inlined_graph.nodes())


def test_attention_of_three_arguments():
    layer = nn.MultiheadAttention(8, 2).eval()
    x = randn(2, 3, 8)
    program = traced(layer, x, x, x)
    q, k = randn(5, 4, 8), randn(6, 4, 8)
    same(program(q, k, k), layer(q, k, k))


# ---- programs within traces ----


@jit.script
def counted(x, n: int = 2):
    for _ in range(n):
        if bool(x.sum() > 0):
            x = x - 1
        else:
            x = x + 3
    return x, [x]


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x):
        if bool(x.sum() > 0):
            x = self.linear(x)
        return x


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = jit.script(Gate())

    def forward(self, x):
        return self.gate(counted(x, n=3)[1][0])


def test_programs_keep_their_branches_in_a_trace():
    net = Holder()
    program = traced(net, torch.ones(2))
    kinds = {n.kind() for n in program.graph.nodes()}
    assert {"prim::CallFunction", "prim::CallMethod"} <= kinds
    for x in (torch.ones(2), -torch.ones(2), torch.full((2,), 9.0)):
        same(program(x), net(x))
        same(saved_and_loaded(program)(x), net(x))
    with pytest.raises(RuntimeError, match="Tried to trace"):
        jit.trace(lambda x: net.gate(x), torch.ones(2))


def test_functions_that_are_programs_in_traces_alone():
    @jit.script_if_tracing
    def positive(x):
        if bool(x.sum() > 0):
            return x
        return -x

    program = traced(lambda x: positive(x) * 2, torch.ones(2))
    x = -torch.ones(2)
    same(program(x), -x * 2)


# ---- checks ----


def test_what_differs_at_the_next_run_is_an_error():
    runs = []

    def f(x):
        runs.append(1)
        return x + 1 if len(runs) % 2 else x * 2

    with pytest.warns(jit.TracerWarning), pytest.raises(jit.TracingCheckError, match="Graphs"):
        jit.trace(f, x)
    with pytest.warns(jit.TracerWarning), pytest.raises(jit.TracingCheckError, match="Constant"):
        jit.trace(lambda x: x + torch.from_numpy(numpy.random.rand(2)), x)
    assert not isinstance(jit.trace(f, x, check_trace=False), type(None))


def test_results_are_compared():
    with pytest.warns(jit.TracerWarning) as told:
        jit.trace(nn.Dropout(), torch.ones(100))
    words = [str(w.message) for w in told]
    assert any("Trace had nondeterministic nodes" in w and "dropout" in w for w in words)
    assert any("Output nr 1. of the traced function does not match" in w for w in words)

    def f(x):
        return x * 2 if float(x.detach().clone().abs().sum()) > 1 else x

    with pytest.warns(jit.TracerWarning) as told, pytest.raises(jit.TracingCheckError):
        jit.trace(f, torch.ones(2), check_inputs=[torch.ones(2), torch.full((2,), 0.1)])
    assert any("Output nr 1." in str(w.message) for w in told)


def test_a_program_that_fails_on_other_inputs_is_an_error():
    with pytest.warns(jit.TracerWarning), pytest.raises(jit.TracingCheckError, match="exception"):
        jit.trace(lambda x: x.view(int(x.shape[0]), 2), randn(2, 2), check_inputs=[randn(3, 2)])


def test_checks_leave_no_traces():
    net = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout())
    torch.manual_seed(1)
    with pytest.warns(jit.TracerWarning):
        jit.trace(net, randn(9, 3))
    after = torch.rand(1)
    assert int(net[0].num_batches_tracked) == 1
    torch.manual_seed(1)
    F.dropout(randn(9, 3))
    assert torch.equal(torch.rand(1), after)


def test_threads_trace_beside_each_other():
    done, before = [], nn.Module.__call__

    def work(width):
        net = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2)).eval()
        for rows in range(2, 12):
            x = randn(rows, width)
            program = jit.trace(net, x, check_trace=False)
            same(program(randn(3, width) * 0 + 1), net(torch.ones(3, width)))
            assert len(program.graph.findAllNodes("prim::CallMethod")) == 3
        done.append(width)

    threads = [threading.Thread(target=work, args=(width,)) for width in (3, 4, 5, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == [3, 4, 5, 6]
    assert nn.Module.__call__ is before


def test_classes_are_known_where_nothing_has_been_scripted():
    code = (
        "import rushlight as torch\n"
        "from rushlight.vision.models import resnet18\n"
        "net = resnet18(weights=None).eval()\n"
        "torch.jit.trace(net, torch.ones(1, 3, 32, 32), check_trace=False)\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


# ---- what is left of a trace ----


def resident():
    """The memory of this process that is in use, in bytes."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_traces_leave_nothing():
    """A trace has classes and functions of its own, which end with the program."""
    net = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.ReLU()) for _ in range(10)))
    x = randn(2, 4)

    def trace():
        program = jit.trace(net, x)
        same(program(x), net(x))
        same(jit.trace(lambda x: x * 2, x)(x), x * 2)

    def growth(traces):
        before = resident()
        for _ in range(traces):
            trace()
        gc.collect()
        return resident() - before

    growth(20)
    owners = len(_meanings.owners)
    # What is left behind grows each time; what others in this process give back and take, once.
    assert min(growth(100) for _ in range(4)) < 4 << 20
    assert len(_meanings.owners) == owners


def test_parts_of_a_trace_outlive_it():
    functions = [jit.trace(lambda x: x * 3, randn(2))]

    class Calls(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = nn.Linear(2, 2)

        def forward(self, x):
            return functions[0](self.part(x))

    net, x = Calls(), randn(1, 2)
    program = jit.trace(net, x)
    expected = functions.pop()(net.part(x))
    gc.collect()  # the function lives on as part of the program
    same(program(x), expected)
    part, graph = program.part, program.graph
    del program
    gc.collect()
    same(part(x), net.part(x))
    assert "Calls" in str(graph)


def test_traces_of_one_class_are_saved_together():
    class Both(nn.Module):
        def __init__(self, parts):
            super().__init__()
            self.a, self.b = parts

        def forward(self, x):
            return self.a(x) - self.b(x)

    x = randn(1, 3)
    parts = [jit.trace(nn.Linear(3, 3), x) for _ in range(2)]
    whole = jit.script(Both(parts))
    again = jit.load(io.BytesIO(whole.save_to_buffer()))
    same(again(x), parts[0](x) - parts[1](x))
