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


@pytest.mark.parametrize("name", FIRST)
def test_first_derivatives_of_writes(name):
    make, reference = FIRST[name]
    ran = 0
    for seed in PROGRAMS:
        x, c = matrices(seed)
        f = program(seed)
        one = of_first(make)(f)
        ran += compare(one, of_first(reference)(f), x[0], c[0])
        expected = looped(of_first(reference)(f))
        ran += compare(vmap(one), expected, x, c)
        # The point is the same for all slices, and so what does not depend on the other is.
        ran += compare(
            lambda a, b, one=one: vmap(lambda s: one(a[0], s))(b),
            lambda a, b, e=expected: e(a[:1].expand(a.shape), b),
            x,
            c,
        )
        ran += compare(
            lambda a, b, one=one: vmap(lambda s: one(s, b[0]))(a),
            lambda a, b, e=expected: e(a, b[:1].expand(b.shape)),
            x,
            c,
        )
    assert ran > 2 * len(PROGRAMS)


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives_of_writes(name):
    ran = 0
    for seed in PROGRAMS:
        x, c = matrices(seed)

        def f(a, b, run=program(seed)):
            return weigh(run(a, b))

        def expected(a, b, f=f):
            return differences(lambda p: jacfwd(lambda q: f(q, b))(p), a)

        ran += compare(of_first(SECOND[name])(f), expected, x[0], c[0])
        ran += compare(vmap(of_first(SECOND[name])(f)), looped(expected), x, c)
    assert ran > len(PROGRAMS)


def test_tangents_whose_directions_alone_are_batched():
    for seed in PROGRAMS:
        x, c = matrices(seed)
        f = program(seed)
        ran = compare(
            vmap(lambda v: jvp(lambda a: f(a, c[0]), (x[0],), (v,))[1]),
            looped(lambda v: (differences(lambda a: f(a, c[0]), x[0]) * v).sum((-2, -1))),
            torch.rand(4, 2, 3, dtype=torch.float64).transpose(1, 2),
        )
        ran += compare(
            vmap(lambda v, b: jvp(f, (x[0], b), (v, c[1]))[1]),
            looped(
                lambda v, b: (
                    (differences(lambda a: f(a, b), x[0]) * v).sum((-2, -1))
                    + (differences(lambda a: f(x[0], a), b) * c[1]).sum((-2, -1))
                )
            ),
            *matrices(seed + 1),
        )
        assert ran > 0
