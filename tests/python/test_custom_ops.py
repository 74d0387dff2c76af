"""Ops that programs define: kernels, gradients, composites."""

import pytest

import rushlight as torch


def test_custom_ops():
    @torch.library.custom_op("tests::scaled", mutates_args=())
    def scaled(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
        return x * factor

    x = torch.ones(2, requires_grad=True)
    y = torch.ops.tests.scaled(x, factor=3.0)
    assert y.tolist() == [3, 3] and scaled(torch.ones(1)).item() == 2
    with pytest.raises(RuntimeError, match="no autograd formula"):
        y.sum().backward()
    with pytest.raises(NotImplementedError, match="fake"):
        scaled(torch.ones(2, device="meta"))
    scaled.register_fake(lambda x, factor=2.0: torch.empty_like(x))
    assert torch.ops.tests.scaled(torch.ones(2, 3, device="meta")).shape == (2, 3)

    def setup(ctx, inputs, output):
        ctx.factor = inputs[1]

    scaled.register_autograd(lambda ctx, grad: (grad * ctx.factor, None), setup_context=setup)
    torch.ops.tests.scaled.default(x, 5.0).sum().backward()
    assert x.grad.tolist() == [5, 5]
    assert scaled._schema == "(Tensor x, float factor=2.0) -> Tensor"
    with pytest.raises(AttributeError):
        _ = torch.ops.tests.other
    with pytest.raises(ValueError, match="annotation"):
        torch.library.infer_schema(lambda x: x, mutates_args=())


def test_libraries():
    lib = torch.library.Library("tests2", "DEF")
    lib.define("twice(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match="no implementation"):
        torch.ops.tests2.twice(torch.ones(1))
    lib.impl("twice", lambda x: x * 2, "CPU")
    assert torch.ops.tests2.twice(torch.ones(1)).item() == 2
    with pytest.raises(RuntimeError, match="could not parse dispatch key: Nonsense"):
        lib.impl("twice", lambda x: x, "Nonsense")
    torch.library.impl("tests2::later", "cpu", lambda x: x * 3)  # it waits for its op
    with pytest.raises(AttributeError):
        torch.ops.tests2.later  # noqa: B018
    lib.define("later(Tensor x) -> Tensor")
    assert torch.ops.tests2.later(torch.ones(1)).item() == 3


def test_an_autograd_kernel_stands_above_the_others():
    lib = torch.library.Library("tests3", "DEF")
    lib.define("twice(Tensor x) -> Tensor")
    calls = []

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with torch._C._AutoDispatchBelowAutograd():
                return torch.ops.tests3.twice(x)

        @staticmethod
        def backward(ctx, grad):
            calls.append("backward")
            return grad * 2

    lib.impl("twice", Twice.apply, "Autograd")
    with pytest.raises(NotImplementedError, match="no implementation"):
        torch.ops.tests3.twice(torch.ones(1))

    @torch.library.impl(lib, "twice", "CPU")
    def on_cpu(x):
        calls.append("cpu")
        return x * 2

    x = torch.ones(2, requires_grad=True)
    y = torch.ops.tests3.twice(x)
    assert y.tolist() == [2, 2] and y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [2, 2] and calls == ["cpu", "backward"]


def test_a_composite_has_the_gradients_of_what_it_calls():
    lib = torch.library.Library("tests4", "FRAGMENT")
    lib.define("cubed(Tensor x, float scale=1.0) -> Tensor")
    lib.impl("cubed", lambda x, scale=1.0: x**3 * scale, "CompositeImplicitAutograd")
    x = torch.tensor([2.0], requires_grad=True)
    torch.ops.tests4.cubed(x, scale=2.0).backward()
    assert x.grad.item() == 24
    assert torch.ops.tests4.cubed(torch.ones(2, device="meta")).is_meta
    lib.impl("cubed", lambda x, scale=1.0: x * 0, "CPU")  # a device's own goes first
    assert torch.ops.tests4.cubed(x.detach()).item() == 0
    with pytest.raises(RuntimeError, match="no autograd formula"):
        torch.ops.tests4.cubed(x).backward()

    @torch.library.define(lib, "halved(Tensor x) -> Tensor")
    def halved(x):
        return x / 2

    assert torch.ops.tests4.halved(x).grad_fn is not None
