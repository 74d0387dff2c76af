"""Functions that differentiate inside: each tracer gives a program that does so for other arguments, or refuses."""

import warnings

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.fx.experimental.proxy_tensor import make_fx
from rushlight.nn import functional as F
from rushlight.utils.checkpoint import checkpoint

pytestmark = pytest.mark.filterwarnings("ignore")


# ---- functions ----


def slope(x, f):
    x = x.detach().requires_grad_()
    return torch.autograd.grad(f(x).sum(), x)[0]


def backward(x):
    x = x.detach().requires_grad_()
    x.sin().sum().backward()
    return x.grad


def second(x):
    x = x.clone().requires_grad_()
    (first,) = torch.autograd.grad((x * x).sin().sum(), x, create_graph=True)
    return torch.autograd.grad(first.sum(), x)[0]


def beside_detached(x):
    y = x.clone().requires_grad_().sin()
    return y.detach() * 3 + y * 2


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0].exp() * 3


def attention(x):
    heads = x.expand(1, 2, 3, 3)
    return F.scaled_dot_product_attention(heads, heads * 2, heads)


FUNCTIONS = {
    "grad": lambda x: slope(x, lambda t: (t * t).sin()),
    "backward": backward,
    "second": second,
    "beside_detached": beside_detached,
    "custom": lambda x: slope(x, Scaled.apply),
    "layer_norm": lambda x: slope(x, lambda t: F.layer_norm(F.gelu(t @ t), (3,)).pow(3)),
    "group_norm": lambda x: slope(x, lambda t: F.group_norm(t[None], 3).pow(3)),
    "max_pool": lambda x: slope(x, lambda t: F.max_pool2d(t[None], 2, 1).pow(2)),
    "attention": lambda x: slope(x, attention),
    "cross_entropy": lambda x: slope(x, lambda t: F.cross_entropy(t, torch.arange(3))),
    "checkpoint": lambda x: slope(
        x, lambda t: checkpoint(lambda u: u.sin().exp(), t, use_reentrant=False)
    ),
    "func_grad": lambda x: torch.func.grad(lambda t: (t.sin() * t).sum())(x),
    "jvp": lambda x: torch.func.jvp(lambda t: t.sin() * t.sum(), (x,), (x * 2,))[1],
    "vjp": lambda x: torch.autograd.functional.vjp(lambda t: t.sin() * t.sum(), x, x)[1],
}
MAPPED = {
    "jacrev": lambda x: torch.func.jacrev(lambda t: t.sin() * t.sum())(x),
    "hessian": lambda x: torch.func.hessian(lambda t: (t.sin() * t.sum()).sum())(x),
    "mapped_grad": lambda x: torch.vmap(torch.func.grad(lambda t: (t.sin() * t).sum()))(x),
}


# ---- tracers ----


class Call(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, x):
        return self.f(x)


TRACERS = {
    "make_fx": lambda f, x: make_fx(f)(x),
    "fake": lambda f, x: make_fx(f, tracing_mode="fake", _allow_non_fake_inputs=True)(x),
    "pre_dispatch": lambda f, x: make_fx(f, pre_dispatch=True)(x),
    "export": lambda f, x: torch.export.export(Call(f), (x,)).module(),
    "trace": lambda f, x: torch.jit.trace(f, (x,), check_trace=False),
}


def check(f, tracer):
    torch.manual_seed(0)
    program = TRACERS[tracer](f, torch.randn(3, 3))
    other = torch.randn(3, 3)
    torch.testing.assert_close(program(other.clone()), f(other.clone()), check_stride=False)


@pytest.mark.parametrize("tracer", TRACERS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_traced(name, tracer):
    check(FUNCTIONS[name], tracer)


@pytest.mark.parametrize("tracer", TRACERS)
@pytest.mark.parametrize("name", MAPPED)
def test_vmap_is_traced(name, tracer):
    check(MAPPED[name], tracer)


# ---- what the graph cannot compute again ----


@pytest.mark.parametrize("tracer", ["pre_dispatch", "trace"])
def test_drawn_numbers_of_an_op_are_not_drawn_again(tracer):
    def f(x):
        return slope(x, lambda t: F.dropout(t, 0.5, training=True) * 2)

    with pytest.raises(RuntimeError, match="draws random numbers"):
        TRACERS[tracer](f, torch.randn(3, 3))


def test_the_gradient_goes_beside_a_detached_result():
    graph = make_fx(lambda x: (x.sin().detach() * 3, x.sin() * 2)[0] + x * 2)(torch.ones(2))
    x = torch.ones(2, requires_grad=True)
    (found,) = torch.autograd.grad(graph(x).sum(), x)
    assert found.tolist() == [2, 2]
    both = make_fx(lambda x: x.detach() * 3 + x * 2)(torch.ones(2, requires_grad=True))
    (found,) = torch.autograd.grad(both(x).sum(), x)
    assert found.tolist() == [2, 2]


def test_fake_tensors_that_no_op_has_made_are_no_constants():
    made = []

    def f(x):
        made.append(x * 2)
        return x + 1

    make_fx(f, tracing_mode="fake")(torch.ones(2))
    with warnings.catch_warnings(), pytest.raises(RuntimeError, match="none of its ops has made"):
        warnings.simplefilter("ignore")
        make_fx(lambda x: x + made[0], tracing_mode="fake")(torch.ones(2))
