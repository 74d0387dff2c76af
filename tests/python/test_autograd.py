"""Gradients by behaviour: engine, leaves, writes, views, hooks, custom functions, modes."""

import contextlib
import gc
import threading
import warnings
import weakref

import pytest

import rushlight as torch
from rushlight.autograd import Function, gradcheck, gradgradcheck
from rushlight.autograd.function import once_differentiable


def assert_close(a, b):
    assert torch.allclose(a, b, rtol=1e-6, atol=1e-9)


def leaf(*values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def raises(message, kind=RuntimeError):
    return pytest.raises(kind, match=message)


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
    with raises("Mismatch in shape: grad_output\\[0\\] has a shape of torch.Size\\(\\[2\\]\\)"):
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


def test_backward_from_several_threads():
    x = leaf(1.0)
    shared = (x * 2) * 3
    failures = []

    def work():
        try:
            for _ in range(50):
                (shared * 1).sum().backward(retain_graph=True)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
    assert x.grad.tolist() == [6.0 * 200]


def test_hooks_run_while_other_threads_do():
    """The GIL is released in backward and taken for hooks: nothing waits for ever."""
    x = leaf(1.0)

    def work():
        for _ in range(50):
            y = x * 2
            y.register_hook(lambda g: g * 1)
            y.sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
        assert not t.is_alive()
    assert x.grad.tolist() == [400.0]


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


# ---- leaves and flags ----


def test_requires_grad_rules():
    x = leaf(1.0)
    y = x * 2
    assert y.requires_grad_() is y
    with raises("you can only change requires_grad flags of leaf variables"):
        y.requires_grad_(False)
    with raises("floating point"):
        torch.tensor([1]).requires_grad_()
    assert not x.requires_grad_(False).requires_grad
    assert x.requires_grad_().requires_grad


def test_set_grad_checks():
    x = leaf(1.0, 2.0)
    with raises("size"):
        x.grad = torch.ones(3, dtype=torch.float64)
    with raises("type"):
        x.grad = torch.ones(2)
    with raises("can't assign Variable as its own grad"):
        x.grad = x
    with raises("expected to be a Tensor or None", TypeError):
        x.grad = 3
    grad = torch.ones(2, dtype=torch.float64)
    x.grad = grad
    assert x.grad is grad
    x.grad = None
    assert x.grad is None


def test_detach_shares_the_version():
    x = torch.ones(3)
    d = x.detach()
    before = x._version
    d.add_(1)
    assert x._version == before + 1 and d._version == before + 1
    x.data.add_(1)
    assert x._version == before + 1


def test_set_data():
    x = leaf(1.0)
    with raises("must be floating point or complex"):
        x.data = torch.tensor([1])
    y = x * 3
    version = x._version
    x.data = torch.zeros(2, dtype=torch.float64)
    assert x.requires_grad and x.shape == (2,) and x._version == version
    assert y.grad_fn is not None


def test_detach_in_place():
    y = leaf(1.0) * 2
    assert y.detach_() is y
    assert y.is_leaf and not y.requires_grad
    with raises("Can't detach views in-place"):
        (leaf(1.0, 2.0) * 2)[:1].detach_()


# ---- in-place writes and views ----


def test_modified_saved_tensor_says_what_and_where():
    x = leaf(1.0, 2.0, 3.0)
    y = x.exp()
    y.add_(1)
    with raises(
        r"modified by an inplace operation: \[torch.DoubleTensor \[3\]\], which is output 0 of "
        r"Exp.*, is at version 1; expected version 0 instead"
    ):
        y.sum().backward()


def test_write_through_a_view_changes_the_roots_history():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x * 1
    view = y[1:3]
    view.mul_(10)
    assert type(y.grad_fn).__name__ == "CopySlices"
    (y * torch.arange(4.0)).sum().backward()
    assert x.grad.tolist() == [0.0, 10.0, 20.0, 3.0]


def test_view_is_regenerated_after_a_write_to_its_root():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x * 1
    view = y.view(2, 2)
    y.mul_(3)
    assert type(view.grad_fn).__name__ == "AsStridedBackward0"
    view[0].sum().backward()
    assert x.grad.tolist() == [3.0, 3.0, 0.0, 0.0]


def test_writes_through_views_of_views():
    x = leaf(*map(float, range(8)))
    y = (x * 1).view(2, 2, 2)
    inner = y[0].t()[1]
    inner.mul_(5)
    inner.add_(y[1, 0])
    y.sum().backward()
    expected = [1.0, 5.0, 1.0, 5.0, 2.0, 2.0, 1.0, 1.0]
    assert x.grad.tolist() == expected


def test_write_of_something_that_requires_grad_into_something_that_does_not():
    x = torch.zeros(4, dtype=torch.float64)
    view = x[:2]
    w = leaf(1.0, 2.0, 3.0, 4.0)
    x.mul_(w)
    assert view.requires_grad and not view.is_leaf
    view.sum().backward()
    assert w.grad.tolist() == [0.0] * 4
    y = torch.zeros(3, dtype=torch.float64)
    y[1:] = w[:2] * 2
    y.sum().backward()
    assert w.grad.tolist() == [2.0, 2.0, 0.0, 0.0]


def test_in_place_on_leaves():
    x = leaf(1.0, 2.0)
    with raises("a leaf Variable that requires grad is being used in an in-place operation"):
        x.add_(1)
    with raises("a view of a leaf Variable that requires grad is being used in an in-place"):
        x[:1].add_(1)
    with torch.no_grad():
        x.add_(1)
        x[:1].add_(1)
    assert x.tolist() == [3.0, 3.0]


def test_in_place_on_special_views():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x * 1
    parts = y.unbind(0)
    with raises("is a view and is being modified inplace"):
        parts[0].add_(1)
    y.add_(1)
    with raises("its base or another view of its base has been modified inplace"):
        parts[1] * 2
    with torch.no_grad():
        view = x.view(2, 2)
    assert view.requires_grad and view.is_leaf
    with raises("A view was created in no_grad mode"):
        view.mul_(leaf(1.0, 2.0))


def test_split_pieces_cannot_be_written():
    y = leaf(1.0, 2.0, 3.0, 4.0) * 1
    a, _ = y.split(2)
    with raises("multiple views"):
        a.add_(1)


def test_late_leaf_views():
    base = torch.zeros(2)
    view = base.view(2)
    base.requires_grad_()
    assert view.requires_grad and view.grad_fn is None


def test_in_place_results_of_saved_output_ops_on_views():
    def function(x):
        y = x * 1
        y[0].exp_()
        return y

    x = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(function, (x,))
    assert gradgradcheck(function, (x,))


def test_broadcast_in_place_gradients():
    def function(x, w):
        y = x * 1
        y[:, 1].mul_(w)
        y.add_(w[:1])
        return y

    x = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    w = torch.randn(2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(function, (x, w))
    assert gradgradcheck(function, (x, w))


# ---- inference mode ----


def test_inference_mode():
    x = leaf(1.0, 2.0)
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled() and not torch.is_grad_enabled()
        made = torch.ones(2, dtype=torch.float64)
        view = x.view(2, 1)
    assert made.is_inference() and not x.is_inference() and not view.is_inference()
    with raises("Inplace update to inference tensor outside InferenceMode"):
        made.add_(1)
    with raises("Inference tensors cannot be saved for backward"):
        made * x
    with raises("do not track version counter"):
        made._version  # noqa: B018
    with raises("Setting requires_grad=True on inference tensor"):
        made.requires_grad_()
    with raises("A view was created in inference mode"):
        view.mul_(x.view(2, 1))
    assert (made.clone() * x).requires_grad


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


# ---- hooks ----


def test_tensor_hooks_in_order_and_removal():
    x = leaf(1.0)
    first = x.register_hook(lambda g: g * 2)
    x.register_hook(lambda g: g + 1)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [7.0]
    first.remove()
    x.grad = None
    (x * 3).sum().backward()
    assert x.grad.tolist() == [4.0]


def test_hook_sees_gradients_asked_by_grad():
    x = leaf(1.0)
    x.register_hook(lambda g: g * 10)
    assert torch.autograd.grad((x * 2).sum(), x)[0].tolist() == [20.0]


def test_hook_errors():
    x = leaf(1.0, 2.0)
    handle = x.register_hook(lambda g: g[:1])
    with raises("has changed the size of value"):
        (x * 2).sum().backward()
    handle.remove()
    x.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        (x * 2).sum().backward()
    with raises("cannot register a hook on a tensor that doesn't require gradient"):
        torch.ones(1).register_hook(print)


def test_accumulate_hook():
    x = leaf(1.0)
    seen = []
    handle = x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    handle.remove()
    (x * 2).sum().backward()
    assert seen == [[2.0], [4.0]]
    with raises("non-leaf"):
        (x * 2).register_post_accumulate_grad_hook(print)


def test_node_hooks():
    x = leaf(1.0, 2.0)
    y = x * 3
    node = y.grad_fn
    seen = []

    def post(grad_inputs, grad_outputs):
        seen.append((grad_inputs[0].tolist(), grad_outputs[0].tolist()))
        return (grad_inputs[0] * 2, *grad_inputs[1:])

    node.register_hook(post)
    handle = node.register_prehook(lambda grads: (grads[0] * 10,))
    y.sum().backward(retain_graph=True)
    assert seen == [([30.0, 30.0], [10.0, 10.0])]
    assert x.grad.tolist() == [60.0, 60.0]
    handle.remove()
    y.sum().backward()
    assert x.grad.tolist() == [66.0, 66.0]


def test_hook_of_the_accumulator():
    x = leaf(1.0)
    accumulator = (x * 1).grad_fn.next_functions[0][0]
    seen = []
    accumulator.register_hook(lambda *_: seen.append(x.grad.tolist()))
    (x * 2).sum().backward()
    assert seen == [[2.0]]
    assert accumulator.variable is x


def test_retain_grad():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    y.retain_grad()
    assert y.retains_grad and not x.retains_grad
    (y * 3).sum().backward()
    assert y.grad.tolist() == [3.0]
    z = x * 2
    z.retain_grad()
    z.mul_(5)
    (z * 3).sum().backward()
    assert z.grad.tolist() == [3.0]
    with raises("can't retain_grad on Tensor that has requires_grad=False"):
        torch.ones(1).retain_grad()


def test_retained_gradient_does_not_keep_the_tensor():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    z = y + 3
    gone = weakref.ref(y)
    del y
    assert gone() is None
    z.sum().backward()
    assert x.grad.tolist() == [2.0]


def test_multi_grad_hook():
    a, b, c = leaf(1.0), leaf(2.0), leaf(3.0)
    seen = []
    handle = torch.autograd.graph.register_multi_grad_hook(
        (a, b, c), lambda grads: seen.append([g if g is None else g.tolist() for g in grads])
    )
    (a * b).sum().backward()
    assert seen == [[[2.0], [1.0], None]]
    handle.remove()
    (a * b).sum().backward()
    assert len(seen) == 1


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


# ---- saved tensors' hooks ----


def test_saved_tensors_hooks():
    packed = []

    def pack(t):
        packed.append(t.shape)
        return t.detach().clone() * 2

    def unpack(t):
        return t / 2

    x = leaf(3.0)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = x.exp() * x
    y.sum().backward()
    assert len(packed) == 3
    e = x.detach().exp()
    assert_close(x.grad, e * x.detach() + e)


def test_saved_tensors_hooks_keep_double_backward():
    x = leaf(2.0)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        y = x.exp() * x
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert_close(second, (x.detach() + 2) * x.detach().exp())


def test_save_on_cpu_and_disable():
    x = leaf(2.0)
    with torch.autograd.graph.save_on_cpu():
        y = x * x
    y.sum().backward()
    assert x.grad.tolist() == [4.0]
    graph = torch.autograd.graph
    with graph.disable_saved_tensors_hooks("not now"), raises("not now"):
        graph.saved_tensors_hooks(lambda t: t, lambda t: t).__enter__()


def test_failing_pack_hook():
    x = leaf(2.0)
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: 1 / 0, lambda t: t)
    with pytest.raises(ZeroDivisionError), hooks:
        x.exp()
    assert x.exp().requires_grad


def test_raw_saved_tensor_hooks():
    x = leaf(2.0)
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t.detach() * 3, lambda t: t / 3)
    y.sum().backward()
    assert_close(x.grad, x.detach().exp())


# ---- custom functions ----


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
    with raises("a leaf Variable that requires grad has been used in an in-place operation"):
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
