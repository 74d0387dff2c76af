"""Random programs that write into tensors and their views, under transforms that nest in every way:
slices are compared with a loop, derivatives with differences of the values."""

import random

import pytest

import rushlight as torch
from rushlight.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

SHAPE = (3, 2)


def bases(x, c):
    return [
        lambda: x * 2,
        lambda: x.t() * c.t(),
        lambda: (x * 3).t().contiguous().t(),
        lambda: torch.empty_like(x).copy_(x),
        lambda: torch.empty_like(x.t()).copy_(x.t() * c.t()),
        lambda: c + x.flip(0),
        lambda: torch.cat([x, c]),
        lambda: x.new_zeros(3, 4).copy_(torch.cat([x, x * c], 1)),
        lambda: torch.stack([x, c * c]).sum(0),
    ]


VIEWS = [
    lambda t: t[0],
    lambda t: t[:, 1:],
    lambda t: t[1:],
    lambda t: t.t(),
    lambda t: t.diagonal(),
    lambda t: t.unsqueeze(1),
    lambda t: t.unfold(0, 2, 1)[-1],
    lambda t: t.flatten() if t.is_contiguous() else t.t().flatten(),
    lambda t: t.as_strided((2, 2), (t.stride(0), t.stride(1)), t.storage_offset()),
    lambda t: t.select(1, 1),
]

WRITES = [
    lambda t, v: t.mul_(v),
    lambda t, v: t.add_(v, alpha=2),
    lambda t, v: t.copy_(v),
    lambda t, v: t.zero_(),
    lambda t, v: t.fill_(v.sum()),
    lambda t, v: t.sin_(),
    lambda t, v: t.__setitem__(0, v[0]),
    lambda t, v: t.div_(2 + v * v),
    lambda t, v: t.addcmul_(v, v),
    lambda t, v: t.masked_fill_(v.detach() > 0.4, 0.5),
    lambda t, v: t.index_add_(0, torch.tensor([0, 0]), v[:1].expand((2, *v.shape[1:]))),
]


def program(seed):
    """A function of two matrices that makes a tensor, views of it, and writes into some of them."""

    def run(x, c):
        draw = random.Random(seed)
        tensors = [draw.choice(bases(x, c))()]
        for _ in range(draw.randrange(3, 7)):
            target = draw.choice(tensors)
            if draw.random() < 0.5 and target.dim() == 2 and min(target.shape) > 1:
                tensors.append(draw.choice(VIEWS)(target))
                continue
            source = draw.choice([x, x * c, c, x.sin()]).flatten()
            if source.numel() < target.numel():
                source = torch.cat([source, source * 2])
            draw.choice(WRITES)(target, source[: target.numel()].reshape(target.shape))
        return torch.cat([t.reshape(-1) * (i + 1) for i, t in enumerate(tensors)])

    return run


def differences(f, x):
    """The Jacobian of f at x by central differences, of the shape that `jacfwd` gives it."""
    h = 1e-5
    columns = []
    for i in range(x.numel()):
        step = torch.zeros(x.numel(), dtype=x.dtype)
        step[i] = h
        step = step.reshape(x.shape)
        columns.append((f(x + step) - f(x - step)) / (2 * h))
    return torch.stack(columns, -1).reshape((*columns[0].shape, *x.shape))


def looped(f):
    def run(*arguments):
        return torch.stack([f(*(a[i] for a in arguments)) for i in range(len(arguments[0]))])

    return run


def weigh(t):
    return (t * torch.arange(1, t.numel() + 1, dtype=t.dtype)).sin().sum()


def of_first(make):
    """A transform by the first argument of a function of two."""
    return lambda f: lambda x, c: make(lambda a: f(a, c))(x)


def tangent(f):
    return lambda x: jvp(
        f, (x,), (torch.linspace(-1, 1, x.numel(), dtype=x.dtype).reshape(x.shape),)
    )[1]


def fixed_cotangent(f):
    def run(x):
        value, back = vjp(f, x)
        return back(torch.linspace(-1, 1, value.numel(), dtype=x.dtype).reshape(value.shape))[0]

    return run


def by_differences(f):
    return lambda x: differences(f, x)


FIRST = {
    "jacfwd": (jacfwd, by_differences),
    "jacrev": (jacrev, by_differences),
    "jvp": (
        tangent,
        lambda f: lambda x: (differences(f, x) * tangent(lambda a: a)(x)).sum((-2, -1)),
    ),
    "vjp": (
        fixed_cotangent,
        lambda f: (
            lambda x: torch.tensordot(
                torch.linspace(-1, 1, len(f(x)), dtype=x.dtype), differences(f, x), 1
            )
        ),
    ),
}
SECOND = {
    "hessian": hessian,
    "jacrev of jacrev": lambda f: jacrev(jacrev(f)),
    "jacfwd of jacfwd": lambda f: jacfwd(jacfwd(f)),
    "jacrev of jacfwd": lambda f: jacrev(jacfwd(f)),
    "jvp of grad": lambda f: jacfwd(grad(f)),
}


def matrices(seed):
    torch.manual_seed(seed)
    return torch.rand(3, *SHAPE, dtype=torch.float64), torch.rand(3, *SHAPE, dtype=torch.float64)


def refused(error):
    """Whether it is the program that is wrong: values that reverse mode needs are overwritten, or a
    batch is written into what has none."""
    return "modified by an inplace operation" in str(error) or "inplace arithmetic" in str(error)


def compare(transformed, expected, *arguments):
    """1 where the program ran."""
    try:
        got = transformed(*arguments)
    except RuntimeError as error:
        assert refused(error), error
        return 0
    torch.testing.assert_close(got, expected(*arguments), rtol=1e-4, atol=1e-5)
    return 1


PROGRAMS = range(60)


def first_derivatives(seed, make, reference):
    """How often a program was compared: alone, mapped over both arguments, and over one of them."""
    x, c = matrices(seed)
    one = of_first(make)(program(seed))
    expected = of_first(reference)(program(seed))
    each = looped(expected)
    return (
        compare(one, expected, x[0], c[0])
        + compare(vmap(one), each, x, c)
        + compare(vmap(lambda s: one(x[0], s)), lambda s: each(x[:1].expand(s.shape), s), c)
        + compare(vmap(lambda s: one(s, c[0])), lambda s: each(s, c[:1].expand(s.shape)), x)
    )


@pytest.mark.parametrize("name", FIRST)
def test_first_derivatives_of_writes(name):
    assert sum(first_derivatives(seed, *FIRST[name]) for seed in PROGRAMS) > 2 * len(PROGRAMS)


def second_derivatives(seed, make):
    x, c = matrices(seed)
    run = program(seed)

    def f(a, b):
        return weigh(run(a, b))

    def expected(a, b):
        return differences(lambda p: jacfwd(lambda q: f(q, b))(p), a)

    one = of_first(make)(f)
    return compare(one, expected, x[0], c[0]) + compare(vmap(one), looped(expected), x, c)


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives_of_writes(name):
    assert sum(second_derivatives(seed, SECOND[name]) for seed in PROGRAMS) > len(PROGRAMS)


def batched_directions(seed):
    """Tangents that have a batch where what they are tangents of has none."""
    x, c = matrices(seed)
    f = program(seed)

    def along(v, b):
        return jvp(f, (x[0], b), (v, c[1]))[1]

    def expected(v, b):
        of_x, of_b = differences(lambda a: f(a, b), x[0]), differences(lambda a: f(x[0], a), b)
        return (of_x * v).sum((-2, -1)) + (of_b * c[1]).sum((-2, -1))

    directions = torch.rand(3, *SHAPE[::-1], dtype=torch.float64).transpose(1, 2)
    ran = compare(vmap(lambda v: along(v, c[0])), looped(lambda v: expected(v, c[0])), directions)
    return ran + compare(vmap(along), looped(expected), directions, c)


def test_tangents_whose_directions_alone_are_batched():
    assert sum(batched_directions(seed) for seed in PROGRAMS) > len(PROGRAMS)
