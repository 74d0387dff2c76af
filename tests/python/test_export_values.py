"""Exported programs whose sizes depend on values: symbols u0, u1, their ranges, and what is asserted."""

import io

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.export import Dim, export, load, save
from rushlight.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode


def module(function):
    class Calls(nn.Module):
        def forward(self, *args):
            return function(*args)

    return Calls()


def zeros_of(x):
    n = x.sum().to(torch.int64).item()
    torch._check(n >= 0)
    torch._check(n <= 5)
    return torch.zeros(n, 3) + 1


def first_rows(n, x):
    n = n.item()
    torch._check_is_size(n)
    torch._check(n <= x.shape[0])
    return x[:n] * 2, x.narrow(0, 0, n).sum(0), n * 2


def select(x):
    return x.nonzero() * 2, x.masked_select(x > 0), x[x[:, 0] > 0]


def repeat(x, n):
    return torch.repeat_interleave(x, n, dim=0), torch.repeat_interleave(n)


def scale(x, y):
    factor = x.sum().item()
    return y * factor, torch.full((2,), (factor * 2 - 1) / 3), -factor, y.clamp(max=factor)


def listed(x):
    a, (b, c) = x[0, 0].item(), x[1].tolist()
    torch._check(c > 1.5)
    return x * a + b, c * 0.1 * 3


def flags(x, y):
    big = (x > 0).any().item()
    torch._check((x > -9).all().item())
    return y + 1, big


def distinct(x):
    values, places, counts = torch.unique(x, return_inverse=True, return_counts=True)
    rows = torch.unique(x, dim=0, return_counts=True)
    runs = torch.unique_consecutive(x.flatten(), return_inverse=True)
    return values * 2, places, counts, rows, runs, torch.unique(x).sum()


MATRIX = torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0], [3.0, -4.0]])
CASES = {
    "item": (zeros_of, [torch.ones(3)], [torch.tensor([0.0, 2.0, 3.0])], "{u0: VR[0, 5]}"),
    "rows": (
        first_rows,
        [torch.tensor(3), torch.ones(6, 2)],
        [torch.tensor(5), torch.arange(12.0).view(6, 2)],
        "{u0: VR[0, 6]}",
    ),
    "select": (
        select,
        [torch.ones(4, 2)],
        [MATRIX],
        "{u0: VR[0, 8], u1: VR[0, 8], u2: VR[0, 4]}",
    ),
    "floats": (
        scale,
        [torch.tensor([1.5, 2.0]), torch.ones(3)],
        [torch.tensor([0.25, -2.0]), torch.rand(3)],
        "{zuf0: VR[-oo, oo]}",
    ),
    "lists": (
        listed,
        [torch.tensor([[1.5, 2.0], [3.0, 4.0]])],
        [torch.tensor([[0.5, 2.5], [-3.0, 2.0]])],
        "{zuf0: VR[-oo, oo], zuf1: VR[-oo, oo], zuf2: VR[-oo, oo]}",
    ),
    "flags": (
        flags,
        [torch.tensor([1.0, -1.0]), torch.ones(2)],
        [torch.tensor([-1.0, -1.0]), torch.rand(2)],
        "{u0: VR[0, 1], u1: VR[1, 1]}",
    ),
    "unique": (
        distinct,
        [torch.tensor([[1, 2], [2, 2], [1, 2]])],
        [torch.tensor([[3, 3], [3, 3], [4, 3]])],
        "{u0: VR[0, 6], u1: VR[0, 3], u2: VR[0, 6], u3: VR[0, 6]}",
    ),
    "repeat": (
        repeat,
        [torch.ones(3, 2), torch.tensor([1, 2, 0])],
        [torch.rand(3, 2), torch.tensor([3, 0, 1])],
        "{u0: VR[0, int_oo], u1: VR[0, int_oo]}",
    ),
}


def same(a, b):
    if isinstance(b, tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif isinstance(b, torch.Tensor):
        assert a.tolist() == b.tolist()
    else:
        assert a == b


@pytest.mark.parametrize("name", CASES)
def test_sizes_that_depend_on_values(name):
    function, example, others, ranges = CASES[name]
    program = export(module(function), tuple(example))
    assert str(program.range_constraints) == ranges
    stream = io.BytesIO()
    save(program, stream)
    stream.seek(0)
    again = load(stream)
    assert str(again.range_constraints) == ranges
    assert str(again.graph) == str(program.graph)
    for one in (program, again):
        for args in (example, others):
            same(one.module()(*args), function(*args))


def test_graph():
    code = export(module(zeros_of), (torch.ones(3),)).graph_module.code
    for line in ("item >= 0", "item <= 5", "zeros.default([item, 3]"):
        assert line in code
    assert "expression u0 <= 5 on node 'le'" in code


def test_values_outside_of_the_range_raise():
    program = export(module(zeros_of), (torch.ones(3),)).module()
    with pytest.raises(RuntimeError, match="Runtime assertion failed for expression u0 <= 5"):
        program(torch.full((3,), 9.0))
    with pytest.raises(RuntimeError, match="Runtime assertion failed for expression u0 >= 0"):
        program(torch.full((3,), -9.0))


def test_values_and_open_sizes():
    args = (torch.tensor(2), torch.ones(5, 2))
    rows = {0: Dim("n", min=2, max=100)}
    program = export(module(first_rows), args, dynamic_shapes=((None, rows),))
    others = (torch.tensor(7), torch.rand(9, 2))
    same(program.module()(*others), first_rows(*others))
    with pytest.raises(RuntimeError):
        program.module()(torch.tensor(7), torch.rand(6, 2))


@pytest.mark.parametrize(
    "function",
    [
        lambda n, x: x if n.item() > 3 else x + 1,
        lambda n, x: x.narrow(0, 0, n.item()),  # nothing says that it fits
        lambda n, x: x + torch.ones(n.item()),
        lambda n, x: x if (x > 0).any() else x + 1,
        lambda n, x: x if (x > 0).any().item() else x + 1,
        lambda n, x: x if n else x + 1,
        lambda n, x: x if x.sum() else x + 1,
        lambda n, x: x if x.sum().item() > 0 else x + 1,
    ],
)
def test_what_values_would_decide_is_refused(function):
    with pytest.raises((GuardOnDataDependentSymNode, RuntimeError)):
        export(module(function), (torch.tensor(2), torch.ones(5)))


def test_ranges_decide_branches():
    def branch(n):
        n = n.item()
        torch._check(n > 4)
        return torch.ones(n) if n >= 2 else torch.zeros(n)

    program = export(module(branch), (torch.tensor(5),))
    assert program.module()(torch.tensor(6)).tolist() == [1.0] * 6


def test_a_check_that_nothing_fulfils_raises():
    def never(n):
        n = n.item()
        torch._check(n > 4)
        torch._check(n < 2)
        return torch.ones(n)

    with pytest.raises(RuntimeError, match="holds for no u0"):
        export(module(never), (torch.tensor(5),))
