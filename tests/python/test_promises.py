"""What PyTorch promises of old names and of arguments that are refused."""

import pytest

import rushlight as rl


def test_default_types_by_tensor_types():
    before = rl.get_default_dtype()
    try:
        with pytest.warns(UserWarning, match=r"deprecated as of PyTorch 2\.1"):
            rl.set_default_tensor_type(rl.DoubleTensor)
        assert rl.get_default_dtype() == rl.float64 and rl.ones(1).dtype == rl.float64
        with pytest.warns(UserWarning):
            rl.set_default_tensor_type("torch.FloatTensor")
        assert rl.get_default_dtype() == rl.float32
        with pytest.warns(UserWarning), pytest.raises(TypeError, match="only floating-point"):
            rl.set_default_tensor_type(rl.IntTensor)
        with pytest.raises(TypeError, match="invalid type object"):
            rl.set_default_tensor_type(rl.float32)
    finally:
        rl.set_default_dtype(before)


def test_edges_that_are_refused():
    x, y = (rl.ones(2, requires_grad=True).clone() for _ in range(2))
    edge = rl.autograd.graph.get_gradient_edge(y)
    with pytest.raises(RuntimeError, match="cannot be used when the given input is a GradientEdge"):
        rl.autograd.grad(x.sum(), (x, edge), allow_unused=True, materialize_grads=True)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_dimensions_without_batch(dims):
    layer = getattr(rl.nn, f"InstanceNorm{dims}d")(4)
    size = [4] + [2] * (layer._get_no_batch_dim() - 1)
    assert layer(rl.rand(size)).shape == tuple(size)


def test_gradients_of_convolutions_have_two_names():
    assert rl.nn.functional.grad is rl.nn.grad
