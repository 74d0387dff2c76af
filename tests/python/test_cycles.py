"""Cycles of references that go through C++: Python's collector sees them, and takes none that lives."""

import functools
import gc
import threading
import types
import weakref
from collections import OrderedDict

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.autograd import Function, graph
from rushlight.utils.checkpoint import checkpoint

KNOTS = []


def knot(tie):
    """Registers a function that ties a witness into a cycle, and returns a tensor by which to hold it."""
    KNOTS.append(tie)
    return tie


class Witness:
    """Is gone when its knot is."""


class Sub(torch.Tensor):
    pass


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, held):
        return torch.Tensor._make_wrapper_subclass(cls, held.shape, requires_grad=True)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def plain(t):
            return t.held if isinstance(t, Wrapper) else t

        return func(*map(plain, args), **(kwargs or {}))


class Tied(Function):
    """Doubles; `tie(ctx, out)` may leave something on the context."""

    @staticmethod
    def forward(ctx, x, tie):
        out = x * 2
        tie(ctx, out)
        return out

    @staticmethod
    def backward(ctx, grad):
        return grad * 2, None


class Pair(Function):
    @staticmethod
    def forward(ctx, x, tie):
        first, second = x * 2, x * 3
        tie(ctx, first, second)
        return first, second

    @staticmethod
    def backward(ctx, first, second):
        return first * 2 + second * 3, None


class Dirty(Function):
    """Writes its input, and saves a view of it."""

    @staticmethod
    def forward(ctx, x, witness):
        x.mul_(2)
        ctx.mark_dirty(x)
        ctx.save_for_backward(x[1:])
        ctx.witness = witness
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * 2, None


class SavesOutput(Function):
    @staticmethod
    def forward(ctx, x, witness):
        out = x.exp()
        ctx.save_for_backward(out)
        ctx.out, ctx.witness = out, witness
        return out

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0], None


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x * self.weight

    def hook(self, *_):
        return None


def leaf():
    return torch.ones(3, requires_grad=True)


def function_with(**held):
    """A hook that does nothing, and keeps what it is given."""
    return functools.partial(lambda *args, **kwargs: None, **held)


# ---- contexts of custom functions ----


@knot
def output_on_context(w):
    return Tied.apply(leaf(), lambda ctx, out: ctx.__dict__.update(out=out, w=w))


@knot
def output_in_a_list_on_context(w):
    return Tied.apply(leaf(), lambda ctx, out: ctx.__dict__.update(out=[[out], {"w": w}]))


@knot
def output_on_context_afterwards(w):
    y = Tied.apply(leaf(), lambda ctx, out: None)
    y.grad_fn.out, y.grad_fn.w = y, w
    return y


@knot
def closure_on_context(w):
    return Tied.apply(leaf(), lambda ctx, out: setattr(ctx, "f", lambda: (out, w)))


@knot
def partial_on_context(w):
    return Tied.apply(leaf(), lambda ctx, out: setattr(ctx, "f", function_with(a=out, w=w)))


@knot
def module_on_context(w):
    def tie(ctx, out):
        ctx.module = Layer()
        ctx.module.out, ctx.module.w = out, w

    return Tied.apply(leaf(), tie)


@knot
def context_on_itself(w):
    return Tied.apply(leaf(), lambda ctx, out: ctx.__dict__.update(ctx=ctx, w=w))


@knot
def both_outputs_on_context(w):
    return Pair.apply(leaf(), lambda ctx, a, b: ctx.__dict__.update(a=a, b=b, w=w))[0]


@knot
def the_other_output_on_context(w):
    return Pair.apply(leaf(), lambda ctx, a, b: ctx.__dict__.update(b=b, w=w))[0]


@knot
def outputs_on_each_other(w):
    a, b = Pair.apply(leaf(), lambda *_: None)
    a.other, b.other, a.grad_fn.outputs, a.w = b, a, (a, b), w
    return a


@knot
def saved_output_on_context(w):
    return SavesOutput.apply(leaf(), w)


@knot
def later_result_on_context(w):
    y = Tied.apply(leaf(), lambda *_: None)
    z = y.sin().exp() * 2
    y.grad_fn.z, y.grad_fn.w = z, w
    return z


@knot
def branches_on_context(w):
    y = Tied.apply(leaf(), lambda *_: None)
    middle = y.sin()
    y.grad_fn.branches = [middle * 2, middle * 3, middle.exp(), w]
    return y.grad_fn.branches[1]


@knot
def two_contexts_hold_each_other(w):
    a = Tied.apply(leaf(), lambda *_: None)
    b = Tied.apply(leaf(), lambda *_: None)
    a.grad_fn.other, b.grad_fn.other, a.grad_fn.w = b, a, w
    return a + b


@knot
def contexts_in_a_row(w):
    x = y = leaf()
    for _ in range(4):
        y = Tied.apply(y, lambda *_: None)
    x.last, y.grad_fn.w = y, w
    return y


@knot
def dirty_input_saved_as_a_view(w):
    return Dirty.apply(leaf() * 1, w)


@knot
def dirty_view_saved_as_a_view(w):
    base = torch.ones(5, requires_grad=True) * 1
    Dirty.apply(base[:3], w)
    return base


@knot
def dirty_input_used_further(w):
    y = Dirty.apply(leaf() * 1, w)
    return (y.sin() * y).sum()


# ---- attributes ----


@knot
def tensor_on_itself(w):
    t = leaf()
    t.me, t.w = t, w
    return t


@knot
def result_on_its_leaf(w):
    t = leaf()
    t.result, t.w = t.sin() * 2, w
    return t.result


@knot
def result_on_a_saved_result(w):
    y = leaf() * 2
    y.z, y.w = y.sin(), w
    return y.z


@knot
def node_on_what_it_saved(w):
    y = leaf() * 2
    z = y.sin()
    y.node, y.w = z.grad_fn, w
    return z


@knot
def result_on_a_parameter(w):
    p = nn.Parameter(torch.ones(3))
    p.result, p.w = (p * p).sum(), w
    return p.result


@knot
def closure_on_a_parameter(w):
    p = nn.Parameter(torch.ones(3))
    p.f = lambda: (p, w)
    return p


@knot
def subclass_attribute(w):
    t = torch.ones(3).as_subclass(Sub).requires_grad_()
    t.result, t.w = t.sin(), w
    return t.result


@knot
def subclass_result_attribute(w):
    y = torch.ones(3).as_subclass(Sub).requires_grad_() * 2
    y.results, y.w = [y.sin(), y.cos()], w
    return y


@knot
def wrapper_and_what_it_wraps(w):
    held = leaf() * 2
    held.wrapper = Wrapper(held)
    held.wrapper.held, held.wrapper.w = held, w
    return held


@knot
def view_on_its_base(w):
    base = leaf() * 2
    base.view, base.w = base[1:], w
    return base.view


@knot
def written_view_on_its_base(w):
    base = leaf() * 2
    view = base[1:]
    view.mul_(3)
    base.view, base.w = view, w
    return view


@knot
def data_of_each_other(w):
    y = leaf() * 2
    y.d = y.detach()
    y.d.y, y.d.w = y, w
    return y


@knot
def gradient_of_each_other(w):
    x = leaf()
    (x.gradient,) = torch.autograd.grad((x * x).sum(), x, create_graph=True)
    x.w = w
    return x.gradient


@knot
def sparse_of_each_other(w):
    y = leaf() * 2
    y.s, y.w = y.to_sparse(), w
    y.s.y = y
    return y


@knot
def optimizer_on_its_parameter(w):
    p = nn.Parameter(torch.ones(3))
    p.optimizer, p.w = torch.optim.Adam([p]), w
    p.sum().backward()
    p.optimizer.step()
    return p


# ---- gradients ----


@knot
def grad_with_a_graph(w):
    x = leaf()
    x.w = w
    (x * x).sum().backward(create_graph=True)
    return x


@knot
def grad_set_to_a_result(w):
    x = leaf()
    x.w, x.grad = w, x * 2
    return x


@knot
def retained_grad_with_a_graph(w):
    y = leaf() * 2
    y.retain_grad()
    y.w = w
    (y * y * y).sum().backward(create_graph=True)
    return y


@knot
def grads_of_each_other(w):
    a, b = leaf(), leaf()
    a.grad, b.grad, a.w = b * 2, a * 2, w
    return a


# ---- hooks of tensors ----


@knot
def hook_knows_its_result(w):
    y = leaf() * 2
    y.register_hook(lambda g: (y, w) and None)
    return y


@knot
def hook_knows_a_later_result(w):
    y = leaf() * 2
    z = y.sin()
    y.register_hook(function_with(z=z, w=w))
    return z


@knot
def hook_knows_its_leaf(w):
    x = leaf()
    x.register_hook(lambda g: (x, w) and None)
    return x


@knot
def hook_of_a_leaf_knows_a_result(w):
    x = leaf()
    x.register_hook(function_with(y=(x * x).sum(), w=w))
    return (x * 2).sum()


@knot
def hook_knows_its_handle(w):
    y = leaf() * 2
    state = {"y": y, "w": w}
    state["handle"] = y.register_hook(function_with(state=state))
    return y


@knot
def bound_method_as_a_hook(w):
    owner = types.SimpleNamespace(y=leaf() * 2, w=w)
    owner.y.register_hook(types.MethodType(lambda self, g: None, owner))
    return owner.y


@knot
def hooks_of_two_outputs(w):
    a, b = (leaf() * 2)[:2].unbind()
    a.register_hook(function_with(other=b, w=w))
    b.register_hook(function_with(other=a))
    return a


@knot
def replaced_dict_of_hooks(w):
    y = leaf() * 2
    y._backward_hooks = OrderedDict({0: function_with(y=y, w=w)})
    return y


@knot
def hook_of_a_tensor_that_retains(w):
    y = leaf() * 2
    y.retain_grad()
    y.register_hook(function_with(y=y, w=w))
    return y


@knot
def hook_of_a_subclass(w):
    y = torch.ones(3).as_subclass(Sub).requires_grad_() * 2
    y.register_hook(function_with(y=y, w=w))
    return y


@knot
def hook_of_a_view(w):
    base = leaf() * 2
    view = base[1:]
    view.register_hook(function_with(base=base, view=view, w=w))
    return view


@knot
def hook_after_accumulation_knows_its_leaf(w):
    x = leaf()
    x.register_post_accumulate_grad_hook(function_with(x=x, w=w))
    return x


@knot
def hook_after_accumulation_knows_a_result(w):
    x = leaf()
    y = (x * x).sum()
    x.register_post_accumulate_grad_hook(function_with(y=y, w=w))
    return y


@knot
def multi_grad_hook(w):
    x = leaf()
    a, b = x * 2, x * 3
    graph.register_multi_grad_hook([a, b], function_with(both=(a, b), w=w))
    return a + b


@knot
def multi_grad_hook_for_any(w):
    x = leaf()
    a, b = x * 2, x * 3
    graph.register_multi_grad_hook([a, b], function_with(both=(a, b), w=w), mode="any")
    return a + b


# ---- hooks of nodes, metadata ----


@knot
def hook_of_a_node_knows_a_result(w):
    y = leaf() * 2
    y.grad_fn.register_hook(function_with(y=y, w=w))
    return y


@knot
def hook_of_a_node_knows_the_node(w):
    y = leaf() * 2
    y.grad_fn.register_hook(function_with(node=y.grad_fn, w=w))
    return y


@knot
def hook_before_a_node_knows_the_node(w):
    y = leaf() * 2
    y.grad_fn.register_prehook(function_with(node=y.grad_fn, w=w))
    return y


@knot
def hook_of_an_inner_node_knows_the_last(w):
    y = leaf() * 2
    z = y.sin().cos()
    y.grad_fn.register_prehook(function_with(node=z.grad_fn, w=w))
    return z


@knot
def hook_of_an_accumulator(w):
    y = leaf() * 2
    accumulator = y.grad_fn.next_functions[0][0]
    accumulator.register_hook(function_with(accumulator=accumulator, y=y, w=w))
    return y


@knot
def hook_of_a_context(w):
    y = Tied.apply(leaf(), lambda *_: None)
    y.grad_fn.register_hook(function_with(y=y, w=w))
    return y


@knot
def metadata_has_a_result(w):
    y = leaf() * 2
    y.grad_fn.metadata.update(y=y, w=w)
    return y


@knot
def metadata_has_the_node(w):
    y = leaf() * 2
    y.grad_fn.metadata.update(node=y.grad_fn, w=w)
    return y


@knot
def metadata_has_an_edge(w):
    y = leaf() * 2
    z = y * 3
    y.grad_fn.metadata.update(edge=graph.get_gradient_edge(z), w=w)
    return z


@knot
def metadata_has_a_saved_tensor(w):
    y = leaf().sin()
    y.grad_fn.metadata.update(raw=y.grad_fn._raw_saved_self, w=w)
    return y


# ---- what is saved ----


@knot
def packed_knows_the_result(w):
    box = [w]

    def pack(t):
        return t.detach(), box

    with graph.saved_tensors_hooks(pack, lambda packed: packed[0]):
        y = leaf().sin()
    box.append(y)
    return y


@knot
def unpack_knows_the_result(w):
    box = [w]
    with graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: (box, t)[1]):
        y = leaf().sin()
    box.append(y)
    return y


@knot
def packed_by_hand(w):
    y = leaf().sin()
    y.grad_fn._raw_saved_self.register_hooks(lambda t: (t, y, w), lambda packed: packed[0])
    return y


@knot
def saved_on_the_cpu(w):
    x = leaf()
    with graph.save_on_cpu():
        y = x.sin()
    x.y, x.w = y, w
    return y


@knot
def checkpoint_knows_its_result(w):
    box = [w]
    y = checkpoint(lambda x: (box, x.sin())[1], leaf() * 2, use_reentrant=False)
    box.append(y)
    return y


@knot
def checkpoint_that_enters_again(w):
    box = [w]
    y = checkpoint(lambda x: (box, x.sin())[1], leaf() * 2, use_reentrant=True)
    box.append(y)
    return y


# ---- modules ----


@knot
def module_keeps_its_output(w):
    layer = Layer()
    layer.out, layer.w = layer(torch.ones(3)), w
    layer.weight.layer = layer
    return layer.out


@knot
def module_hook_knows_the_module(w):
    layer = Layer()
    layer.register_full_backward_hook(function_with(layer=layer, w=w))
    return layer(leaf())


@knot
def forward_hook_keeps_the_output(w):
    layer = Layer()
    layer.w = w
    layer.register_forward_hook(lambda m, _, out: setattr(m.weight, "out", (m, out)))
    return layer(torch.ones(3))


@knot
def parameter_hook_is_a_method_of_its_module(w):
    layer = Layer()
    layer.w = w
    layer.weight.register_hook(layer.hook)
    return layer(torch.ones(3))


@knot
def module_with_hooks_of_all_kinds(w):
    layer = Layer()
    layer.w = w
    layer.register_full_backward_pre_hook(function_with(layer=layer))
    layer.register_forward_pre_hook(function_with(layer=layer))
    layer.weight.register_post_accumulate_grad_hook(layer.hook)
    out = layer(leaf())
    layer.out = out
    return out


@pytest.fixture(autouse=True)
def no_automatic_collection():
    gc.collect()
    gc.freeze()  # what is there already need not be looked at again and again
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


def test_there_are_many_knots():
    assert len(KNOTS) >= 60


@pytest.mark.parametrize("tie", KNOTS, ids=[k.__name__ for k in KNOTS])
def test_collected(tie):
    """What nobody holds is gone after a collection, and is a knot: it would not go by itself."""
    witness = Witness()
    gone = weakref.ref(witness)
    tie(witness)
    del witness
    assert gone() is not None
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("tie", KNOTS, ids=[k.__name__ for k in KNOTS])
def test_kept_while_held(tie):
    """A knot that is held by one end stays whole: backward goes through it as if nothing had been."""
    witness = Witness()
    kept = weakref.ref(witness)
    held = tie(witness)
    del witness
    for _ in range(3):
        gc.collect()
        assert kept() is not None
    names = set(vars(held))
    if held.requires_grad:
        held.sum().backward(retain_graph=True)
        gc.collect()
        held.sum().backward(retain_graph=True)
    assert set(vars(held)) == names
    assert kept() is not None
    del held
    gc.collect()
    assert kept() is None


@pytest.mark.parametrize("tie", KNOTS, ids=[k.__name__ for k in KNOTS])
def test_kept_by_a_result(tie):
    """Held by C++ alone: a later result, whose graph is behind it."""
    witness = Witness()
    kept = weakref.ref(witness)
    held = tie(witness)
    if not held.requires_grad:
        pytest.skip("nothing is computed with it")
    result = (held * 2).sum() * 2
    del witness, held
    gc.collect()
    result.backward()
    del result
    gc.collect()
    assert kept() is None


def test_steps_that_write_their_input_take_no_memory():
    """40 steps, each with a graph that nobody runs backward through: 8 MB each."""
    def step():
        Dirty.apply(torch.ones(2_000_000, requires_grad=True) * 1, None)
        Tied.apply(torch.ones(2_000_000, requires_grad=True), lambda c, out: setattr(c, "o", out))

    def allocated():
        gc.collect()
        return torch.cpu.memory_stats()["allocated_bytes.all.current"]

    step()
    before = allocated()
    for _ in range(40):
        step()
        gc.collect()
    assert allocated() - before < 20_000_000


def test_a_thread_that_computes_meanwhile():
    """Collections while other threads run backward through knots take nothing that lives."""
    errors = []
    stop = threading.Event()

    def work():
        try:
            while not stop.is_set():
                for tie in KNOTS[:8]:
                    w = Witness()
                    y = tie(w)
                    for _ in range(3):
                        y = y.sin() + torch.ones(20_000)[:1]
                    y.sum().backward()
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for _ in range(60):
        gc.collect()
    stop.set()
    for t in threads:
        t.join()
    assert not errors
