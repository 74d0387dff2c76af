"""Custom functions: `autograd.Function` in all its forms."""

import gc
import threading
import weakref

import pytest

import rushlight as torch
from rushlight.autograd import Function, gradcheck, gradgradcheck
from rushlight.autograd.function import once_differentiable
from tests.python.gradients import leaf, raises


class Scale(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        ctx.save_for_backward(x)
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None


def test_function_context_is_the_node():
    x = leaf(1.0)
    y = Scale.apply(x, 3)
    assert type(y.grad_fn).__name__ == "ScaleBackward"
    assert y.grad_fn.factor == 3
    assert y.grad_fn.needs_input_grad == (True, False)
    assert y.grad_fn.saved_tensors[0] is x
    assert y.grad_fn.next_functions[0][0].variable is x
    y.sum().backward()
    with raises("a second time"):
        y.grad_fn.saved_tensors  # noqa: B018
    with torch.no_grad():
        assert Scale.apply(x, 3).grad_fn is None


def test_function_second_derivative():
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 2 * x

    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(Square.apply, (x,))
    assert gradgradcheck(Square.apply, (x,))


def test_function_that_saves_its_output():
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            (y,) = ctx.saved_tensors
            return grad * y

    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(Exp.apply, (x,))
    assert gradgradcheck(Exp.apply, (x,))
    y = Exp.apply(x)
    y.add_(1)
    with raises("modified by an inplace operation"):
        y.sum().backward()


def test_function_with_setup_context():
    class Product(Function):
        @staticmethod
        def forward(x, y):
            return x * y, x.shape[0]

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            assert output[1] == 2

        @staticmethod
        def backward(ctx, grad, _):
            x, y = ctx.saved_tensors
            return grad * y, grad * x

    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    z, n = Product.apply(x, y)
    assert n == 2
    z.sum().backward()
    assert x.grad.tolist() == [3.0, 4.0] and y.grad.tolist() == [1.0, 2.0]


def test_function_with_several_outputs():
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            index = torch.tensor([0])
            ctx.mark_non_differentiable(index)
            return x * 2, x * 3, index

        @staticmethod
        def backward(ctx, a, b, c):
            seen.append((a, b, c))
            return a * 2 + b * 3

    x = leaf(1.0)
    a, b, index = Two.apply(x)
    assert not index.requires_grad and a.requires_grad
    b.sum().backward()
    assert x.grad.tolist() == [3.0]
    assert seen[0][0].tolist() == [0.0] and seen[0][2].tolist() == [0]


def test_unmaterialized_gradients():
    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            assert a is None
            return b * 3

    x = leaf(1.0)
    Two.apply(x)[1].sum().backward()
    assert x.grad.tolist() == [3.0]


def test_function_in_place():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = leaf(1.0, 2.0)
    y = x * 1
    assert Double.apply(y) is y
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    x.grad = None
    z = x * 1
    Double.apply(z[:1])
    z.sum().backward()
    assert x.grad.tolist() == [2.0, 1.0]
    with raises("a leaf Variable that requires grad has been used"):
        Double.apply(leaf(1.0))


def test_function_that_returns_its_input():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 10

    x = leaf(1.0)
    y = Same.apply(x)
    assert y is not x and y.data_ptr() == x.data_ptr()
    y.sum().backward()
    assert x.grad.tolist() == [10.0]
    with raises("inside a custom Function"):
        Same.apply(x * 1).add_(1)


def test_function_errors():
    class Bad(Function):
        @staticmethod
        def forward(ctx, x, n):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return Bad.result

    x = leaf(1.0, 2.0)
    grad = torch.ones(2, dtype=torch.float64)
    for result, message in [
        ((grad, None, grad), r"returned an incorrect number of gradients \(expected 2, got 3\)"),
        ((grad, grad), "returned a gradient different than None at position 2"),
        ((3, None), r"expected Variable or None \(got int\)"),
        ((torch.ones(3), None), r"invalid gradient at index 0 - got \[3\] but expected shape"),
    ]:
        Bad.result = result
        with raises(message):
            Bad.apply(x, 1).sum().backward()
    with pytest.raises(TypeError):

        class Save(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(3)
                return x * 1

        Save.apply(x)

    class Fails(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            raise KeyError("from backward")

    with pytest.raises(KeyError, match="from backward"):
        Fails.apply(x).sum().backward()


def test_once_differentiable():
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 3 * x**2

    x = leaf(2.0)
    Cube.apply(x).sum().backward()
    assert x.grad.tolist() == [12.0]
    weight = leaf(1.0)
    (first,) = torch.autograd.grad(Cube.apply(x), x, weight, create_graph=True)
    with raises("twice a function that was marked with @once_differentiable"):
        first.sum().backward()


def test_function_without_backward():
    class Forward(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

    with pytest.raises(NotImplementedError, match="backward"):
        Forward.apply(leaf(1.0)).sum().backward()


def test_the_old_name_of_saved_tensors_warns():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            assert len(ctx.saved_variables) == 1
            return grad * 2

    with pytest.warns(DeprecationWarning, match="saved_variables"):
        Twice.apply(torch.ones(2, requires_grad=True)).sum().backward()


class Keeps(Function):
    """Leaves its context in `contexts`; `change(ctx)` runs in forward."""

    contexts: list = []  # noqa: RUF012

    @staticmethod
    def forward(ctx, x, change=None):
        Keeps.contexts.append(ctx)
        out = x * 2
        if change is not None:
            change(ctx, out)
        return out

    @staticmethod
    def backward(ctx, grad):
        return grad * 2, None


class Squares(Function):
    """Saves its input and, after it, its output."""

    @staticmethod
    def forward(ctx, x):
        out = x * x
        ctx.save_for_backward(x, out)
        return out

    @staticmethod
    def backward(ctx, grad):
        return 2 * ctx.saved_tensors[0] * grad


def test_nodes_outlive_their_outputs():
    x = torch.tensor([3.0], requires_grad=True)
    node = Squares.apply(x).grad_fn
    node.mark = "kept"
    assert node(torch.ones(1)).item() == 6 and node.name() == "SquaresBackward"
    assert node.next_functions[0][0].variable is x and node.saved_tensors[0] is x
    seen = []
    node.register_hook(lambda grads, _: seen.append(grads[0].item()))
    torch.autograd.backward((torch.autograd.graph.GradientEdge(node, 0),), (torch.ones(1),))
    assert x.grad.item() == 6 and seen == [6]


def test_a_saved_output_gives_the_node_back_to_the_graph():
    x = torch.tensor([3.0], requires_grad=True)
    node = Squares.apply(x).grad_fn
    node.mark = "kept"
    for _ in range(3):  # to and fro
        out = node.saved_tensors[1]
        weak = weakref.ref(node)
        del node
        gc.collect()
        assert weak() is out.grad_fn and out.grad_fn.mark == "kept"
        node = out.grad_fn
        del out
    out = node.saved_tensors[1]
    del node
    out.backward()
    assert x.grad.item() == 6
    assert weak() is out.grad_fn
    del out
    assert weak() is None


def test_contexts_that_own_their_nodes_are_collected():
    alive = []
    for _ in range(5):
        x = torch.ones(3, requires_grad=True)
        node = Squares.apply(x).grad_fn
        node.itself = node
        node.held = node.saved_tensors[0] * 2
        node.register_hook(lambda *_, node=node: node)
        alive.append((weakref.ref(node), weakref.ref(x)))
        del node, x
    gc.collect()
    assert not any(node() or x() for node, x in alive)


def test_threads_drop_outputs_whose_contexts_others_hold():
    x = torch.ones(3, requires_grad=True)
    nodes = []

    def work():
        for _ in range(200):
            y = Squares.apply(x)
            nodes.append(y.grad_fn)
            z = (y * 2).sum()
            del y
            z.backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(nodes) == 800 and all(n.next_functions[0][0].variable is x for n in nodes)
    torch.testing.assert_close(x.grad, torch.full((3,), 3200.0))


def test_contexts_without_a_node():
    Keeps.apply(torch.ones(2))
    Keeps.apply(torch.ones(2, requires_grad=True))
    never_recorded, recorded = Keeps.contexts
    Keeps.contexts.clear()
    assert recorded(torch.ones(2)).tolist() == [2, 2] and recorded.name() == "KeepsBackward"
    for ctx in (never_recorded, type(recorded)()):
        for use in (
            lambda c: c(torch.ones(2)),
            lambda c: c.next_functions,
            lambda c: c.name(),
            lambda c: c.register_hook(print),
            lambda c: c.metadata,
        ):
            with pytest.raises(RuntimeError, match="not recorded"):
                use(ctx)
        assert ctx.saved_tensors == ()
        ctx.maybe_clear_saved_tensors()


@pytest.mark.parametrize(
    "name", ["to_save", "dirty_tensors", "non_differentiable", "saved_for_forward"]
)
def test_attributes_of_contexts(name):
    for value in (5, "text", [torch.ones(2)], {}, torch.ones(2), object()):
        with pytest.raises(RuntimeError, match="expected to be a tuple"):
            Keeps.apply(
                torch.ones(2, requires_grad=True), lambda ctx, out, v=value: setattr(ctx, name, v)
            )
    for value in (None, ()):
        y = Keeps.apply(
            torch.ones(2, requires_grad=True), lambda ctx, out, v=value: setattr(ctx, name, v)
        )
        y.sum().backward()
    Keeps.apply(torch.ones(2, requires_grad=True), lambda ctx, out: delattr(ctx, name))
    Keeps.contexts.clear()


def test_what_is_saved_changes_while_it_is_saved():
    """A pack function may reach the context."""

    class Saves(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(*(x * i for i in range(9)))
            Saves.ctx = ctx
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * len(ctx.saved_tensors)

    def pack(t):
        Saves.ctx.to_save = None
        Saves.ctx.save_for_backward()
        return t

    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = Saves.apply(x)
    y.sum().backward()
    assert x.grad.tolist() == [9, 9]


def test_classes_of_contexts_that_are_none():
    class Odd(Keeps):
        pass

    for wrong in (list, lambda: None, torch.Tensor, Keeps._backward_cls):
        Odd._backward_cls = wrong
        x = torch.ones(2, requires_grad=True)
        if wrong is Keeps._backward_cls:
            Odd.apply(x).sum().backward()
            continue
        with pytest.raises(TypeError, match="context"):
            Odd.apply(x)
    y = Keeps.apply(torch.ones(2, requires_grad=True))
    Odd._backward_cls = lambda: y.grad_fn
    with pytest.raises(RuntimeError, match="another call"):
        Odd.apply(torch.ones(2, requires_grad=True))
    Keeps.contexts.clear()


def test_metadata_of_results_that_are_no_tensors():
    class Mixed(Function):
        @staticmethod
        def forward(ctx, x):
            return 3, x * 2, None

        @staticmethod
        def backward(ctx, *grads):
            return grads[1] * 2

    number, y, nothing = Mixed.apply(torch.ones(2, requires_grad=True))
    assert (number, nothing) == (3, None)
    assert [m.dtype for m in y.grad_fn._input_metadata] == [None, torch.float32, None]
    assert [m.device for m in y.grad_fn._input_metadata] == [None, torch.device("cpu"), None]
    y.sum().backward()
