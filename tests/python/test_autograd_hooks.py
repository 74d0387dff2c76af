"""Hooks on tensors, nodes, accumulators and saved tensors."""

import collections
import weakref

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.utils.checkpoint import checkpoint
from tests.python.gradients import assert_close, leaf, raises

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


def test_a_saved_tensors_hook_may_leave_its_own_context():
    def pack(t):
        hooks.__exit__()
        return t.clone()

    hooks = torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t * 1)
    x = torch.tensor([3.0], requires_grad=True)
    hooks.__enter__()
    y = x.square()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: 1 / 0, lambda t: t):
        pass  # the stack is whole: entering and leaving find what they expect
    assert torch.autograd.grad(y, x)[0].item() == 6


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


def test_a_dict_of_hooks_is_given():
    a = torch.ones(2, requires_grad=True)
    b = a * 2
    seen = []
    for t in (a, b):
        t._backward_hooks = collections.OrderedDict()
        t._backward_hooks["first"] = seen.append
    b.register_hook(lambda g: g * 3)
    b.sum().backward()
    assert [g.tolist() for g in seen] == [[1, 1], [6, 6]] and a.grad.tolist() == [6, 6]
    a._backward_hooks = None
    (a * 2).sum().backward()
    assert len(seen) == 2 and a._backward_hooks is None
    plain = torch.ones(2)
    plain._backward_hooks = collections.OrderedDict(never=seen.append)
    (a * plain).sum().backward()
    assert len(seen) == 2
    with pytest.raises(TypeError, match="dict"):
        a._backward_hooks = 3


def test_a_node_is_called():
    x = torch.full((2,), 3.0, requires_grad=True)
    node = (x**2).grad_fn
    assert node(torch.ones(2))[0].tolist() == [6, 6]
    first, second = (x * x.detach().requires_grad_()).grad_fn(torch.ones(2))
    assert first.tolist() == second.tolist() == [3, 3]
    for grads in ((), (torch.ones(2), torch.ones(2))):
        with pytest.raises(TypeError, match="expected 1 arguments, got"):
            node(*grads)
    y = x**2
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.grad_fn(torch.ones(2))


RECORDED = {
    "rfft": lambda: torch.fft.rfft(torch.randn(8, requires_grad=True)),
    "irfft": lambda: torch.fft.irfft(torch.randn(5, dtype=torch.complex64, requires_grad=True)),
    "matmul": lambda: torch.ones(3, 4, requires_grad=True) @ torch.ones(4, 5),
    "conv": lambda: torch.conv2d(
        torch.ones(1, 2, 6, 6, requires_grad=True), torch.ones(3, 2, 3, 3)
    ),
    "pool": lambda: torch.max_pool2d(torch.randn(1, 2, 6, 6, requires_grad=True), 2),
    "sort": lambda: torch.randn(7, requires_grad=True).sort()[0],
    "gather": lambda: torch.randn(7, requires_grad=True).gather(0, torch.arange(5)),
    "embedding": lambda: torch.embedding(
        torch.ones(4, 3, requires_grad=True), torch.tensor([1, 2])
    ),
    "softmax": lambda: torch.randn(4, 5, requires_grad=True).softmax(1),
    "cat": lambda: torch.cat(
        [torch.ones(3, requires_grad=True), torch.ones(2, requires_grad=True)]
    ),
    "unfold": lambda: torch.randn(9, requires_grad=True).unfold(0, 3, 2),
    "slice": lambda: (torch.randn(9, requires_grad=True) * 1)[2:5],
    "cholesky": lambda: torch.linalg.cholesky(torch.eye(3).requires_grad_() * 2),
    "written": lambda: torch.ones(4, requires_grad=True).mul(2)[1:].mul_(3),
    "accumulator": lambda: torch.ones(4, requires_grad=True),
}


@pytest.mark.parametrize("name", RECORDED)
def test_a_node_called_with_gradients_of_another_form(name):
    """None of the wrong size reaches a formula; of a wider one the sum does, of another dtype its cast."""

    def node_and_like():
        torch.manual_seed(0)
        y = RECORDED[name]()
        node = y.grad_fn or torch.autograd.graph.get_gradient_edge(y).node
        return y, node, torch.ones_like(y.detach())

    def result(change):
        y, node, ones = node_and_like()
        others = [None] * (len(node._input_metadata) - 1)
        out = node(change(ones), *others)
        if out == () and y.is_leaf:
            out = y.grad
        return [t for t in (out if isinstance(out, tuple) else (out,)) if t is not None]

    for wrong in (
        lambda g: torch.tensor(1 + 0j),
        lambda g: torch.ones(0),
        lambda g: torch.ones(3, 1, 2, 13),
        lambda g: torch.tensor(2),
        lambda g: torch.ones(g.shape, device="meta"),
    ):
        with pytest.raises(RuntimeError, match="invalid gradient|expected device"):
            result(wrong)
    expected = result(lambda g: g * 2)
    for same in (
        lambda g: torch.stack([g, g]),
        lambda g: (g * 2).to(torch.complex128),
        lambda g: (g * 2).to(torch.complex64).real.to(torch.int64),
    ):
        for a, b in zip(result(same), expected, strict=True):
            assert_close(a, b)


def replaced_gradients():
    yield "the size", lambda g: torch.tensor(1.0)
    yield "the size", lambda g: torch.ones(2, 3)
    yield "the type", lambda g: g.double()
    yield "the type", lambda g: torch.ones(3, dtype=torch.int64)
    yield "the device", lambda g: g.to("meta")


@pytest.mark.parametrize("what, make", list(replaced_gradients()))
def test_hooks_that_give_another_form(what, make):
    for register in (
        lambda y, hook: y.register_hook(hook),
        lambda y, hook: y.grad_fn.register_prehook(lambda grads: (hook(grads[0]),)),
        lambda y, hook: y.grad_fn.register_hook(lambda grads, _: (hook(grads[0]), *grads[1:])),
    ):
        y = torch.ones(3, requires_grad=True).sin()
        register(y, make)
        with pytest.raises(RuntimeError, match=f"changed {what} of value"):
            y.sum().backward()


def test_a_hook_that_writes_its_gradient():
    """Gradients belong to hooks, which may change their form, too: the node behind never sees that."""
    for change in (
        lambda g: g.resize_(7),
        lambda g: g.set_(),
        lambda g: setattr(g, "data", torch.ones(2, 5)),
    ):
        for register in (
            lambda y, hook: y.register_hook(hook),
            lambda y, hook: y.grad_fn.register_prehook(lambda grads: hook(grads[0])),
        ):
            x = torch.ones(3, requires_grad=True)
            y = x.sin()
            register(y, lambda g, change=change: change(g) and None)
            with pytest.raises(RuntimeError):
                (y * torch.ones(3)).sum().backward()
            assert x.grad is None


def test_a_hook_where_no_gradient_arrived():
    y, z = torch.ones(4, requires_grad=True).mul(2).split(2)
    z.register_hook(lambda g: torch.ones(3))
    with pytest.raises(RuntimeError, match="invalid gradient"):
        y.sum().backward()


def test_saved_tensors_are_packed_while_backward_runs():
    """A pack function that runs backward of the very node: what it packed is then not kept."""
    y = torch.full((3,), 2.0, requires_grad=True).sin()
    raw = y.grad_fn._raw_saved_self

    def pack(t):
        with torch.enable_grad():
            y.sum().backward()
        return t

    with pytest.raises(RuntimeError, match="second time"):
        raw.register_hooks(pack, lambda t: t)
    y = torch.full((3,), 2.0, requires_grad=True).sin()
    raw = y.grad_fn._raw_saved_self

    def pack_twice(t):
        raw.register_hooks(lambda t: t * 1, lambda t: t)
        return t

    with pytest.raises(RuntimeError, match="already been set"):
        raw.register_hooks(pack_twice, lambda t: t)
    y.sum().backward()


def test_backward_of_backward_passes_module_hooks_by():
    x = torch.rand(1, requires_grad=True)
    loss = torch.nn.MSELoss()
    calls = []
    loss.register_full_backward_hook(lambda *args: calls.append(args))
    (g,) = torch.autograd.grad(loss(x, torch.rand(1)), x, create_graph=True)
    torch.autograd.grad(g, x)
    assert len(calls) == 1


SAVING = [
    lambda x, w: nn.functional.linear(x, w, w[0]),
    lambda x, w: x @ w,
    lambda x, w: x * w,
    lambda x, w: torch.baddbmm(x[None], x[None], w[None]),
    lambda x, w: torch.bilinear(x, x, w[None].expand(2, 4, 4), None),
    lambda x, w: nn.functional.conv1d(x[None], w[:, :, None]),
    lambda x, w: nn.functional.layer_norm(x, (4,), w[0], w[1]),
    lambda x, w: torch.where(x > 0, x, w).pow(2),
    lambda x, w: torch.lerp(x, w, x),
    lambda x, w: torch.addcdiv(x, x, w),
    lambda x, w: nn.functional.scaled_dot_product_attention(x[None], w[None], w[None]),
    lambda x, w: torch.linalg.solve(w + 9 * torch.eye(4), x),
    lambda x, w: torch.atan2(x, w),
    lambda x, w: nn.functional.cosine_similarity(x, w),
    lambda x, w: torch.einsum("ij,kj->ik", x, w).logsumexp(1),
]


@pytest.mark.parametrize("case", range(len(SAVING)))
def test_saved_tensors_are_unpacked_once(case):
    """A hook may have to compute them again, or to fetch them from far away."""
    packed, unpacked = [], []

    def pack(tensor):
        packed.append(tensor.detach())
        return len(packed) - 1

    def unpack(place):
        unpacked.append(place)
        return packed[place]

    x, w = (torch.rand(4, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = SAVING[case](x, w)
    found = torch.autograd.grad(y.sum(), (x, w))
    assert packed and sorted(unpacked) == sorted(set(unpacked))
    expected = torch.autograd.grad(SAVING[case](x, w).sum(), (x, w))
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b)


def test_a_checkpoint_runs_twice():
    runs, model = [], nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Conv1d(3, 3, 1))
    model[1].register_forward_hook(lambda *_: runs.append(1))
    for grad in (False, True):
        runs.clear()
        x = torch.rand(3, 4, requires_grad=grad)
        checkpoint(model, x, use_reentrant=False).sum().backward()
        assert len(runs) == 2


@pytest.mark.parametrize(
    "reach",
    [lambda t, b: ((t,), {}), lambda t, b: ((t.detach(),), {"b": t}), lambda t, b: ((b, [t]), {})],
)
def test_arguments_of_a_checkpoint_stay_as_they_are(reach):
    """Backward, which starts from them again, notices a write, in the function or behind it."""

    def total(*args, **kwargs):
        leaves = torch.utils._pytree.tree_leaves((args, kwargs))
        return sum(leaf.sin().sum() for leaf in leaves)

    def run(function, after):
        x = torch.tensor([0.3, 0.7], requires_grad=True)
        t = x * 1
        args, kwargs = reach(t, torch.ones(2, requires_grad=True))
        y = torch.utils.checkpoint.checkpoint(function, *args, use_reentrant=False, **kwargs)
        after(t)
        y.backward()
        return x.grad

    def writes(*args, **kwargs):
        torch.utils._pytree.tree_leaves((args, kwargs))[-1].detach().mul_(2)
        return total(*args, **kwargs)

    run(total, lambda t: None)
    for function, after in ((writes, lambda t: None), (total, lambda t: t.detach().mul_(2))):
        with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
            run(function, after)


def test_reentrant_checkpoints_keep_arguments_as_saved_tensors_alone():
    x = torch.rand(3, requires_grad=True)
    kept = weakref.ref(argument := x * 1)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), torch.tensor):
        y = torch.utils.checkpoint.checkpoint(torch.sin, argument, use_reentrant=True)
    del argument
    assert kept() is None
    y.sum().backward()
    assert torch.allclose(x.grad, x.cos())


def test_gradients_that_hooks_of_modules_give():
    def grads(register, given):
        layer = torch.nn.Linear(2, 2)
        getattr(layer, register)(lambda *_: given)
        x = torch.ones(3, 2, requires_grad=True)
        layer(x).sum().backward()
        return x.grad, layer.weight.grad

    ones = torch.ones(3, 2)
    for given in (ones, [ones], (ones,)):
        assert torch.equal(grads("register_full_backward_hook", given)[0], ones)
        assert grads("register_full_backward_pre_hook", given)[1].tolist() == [[3, 3]] * 2
    for register in ("register_full_backward_hook", "register_full_backward_pre_hook"):
        for bad in (5, "x", (5,), {0: ones}):
            with pytest.raises(TypeError, match="expected Variable or None"):
                grads(register, bad)
        with pytest.raises(RuntimeError, match="invalid number"):
            grads(register, [ones, ones])
    x_grad, weight_grad = grads("register_full_backward_pre_hook", (None,))
    assert x_grad.tolist() == [[0, 0]] * 3 and weight_grad is None
