"""Branches, loops and scans as functions of functions."""

import pytest

import rushlight as torch
from rushlight import _higher_order_ops as higher


def test_cond_runs_one_branch():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for pred in (True, 1, torch.tensor(True), torch.tensor([1])):
        assert torch.cond(pred, torch.sin, torch.cos, (x,)).equal(x.sin())
    torch.cond(x.sum() > 9, lambda t: t, lambda t: (3 * t).sum(), (x,)).backward()
    assert x.grad.tolist() == [3, 3]
    assert torch.cond(False, lambda: 1, lambda: 2) == 2
    for wrong in (
        lambda: torch.cond("yes", abs, abs),
        lambda: torch.cond(torch.ones(2), abs, abs),
        lambda: torch.cond(True, 1, abs),
        lambda: torch.cond(True, abs, abs, x),
        lambda: torch.cond(True, abs, abs, ("x",)),
    ):
        with pytest.raises(RuntimeError, match="Expect"):
            wrong()


def test_while_loop_carries_values():
    out = torch.while_loop(
        lambda i, x: i < 4, lambda i, x: (i + 1, x * 2), (torch.tensor(0), torch.ones(2))
    )
    assert out[0] == 4 and out[1].tolist() == [16, 16]
    one = higher.while_loop(lambda x: bool(x < 3), lambda x: x + 1, [torch.tensor(0)])
    assert one == (torch.tensor(3),)
    with pytest.raises(RuntimeError, match="body_fn"):
        torch.while_loop(lambda x: x < 1, lambda x: (x, x), (torch.tensor(0),))
    with pytest.raises(RuntimeError, match="cond_fn must return"):
        torch.while_loop(lambda x: 3, lambda x: x, (torch.tensor(0),))


@pytest.mark.parametrize("length", [1, 2, 3, 4, 7, 8, 13])
@pytest.mark.parametrize("mode", ["pointwise", "generic"])
def test_associative_scans_are_running_results(length, mode):
    torch.manual_seed(0)
    x = torch.randn(3, length, dtype=torch.double, requires_grad=True)
    out = higher.associative_scan(torch.mul, x, 1, combine_mode=mode)
    assert torch.allclose(out, x.cumprod(1))
    backwards = higher.associative_scan(torch.add, x, 1, reverse=True, combine_mode=mode)
    assert torch.allclose(backwards, x.flip(1).cumsum(1).flip(1))
    (grad,) = torch.autograd.grad(out.sum(), x)
    assert torch.allclose(grad, torch.autograd.grad(x.cumprod(1).sum(), x)[0])


def test_associative_scans_of_containers_and_matrices():
    a, b = torch.rand(5, 2), torch.rand(5, 2)
    # h[t] = a[t] h[t-1] + b[t]
    out = higher.associative_scan(lambda x, y: (y[0] * x[0], y[0] * x[1] + y[1]), (a, b), 0)
    h = torch.zeros(2)
    for t in range(5):
        h = a[t] * h + b[t]
        assert torch.allclose(out[1][t], h)
    m = torch.randn(6, 3, 3, dtype=torch.double)
    products = higher.associative_scan(torch.mm, m, 0, combine_mode="generic")
    assert torch.allclose(products[-1], torch.linalg.multi_dot(list(m)))
    for wrong in (
        lambda: higher.associative_scan(1, a, 0),
        lambda: higher.associative_scan(torch.add, a, 0, combine_mode="fast"),
        lambda: higher.associative_scan(torch.add, a, 5),
        lambda: higher.associative_scan(torch.add, (a, b[:2]), 0),
    ):
        with pytest.raises(ValueError, match=r"xs leaves|ombine"):
            wrong()


def test_scans_carry_a_value_and_stack_results():
    x = torch.arange(4.0)
    carry, out = higher.scan(lambda c, v: (c + v, {"both": c * v}), torch.tensor(1.0), x)
    assert carry == 7 and out["both"].tolist() == [0, 1, 4, 12]
    carry, out = higher.scan(lambda c, v: (v, c), torch.tensor(9.0), x, reverse=True)
    assert carry == 0 and out.tolist() == [1, 2, 3, 9]


def test_maps_stack_what_each_slice_gives():
    xs = {"a": torch.randn(3, 2, requires_grad=True), "b": [torch.randn(3)]}
    y = torch.ones(2)
    out = higher.map(lambda x, y: (x["a"] * y + x["b"][0], None), xs, y)
    assert out[1] is None and torch.equal(out[0], xs["a"] + xs["b"][0][:, None])
    out[0].sum().backward()
    assert xs["a"].grad.eq(1).all()
    for wrong in (
        lambda: higher.map(torch.add, [torch.ones(2), 3], y),
        lambda: higher.map(torch.add, [], y),
        lambda: higher.map(torch.add, torch.ones(0, 2), y),
        lambda: higher.map(torch.add, (torch.ones(3), torch.ones(2)), y),
        lambda: higher.map(lambda x: x.item(), y),
    ):
        with pytest.raises(RuntimeError, match=r"Mapped xs|mapped xs|outputs of map"):
            wrong()
