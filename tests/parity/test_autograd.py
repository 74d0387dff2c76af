"""Small programs with writes, views and second derivatives: gradients or errors as PyTorch's."""

import pytest

import rushlight

torch = pytest.importorskip("torch")


def leaf(torch, *values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def leaf_like(torch, *shape):
    n = 1
    for size in shape:
        n *= size
    return torch.arange(float(n)).view(*shape).double().requires_grad_()


# Each is run as the body of a function of `torch` that returns what `out` holds, a list of tensors.
PROGRAMS = {
    "set items": """
        x = L(1., 2., 3.)
        y = x.clone()
        y[0] = y[1] * 2
        y.sum().backward()
        out = [x.grad]""",
    "set by mask": """
        x = L(1., 2., 3.)
        w = L(5.)
        y = x * 2
        y[y > 3] = w[0]
        y.sum().backward()
        out = [x.grad, w.grad]""",
    "set by index": """
        x = L(1., 2., 3.); w = L(5., 6.); y = x * 2; y[torch.tensor([0, 2])] = w
        (y * y).sum().backward(); out = [x.grad, w.grad]""",
    "zero": "x = L(1., 2.); y = x * 2; y.zero_(); (y + x).sum().backward(); out = [x.grad]",
    "fill a view": """
        x = L(1., 2., 3.)
        y = x * 2
        y[1:].fill_(7)
        y.sum().backward()
        out = [x.grad]""",
    "copy into a view": """
        x = L(1., 2., 3., 4.); w = L(9., 8.); y = x * 2; y[1:3].copy_(w)
        (y * y).sum().backward(); out = [x.grad, w.grad]""",
    "write a diagonal": """
        x = S(3, 3); y = x * 1; y.diagonal().mul_(3); y.sum().backward(); out = [x.grad]""",
    "write a strided window": """
        x = L(1., 2., 3., 4.); y = x * 1; y.as_strided((2,), (2,), 1).mul_(4)
        y.sum().backward(); out = [x.grad]""",
    "overlapping window": """
        x = L(1., 2., 3., 4.)
        (x.as_strided((3, 2), (1, 1)) ** 2).sum().backward()
        out = [x.grad]""",
    "two views, both written": """
        x = L(1., 2., 3., 4.); y = x * 1; a = y[:2]; b = y[1:]; a.mul_(2); b.mul_(3)
        (a.sum() + b.sum() * 10).backward(); out = [x.grad]""",
    "transposed in place": """
        x = S(2, 3)
        y = x * 1
        y.t_()
        (y * torch.arange(6.).view(3, 2)).sum().backward()
        out = [x.grad]""",
    "late view": """
        x = torch.zeros(3).double(); v = x.view(3); w = L(1., 2., 3.); x.add_(w)
        (v * 2).sum().backward(); out = [w.grad]""",
    "write the real part": """
        z = torch.tensor([3 + 4j, 1j], requires_grad=True); y = z * 1; y.real.mul_(2)
        y.abs().sum().backward(); out = [z.grad]""",
    "second derivative through a write": """
        x = L(1., 2., 3.); y = x * x; y[0].mul_(x[1])
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        out = [g, *torch.autograd.grad((g * g).sum(), x)]""",
    "third derivative": """
        x = L(1., 2.); y = (x.exp() * x).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x, create_graph=True)
        out = [g, h, *torch.autograd.grad(h.sum(), x)]""",
    "hooks that write": """
        x = L(1.)
        x.register_hook(lambda g: g.mul_(2))
        (x * 3).sum().backward()
        out = [x.grad]""",
    "in-place ops": """
        x = L(.5, 2., 3.); w = L(4., 5.); i = torch.tensor([0, 2]); y = x * 1
        y.index_add_(0, i, w)
        y.clamp_(0, 6)
        y.masked_fill_(y > 5.5, 2)
        y.scatter_(0, i[:1], w[:1])
        (y * y).sum().backward(); out = [x.grad, w.grad]""",
    # errors
    "saved result written": "x = L(1., 2.); y = x.exp(); y.detach().mul_(2); y.sum().backward()",
    "saved index written": """
        x = L(1., 2.)
        i = torch.tensor([0])
        y = x[i]
        i.add_(1)
        y.sum().backward()""",
    "own factor written": "x = L(2., 3.); y = x * 1; y.mul_(y); y.sum().backward()",
    "leaf written": "L(1.).add_(1)",
    "view of a leaf written": "L(1., 2.)[:1].add_(1)",
    "piece written": "a, b = (L(1., 2.) * 1).chunk(2); a.mul_(2)",
    "out with gradient": "torch.mul(L(1.), L(1.), out=torch.empty(1).double())",
    "no graph": "torch.ones(2).sum().backward()",
    "gradient of another shape": "(L(1., 2.) * 2).backward(torch.ones(3).double())",
    "no scalar": "(L(1., 2.) * 2).backward()",
    "complex root": "(torch.tensor([3 + 4j], requires_grad=True) * 2).sum().backward()",
}


def run(library, text):
    names = {
        "torch": library,
        "L": lambda *v: leaf(library, *v),
        "S": lambda *s: leaf_like(library, *s),
    }
    code = "\n".join(line.strip() for line in text.strip().splitlines())
    try:
        exec(code, names)
    except Exception as error:
        return type(error).__name__, None
    return None, [t.detach().resolve_conj().tolist() for t in names["out"]]


@pytest.mark.parametrize("name", PROGRAMS)
def test_equals_torch(name):
    expected_error, expected = run(torch, PROGRAMS[name])
    error, values = run(rushlight, PROGRAMS[name])
    assert error == expected_error
    if expected is not None:
        for ours, theirs in zip(values, expected, strict=True):
            assert torch.allclose(torch.tensor(ours), torch.tensor(theirs))
