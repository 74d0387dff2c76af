"""Transforms of functions, modules as functions, and the counter of what they take."""

import pytest

import rushlight as torch
from rushlight import func
from rushlight.utils.flop_counter import FlopCounterMode


def test_gradients_nest():
    def cube(x):
        return x**3

    x = torch.tensor(2.0, dtype=torch.float64)
    assert func.grad(cube)(x).item() == 12
    assert func.grad(func.grad(cube))(x).item() == 12
    assert func.grad(func.grad(func.grad(cube)))(x).item() == 6
    result, value = func.grad_and_value(cube)(x)
    assert value.item() == 8 and not result.requires_grad and not value.requires_grad
    inner = func.grad(lambda x: func.grad(lambda y: x * x * y)(torch.ones((), dtype=x.dtype)))
    assert inner(x).item() == 4
    w = torch.tensor(3.0, requires_grad=True)
    outside = func.grad(lambda x: w * x * x)(torch.tensor(1.0))
    assert outside.requires_grad
    outside.backward()
    assert w.grad.item() == 2


def test_gradients_of_trees_and_errors():
    grads = func.grad(lambda p: (p["a"] * p["b"]).sum())(
        {"a": torch.ones(2), "b": torch.ones(2) * 2}
    )
    assert grads["a"].tolist() == [2, 2] and grads["b"].tolist() == [1, 1]
    grads, aux = func.grad(lambda x: (x.sum(), "aux"), has_aux=True)(torch.ones(2))
    assert grads.tolist() == [1, 1] and aux == "aux"
    with pytest.raises(RuntimeError, match="scalar tensor"):
        func.grad(lambda x: x * 2)(torch.ones(2))
    with pytest.raises(RuntimeError, match="argnum"):
        func.grad(lambda x: x.sum(), argnums=1)(torch.ones(2))


def test_jacobians_agree():
    x = torch.rand(3, dtype=torch.float64)
    y = torch.rand(2, dtype=torch.float64)

    def f(x, y):
        return {"a": x.sin().sum() * y, "b": x * y[0]}

    rows = func.jacrev(f, argnums=(0, 1))(x, y)
    columns = func.jacfwd(f, argnums=(0, 1))(x, y)
    for name in "ab":
        for p, q in zip(rows[name], columns[name], strict=True):
            assert p.shape == q.shape and torch.allclose(p, q)
    h = func.hessian(lambda x: (x**3).sum())(x)
    assert torch.allclose(h, torch.diag(6 * x))
    value, tangent = func.jvp(torch.sin, (x,), (torch.ones_like(x),))
    assert torch.allclose(tangent, x.cos()) and torch.equal(value, x.sin())
    value, product = func.vjp(torch.sin, x)
    assert torch.allclose(product(torch.ones_like(x))[0], x.cos())


def test_vmap():
    x = torch.arange(6.0).view(2, 3)
    assert torch.vmap(torch.dot)(x, x).tolist() == [5, 50]
    assert torch.vmap(torch.vmap(lambda v: v + 1))(x).tolist() == (x + 1).tolist()
    grads = torch.vmap(func.grad(lambda v: (v**2).sum()))(x)
    assert grads.tolist() == (2 * x).tolist()
    assert torch.vmap(lambda a: a * 2, in_dims=1, out_dims=1)(x).shape == (2, 3)
    torch.manual_seed(0)
    same = torch.vmap(lambda a: torch.rand(3), randomness="same")(x)
    assert torch.equal(same[0], same[1])
    for wrong in ({"in_dims": None}, {"in_dims": 5}, {"in_dims": (0, 0)}):
        with pytest.raises(ValueError, match="vmap"):
            torch.vmap(lambda a: a, **wrong)(x)


def test_modules_as_functions():
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    before = {n: p.clone() for n, p in model.named_parameters()}
    zeros = {n: torch.zeros_like(p) for n, p in model.named_parameters()}
    assert func.functional_call(model, zeros, torch.rand(4, 3)).tolist() == [[0, 0]] * 4
    assert all(torch.equal(p, before[n]) for n, p in model.named_parameters())
    with pytest.raises(RuntimeError, match="Missing key"):
        func.functional_call(model, {}, torch.rand(4, 3), strict=True)
    shared = torch.nn.Linear(2, 2, bias=False)
    tied = torch.nn.Sequential(shared, shared)
    result = func.functional_call(tied, {"0.weight": torch.eye(2) * 2}, torch.ones(1, 2))
    assert result.tolist() == [[4, 4]]
    parameters, buffers = func.stack_module_state([torch.nn.Linear(2, 2) for _ in range(3)])
    assert parameters["weight"].shape == (3, 2, 2) and buffers == {}


def test_flop_counter():
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(16, 5)
    )
    with FlopCounterMode(display=False) as counter:
        model(torch.rand(2, 3, 4, 4)).sum().backward()
    forward = 2 * 2 * 4 * (4 * 3 * 9) + 2 * 2 * 16 * 5
    # Backward: twice that, but for the gradient of the input, which nobody wants.
    assert counter.get_total_flops() == 3 * forward - 2 * 2 * 4 * (4 * 3 * 9)
    counts = counter.get_flop_counts()
    assert counts["Sequential.2"][torch.ops.aten.linear] == 2 * 2 * 16 * 5
    assert "Sequential.0" in counter.get_table() and "aten.convolution" in counter.get_table()
