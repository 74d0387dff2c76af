"""The engine as programs lean on it: callbacks, edges, memory, threads, checkpoints, names."""

import gc
import threading
import warnings

import pytest

import rushlight as torch
from rushlight.autograd.graph import (
    allow_mutation_on_saved_tensors,
    get_gradient_edge,
    saved_tensors_hooks,
)
from rushlight.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)
from tests.python.gradients import leaf

engine = torch.autograd.Variable._execution_engine


# ---- callbacks ----


def test_callbacks_run_when_all_gradients_are_there():
    x = leaf(1.0, 2.0)
    y = x * 2
    seen = []

    def last():
        seen.append(x.grad.tolist())
        engine.queue_callback(lambda: seen.append("later"))

    y.register_hook(lambda g: engine.queue_callback(last))
    y.sum().backward()
    assert seen == [[2, 2], "later"]
    with pytest.raises(RuntimeError, match="during backward pass"):
        engine.queue_callback(last)
    with pytest.raises(TypeError):
        engine.queue_callback(3)


def test_errors_of_callbacks_leave_backward():
    def fail():
        raise KeyError("mine")

    y = leaf(1.0) * 2
    y.register_hook(lambda g: engine.queue_callback(fail))
    with pytest.raises(KeyError, match="mine"):
        y.backward()
    (leaf(1.0) * 2).backward()  # nothing is left over


def test_callbacks_belong_to_the_innermost_backward():
    seen = []
    x, y = leaf(1.0), leaf(1.0)
    outer, inner = x * 2, y * 3

    def hook(grad):
        engine.queue_callback(lambda: seen.append("outer"))
        with torch.enable_grad():
            inner.backward()
        seen.append("between")

    inner.register_hook(lambda g: engine.queue_callback(lambda: seen.append("inner")))
    outer.register_hook(hook)
    outer.backward()
    assert seen == ["inner", "between", "outer"]


# ---- edges ----


def test_edges_stand_for_tensors():
    x = leaf(1.0, 2.0)
    y = x * 2
    edge, leaf_edge = get_gradient_edge(y), get_gradient_edge(x)
    z = (y * y).sum()
    del y
    assert [g.tolist() for g in torch.autograd.grad(z, [edge, leaf_edge])] == [[4, 8], [8, 16]]
    out = get_gradient_edge((x * 3).sum())
    out_grads = torch.autograd.grad(out, x)  # one, for a single element
    assert out_grads[0].tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        torch.autograd.grad(edge, x)
    w = leaf(1.0, 1.0)
    (x * w).sum().backward(inputs=[get_gradient_edge(x)])
    assert x.grad.tolist() == [1, 1] and w.grad is None


# ---- memory ----


def test_backward_frees_what_it_has_used():
    n = 1 << 20
    x = torch.ones(n, requires_grad=True)
    y = x
    used = []
    for i in range(16):
        y = y.exp() if i % 2 else y.sin()
        y.register_hook(
            lambda g: used.append(torch.cpu.memory_stats()["allocated_bytes.all.current"])
        )
    before = torch.cpu.memory_stats()["allocated_bytes.all.current"]
    s = y.sum()
    del y
    s.backward()
    size = 4 * n
    # Each step frees what its op had saved (eight results, the last sum's input) and holds a
    # gradient or two.
    assert before >= 9 * size and used[0] <= before + 2 * size
    assert used == sorted(used, reverse=True)
    assert used[-1] <= before - 6 * size
    del s
    gc.collect()
    assert torch.cpu.memory_stats()["allocated_bytes.all.current"] <= before - 7 * size


def test_deep_graphs_of_custom_functions_and_views_die_flat():
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x + 0

        @staticmethod
        def backward(ctx, grad):
            return grad

    x = leaf(1.0)
    y = x
    for i in range(20000):
        y = Same.apply(y) if i % 4 == 0 else y.view(1) if i % 4 == 1 else y * 1
    y.backward()
    assert x.grad.tolist() == [1]
    del y


# ---- custom functions ----


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(x, factor=2.0, *, unused=None):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None


def test_defaults_reach_setup_context():
    x = leaf(1.0, 2.0)
    with pytest.raises(TypeError, match="keyword-only"):
        Scale.apply(x, unused=1)

    class Plain(Scale):
        @staticmethod
        def forward(x, factor=2.0):
            return x * factor

    for y, factor in (
        (Plain.apply(x), 2),
        (Plain.apply(x, 3.0), 3),
        (Plain.apply(x, factor=4.0), 4),
    ):
        assert torch.autograd.grad(y.sum(), x)[0].tolist() == [factor] * 2


def test_arguments_by_name():
    class Mul(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, n=2, w=None):
            ctx.n = n
            return x * n

        @staticmethod
        def backward(ctx, grad):
            assert ctx.needs_input_grad == (True, False, True)
            return grad * ctx.n, None, None

    x = leaf(1.0)
    y = Mul.apply(x, n=3, w=x)
    y.backward()
    assert x.grad.tolist() == [3] and y.grad_fn.name() == "MulBackward"
    y.grad_fn.maybe_clear_saved_tensors()


def test_instances_are_of_no_use():
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        function = Scale()
    with pytest.raises(RuntimeError, match="non-static forward"):
        function(torch.ones(1))


# ---- saved tensors ----


def test_bad_hooks_of_saved_tensors():
    with pytest.raises(TypeError, match="must be callable"), saved_tensors_hooks(3, 4):
        pass
    x = leaf(1.0)
    hooks = saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t)
    with hooks, pytest.raises(RuntimeError, match="modifying its input in place"):
        (x * 1).exp()


def test_mutation_of_saved_tensors():
    x = leaf(1.0, 2.0)
    with allow_mutation_on_saved_tensors() as context:
        y = x * 1
        z = (y * y).sum()
        y.mul_(10)
        z.backward()
        w = (x * 1).exp().sum()
        assert context.copies
    assert x.grad.tolist() == [2, 4] and not context.copies
    with pytest.raises(AssertionError, match="outside"):
        w.backward()


# ---- checkpoints ----


def test_checkpoints_stop_early():
    runs = []

    def part(x):
        y = x.sin().exp()
        runs.append("saved")
        z = y + 1
        runs.append("end")
        return z

    x = leaf(1.0)
    checkpoint(part, x, use_reentrant=False).backward()
    assert runs == ["saved", "end"]
    with set_checkpoint_early_stop(False):
        y = checkpoint(part, x, use_reentrant=False)
    y.backward()
    assert runs == ["saved", "end"] * 3
    with pytest.raises(ValueError, match="determinism_check"):
        checkpoint(part, x, use_reentrant=False, determinism_check="some")


def test_reentrant_checkpoints_need_a_whole_backward():
    x = leaf(1.0)
    y = checkpoint(torch.sin, x, use_reentrant=True)
    with pytest.raises(RuntimeError, match="incompatible with"):
        torch.autograd.grad(y, x)


def test_checkpoints_notice_other_values():
    x = leaf(1.0, 2.0)
    first = [True]

    def part(x):
        if first.pop() if first else False:
            return x.sin().exp()
        return x[:1].sin().exp()

    with pytest.raises(CheckpointError, match="different metadata"):
        checkpoint(part, x, use_reentrant=False).sum().backward()


def test_debugged_checkpoints_name_the_ops_of_both_runs():
    def failure(**kwargs):
        runs = []

        def part(x):
            runs.append(x)
            return x.sin().exp() if len(runs) == 1 else x.cos()

        with pytest.raises(CheckpointError) as error:
            checkpoint(part, leaf(1.0), use_reentrant=False, **kwargs).sum().backward()
        return str(error.value)

    assert "aten" not in failure() and "Ops of" not in failure(debug=False)
    named = failure(debug=True)
    assert "Ops of the forward pass: aten.sin.default, aten.exp.default\n" in named
    assert named.endswith("Ops of the recomputation: aten.cos.default")
    with set_checkpoint_debug_enabled(True):
        assert failure() == named
    with set_checkpoint_debug_enabled(False):
        assert "Ops of" not in failure(debug=True)


def test_nested_checkpoints_with_dropout():
    def run(wrap):
        torch.manual_seed(3)
        x = leaf(*[0.5] * 8)

        def inner(x):
            return torch.nn.functional.dropout(x.sin(), 0.5)

        def outer(x):
            return wrap(inner, x * 2).cos() * torch.rand(8)

        wrap(outer, x).sum().backward()
        return x.grad.tolist(), torch.rand(1).item()

    plain = run(lambda f, x: f(x))
    assert run(lambda f, x: checkpoint(f, x, use_reentrant=False)) == plain
    assert run(lambda f, x: checkpoint(f, x, use_reentrant=True)) == plain


# ---- functional ----


def test_jacobian_strategies_agree():
    def f(x, y):
        return (x * y.sum()).sin(), x.sum() * y

    inputs = (torch.rand(2, 3, dtype=torch.float64), torch.rand(2, dtype=torch.float64))
    rows = torch.autograd.functional.jacobian(f, inputs)
    columns = torch.autograd.functional.jacobian(f, inputs, vectorize=True, strategy="forward-mode")
    for a, b in zip(rows, columns, strict=True):
        for p, q in zip(a, b, strict=True):
            assert p.shape == q.shape and torch.allclose(p, q)


def test_strict_functionals():
    functional = torch.autograd.functional
    x = torch.rand(2)
    for call in (
        lambda: functional.jacobian(lambda x: x * 2, x, strict=True, create_graph=True),
        lambda: functional.hessian(lambda x: x.sum(), x, strict=True),
        lambda: functional.hvp(lambda x: x.sum(), x, x, strict=True),
        lambda: functional.vhp(lambda x: x.sum(), x, x, strict=True),
        lambda: functional.vjp(lambda x, y: x, (x, x), x, strict=True),
        lambda: functional.jacobian(lambda x: torch.ones(2), x, strict=True),
    ):
        with pytest.raises(RuntimeError):
            call()


# ---- names and modes ----


def test_names_of_nodes():
    linear = torch.nn.functional.linear
    x = leaf(1.0, 2.0)
    names = {
        "PowBackward0": x**2,
        "PowBackward1": x**x,
        "PowBackward2": 2**x,
        "SumBackward0": x.sum(),
        "SumBackward1": x.sum(0),
        "MaxBackward1": x.max(),
        "MaxBackward0": x.max(0).values,
        "Log1PBackward0": x.log1p(),
        "VarBackward0": x.var(),
        "RemainderBackward1": x % x,
        "RemainderBackward0": x % 2,
        "MaskedFillBackward0": x.masked_fill(x > 1, 0.0),
        "MmBackward0": linear(x[None], x[None]),
        "AddmmBackward0": linear(x[None], x[None], x[:1]),
        "LinearBackward0": linear(x[None, None], x[None]),
    }
    for name, y in names.items():
        assert y.grad_fn.name() == name and type(y.grad_fn).__name__ == name
    accumulator = names["PowBackward0"].grad_fn.next_functions[0][0]
    assert accumulator.name() == "torch::autograd::AccumulateGrad"
    assert type(accumulator).__name__ == "AccumulateGrad" and accumulator.variable is x
    info = names["SumBackward1"].grad_fn._input_metadata[0]
    assert info.shape == () and info.dtype is x.dtype and info.device.type == "cpu"


def test_leaving_inference_mode_records_again():
    with torch.inference_mode():
        assert not torch.is_grad_enabled()
        with torch.inference_mode(False):
            x = leaf(1.0)
            y = x * 2
    y.backward()
    assert x.grad.tolist() == [2] and not x.is_inference()


def test_only_inputs_is_ignored_with_a_warning():
    x = leaf(1.0)
    with pytest.warns(FutureWarning, match="only_inputs"):
        grads = torch.autograd.grad(x * 2, x, only_inputs=False)
    assert grads[0].tolist() == [2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.autograd.grad(x * 2, x)


def test_node_hook_errors_name_the_hook():
    def short(grads, outputs):
        return (grads[0],)

    y = leaf(1.0) * leaf(2.0)
    y.grad_fn.register_hook(short)
    with pytest.raises(RuntimeError, match=r"hook 'short' has returned an incorrect number"):
        y.backward()
    z = leaf(1.0) * 2
    z.grad_fn.register_prehook(lambda grads: (3,))
    with pytest.raises(TypeError, match="expected Variable, but hook returned 'int'"):
        z.backward()


# ---- selective checkpoints ----


def test_selective_checkpoints_repeat_only_the_rest():
    from functools import partial

    from rushlight.utils._python_dispatch import TorchDispatchMode
    from rushlight.utils.checkpoint import (
        CheckpointPolicy,
        create_selective_checkpoint_contexts,
    )

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    def part(x):
        return (torch.mm(x, x).sin() @ x).cos().sum()

    x = torch.rand(3, 3, requires_grad=True)
    part(x).backward()
    plain = x.grad.clone()
    products = {}
    policies = {
        "all again": lambda ctx, op, *args, **kwargs: CheckpointPolicy.PREFER_RECOMPUTE,
        "products kept": [torch.ops.aten.mm.default],
    }
    for name, policy in policies.items():
        x.grad = None
        contexts = partial(create_selective_checkpoint_contexts, policy)
        y = checkpoint(part, x, use_reentrant=False, context_fn=contexts)
        names = []
        with Log():
            y.backward()
        assert torch.equal(x.grad, plain)
        products[name] = names.count("aten.mm.default")
    assert products == {"all again": 6, "products kept": 4}
    with pytest.raises(ValueError, match="OpOverload"):
        create_selective_checkpoint_contexts([torch.mm])


def test_backward_again_through_what_was_written_in_a_view():
    x = torch.tensor([[1.0, -2.0]], dtype=torch.float64, requires_grad=True)
    written = (x * 3).view(2).relu_().sigmoid()
    (g,) = torch.autograd.grad(written.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(g.sum(), x)
    s = torch.tensor(3.0, dtype=torch.float64).sigmoid()
    assert torch.allclose(second, torch.stack([9 * s * (1 - s) * (1 - 2 * s), s * 0])[None])
    assert torch.autograd.gradgradcheck(lambda x: (x * 3).view(2).tanh_(), x)


def test_hooks_are_told_that_nothing_arrived():
    x = torch.rand(3, requires_grad=True)
    first, *rest = x.unbind()
    seen = []
    first.register_hook(seen.append)
    first.backward()
    rest[0].backward()
    assert seen[0].item() == 1 and seen[1] is None
    assert x.grad.tolist() == [1, 1, 0]


def test_hooks_after_accumulation_return_nothing():
    x = torch.rand(3, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda t: t.grad)
    with pytest.raises(RuntimeError, match="hooks should return None"):
        x.sum().backward()


def test_arrays_of_leaves_where_nothing_is_recorded():
    x = torch.rand(3, requires_grad=True)
    with torch.no_grad():
        assert x.numpy().tolist() == x.tolist()
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        x.numpy()


def test_resizing_a_leaf_within_inference_mode():
    x = torch.rand(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="cannot resize"):
        x.resize_(3)
    with torch.inference_mode():
        assert torch.rand(2, 3, requires_grad=True).resize_(3).shape == (3,)


@pytest.mark.parametrize("fast", [False, True])
def test_gradcheck_sees_outputs_that_change_without_a_graph(fast):
    x = torch.ones(1, dtype=torch.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="expected to be zero"):
        torch.autograd.gradcheck(
            lambda x: torch.tensor(x.tolist(), dtype=x.dtype), x, fast_mode=fast
        )
    assert torch.autograd.gradcheck(lambda x: (), (x,), fast_mode=fast)
    assert torch.autograd.gradcheck(lambda x: torch.zeros(2), (x,), fast_mode=fast)


@pytest.mark.parametrize("fast", [False, True])
def test_gradcheck_sees_outputs_of_other_forms(fast):
    x = torch.ones(1, dtype=torch.float64, requires_grad=True)
    for other, what in ((lambda x: torch.cat([x, x]), "shape"), (lambda x: x.float(), "dtype")):
        with pytest.raises(AssertionError, match=f"same {what} when inputs are perturbed"):
            torch.autograd.gradcheck(
                lambda x, other=other: other(x) if x.item() >= 1 else x, x, fast_mode=fast
            )


def test_gradcheck_runs_backward_without_gradients():
    x = torch.ones(1, dtype=torch.float64, requires_grad=True)

    def expect_gradient(grad):
        if grad is None:
            raise RuntimeError("no gradient")

    def careless(x):
        y = x.clone()
        y.register_hook(expect_gradient)
        return y

    with (
        pytest.warns(UserWarning, match="undefined gradient"),
        pytest.raises(RuntimeError, match="handle undefined output grads"),
    ):
        torch.autograd.gradcheck(careless, (x,))
    assert torch.autograd.gradcheck(careless, (x,), check_undefined_grad=False)


@pytest.mark.parametrize("include_self", [True, False])
def test_gradients_of_products_with_zeros(include_self):
    index = torch.tensor([0, 0, 1, 1, 1, 3])
    for zeros in ((), (0,), (0, 1), (2, 5)):
        src = torch.arange(1.0, 7, dtype=torch.float64)
        src[list(zeros)] = 0
        for start in ((2.0, 3.0, 0.0, 4.0), (0.0, 1.0, 2.0, 3.0)):
            start = torch.tensor(start, dtype=torch.float64, requires_grad=True)
            assert torch.autograd.gradcheck(
                lambda a, b: a.scatter_reduce(0, index, b, "prod", include_self=include_self),
                (start, src.detach().clone().requires_grad_()),
            )


def test_gradients_of_what_only_acts_as_a_tensor():
    class Alike:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func, args, kwargs["create_graph"]

    alike = Alike()
    found = torch.autograd.grad(alike, [alike], create_graph=True)
    assert found == (torch.autograd.grad, ((alike,), (alike,)), True)


def test_a_leaf_whose_data_has_another_form():
    """Its gradient has the form of what was recorded; it is broadcast to the new one, or refused."""
    for shape in ((2, 3), (2, 1, 1, 3), (3,)):
        x = torch.ones(3, requires_grad=True)
        y = (x * 2).sum()
        x.data = torch.ones(shape)
        y.backward()
        assert x.grad.tolist() == torch.full(shape, 2.0).tolist()
    for shape in ((4,), (), (3, 1), (0,), (2, 2, 2, 2, 2, 2)):
        x = torch.ones(3, requires_grad=True)
        y = (x * 2).sum()
        x.data = torch.ones(shape)
        with pytest.raises(RuntimeError, match="expand|size|broadcast"):
            y.backward()
        assert x.grad is None


def test_a_leaf_takes_gradients_after_one_that_failed():
    """Whoever fails to add leaves the queue of its leaf, for the same thread and for others."""

    class Refuses(torch.utils._python_dispatch.TorchDispatchMode):
        def __init__(self, again):
            super().__init__()
            self.again = again

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func.name().startswith("aten::add_"):
                if self.again:  # within: left to whoever adds now
                    self.again = False
                    with torch.enable_grad():
                        (x * 5).sum().backward()
                raise ValueError("refused")
            return func(*args, **(kwargs or {}))

    x = torch.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    for again in (False, True):
        with Refuses(again), pytest.raises(ValueError, match="refused"):
            (x * 3).sum().backward()
    before = x.grad[0].item()
    (x * 2).sum().backward()
    workers = [threading.Thread(target=lambda: (x * 2).sum().backward()) for _ in range(3)]
    for w in workers:
        w.start()
    for w in workers:
        w.join(20)
        assert not w.is_alive()
    assert x.grad.tolist() == [before + 8] * 3


def test_backward_in_backward_without_end_is_refused():
    depth = []

    @torch.enable_grad()
    def again(grad):
        depth.append(1)
        x = torch.ones(1, requires_grad=True)
        y = x * 2
        y.register_hook(again)
        y.sum().backward()

    x = torch.ones(1, requires_grad=True)
    y = x * 2
    y.register_hook(again)
    with pytest.raises(RuntimeError, match="nested in each other"):
        y.sum().backward()
    assert len(depth) > 10_000
    (x * 2).sum().backward()
    assert x.grad.item() == 2
