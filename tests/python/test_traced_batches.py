"""Programs that call `vmap` as exported and traced programs: the ops that batching rules call."""

import io

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.func import grad, hessian, jacfwd, jacrev, vmap

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(3, 4)


class Rows(Layer):
    def forward(self, x):
        return vmap(lambda row: self.layer(row).relu() / (1 + row.norm()))(x)


class Gradients(Layer):
    def forward(self, x):
        return vmap(grad(lambda row: self.layer(row).sin().sum()))(x)


class Weights(Layer):
    def forward(self, x):
        parameters = dict(self.layer.named_parameters())

        def loss(parameters, row):
            return torch.func.functional_call(self.layer, parameters, (row,)).square().sum()

        found = vmap(grad(loss), in_dims=(None, 0))(parameters, x)
        return found["weight"], found["bias"]


class Nested(Layer):
    def forward(self, x):
        products = vmap(vmap(lambda a, b: (a * b).sum(), (None, 0)), (0, None))(x, x)
        return products, vmap(lambda row: row.cumsum(0), in_dims=1, out_dims=1)(x)


class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(3)

    def forward(self, x):
        inner = vmap(lambda row: self.norm(row).softmax(-1))(x)
        return vmap(grad(lambda row: self.norm(row).exp().sum()))(x) + inner


class Chunks(nn.Module):
    def forward(self, x):
        return vmap(lambda row: row.tanh() @ torch.ones(3, 2), chunk_size=2)(x)


class Under(Layer):
    def forward(self, x):
        with torch.no_grad():
            fixed = vmap(self.layer)(x)
        return vmap(self.layer)(x) * fixed


class Jacobians(nn.Module):
    def forward(self, x):
        def f(row):
            return row.sin() * row.sum()

        return jacrev(f)(x[0]), jacfwd(f)(x[1]), hessian(lambda row: f(row).sum())(x[2])


MODULES = [Rows, Gradients, Weights, Nested, Norms, Chunks, Under, Jacobians]


def same(found, wanted):
    torch.testing.assert_close(found, wanted)


def gradients(module, x):
    x = x.clone().requires_grad_()
    results = module(x)
    results = results if isinstance(results, tuple) else (results,)
    total = sum(
        (r * torch.arange(1.0, r.numel() + 1).view_as(r)).sum() for r in results if r.requires_grad
    )
    inputs = [x, *module.parameters()]
    return torch.autograd.grad(total, inputs, allow_unused=True, materialize_grads=True)


@pytest.mark.parametrize("kind", MODULES)
def test_export(kind):
    module, x, other = kind(), torch.randn(5, 3), torch.randn(5, 3)
    program = torch.export.export(module, (x,)).module()
    same(program(other), module(other))
    same(gradients(program, other), gradients(module, other))


@pytest.mark.parametrize("kind", [Rows, Gradients, Weights, Nested, Norms, Under])
def test_export_of_any_number(kind):
    module, x, other = kind(), torch.randn(5, 3), torch.randn(9, 3)
    exported = torch.export.export(module, (x,), dynamic_shapes=({0: torch.export.Dim("rows")},))
    same(exported.module()(other), module(other))
    file = io.BytesIO()
    torch.export.save(exported, file)
    file.seek(0)
    same(torch.export.load(file).module()(other), module(other))


@pytest.mark.parametrize("kind", MODULES)
def test_trace(kind):
    module, x, other = kind(), torch.randn(5, 3), torch.randn(5, 3)
    traced = torch.jit.trace(module, x)
    same(traced(other), module(other))
    loaded = torch.jit.load(io.BytesIO(traced.save_to_buffer()))
    same(loaded(other), module(other))


def test_random_numbers_of_rows():
    """Each row draws its own, in the program too."""

    class Dropped(nn.Module):
        def forward(self, x):
            return vmap(lambda row: nn.functional.dropout(row, 0.5), randomness="different")(x)

    program = torch.export.export(Dropped(), (torch.ones(5, 3),)).module()
    torch.manual_seed(3)
    wanted = Dropped()(torch.ones(5, 3))
    torch.manual_seed(3)
    assert torch.equal(program(torch.ones(5, 3)), wanted)
    assert len({tuple(row) for row in program(torch.ones(40, 3)[:5]).tolist()}) > 1
