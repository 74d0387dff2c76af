"""Gradients by behaviour: engine, modes, the graph in Python, checks, anomaly mode."""

import contextlib
import gc
import threading
import warnings
import weakref

import pytest

import rushlight as torch
from rushlight.autograd import Function, gradcheck, gradgradcheck
from tests.python.gradients import assert_close, leaf, raises

# ---- the engine ----


def test_diamond_runs_each_node_once():
    x = leaf(2.0)
    calls = []
    y = x * 3
    y.register_hook(lambda g: calls.append(g.item()))
    (y * y + y).sum().backward()
    assert calls == [13.0]
    assert x.grad.tolist() == [39.0]


def test_grad_keeps_its_identity_and_accumulates_in_place():
    x = leaf(1.0)
    (x * 2).sum().backward()
    grad = x.grad
    assert x.grad is grad
    (x * 2).sum().backward()
    assert x.grad is grad and grad.tolist() == [4.0]


def test_create_graph_accumulates_out_of_place():
    x = leaf(1.0)
    (x * 2).sum().backward()
    before = x.grad
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (x**3).sum().backward(create_graph=True)
    assert before.tolist() == [2.0] and x.grad.tolist() == [5.0]
    assert x.grad.requires_grad
    x.grad = None


def test_gradients_do_not_share_memory():
    a, b = leaf(1.0), leaf(1.0)
    (a + b).sum().backward()
    a.grad.add_(5)
    assert b.grad.tolist() == [1.0]
    given = torch.ones(1, dtype=torch.float64)
    c = leaf(1.0)
    c.backward(given)
    c.grad.add_(1)
    assert given.tolist() == [1.0]


def test_grad_has_the_leafs_strides():
    x = torch.ones(2, 3).t().requires_grad_()
    (x * torch.ones(3, 2)).sum().backward()
    assert x.grad.stride() == x.stride()


def test_several_roots_and_gradients():
    x = leaf(1.0, 2.0)
    torch.autograd.backward([x * 2, (x * 3).sum()], [torch.tensor([1.0, 10.0]).double(), None])
    assert x.grad.tolist() == [5.0, 23.0]


def test_root_that_is_inside_the_graph_of_another():
    x = leaf(1.0)
    y = x * 2
    z = y * 3
    torch.autograd.backward([y, z], [torch.ones(1).double()] * 2)
    assert x.grad.tolist() == [8.0]


def test_inputs_of_backward():
    x, w = leaf(2.0), leaf(3.0)
    h = x * w
    h.sum().backward(inputs=[w], retain_graph=True)
    assert x.grad is None and w.grad.tolist() == [2.0]
    (h * 2).sum().backward(inputs=[h])
    assert h.grad.tolist() == [2.0] and x.grad is None
    with raises("cannot be empty"):
        torch.autograd.backward(h, inputs=[])


def test_only_what_is_wanted_is_computed():
    x, w = leaf(2.0), leaf(3.0)
    seen = []

    class Watch(Function):
        @staticmethod
        def forward(ctx, a):
            return a * 1

        @staticmethod
        def backward(ctx, g):
            seen.append(1)
            return g

    y = (Watch.apply(w) * x).sum()
    torch.autograd.grad(y, x)
    assert seen == []


def test_grad_errors():
    x, unused = leaf(1.0), leaf(1.0)
    y = (x * 2).sum()
    with raises("appears to not have been used in the graph"):
        torch.autograd.grad(y, unused, retain_graph=True)
    assert torch.autograd.grad(y, unused, retain_graph=True, allow_unused=True) == (None,)
    zeros = torch.autograd.grad(y, unused, retain_graph=True, materialize_grads=True)
    assert zeros[0].tolist() == [0.0]
    with raises("does not require grad"):
        torch.autograd.grad(y, torch.ones(1))
    with raises("`inputs` argument to `grad\\(\\)` cannot be empty"):
        torch.autograd.grad(y, [])
    with raises("Mismatch in shape: grad_output\\[0\\] is of torch.Size\\(\\[2\\]\\)"):
        (x * 2).backward(torch.ones(2))
    with raises("Expected allow_unused to be True", ValueError):
        torch.autograd.grad(y, unused, allow_unused=False, materialize_grads=True)


def test_grad_by_name():
    inputs = {"a": leaf(2.0), "b": leaf(3.0)}
    out = torch.autograd.grad((inputs["a"] * inputs["b"]).sum(), inputs)
    assert out["a"].tolist() == [3.0] and out["b"].tolist() == [2.0]


def test_batched_gradients():
    x = leaf(1.0, 2.0)
    (jacobian,) = torch.autograd.grad(
        x**2, x, torch.eye(2, dtype=torch.float64), is_grads_batched=True
    )
    assert jacobian.tolist() == [[2.0, 0.0], [0.0, 4.0]]


def test_gradients_are_cast_to_the_inputs_dtype():
    x = torch.ones(2, requires_grad=True)
    (x.double() * 2).sum().backward()
    assert x.grad.dtype == torch.float32
    h = torch.ones(2, dtype=torch.float16, requires_grad=True)
    (h * torch.ones(2)).sum().backward()
    assert h.grad.dtype == torch.float16


def test_real_inputs_of_complex_results_get_real_gradients():
    x = leaf(1.0, 2.0)
    z = x * torch.tensor([1j, 2.0])
    z.abs().sum().backward()
    assert x.grad.dtype == torch.float64
    assert x.grad.tolist() == [1.0, 2.0]


def test_deep_graph():
    x = leaf(1.0)
    y = x
    for _ in range(200_000):
        y = y + x
    y.sum().backward()
    assert x.grad.tolist() == [200_001.0]
    del y
    gc.collect()


def test_deep_graph_dies_without_backward():
    y = x = leaf(1.0)
    for _ in range(200_000):
        y = y * x
    del y


@pytest.mark.parametrize("depth", [1, 5, 300])
def test_backward_within_backward(depth):
    class Nest(Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            if ctx.depth > 0:
                with torch.enable_grad():
                    inner = x.detach().requires_grad_()
                    Nest.apply(inner, ctx.depth - 1).sum().backward()
                assert inner.grad.tolist() == [2.0]
            return grad * 2, None

    x = leaf(1.0)
    Nest.apply(x, depth).sum().backward()
    assert x.grad.tolist() == [2.0]


def test_second_derivatives():
    x = leaf(2.0, 3.0)
    y = (x**3 * x.exp()).sum()
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = torch.autograd.grad(second.sum(), x)
    e = x.detach().exp()
    v = x.detach()
    assert_close(first.detach(), (v**3 + 3 * v**2) * e)
    assert_close(second.detach(), (v**3 + 6 * v**2 + 6 * v) * e)
    assert_close(third, (v**3 + 9 * v**2 + 18 * v + 6) * e)


# ---- modes ----


def test_modes_restore_and_decorate():
    @torch.no_grad()
    def silent(x):
        return x * 2

    @torch.no_grad
    def bare(x):
        return x * 2

    @torch.inference_mode()
    def inferred(x):
        return x * 2

    x = leaf(1.0)
    assert not silent(x).requires_grad and not bare(x).requires_grad
    assert inferred(x).is_inference()
    assert torch.is_grad_enabled()
    with torch.no_grad():

        @torch.enable_grad()
        def loud(x):
            return x * 2

        assert loud(x).requires_grad

    @torch.set_grad_enabled(False)
    def off(x):
        return x * 2

    assert torch.is_grad_enabled()
    assert not off(x).requires_grad and torch.is_grad_enabled()


def test_mode_of_a_generator_holds_in_its_own_code_only():
    @torch.no_grad()
    def numbers():
        received = []
        try:
            for i in range(2):
                assert not torch.is_grad_enabled()
                received.append((yield i))
        finally:
            assert not torch.is_grad_enabled()
        return received

    def outer():
        result.append((yield from numbers()))

    result = []
    generator = outer()
    assert next(generator) == 0
    assert torch.is_grad_enabled()
    assert generator.send("a") == 1
    assert torch.is_grad_enabled()
    with pytest.raises(StopIteration):
        generator.send("b")
    assert result == [["a", "b"]]
    assert torch.is_grad_enabled()


def test_grad_mode_is_per_thread():
    seen = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


# ---- the graph in Python ----


def test_nodes():
    x, y = leaf(1.0), leaf(2.0)
    z = x * y
    node = z.grad_fn
    assert z.grad_fn is node
    assert node.name() == "MulBackward0" == type(node).__name__
    assert isinstance(node, torch.autograd.graph.Node)
    assert [type(n).__name__ for n, _ in node.next_functions] == ["AccumulateGrad"] * 2
    assert node._saved_self is x and node._saved_other is y
    node.metadata["key"] = 1
    assert z.grad_fn.metadata == {"key": 1}
    assert (x + 1).grad_fn.next_functions[1] == (None, 0)
    saved = x.exp().grad_fn._saved_result
    assert type(saved.grad_fn).__name__ == "ExpBackward0"
    with pytest.raises(AttributeError):
        node._saved_nothing  # noqa: B018
    z.sum().backward()
    with raises("a second time"):
        node._saved_self  # noqa: B018


def test_gradient_edges():
    x = leaf(3.0)
    y = x * 2
    edge = torch.autograd.graph.get_gradient_edge(y)
    z = (y * y).sum()
    assert torch.autograd.grad(z, edge, retain_graph=True)[0].tolist() == [12.0]
    root = torch.autograd.graph.get_gradient_edge(z)
    ones = torch.tensor(1.0).double()
    assert torch.autograd.grad(root, x, grad_outputs=ones)[0].tolist() == [24.0]


def test_graph_is_freed():
    class Token:
        pass

    x = leaf(1.0)
    y = x * 2
    token = Token()
    y.grad_fn.metadata["token"] = token
    gone = weakref.ref(token)
    del token, y
    gc.collect()
    assert gone() is None


# ---- checks of gradients ----


def test_gradcheck_finds_errors():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    from rushlight.autograd.gradcheck import GradcheckError

    with pytest.raises(
        GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"
    ):
        gradcheck(Wrong.apply, (x,))
    assert not gradcheck(Wrong.apply, (x,), raise_exception=False)
    assert not gradcheck(Wrong.apply, (x,), raise_exception=False, fast_mode=True)
    assert gradcheck(lambda t: t.sin(), (x,), fast_mode=True)
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(torch.sin, (x.detach(),))


def test_gradcheck_of_complex_functions():
    z = torch.tensor([0.5 - 1j, -2 + 0.3j], dtype=torch.complex128, requires_grad=True)
    x = torch.randn(2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda z, x: (z * z * x, z.abs()), (z, x))
    assert gradgradcheck(lambda z, x: z * z * x, (z, x))


def test_functional():
    functional = torch.autograd.functional
    x, y = torch.tensor([1.0, 2.0]), torch.tensor(3.0)
    jacobian = functional.jacobian(lambda a, b: (a * b, a.sum()), (x, y))
    assert jacobian[0][0].tolist() == [[3.0, 0.0], [0.0, 3.0]]
    assert jacobian[0][1].tolist() == [1.0, 2.0]
    assert jacobian[1][0].tolist() == [1.0, 1.0] and jacobian[1][1].item() == 0
    hessian = functional.hessian(lambda a: (a**3).sum(), x)
    assert hessian.tolist() == [[6.0, 0.0], [0.0, 12.0]]
    v = torch.tensor([1.0, -1.0])
    value, product = functional.vjp(lambda a: a**2, x, v)
    assert value.tolist() == [1.0, 4.0] and product.tolist() == [2.0, -4.0]
    assert functional.jvp(lambda a: a**2, x, v)[1].tolist() == [2.0, -4.0]
    assert functional.hvp(lambda a: (a**3).sum(), x, v)[1].tolist() == [6.0, -12.0]
    assert functional.vhp(lambda a: (a**3).sum(), x, v)[1].tolist() == [6.0, -12.0]
    with raises("strict mode"):
        functional.jacobian(lambda a: torch.ones(1), x, strict=True)


# ---- anomaly mode ----


def test_anomaly_mode():
    x = leaf(0.0)
    with pytest.warns(UserWarning, match="Anomaly Detection"):
        mode = torch.autograd.detect_anomaly()
    with mode:
        y = (x.sqrt() * 0).sum()
        with (
            pytest.warns(UserWarning, match="Traceback of forward call"),
            raises("returned nan values in its 0th output"),
        ):
            y.backward()
    assert not torch.is_anomaly_enabled()


@contextlib.contextmanager
def anomaly(**options):
    """Anomaly mode; gives the list of the warnings after the first, which says that it is on."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with torch.autograd.detect_anomaly(**options):
            told.clear()
            yield told


def test_anomaly_mode_shows_the_line_that_called_the_op():
    x = leaf(0.0)
    with anomaly() as told:
        y = x.sqrt() * 0  # the culprit
        with raises("Function 'SqrtBackward0' returned nan values in its 0th output"):
            y.backward()
    (warning,) = told
    text = str(warning.message)
    assert text.startswith("Error detected in SqrtBackward0. Traceback of forward call")
    assert "# the culprit" in text and "test_autograd.py" in text


def test_anomaly_mode_without_the_check_of_nans():
    x = leaf(0.0)
    with anomaly(check_nan=False) as told:
        (x.sqrt() * 0).backward()
    assert x.grad.isnan().item() and not told


def test_anomaly_mode_tells_of_errors_and_of_parents():
    class Breaks(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("on purpose")

    x = leaf(1.0)
    with anomaly() as told:
        y = Breaks.apply(x)  # called here
        with pytest.raises(ValueError, match="on purpose"):
            y.backward()
    assert "BreaksBackward" in str(told[0].message) and "# called here" in str(told[0].message)

    with anomaly() as told:
        slope = torch.autograd.grad(x.sqrt(), x, create_graph=True)[0]  # first derivative
        with raises("returned nan values"):
            torch.autograd.grad(slope, x, torch.tensor([float("nan")]))
    assert "Previous calculation was induced by SqrtBackward0" in str(told[-1].message)


def test_anomaly_mode_that_was_off_in_forward():
    x = leaf(0.0)
    y = x.sqrt() * 0
    with anomaly() as told, raises("returned nan values"):
        y.backward()
    assert "No forward pass information available" in str(told[0].message)


def test_set_detect_anomaly():
    torch.autograd.set_detect_anomaly(True)
    assert torch.is_anomaly_enabled()
    with torch.autograd.set_detect_anomaly(False):
        assert not torch.is_anomaly_enabled()
    assert torch.is_anomaly_enabled()
    torch.autograd.set_detect_anomaly(False)
    assert not torch.is_anomaly_enabled()


# ---- checkpoints ----


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoint(reentrant):
    from rushlight.utils.checkpoint import checkpoint

    calls = []

    def part(x, w):
        calls.append(1)
        return (x * w).sin() * w

    x, w = leaf(1.0, 2.0), leaf(0.5, 3.0)
    expected = torch.autograd.grad(part(x, w).sum(), (x, w))
    calls.clear()
    checkpoint(part, x, w, use_reentrant=reentrant).sum().backward()
    assert len(calls) == 2
    assert_close(x.grad, expected[0])
    assert_close(w.grad, expected[1])


def test_gradient_of_the_lowest_power():
    x = torch.tensor([2.0, 1.0], requires_grad=True)
    x.pow(-(2**63)).sum().backward()
    assert x.grad.tolist() == [0.0, -(2.0**63)]


def test_results_that_do_not_depend_on_the_input_keep_the_graph():
    x = torch.ones(3, requires_grad=True)
    square = torch.ones(2, 2, requires_grad=True)
    for made, source in (
        (torch.fill(x, 2.0), x),
        (torch.combinations(x, 5), x),
        (torch.linalg.matrix_power(square, 0), square),
    ):
        (grad,) = torch.autograd.grad(made.sum(), source)
        assert torch.equal(grad, torch.zeros_like(source))
    numbers = torch.ones(2, 3, dtype=torch.complex64, requires_grad=True)
    torch.softmax(numbers, 1, dtype=torch.float64)[:, 0].sum().backward()
    assert numbers.grad.dtype == torch.complex64 and numbers.grad.imag.abs().max() == 0


def test_out_of_functions_whose_size_depends_on_values():
    x, mask = torch.arange(4.0), torch.tensor([True, False, True, True])
    assert torch.masked_select(x, mask, out=torch.empty(0)).tolist() == [0, 2, 3]
    for out in (x, x[1:]):
        with pytest.raises(RuntimeError, match="single memory location"):
            torch.masked_select(x, mask, out=out)


def test_backward_twice_where_nothing_was_saved():
    """What a node saves depends on the inputs that want gradients."""
    x = torch.ones(2, requires_grad=True)
    c = torch.full((2,), 3.0)
    for make in (
        lambda: torch.addcmul(x, c, c),
        lambda: torch.addcdiv(x, c, c),
        lambda: x + c,
        lambda: torch.addmv(x, torch.ones(2, 2), c),
    ):
        y = make().sum()
        x.grad = None
        y.backward()
        first = x.grad.clone()
        y.backward()
        assert torch.equal(x.grad, 2 * first)
    z = (x * c).sum()
    z.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        z.backward()


def test_fast_gradcheck_allows_for_all_elements_what_the_slow_one_allows_for_each():
    torch.manual_seed(0)

    class Rough(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, by):
            ctx.by = by
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad + ctx.by * grad.sum(), None

    x = torch.zeros(100, dtype=torch.float64, requires_grad=True)
    for by, fits in ((1e-6, True), (1e-4, False)):  # the error of an element of the Jacobian
        for fast in (False, True):
            passes = gradcheck(
                lambda x, by=by: Rough.apply(x, by), x, fast_mode=fast, raise_exception=False
            )
            assert passes is fits


@pytest.mark.parametrize("fast_mode", [False, True])
def test_gradcheck_sees_that_outputs_without_a_graph_move(fast_mode):
    x = torch.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="expected to be zero"):
        torch.autograd.gradcheck(lambda x: torch.tensor([x]), x, fast_mode=fast_mode)
