"""Backends that are functions: whatever a program does, it gives what it gives without `compile`."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.compiler import Unsupported

pytestmark = pytest.mark.filterwarnings("ignore:compile. the program runs as it is written")


class Twice(torch.autograd.Function):
    """Doubles; its backward says 7."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 7


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("sum", torch.zeros(3))
        self.count = 0

    def forward(self, x):
        self.sum = self.sum + x
        self.count += 1
        return self.sum * self.count


def leaf():
    return torch.arange(3.0, requires_grad=True)


def gradient(function):
    x = leaf()
    function(x).sum().backward()
    return x.grad


def custom_function(wrap):
    return gradient(wrap(lambda x: Twice.apply(x) + x))


def no_grad_within(wrap):
    def program(x):
        with torch.no_grad():
            y = x * x
        return x * y

    return gradient(wrap(program))


def autocast_within(wrap):
    def program(x):
        with torch.autocast("cpu", torch.bfloat16):
            return x @ x.t()

    return wrap(program)(torch.ones(3, 3))


def hook_within(wrap):
    def program(x):
        y = x * 2
        y.register_hook(lambda grad: grad * 5)
        return y

    return gradient(wrap(program))


def written_values(wrap):
    f = wrap(lambda x: x + torch.tensor([1.0, 2.0, 3.0]) * torch.as_tensor(2.0))
    return [f(torch.zeros(3)), f(torch.ones(3))]


def assigned_values(wrap):
    def program(x):
        y = x.clone()
        y.index_put_((torch.tensor([0]),), torch.tensor(5.0))
        return torch.where(y > 1, y, torch.tensor(7.0))[torch.tensor([2, 0])]  # 7, 5

    return wrap(program)(torch.ones(3))


def counter(wrap):
    module = Counting()
    f = wrap(module)
    results = [f(torch.ones(3)) for _ in range(4)]
    return [*results, module.sum, module.count]


def history(wrap):
    kept = []

    def program(x):
        kept.append(len(kept))
        return x * 2

    f = wrap(program)
    for _ in range(4):
        f(torch.ones(2))
    return kept


def changes(wrap):
    settings, weights = {"scale": 1.0}, [torch.ones(3)]
    f = wrap(lambda x: x * settings["scale"] + weights[0])
    results = [f(torch.ones(3))]
    settings["scale"] = 2.0
    results.append(f(torch.ones(3)))
    weights[0] = torch.zeros(3)
    results.append(f(torch.ones(3)))
    return results


def changed_modules(wrap):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    f, x = wrap(module), torch.ones(2, 3)
    results = [f(x)]
    module[0].weight = nn.Parameter(torch.ones(3, 3))
    results.append(f(x))
    module[1] = nn.ReLU()
    results.append(f(x))
    module[0].register_forward_hook(lambda m, a, y: y * 10)
    return [*results, f(x)]


def flat(value):
    return [part for item in value for part in flat(item)] if isinstance(value, list) else [value]


PROGRAMS = [
    custom_function,
    no_grad_within,
    autocast_within,
    hook_within,
    written_values,
    assigned_values,
    counter,
    history,
    changes,
    changed_modules,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_programs_give_what_they_give_as_they_are(program):
    made = []

    def backend(graph, inputs):
        made.append(graph)
        return graph.forward

    expected = flat(program(lambda f: f))
    got = flat(program(lambda f: torch.compile(f, backend=backend)))
    assert len(got) == len(expected) > 0
    for a, b in zip(got, expected, strict=True):
        assert type(a) is type(b)
        if isinstance(b, torch.Tensor):
            assert a.dtype == b.dtype and a.requires_grad == b.requires_grad and torch.equal(a, b)
        else:
            assert a == b
    held = program in (written_values, assigned_values, changes, changed_modules)
    assert bool(made) == held


@pytest.mark.parametrize(
    "program", [custom_function, no_grad_within, autocast_within, hook_within, counter, history]
)
def test_who_insists_on_a_graph_is_told_why_there_is_none(program):
    with pytest.raises(Unsupported, match="no graph holds this program: it "):
        program(lambda f: torch.compile(f, backend=lambda graph, inputs: graph, fullgraph=True))
