"""Arguments of ops and layers that are refused, with PyTorch's words."""

import pytest

import rushlight as torch


def test_edges_that_are_refused():
    x, y = (torch.ones(2, requires_grad=True).clone() for _ in range(2))
    edge = torch.autograd.graph.get_gradient_edge(y)
    with pytest.raises(RuntimeError, match="cannot be used when the given input is a GradientEdge"):
        torch.autograd.grad(x.sum(), (x, edge), allow_unused=True, materialize_grads=True)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_dimensions_without_batch(dims):
    layer = getattr(torch.nn, f"InstanceNorm{dims}d")(4)
    size = [4] + [2] * (layer._get_no_batch_dim() - 1)
    assert layer(torch.rand(size)).shape == tuple(size)


def test_numbers_come_first():
    x = torch.tensor([3, 2])
    assert torch.add(7, x).tolist() == [10, 9] and torch.sub(1, x, alpha=2).tolist() == [-5, -3]
    assert torch.mul(0.5, x).tolist() == [1.5, 1] and torch.multiply(2, x).dtype == torch.int64
    assert (
        torch.div(6, x).tolist() == torch.true_divide(6, x).tolist() == torch.divide(6, x).tolist()
    )
    assert (
        torch.div(7, x, rounding_mode="floor").tolist()
        == torch.floor_divide(7, x).tolist()
        == [2, 3]
    )
    assert torch.subtract(1, x).tolist() == [-2, -1] and torch.add(1, 2).item() == 3
    assert torch.mul(2.0, torch.ones(2, dtype=torch.float16)).dtype == torch.float16
    w = torch.ones(2, requires_grad=True)
    torch.div(3.0, w).sum().backward()
    assert w.grad.tolist() == [-3, -3]
    with pytest.raises(TypeError):
        torch.add("1", x)
