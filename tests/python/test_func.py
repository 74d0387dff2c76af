"""Transforms of functions, modules as functions, and the counter of what they take."""

import pytest

import rushlight as torch
from rushlight import func, nn
from rushlight.overrides import TorchFunctionMode
from rushlight.utils.checkpoint import checkpoint
from rushlight.utils.flop_counter import FlopCounterMode


def test_gradients_nest():
    def cube(x):
        return x**3

    x = torch.tensor(2.0, dtype=torch.float64)
    assert func.grad(cube)(x).item() == 12
    assert func.grad(func.grad(cube))(x).item() == 12
    assert func.grad(func.grad(func.grad(cube)))(x).item() == 6
    result, value = func.grad_and_value(cube)(x)
    assert value.item() == 8 and not result.requires_grad and not value.requires_grad
    inner = func.grad(lambda x: func.grad(lambda y: x * x * y)(torch.ones((), dtype=x.dtype)))
    assert inner(x).item() == 4
    w = torch.tensor(3.0, requires_grad=True)
    outside = func.grad(lambda x: w * x * x)(torch.tensor(1.0))
    assert outside.requires_grad
    outside.backward()
    assert w.grad.item() == 2


def test_gradients_of_trees_and_errors():
    grads = func.grad(lambda p: (p["a"] * p["b"]).sum())(
        {"a": torch.ones(2), "b": torch.ones(2) * 2}
    )
    assert grads["a"].tolist() == [2, 2] and grads["b"].tolist() == [1, 1]
    grads, aux = func.grad(lambda x: (x.sum(), "aux"), has_aux=True)(torch.ones(2))
    assert grads.tolist() == [1, 1] and aux == "aux"
    with pytest.raises(RuntimeError, match="scalar tensor"):
        func.grad(lambda x: x * 2)(torch.ones(2))
    with pytest.raises(RuntimeError, match="argnum"):
        func.grad(lambda x: x.sum(), argnums=1)(torch.ones(2))


def test_jacobians_agree():
    x = torch.rand(3, dtype=torch.float64)
    y = torch.rand(2, dtype=torch.float64)

    def f(x, y):
        return {"a": x.sin().sum() * y, "b": x * y[0]}

    rows = func.jacrev(f, argnums=(0, 1))(x, y)
    columns = func.jacfwd(f, argnums=(0, 1))(x, y)
    for name in "ab":
        for p, q in zip(rows[name], columns[name], strict=True):
            assert p.shape == q.shape and torch.allclose(p, q)
    h = func.hessian(lambda x: (x**3).sum())(x)
    assert torch.allclose(h, torch.diag(6 * x))
    value, tangent = func.jvp(torch.sin, (x,), (torch.ones_like(x),))
    assert torch.allclose(tangent, x.cos()) and torch.equal(value, x.sin())
    value, product = func.vjp(torch.sin, x)
    assert torch.allclose(product(torch.ones_like(x))[0], x.cos())


def test_vmap():
    x = torch.arange(6.0).view(2, 3)
    assert torch.vmap(torch.dot)(x, x).tolist() == [5, 50]
    assert torch.vmap(torch.vmap(lambda v: v + 1))(x).tolist() == (x + 1).tolist()
    grads = torch.vmap(func.grad(lambda v: (v**2).sum()))(x)
    assert grads.tolist() == (2 * x).tolist()
    assert torch.vmap(lambda a: a * 2, in_dims=1, out_dims=1)(x).shape == (2, 3)
    torch.manual_seed(0)
    same = torch.vmap(lambda a: torch.rand(3), randomness="same")(x)
    assert torch.equal(same[0], same[1])
    for wrong in ({"in_dims": None}, {"in_dims": 5}, {"in_dims": (0, 0)}):
        with pytest.raises(ValueError, match="vmap"):
            torch.vmap(lambda a: a, **wrong)(x)


def test_modules_as_functions():
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    before = {n: p.clone() for n, p in model.named_parameters()}
    zeros = {n: torch.zeros_like(p) for n, p in model.named_parameters()}
    assert func.functional_call(model, zeros, torch.rand(4, 3)).tolist() == [[0, 0]] * 4
    assert all(torch.equal(p, before[n]) for n, p in model.named_parameters())
    with pytest.raises(RuntimeError, match="Missing key"):
        func.functional_call(model, {}, torch.rand(4, 3), strict=True)
    shared = torch.nn.Linear(2, 2, bias=False)
    tied = torch.nn.Sequential(shared, shared)
    result = func.functional_call(tied, {"0.weight": torch.eye(2) * 2}, torch.ones(1, 2))
    assert result.tolist() == [[4, 4]]
    parameters, buffers = func.stack_module_state([torch.nn.Linear(2, 2) for _ in range(3)])
    assert parameters["weight"].shape == (3, 2, 2) and buffers == {}


@pytest.mark.parametrize("recorded", [True, False])
def test_products_are_functions_of_their_vectors(recorded):
    """v J is linear in v, also for a transform that begins after the product is made."""
    a, x = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 1.0])
    u, v = torch.tensor([1.0, -1.0]), torch.tensor([1.0, 2.0])
    for f in (lambda s: a @ s * s, func.grad(lambda s: (a @ s * s * s).sum())):
        with torch.set_grad_enabled(recorded):
            j = func.jacrev(f)(x)
            _, product = func.vjp(f, x)
            found, back = func.vjp(lambda t, product=product: product(t)[0], u)
            assert torch.allclose(found, u @ j) and torch.allclose(back(v)[0], j @ v)
            slope = func.jacrev(lambda t, product=product: product(t)[0])(u)
            assert torch.allclose(slope, j.T)
            second = func.grad(lambda t, product=product: product(t)[0].square().sum())(u)
            assert torch.allclose(second, 2 * j @ (u @ j))


def test_flop_counter():
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(16, 5)
    )
    with FlopCounterMode(display=False) as counter:
        model(torch.rand(2, 3, 4, 4)).sum().backward()
    forward = 2 * 2 * 4 * (4 * 3 * 9) + 2 * 2 * 16 * 5
    # Backward: twice that, but for the gradient of the input, which nobody wants.
    assert counter.get_total_flops() == 3 * forward - 2 * 2 * 4 * (4 * 3 * 9)
    counts = counter.get_flop_counts()
    # A linear layer comes in parts.
    assert counts["Sequential.2"][torch.ops.aten.addmm] == 2 * 2 * 16 * 5
    assert "Sequential.0" in counter.get_table() and "aten.convolution" in counter.get_table()
    by_module = {name: sum(flops.values()) for name, flops in counts.items()}
    assert by_module["Global"] == by_module["Sequential"] == counter.get_total_flops()
    assert by_module["Sequential.2"] == 3 * 2 * 2 * 16 * 5
    assert by_module["Sequential.0"] == 2 * (2 * 2 * 4 * (4 * 3 * 9))


class _Twice(torch.nn.Module):
    """Two layers, of which one runs twice and the other may be a checkpoint."""

    def __init__(self, kept):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
        self.last = torch.nn.Linear(4, 4)
        self.kept = kept

    def forward(self, x):
        inner = self.inner
        x = inner(x) if self.kept else checkpoint(inner, x, use_reentrant=False)
        return self.last(self.last(x))


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("grad", [True, False])
def test_flops_of_backward_belong_to_modules(kept, grad):
    model, one = _Twice(kept), 2 * 3 * 4 * 4
    with FlopCounterMode(display=False) as counter:
        y = model(torch.rand(3, 4, requires_grad=grad))
        loss = (y @ torch.ones(4, 4)).sum()  # outside of any module: a product, and one backward
        loss.backward()
    found = {name: sum(flops.values()) for name, flops in counter.get_flop_counts().items()}
    # The repetition ends as soon as it has what the second layer keeps.
    first, second = one * (2 + grad) + (0 if kept else one), one * 3
    assert found == {
        "Global": first + second + 6 * one + 2 * one,
        "_Twice": first + second + 6 * one,
        "_Twice.inner": first + second,
        "_Twice.inner.0": first,
        "_Twice.inner.1": second,
        "_Twice.last": 6 * one,
    }
    assert counter.mod_tracker.parents == {"Global"}


def test_flops_of_a_graph_from_before_are_nobodys():
    model = torch.nn.Linear(4, 4)
    y = model(torch.rand(3, 4))
    with FlopCounterMode(display=False) as counter:
        y.sum().backward()
        model(torch.rand(3, 4))
    assert set(counter.get_flop_counts()) == {"Global", "Linear"}
    assert sum(counter.get_flop_counts()["Linear"].values()) == 2 * 3 * 4 * 4


@pytest.mark.parametrize(
    "write",
    [
        lambda outside, x: outside.add_(x),
        lambda outside, x: outside[0].mul_(2),
        lambda outside, x: outside.view(3).copy_(x),
        lambda outside, x: outside.split(1)[0].zero_(),
        lambda outside, x: outside.unsqueeze_(0),
        lambda outside, x: outside.set_(torch.zeros(3)),
        lambda outside, x: outside.resize_(2),
    ],
)
def test_what_a_function_captures_is_not_written(write):
    outside, x = torch.ones(3), torch.ones(3)

    def function(x):
        write(outside, x)
        return x.sum()

    calls = [
        lambda: func.grad(function)(x),
        lambda: func.vjp(function, x),
        lambda: func.jvp(function, (x,), (x,)),
        lambda: func.jacfwd(function)(x),
        lambda: func.vmap(func.grad(function))(torch.ones(2, 3)),
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match="During a grad .* in-place operation"):
            call()
    assert outside.tolist() == [1, 1, 1]
    outside.add_(1)  # and after that again

    def around(x):
        made = x * 2

        def within(y):
            made.add_(y)
            return y.sum()

        return func.grad(within)(x).sum()

    with pytest.raises(RuntimeError, match="captured"):
        func.grad(around)(x)


def test_what_a_function_makes_or_is_given_is_written():
    def made(x):
        z = torch.zeros_like(x)
        z.add_(x)
        z[0] = 5
        func.grad(lambda y: y.sum())(x)
        z.mul_(1)  # after an inner transform
        return (z * x.clone().mul_(2)).sum()

    x = torch.ones(3)
    assert func.grad(made)(x).tolist() == [10, 4, 4]
    assert func.vmap(func.grad(made))(torch.ones(2, 3)).tolist() == [[10, 4, 4]] * 2
    assert func.jvp(made, (x,), (x,))[1].item() == 18

    def doubled(x):
        return x.mul_(2).sum()

    assert func.jvp(doubled, (x,), (torch.ones(3),))[1].item() == 6 and x.tolist() == [2, 2, 2]
    nested = func.jvp(
        lambda x: func.jvp(doubled, (x,), (x,))[1], (torch.ones(3),), (torch.ones(3),)
    )
    assert [t.item() for t in nested] == [6, 6]

    norm = torch.nn.BatchNorm1d(3)
    weights, buffers = dict(norm.named_parameters()), dict(norm.named_buffers())

    def loss(weights, buffers, rows):
        return func.functional_call(norm, (weights, buffers), (rows,)).sum()

    func.grad(loss)(weights, buffers, torch.randn(4, 3))
    assert buffers["num_batches_tracked"].item() == 1
    with pytest.raises(RuntimeError, match="captured"):
        func.grad(lambda w: loss(w, {}, torch.randn(4, 3)))(weights)


RECURRENT = [("LSTM", {}), ("GRU", {}), ("RNN", {}), ("LSTM", {"proj_size": 3})]


@pytest.mark.filterwarnings("error")  # "computes it one slice after the other"
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize(("kind", "options"), RECURRENT)
def test_recurrent_layers_of_many_slices(kind, options, batch_first):
    """Inputs, gradients of each slice, networks of each slice."""

    def network():
        options_of_all = {"num_layers": 2, "batch_first": batch_first, "bidirectional": True}
        return getattr(torch.nn, kind)(4, 5, **options_of_all, **options).double()

    net = network()
    x = torch.randn(3, 2, 6, 4, dtype=torch.float64)
    of_each = torch.stack([net(a)[0] for a in x])
    assert torch.allclose(torch.vmap(lambda a: net(a)[0])(x), of_each)
    weights = {name: p.detach() for name, p in net.named_parameters()}

    def loss(w, a):
        return torch.func.functional_call(net, w, (a,))[0].pow(2).sum()

    grads = torch.vmap(torch.func.grad(loss), (None, 0))(weights, x)
    for i, a in enumerate(x):
        for name, g in torch.func.grad(loss)(weights, a).items():
            assert torch.allclose(grads[name][i], g)
    networks = [network() for _ in range(3)]
    stacked, _ = torch.func.stack_module_state(networks)
    outputs = torch.vmap(lambda w: torch.func.functional_call(net, w, (x[0],))[0])(stacked)
    assert torch.allclose(outputs, torch.stack([n(x[0])[0] for n in networks]))


@pytest.mark.filterwarnings("error")
def test_packed_sequences_of_many_slices():
    net = torch.nn.GRU(4, 5)
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.randn(6, 3, 4), [6, 4, 2])

    def run(data):
        return net(torch.nn.utils.rnn.PackedSequence(data, packed.batch_sizes))[0].data

    data = torch.stack([packed.data, packed.data + 1])
    assert torch.allclose(torch.vmap(run)(data), torch.stack([run(d) for d in data]), atol=1e-6)


@pytest.mark.parametrize(
    "scatter",
    [
        lambda x, s: torch.select_scatter(x, s, 0, 1),
        lambda x, s: torch.slice_scatter(x, s[None], 0, 1, 2),
        lambda x, s: torch.diagonal_scatter(x[:3], s),
    ],
)
def test_slices_are_scattered_into_what_they_share(scatter):
    x, sources = torch.randn(4, 3), torch.randn(5, 3)
    expected = torch.stack([scatter(x, s) for s in sources])
    assert torch.equal(torch.vmap(lambda s: scatter(x, s))(sources), expected)


@pytest.mark.parametrize("width", [None, 1, 2])
@pytest.mark.parametrize("size", [None, 1])
@pytest.mark.parametrize(
    "f",
    [
        lambda x, i, s: torch.gather(x, 0, i),
        lambda x, i, s: torch.scatter(x, 0, i, s),
        lambda x, i, s: torch.scatter(x, -1, i, 2.0),
        lambda x, i, s: torch.scatter_add(x, 0, i, s),
        lambda x, i, s: torch.scatter_reduce(x, 0, i, s, "amax"),
        lambda x, i, s: torch.index_select(x, 0, i),
        lambda x, i, s: torch.index_fill(x, 0, i, 2.0),
        lambda x, i, s: torch.index_add(x, 0, i, s),
        lambda x, i, s: torch.take(x, i),
    ],
)
def test_slices_that_are_numbers_meet_vectors(f, size, width):
    """A number counts as a vector of one element along a dimension, for indices too."""

    def shape(n):
        return () if n is None else (n,)

    x, s = torch.randn(3, *shape(size)), torch.randn(3, *shape(width))
    i = torch.zeros(3, *shape(width), dtype=torch.int64)
    try:
        expected = torch.stack([f(*slices) for slices in zip(x, i, s, strict=True)])
    except (RuntimeError, IndexError):
        return  # not as one slice either
    found = torch.vmap(f)(x, i, s)
    assert found.shape == expected.shape and torch.equal(found, expected)


def test_statistics_that_a_function_captures_are_updated():
    mean, var = torch.zeros(3), torch.ones(3)
    x = torch.randn(2, 3, 4, 4)
    torch.func.grad(lambda a: torch.nn.functional.instance_norm(a, mean, var).square().sum())(x)
    expected = [torch.zeros(3), torch.ones(3)]
    torch.nn.functional.instance_norm(x, *expected)
    assert torch.equal(mean, expected[0]) and torch.equal(var, expected[1])
    with pytest.raises(RuntimeError, match="running_mean"):
        torch.vmap(lambda a: torch.nn.functional.instance_norm(a, mean, var))(torch.stack([x, x]))


def test_parameters_that_a_call_adds_are_gone_after_it():
    layer = nn.Linear(1, 1)
    more = nn.Parameter(torch.ones(1))
    seen = []
    layer.register_forward_pre_hook(lambda module, _: seen.append(dict(module.named_parameters())))
    func.functional_call(layer, {"extra": more}, torch.ones(1, 1))
    assert seen[0]["extra"] is more and "extra" not in dict(layer.named_parameters())
    assert all(isinstance(p, nn.Parameter) for p in layer.parameters())
    assert not hasattr(layer, "extra")


@pytest.mark.parametrize(
    "transform",
    [
        lambda f, x: func.jvp(f, (x,), (x,))[1],
        lambda f, x: func.vjp(f, x)[1](f(x))[0],
        lambda f, x: func.linearize(f, x)[1](x),
        lambda f, x: func.hessian(lambda y: f(y).sum())(x),
        lambda f, x: func.jacfwd(f)(x),
        lambda f, x: torch.vmap(func.jacrev(f))(x[None]),
    ],
    ids=["jvp", "vjp", "linearize", "hessian", "jacfwd", "vmap"],
)
def test_transforms_under_a_function_mode(transform):
    """And of a subclass: outputs are looked at, not compared."""

    class Mode(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    class Sub(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return super().__torch_function__(function, types, args, kwargs or {})

    x = torch.randn(3)
    want = transform(torch.sin, x)
    with Mode():
        got = transform(torch.sin, x)
    torch.testing.assert_close(got, want)
    got = transform(torch.sin, x.as_subclass(Sub))
    torch.testing.assert_close(got.as_subclass(torch.Tensor), want)


class Shared(torch.nn.Module):
    """One layer under two names."""

    def __init__(self):
        super().__init__()
        self.a = torch.nn.BatchNorm1d(2)
        self.b = self.a

    def forward(self, x):
        if x.numel() == 0:
            raise ValueError("nothing")
        return self.b(self.a(x))


@pytest.mark.parametrize("tie", [True, False])
@pytest.mark.parametrize("rows", [3, 0])
def test_modules_with_two_names_keep_their_tensors(tie, rows):
    module = Shared()
    own = dict(module.named_parameters(remove_duplicate=False))
    own |= dict(module.named_buffers(remove_duplicate=False))
    for given in (
        ["a.weight"],
        ["a.weight", "b.weight"],
        ["b.running_mean"],
        ["b.weight", "a.running_var"],
    ):
        zeros = torch.zeros(2)
        call = (dict.fromkeys(given, zeros), (torch.rand(rows, 2),))
        try:
            torch.func.functional_call(module, *call, tie_weights=tie)
        except ValueError:
            assert rows == 0
        now = dict(module.named_parameters(remove_duplicate=False))
        now |= dict(module.named_buffers(remove_duplicate=False))
        assert now.keys() == own.keys() and all(now[name] is own[name] for name in own)


@pytest.mark.parametrize(
    "differentiate",
    [
        lambda f, x: func.grad(lambda y: f(y).sum())(x),
        lambda f, x: func.grad_and_value(lambda y: f(y).sum())(x),
        lambda f, x: (func.vjp(f, x)[0], func.vjp(f, x)[1](x)[0]),
        lambda f, x: (func.linearize(f, x)[0], func.linearize(f, x)[1](x)),
        lambda f, x: func.jacrev(f)(x),
        lambda f, x: func.jacfwd(f)(x),
        lambda f, x: func.hessian(lambda y: f(y).sum())(x),
    ],
    ids=["grad", "grad_and_value", "vjp", "linearize", "jacrev", "jacfwd", "hessian"],
)
def test_without_grad_results_are_not_recorded(differentiate):
    """Neither by the argument nor by what the function holds; with it they are."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    weight = torch.tensor([3.0, 4.0], requires_grad=True)

    def results():
        return torch.utils._pytree.tree_leaves(differentiate(lambda y: weight * y**3, x))

    recorded = results()
    with torch.no_grad():
        alone = results()
    assert all(t.requires_grad for t in recorded) and not any(t.requires_grad for t in alone)
    for a, b in zip(recorded, alone, strict=True):
        torch.testing.assert_close(a, b)
