"""Ways to tie a cycle of references that goes through C++: each is given a witness, which is gone when its knot is."""

import functools

import rushlight as torch
from rushlight import nn
from rushlight.autograd import Function

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
