"""`jit.trace`: one run becomes a program that is right for other inputs, or a warning says why not."""

import copy
import gc
import io
import os
import subprocess
import sys
import threading
import warnings
from collections import namedtuple

import numpy
import pytest

import rushlight as torch
from rushlight import jit, nn
from rushlight.jit import _meanings
from rushlight.nn import functional as F

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
randn = torch.randn


def flat(thing):
    """The tensors in a result."""
    if isinstance(thing, torch.Tensor):
        return [thing]
    items = thing.values() if isinstance(thing, dict) else thing
    return [tensor for item in items for tensor in flat(item)]


def same(one, other):
    """Whether two results have the same bits and containers."""
    assert len(flat(one)) == len(flat(other))
    for a, b in zip(flat(one), flat(other), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype and torch.equal(a, b)


def traced(f, *inputs, **options):
    """The program, of which nothing was told."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", jit.TracerWarning)
        return jit.trace(f, inputs, **options)


def saved_and_loaded(program):
    """A program from the archive of another."""
    return jit.load(io.BytesIO(program.save_to_buffer()))


# ---- functions ----


def test_a_function_becomes_a_program():
    def scaled(x, y):
        return (x @ y).relu() + 1

    program = traced(scaled, randn(2, 3), randn(3, 2))
    assert isinstance(program, jit.ScriptFunction) and program.__name__ == "scaled"
    assert str(program.schema).endswith("scaled(Tensor x, Tensor y) -> Tensor")
    kinds = [n.kind() for n in program.graph.nodes() if n.kind() != "prim::Constant"]
    assert kinds == ["aten::matmul", "aten::relu", "aten::add"]
    assert "torch.relu(torch.matmul(x, y))" in program.code
    x, y = randn(4, 3), randn(3, 5)
    same(program(x, y=y), scaled(x, y))
    same(saved_and_loaded(program)(x, y), scaled(x, y))
    x.requires_grad_()
    program(x, y).sum().backward()
    expected = x.detach().clone().requires_grad_()
    scaled(expected, y).sum().backward()
    assert torch.equal(x.grad, expected.grad)
    with pytest.raises(RuntimeError, match="missing value for argument 'y'"):
        program(x)


SIZES = {  # functions, the arguments that are traced, and others
    "view": (lambda x: x.view(x.shape[0], -1), (randn(2, 3, 2),), (randn(4, 5, 3),)),
    "bounds": (
        lambda x: x[: x.shape[0] - 1, x.size(1) // 2 :],
        (randn(3, 4),),
        (randn(5, 9),),
    ),
    "written bounds": (
        lambda x: (x[:-1], x[-1], x[..., -2:], x[1:, None], x[::2], x[:5]),
        (randn(4, 3),),
        (randn(6, 7),),
    ),
    "index": (lambda x: x[x.shape[0] - 1], (randn(3, 4),), (randn(5, 4),)),
    "index by values": (lambda x, i: x[i.argmax()], (randn(3, 4), randn(3)), (randn(5), randn(5))),
    "table": (lambda x, t: t[: x.shape[1]] + x, (randn(2, 4), randn(4)), (randn(2, 3), randn(9))),
    "set": (
        lambda x: x.clone().index_fill_(0, torch.arange(x.shape[0] // 2), 0.0),
        (randn(4, 2),),
        (randn(6, 2),),
    ),
    "number": (lambda x: x * x.shape[0] / x.numel(), (randn(2, 3),), (randn(4, 5),)),
    "all": (lambda x: x.sum() / x.shape.numel(), (randn(2, 3),), (randn(4, 5),)),
    "root": (lambda x: x / x.shape[-1] ** 0.5, (randn(2, 3),), (randn(4, 5),)),
    "factories": (
        lambda x: (torch.zeros(x.shape), x.new_ones(x.shape[0]), torch.full(x.shape[:1], 3.0)),
        (randn(2, 3),),
        (randn(4, 5),),
    ),
    "arange": (
        lambda x: torch.arange(x.size(1)) + torch.eye(x.size(1)),
        (randn(1, 2),),
        (randn(1, 4),),
    ),
    "alpha": (lambda x: x.add(x, alpha=x.shape[0]), (randn(2),), (randn(4),)),
    "roll": (
        lambda x: x.roll(x.shape[0] // 2, 0).narrow(0, 0, x.shape[0] - 1),
        (randn(4),),
        (randn(7),),
    ),
    "expand": (lambda x: x.unsqueeze(1).expand(-1, x.size(1), -1), (randn(2, 3),), (randn(4, 5),)),
    "heads": (
        lambda x: x.view(x.size(0), x.size(1), 2, x.size(2) // 2).transpose(1, 2).flatten(2),
        (randn(2, 3, 4),),
        (randn(3, 5, 6),),
    ),
    "mask": (
        lambda x: x.masked_fill(torch.ones(x.shape[-2:]).triu(1).bool(), 0.0),
        (randn(2, 3, 3),),
        (randn(4, 5, 5),),
    ),
    "images": (
        lambda x, y: F.interpolate(x, size=y.shape[-2:], mode="bilinear"),
        (randn(1, 1, 3, 3), randn(1, 1, 6, 5)),
        (randn(2, 1, 3, 4), randn(1, 1, 7, 9)),
    ),
    "factors": (
        lambda x: F.interpolate(x, scale_factor=2.0),
        (randn(1, 1, 3, 3),),
        (randn(2, 1, 4, 5),),
    ),
    "padding": (lambda x: F.pad(x, (0, 8 - x.shape[1])), (randn(2, 3),), (randn(4, 5),)),
    "data": (lambda x: x.data * 2, (randn(2),), (randn(3),)),
    "copies": (
        lambda x: torch.stack([x.shape[0] * torch.ones(()), x.sum()]),
        (randn(2),),
        (randn(3),),
    ),
    "masks": (lambda x: x[x > 0], (torch.tensor([1.0, -1.0]),), (torch.tensor([1.0, 2.0, -1.0]),)),
    "parts": (lambda x: x.max(1).values + x.topk(2)[0].sum(1), (randn(2, 3),), (randn(4, 5),)),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_stay_sizes(name):
    f, inputs, others = SIZES[name]
    program = traced(f, *inputs)
    same(program(*others), f(*others))
    same(saved_and_loaded(program)(*others), f(*others))


def test_sizes_are_tensors_while_a_trace_is_taken():
    seen = []

    def f(x):
        seen.append((x.shape, x.size(1), x.shape[1:], x.numel()))
        return x

    traced(f, randn(2, 3))
    sizes, one, rest, count = seen[0]
    assert isinstance(sizes, torch.Size) and isinstance(sizes[0], torch.Tensor)
    assert isinstance(rest, torch.Size) and len(rest) == 1
    assert (int(sizes[0]), int(one), int(count)) == (2, 3, 6)
    with pytest.raises(TypeError):
        torch.Size([torch.ones(2)])


def test_values_have_the_names_of_the_program():
    def f(x):
        doubled = x * 2
        half = doubled / 4
        return doubled + half

    half = randn(2)
    program = traced(f, half)
    assert "%doubled : " in str(program.graph) and "half = torch.div(doubled, 4)" in program.code


# ---- what a trace cannot see ----

FIXED = {  # what leaves the trace, and the words of the warning
    "boolean": (lambda x: x * 2 if x.sum() > 0 else x, "Python boolean"),
    "size": (lambda x: x * 2 if x.shape[0] == 2 else x, "Python boolean"),
    "integer": (lambda x: x + int(x[0]), "Python integer"),
    "float": (lambda x: x + float(x[0]), "Python float"),
    "index": (lambda x: sum(x[i] for i in range(x.shape[0])), "Python index"),
    "item": (lambda x: x + x[0].item(), "Python number"),
    "list": (lambda x: x + x.tolist()[0], "Python list"),
    "complex": (lambda x: x + complex(x[0]), "Python complex number"),
    "array": (lambda x: x + float(x.detach().numpy()[0]), "NumPy array"),
    "numpy": (lambda x: x + float(numpy.asarray(x)[0]), "NumPy array"),
    "length": (lambda x: x + len(x), "Using len to get tensor shape"),
    "rows": (lambda x: sum(row for row in x), "Iterating over a tensor"),
    "within": (lambda x: x + (1.0 in x), "Python boolean"),
    "equal": (lambda x: x + torch.equal(x, x), "Python boolean"),
    "constant": (lambda x: x + torch.tensor([x[0], 1.0]), "results are registered as constants"),
    "output": (lambda x: [x], "Encountering a list at the output"),
}


@pytest.mark.parametrize("name", FIXED)
def test_what_leaves_a_trace_is_told(name):
    f, words = FIXED[name]
    x = torch.ones(2)
    with pytest.warns(jit.TracerWarning, match=words) as told:
        program = jit.trace(f, x)
    assert told[0].filename == __file__
    same(program(x), f(x))


def test_layers_that_read_values_are_told_of():
    def packed(a, lengths):
        rows = nn.utils.rnn.pack_padded_sequence(a, lengths, batch_first=True)
        return rows.data

    with pytest.warns(jit.TracerWarning, match="to a Python list"):
        jit.trace(packed, (randn(2, 4, 3), torch.tensor([4, 2])), check_trace=False)


def test_constants_are_no_reason_to_warn():
    table = torch.tensor([1.0, 2.0])

    def f(x):
        return x * len(table) + float(table[0]) + torch.tensor([3.0, 4.0]) + table

    x = randn(2)
    same(traced(f, torch.ones(2))(x), f(x))


def test_a_branch_is_the_one_that_ran():
    def f(x):
        if x.sum() > 0:
            return x * 2
        return x - 1

    with pytest.warns(jit.TracerWarning):
        program = jit.trace(f, torch.ones(2))
    x = -torch.ones(2)
    assert torch.equal(program(x), x * 2)


# ---- arguments and results ----

Pair = namedtuple("Pair", "first second")
x, y = randn(2), randn(2)
ARGUMENTS = {  # functions, arguments, and the types of the schema
    "list": (lambda a: a[0] * a[1], ([x, y],), "Tensor[] a"),
    "tuple": (lambda a: a[0] * a[1][0], ((x, (y,)),), "(Tensor, (Tensor)) a"),
    "dict": (lambda a: a["p"] - a["q"], ({"p": x, "q": y},), "Dict(str, Tensor) a"),
    "numbered": (lambda a: a[1] - a[5], ({1: x, 5: y},), "Dict(int, Tensor) a"),
    "nested": (lambda a: a["p"][0] - a["p"][1], ({"p": [x, y]},), "Dict(str, Tensor[]) a"),
    "pair": (lambda a: a.first - a.second, (Pair(x, y),), "(Tensor, Tensor) a"),
    "twice": (lambda a, b: a - 2 * b, (x, x), "Tensor a, Tensor b"),
    "any number": (lambda *a: a[0] - a[1], (x, y), "Tensor argument_1, Tensor argument_2"),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_containers_stay_arguments(name):
    f, inputs, types = ARGUMENTS[name]
    program = traced(f, *inputs)
    assert f"({types})" in program.schema
    other = copy.deepcopy(inputs)
    for place, tensor in enumerate(flat(list(other))):
        tensor.fill_(place + 3.0)
    same(program(*other), f(*other))


def test_arguments_by_name():
    def f(a, b):
        return a - b

    program = jit.trace(f, example_kwarg_inputs={"b": x, "a": y})
    same(program(a=x, b=y), x - y)
    program = jit.trace(f, (x,), example_kwarg_inputs={"b": y})
    same(program(x, y), x - y)


RESULTS = {
    "tuple": (lambda a: (a, (a * 2,)), (tuple, tuple)),
    "max": (lambda a: a[None].max(0), (tuple, torch.Tensor)),
    "list": (lambda a: [a, a + 1], (list, torch.Tensor)),
    "dict": (lambda a: {"p": a, "q": a + 1}, (dict, torch.Tensor)),
    "dict of lists": (lambda a: {"p": [a], "q": [a + 1]}, (dict, list)),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_keep_their_containers(name):
    f, kinds = RESULTS[name]
    out = traced(f, x, strict=False)(y)
    inner = list(out.values())[-1] if isinstance(out, dict) else out[-1]
    assert (type(out), type(inner)) == kinds
    same(out, f(y))


WRONG = {
    "number": (lambda a, n: a * n, (x, 3), "cannot be traced"),
    "none": (lambda a, n: a, (x, None), "cannot be traced"),
    "mixed": (lambda a: a["p"], ({"p": x, "q": (y,)},), "cannot be traced"),
    "number out": (lambda a: 3, (x,), "Only tensors, lists, tuples of tensors"),
    "nothing": (lambda a: None, (x,), "didn't return any values"),
    "dict": (lambda a: {"p": a}, (x,), "Encountering a dict at the output"),
    "weight": (lambda a: a * nn.Parameter(y), (x,), "requires grad as a constant"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_traced(name):
    f, inputs, words = WRONG[name]
    with pytest.raises(RuntimeError, match=words):
        jit.trace(f, inputs)
    assert not jit.is_tracing()


def test_wrong_calls():
    with pytest.raises(RuntimeError, match="takes a function"):
        jit.trace(3, x)
    with pytest.raises(RuntimeError, match="example_kwarg_inputs should be a dict"):
        jit.trace(lambda a: a, example_kwarg_inputs=3)
    with pytest.raises(AttributeError, match="dictionary"):
        jit.trace_module(nn.ReLU(), 3)
    with pytest.raises(AttributeError, match="expected torch"):
        jit.trace_module(lambda a: a, {})
    with pytest.raises(NotImplementedError, match="_module_class"):
        jit.trace(lambda a: a, x, _module_class=nn.Module)
    with pytest.raises(RuntimeError, match="being taken already"):
        jit.trace(lambda a: jit.trace(torch.relu, x)(a), x)
    program = jit.trace(lambda a: a + 1, x)
    with pytest.warns(UserWarning, match="already a program"):
        assert jit.trace(program, x) is program


# ---- what programs do beside ----


def test_writes_are_part_of_a_program():
    def f(a):
        b = a.clone()
        b[0] += 1
        b[:, 1:] = 5
        a.mul_(2)
        return b, a.view(-1)

    a, b = randn(3, 4), randn(2, 3)
    program = traced(f, a)
    ours, theirs = b.clone(), b.clone()
    same(program(ours), f(theirs))
    assert torch.equal(ours, theirs) and not torch.equal(ours, b)


def test_writes_may_become_new_tensors():
    def f(a):
        b = torch.empty(a.shape).fill_(7).add_(a)
        c = torch.zeros(2)
        c.copy_(b[0])
        return b.mul_(2).relu_(), torch.empty(a.shape[0]).zero_(), c

    a, b = randn(3, 2), randn(4, 2)
    program = traced(f, a, _force_outplace=True)
    assert not any(n.kind().endswith("_") for n in program.graph.nodes())
    same(program(b)[:2], f(b)[:2])

    def writes(a):
        a.view(-1).add_(1)
        return a

    with pytest.warns(jit.TracerWarning, match="cause the trace to be incorrect"):
        jit.trace(writes, x, _force_outplace=True, check_trace=False)


def test_random_numbers_are_drawn_anew():
    program = jit.trace(lambda a: a + torch.rand(2) + F.dropout(a), x, check_trace=False)
    torch.manual_seed(3)
    first, second = program(x), program(x)
    assert not torch.equal(first, second)
    torch.manual_seed(3)
    assert torch.equal(program(x), first)


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return a * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def test_regions_and_functions_of_autograd():
    def f(a, b):
        with torch.no_grad():
            c = a + 1
        with torch.autocast("cpu", dtype=torch.bfloat16):
            d = a @ b
        return Double.apply(c), d

    a, b = randn(2, 3), randn(3, 2)
    program = traced(f, a, b)
    same(program(a + 1, b), f(a + 1, b))
    assert program(a, b)[1].dtype == torch.bfloat16
    assert program.graph.findNode("aten::to") is not None


class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return a

    @staticmethod
    def backward(ctx, grad):
        return grad


def test_tensors_that_no_op_gives_are_known_by_their_memory():
    def f(a):
        b = a.clone()
        b.data = b.data * 2
        return Same.apply(b) + Same.apply(a), torch.from_numpy(a.detach().clone().numpy())

    a, b = randn(2, 3), randn(4, 3)
    with pytest.warns(jit.TracerWarning, match="NumPy"):
        program = jit.trace(f, a)
    same(program(b)[0], f(b)[0])


def test_what_no_trace_sees_is_refused():
    with pytest.raises(RuntimeError, match="vmap cannot be traced"):
        jit.trace(lambda a: torch.func.vmap(lambda b: b * b.sum())(a), randn(2, 3))
    with pytest.warns(jit.TracerWarning, match="Generator is no part"):
        jit.trace(lambda a: a + torch.rand(2, generator=torch.Generator()), x, check_trace=False)


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

    for _ in range(20):
        trace()
    gc.collect()
    owners, memory = len(_meanings.owners), resident()
    for _ in range(200):
        trace()
    gc.collect()
    assert len(_meanings.owners) == owners
    assert resident() - memory < 8 << 20


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
