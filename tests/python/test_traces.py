"""`jit.trace`: one run becomes a program that is right for other inputs, or a warning says why not."""

import copy
from collections import namedtuple

import numpy
import pytest

import rushlight as torch
from rushlight import jit, nn
from rushlight.nn import functional as F
from tests.python.traces import flat, same, saved_and_loaded, traced

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
randn = torch.randn


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
    with pytest.warns(jit.TracerWarning, match="Generator is no part"):
        jit.trace(lambda a: a + torch.rand(2, generator=torch.Generator()), x, check_trace=False)


class Steep(torch.autograd.Function):
    """Doubles; its backward says 7."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 7


@pytest.mark.filterwarnings("ignore:.*jit.trace. is deprecated")
@pytest.mark.parametrize("f", [Steep.apply, lambda x: Steep.apply(x) + x])
def test_the_backward_of_a_custom_function_is_told_to_be_missing(f):
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(torch.jit.TracerWarning, match="SteepBackward and its derivative is theirs"):
        program = torch.jit.trace(f, x)
    assert torch.equal(program(x), f(x))
