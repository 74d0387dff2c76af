"""vmap: dimensions and structures, transforms around and within it, random numbers, what it refuses."""

import copy
import pickle
import subprocess
import sys

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.func import (
    functional_call,
    grad,
    grad_and_value,
    jacrev,
    stack_module_state,
    vjp,
    vmap,
)
from rushlight.utils._python_dispatch import TorchDispatchMode


def loop(f, *args):
    return torch.stack([f(*one) for one in zip(*args, strict=True)])


def close(a, b):
    torch.testing.assert_close(a, b)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


# ---- dimensions ----


def test_dimensions_in_and_out():
    x, y = torch.randn(3, 5, 2), torch.randn(2, 5)
    f = lambda a, b: (a * b).sum(-1)
    found = vmap(f, in_dims=(1, None))(x, y[:, 0])
    close(found, torch.stack([f(x[:, i], y[:, 0]) for i in range(5)]))
    close(vmap(f, in_dims=(-2, 1))(x, y), loop(f, x.movedim(1, 0), y.T))
    close(vmap(lambda a: a, out_dims=-1)(x), x.movedim(0, -1))
    close(vmap(lambda a: a, in_dims=2, out_dims=1)(x), x.movedim(2, 1))


def test_structures():
    x = {"a": torch.randn(4, 3), "b": [torch.randn(3, 4)]}
    f = lambda d, k: {"sum": d["a"] + k * d["b"][0], "kept": k}
    found = vmap(f, in_dims=({"a": 0, "b": [1]}, None), out_dims={"sum": 1, "kept": None})(x, 2.0)
    close(found["sum"], x["a"].T + 2 * x["b"][0])
    assert found["kept"] == 2.0


def test_results_without_the_batch_are_repeated():
    close(vmap(lambda x: torch.ones(2))(torch.zeros(3)), torch.ones(3, 2))


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 100])
def test_chunks(chunk):
    x = torch.randn(4, 7)
    f = lambda a: (a.sin(), a.sum())
    found = vmap(f, in_dims=1, out_dims=(1, 0), chunk_size=chunk)(x)
    close(found[0], x.sin())
    close(found[1], x.sum(0))


def test_nested():
    x, y = torch.randn(3, 4), torch.randn(5, 4)
    found = vmap(lambda a: vmap(lambda b: torch.dot(a, b))(y))(x)
    close(found, x @ y.T)
    close(vmap(vmap(lambda a: a.cumsum(0)))(torch.ones(2, 3, 4)), torch.ones(2, 3, 4).cumsum(2))


def test_one_dimensional_numbers_promote_as_numbers():
    x, half = torch.randn(3, dtype=torch.float64), torch.randn(4, dtype=torch.float32)
    assert vmap(lambda a: a * half)(x).dtype == torch.float32


# ---- gradients ----


def test_per_sample_gradients_are_those_of_a_loop():
    net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(3 * 16, 5))
    weights = {k: v.detach() for k, v in net.named_parameters()}
    x, target = torch.randn(4, 1, 6, 6), torch.randint(5, (4,))

    def loss(w, a, t):
        out = functional_call(net, w, (a.unsqueeze(0),))
        return nn.functional.cross_entropy(out, t.unsqueeze(0))

    found, values = vmap(grad_and_value(loss), in_dims=(None, 0, 0))(weights, x, target)
    for i in range(4):
        one, value = grad_and_value(loss)(weights, x[i], target[i])
        close(values[i], value)
        for name in weights:
            close(found[name][i], one[name])


def test_gradients_pass_through():
    x, w = torch.randn(5, 3, requires_grad=True), torch.randn(3, requires_grad=True)
    y = vmap(lambda a: (a * w).sin().sum(), in_dims=0)(x)
    y.pow(2).sum().backward()
    x2, w2 = x.detach().requires_grad_(), w.detach().requires_grad_()
    (x2 * w2).sin().sum(1).pow(2).sum().backward()
    close(x.grad, x2.grad)
    close(w.grad, w2.grad)  # captured: what all slices add


def test_second_derivatives_in_any_order():
    x = torch.randn(4)
    f = lambda a: (a**3).sum()
    close(vmap(grad(grad(lambda a: a**3)))(x), 6 * x)
    close(grad(lambda a: vmap(grad(lambda b: b**3))(a).sum())(x), 6 * x)
    close(jacrev(jacrev(f))(x), torch.diag(6 * x))
    w = torch.randn(4, requires_grad=True)
    (vmap(grad(lambda a, b: a**2 * b), in_dims=(0, 0))(x, w).sum()).backward()
    close(w.grad, 2 * x)


def test_gradients_of_captured_tensors_in_nested_levels():
    x, y = torch.randn(3, 2), torch.randn(4, 2)
    f = lambda w: vmap(lambda a: vmap(lambda b: (w * a * b).sum())(y).sum())(x).sum()
    w = torch.randn(2)
    close(grad(f)(w), (x.sum(0) * y.sum(0)))


@pytest.mark.parametrize("chunk", [None, 1, 2])
def test_jacobians(chunk):
    a, b = torch.randn(3), torch.randn(2, 3)
    f = lambda x, y: (y @ x, x.sin())
    found = jacrev(f, argnums=(0, 1), chunk_size=chunk)(a, b)
    close(found[0][0], b)
    close(found[1][0], torch.diag(a.cos()))
    assert found[0][1].shape == (2, 2, 3) and not found[1][1].any()


def test_vjp_runs_again():
    x = torch.randn(3)
    out, product = vjp(lambda a: (a.sin(), a * 2), x)
    close(product(out)[0], product(out)[0])
    close(vmap(lambda v: product((v, v))[0])(torch.eye(3)), torch.diag(x.cos() + 2))


def test_batches_of_gradients():
    x = torch.randn(3, requires_grad=True)
    y = x**2
    (found,) = torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True, create_graph=True)
    close(found.detach(), torch.diag(2 * x.detach()))
    (second,) = torch.autograd.grad(found.sum(), x)
    close(second, torch.full((3,), 2.0))


def test_no_graph_is_left_where_nobody_wants_one():
    x = torch.randn(3)
    kept = []

    def f(a):
        kept.append(a.sin())
        return kept[-1].sum(), a * 2

    found, aux = grad(f, has_aux=True)(x)
    assert not found.requires_grad and not aux.requires_grad
    w = torch.randn(3, requires_grad=True)
    assert grad(lambda a: (a**2 * w).sum())(x).requires_grad
    assert not grad(lambda a: (a * 2).sum())(x).requires_grad


# ---- modules ----


def test_ensembles():
    nets = [nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)) for _ in range(3)]
    params, buffers = stack_module_state(nets)
    x = torch.randn(6, 3)
    call = lambda p, b: functional_call(nets[0], (p, b), (x,))
    found = vmap(call)(params, buffers)
    assert not torch.equal(buffers["1.running_mean"], torch.zeros(3, 4))
    for i, net in enumerate(nets):
        close(found[i], net(x))
        close(buffers["1.running_mean"][i], net[1].running_mean)


def test_running_statistics_of_one_network_are_refused():
    norm = nn.BatchNorm1d(3)
    with pytest.raises(RuntimeError, match="Batch norm got a batched tensor"):
        vmap(norm)(torch.randn(2, 4, 3))
    norm.eval()
    x = torch.randn(2, 4, 3)
    close(vmap(norm)(x), loop(norm, x))


# ---- random numbers ----


def test_random_numbers():
    x = torch.zeros(3, 1000)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(lambda a: a + torch.rand(1000))(x)
    same = vmap(lambda a: a + torch.rand(1000), randomness="same")(x)
    assert torch.equal(same[0], same[1])
    for draw in (
        lambda a: torch.rand(1000),
        torch.rand_like,
        lambda a: torch.empty_like(a).normal_(),
        lambda a: torch.randperm(1000),
        lambda a: nn.functional.dropout(torch.ones(1000)),
        lambda a: nn.functional.dropout(a + 1),
        lambda a: torch.bernoulli(a + 0.5),
    ):
        found = vmap(draw, randomness="different")(x)
        assert found.shape == (3, 1000) and not torch.equal(found[0], found[1])
    for draw in (torch.rand_like, lambda a: nn.functional.dropout(a + 1)):
        found = vmap(draw, randomness="same")(x)
        assert torch.equal(found[0], found[1])
    torch.manual_seed(5)
    wanted = torch.rand(1000)
    torch.manual_seed(5)
    assert torch.equal(vmap(torch.rand_like, randomness="same")(x)[2], wanted)


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_random_slopes_of_batches(randomness):
    x = torch.randn(3, 4)
    x[:, 0] = -1  # slopes of these are drawn in each row
    y = torch.vmap(lambda t: torch.nn.functional.rrelu(t, training=True), randomness=randomness)(x)
    slopes = (y / x)[x < 0]
    assert torch.equal(y[x >= 0], x[x >= 0])
    assert ((slopes >= 1 / 8) & (slopes <= 1 / 3)).all() and slopes.unique().numel() > 1


def test_random_numbers_that_vmap_cannot_draw():
    x = torch.zeros(3, 4)
    with pytest.raises(RuntimeError, match="different inplace randomness on an unbatched tensor"):
        vmap(lambda a: torch.zeros(4).normal_() + a, randomness="different")(x)
    with pytest.raises(RuntimeError, match="does not currently support same randomness"):
        vmap(lambda a: torch.bernoulli(a), randomness="same")(x)
    with pytest.raises(RuntimeError, match="Only allowed values for randomness"):
        vmap(torch.sin, randomness="none")


# ---- writing ----


def test_in_place_ops_write_to_the_argument():
    x = torch.zeros(3, 4)
    vmap(lambda a: a.add_(1).cumsum_(0))(x)
    assert torch.equal(x, torch.arange(1.0, 5).expand(3, 4))
    y = torch.zeros(2, 3)

    def f(a):
        a[1] = 5
        a.t_() if a.dim() > 1 else a.unsqueeze_(0)
        return a + 1

    assert vmap(f)(y).shape == (2, 1, 3)
    assert torch.equal(y[:, 1], torch.full((2,), 5.0))


def test_captured_tensors_are_not_written_with_a_batch():
    kept = torch.zeros(3)
    with pytest.raises(RuntimeError, match="inplace arithmetic"):
        vmap(lambda a: kept.add_(a))(torch.ones(2, 3))
    vmap(lambda a: kept.add_(1) + a)(torch.ones(2, 3))
    assert torch.equal(kept, torch.ones(3))


# ---- refusals ----


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: vmap(torch.mul, 1.5)(x, x), ValueError, "to be int or a"),
        (lambda x: vmap(torch.mul)(), ValueError, "got no inputs"),
        (lambda x: vmap(torch.mul, (0, 0, 0))(x, x), ValueError, "in_dims is not compatible"),
        (lambda x: vmap(torch.mul, (0, "0"))(x, x), ValueError, "either an integer dimension"),
        (lambda x: vmap(torch.mul)(x, 2), ValueError, "cannot vmap over non-Tensor"),
        (lambda x: vmap(torch.sin, 7)(x), ValueError, "expected in_dim to satisfy"),
        (lambda x: vmap(torch.mul, (None, None))(x, x), ValueError, "at least one Tensor"),
        (lambda x: vmap(torch.mul, (0, 1))(x, x), ValueError, "to have the same size"),
        (lambda x: vmap(torch.sin, 0, None)(x), ValueError, "can not return a BatchedTensor"),
        (lambda x: vmap(lambda a: 1)(x), ValueError, "must only return Tensors"),
        (lambda x: vmap(torch.sin, 0, (0, 0))(x), ValueError, "out_dims is not compatible"),
        (lambda x: vmap(torch.sin, 0, "0")(x), ValueError, "`out_dims` must be an int"),
        (lambda x: vmap(torch.sin, chunk_size=0), ValueError, "chunk_size should be"),
        (lambda x: vmap(lambda a: a.sum().item())(x), RuntimeError, r"calling \.item\(\)"),
        (lambda x: vmap(lambda a: a if a.sum() else -a)(x), RuntimeError, "data-dependent"),
        (lambda x: vmap(lambda a: a.nonzero())(x), RuntimeError, "vmap"),
        (lambda x: vmap(lambda a: torch.sin(a, out=a))(x), RuntimeError, "out= or view ops"),
        (lambda x: vmap(lambda a: a.data_ptr())(x), RuntimeError, "Cannot access data pointer"),
        (lambda x: vmap(lambda a: a.sum(4))(x), IndexError, "Dimension out of range"),
    ],
)
def test_refusals(call, error, text):
    with pytest.raises(error, match=text):
        call(torch.ones(2, 3))


def test_tensors_that_escape():
    kept = []
    vmap(lambda a: kept.append(a) or a)(torch.ones(2))
    with pytest.raises(RuntimeError, match="escaped"):
        kept[0] + 1


# ---- custom functions and ops ----


class Cube(torch.autograd.Function):
    calls = 0

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        return 3 * ctx.saved_tensors[0] ** 2 * grad


def test_custom_functions():
    class Derived(Cube):
        generate_vmap_rule = True

    class Own(Cube):
        @staticmethod
        def vmap(info, in_dims, x):
            assert info.batch_size == 3 and in_dims == (0,)
            Own.calls += 1
            return Own.apply(x), 0

    x = torch.randn(3)
    with pytest.raises(RuntimeError, match="does not have vmap support"):
        vmap(Cube.apply)(x)
    for f in (Derived, Own):
        close(vmap(f.apply)(x), x**3)
        close(vmap(grad(f.apply))(x), 3 * x**2)
    assert Own.calls == 2


@pytest.mark.parametrize(
    "dims", [((None, 0), (0, None)), ((0, None), (None, 0)), ((None, 0), (None, 0))]
)
def test_results_of_custom_functions_without_a_batch(dims):
    """Their gradient counts once, whatever batches the other arguments have."""

    class Two(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, y):
            return x * y.exp(), x.sum()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g, h):
            x, y = ctx.saved_tensors
            return g * y.exp() + h, g * x * y.exp()

    def plain(x, y):
        return x * y.exp(), x.sum()

    def total(f, which, x, y):
        inner = lambda p, q: which(f(p, q))
        return vmap(vmap(inner, dims[0]), dims[1])(x, y).sum()

    x, y = torch.randn(3, 3), torch.randn(3, 3)
    for which in (lambda pair: pair[0].sum() + pair[1], lambda pair: pair[1]):
        got = grad(total, (2, 3))(Two.apply, which, x, y)
        want = grad(total, (2, 3))(plain, which, x, y)
        close(got[0], want[0])
        close(got[1], want[1])


def test_custom_ops():
    @torch.library.custom_op("vmap_tests::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x.sum() * 2

    seen = []

    @twice.register_vmap
    def rule(info, in_dims, x):
        seen.append(info.batch_size)
        return x.movedim(in_dims[0], 0).flatten(1).sum(1) * 2, 0

    x = torch.randn(4, 3)
    close(vmap(twice, in_dims=1)(x), x.sum(0) * 2)
    assert seen == [3]


def test_an_op_without_a_rule_warns_once():
    """In a process of its own: another test may have been the first."""
    code = """
import warnings, rushlight as torch
values, mask = torch.randn(2, 3), torch.tensor([[True, False, True], [True, True, False]])
f = lambda v, m: torch.zeros(3).masked_scatter(m, v)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    found = [torch.vmap(f)(values, mask) for _ in range(2)]
assert len(said) == 1 and "masked_scatter" in str(said[0].message), said
assert torch.equal(found[1], torch.stack([f(v, m) for v, m in zip(values, mask)]))
"""
    subprocess.run([sys.executable, "-c", code], check=True)


SLICES = {
    "linspace": (lambda a, b: torch.linspace(a, b, 6), (3,), (3,)),
    "linspace to a number": (lambda a: torch.linspace(a, 2, 5), (3,)),
    "logspace from a number": (lambda a: torch.logspace(-1, a, 5, base=3), (3,)),
    "complex of other ranks": (torch.complex, (3, 2, 5), (3, 5)),
    "pinv": (torch.linalg.pinv, (3, 2, 4, 5)),
    "gradient of pinv": (grad(lambda a: torch.linalg.pinv(a).sin().sum()), (3, 2, 4, 5)),
    "index_fill": (lambda x, v: x.index_fill(0, torch.tensor([0, 2]), v), (3, 4), (3,)),
    "gradient of masked_scatter": (
        grad(lambda a, b: a.masked_scatter(a > 0, b).sin().sum(), argnums=1), (3, 4), (3, 4),
    ),
    "group_norm of nothing": (
        grad(lambda a: nn.functional.group_norm(a, 3).sum()), (4, 0, 6, 2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SLICES)
def test_slices(name):
    func, *sizes = SLICES[name]
    args = [torch.randn(size, dtype=torch.float64) for size in sizes]
    expected = torch.stack([func(*slices) for slices in zip(*args, strict=True)])
    assert torch.allclose(vmap(func)(*args), expected)


def test_attention_with_one_mask_for_all_slices(recwarn):
    q = torch.randn(3, 2, 4, 5, 8, dtype=torch.float64)
    for mask in (torch.rand(5, 5) > 0.3, torch.rand(2, 1, 5, 5, dtype=torch.float64)):

        def attend(q, mask=mask):
            return nn.functional.scaled_dot_product_attention(q, q, q, mask)

        expected = torch.stack([attend(s) for s in q])
        assert torch.allclose(vmap(attend)(q), expected, equal_nan=True)
    assert not recwarn


def test_views_of_views_of_levels():
    x = torch.randn(3, 4, 5)
    y = vmap(vmap(lambda row: row[1:3]))(x)
    assert y._base is x
    y.zero_()
    assert x[:, :, 1:3].abs().sum() == 0


def test_multinomial():
    p = torch.rand(3, 4, 5)

    def draw(row):
        return torch.multinomial(row, 2)

    for given in (p, p[:, 0]):
        assert torch.vmap(draw, randomness="different")(given).shape == (*given.shape[:-1], 2)
        with pytest.raises(RuntimeError, match="same randomness with a batched"):
            torch.vmap(draw, randomness="same")(given)
        with pytest.raises(RuntimeError, match="randomness"):
            torch.vmap(draw)(given)
    drawn = torch.vmap(lambda _: torch.multinomial(torch.ones(50), 9), randomness="different")(p)
    assert drawn.shape == (3, 9) and not torch.equal(drawn[0], drawn[1])
    drawn = torch.vmap(lambda _: torch.multinomial(torch.ones(50), 9), randomness="same")(p)
    assert torch.equal(drawn[0], drawn[1])
    with pytest.raises(RuntimeError, match="1 or 2 dim"):
        torch.multinomial(p, 2)


def test_gradients_of_windows_of_a_number():
    def back(x, grad):
        return torch.func.vjp(lambda t: t.unfold(0, 1, 1), x)[1](grad)[0]

    made = torch.vmap(back)(torch.ones(3), torch.arange(3.0).reshape(3, 1))
    assert made.tolist() == [0, 1, 2]


def test_distances_of_pairs():
    x = torch.rand(3, 5, 2)
    expected = torch.stack([torch.pdist(s) for s in x])
    assert torch.equal(torch.vmap(torch.pdist)(x), expected)


class Product(torch.autograd.Function):
    """A product through numpy, with rules of its own."""

    @staticmethod
    def forward(x, y):
        return torch.from_numpy(x.detach().numpy() * y.detach().numpy())

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_forward(*inputs)

    @staticmethod
    def vmap(info, in_dims, x, y):
        x, y = (
            t.unsqueeze(-1) if d is None else t.movedim(d, -1)
            for t, d in zip((x, y), in_dims, strict=True)
        )
        return Product.apply(x, y).movedim(-1, 0), 0

    @staticmethod
    def jvp(ctx, x_t, y_t):
        x, y = ctx.saved_tensors
        return x_t * y + y_t * x


@pytest.mark.parametrize("batched", range(1, 16))
def test_tangents_with_batches_of_a_custom_function(batched):
    given = [torch.rand(4) for _ in range(4)]
    dims = [0 if batched >> i & 1 else None for i in range(4)]

    def tangent(x, y, x_t, y_t):
        return torch.func.jvp(Product.apply, (x, y), (x_t, y_t))

    args = [t if d is None else torch.stack([t, t]) for t, d in zip(given, dims, strict=True)]
    made = torch.vmap(tangent, in_dims=tuple(dims))(*args)
    for values, expected in zip(made, tangent(*given), strict=True):
        assert values.shape == (2, 4) and torch.allclose(values[1], expected)


def test_older_names():
    from rushlight import _vmap_internals

    x = torch.arange(6.0).reshape(2, 3)
    with pytest.warns(FutureWarning, match="torch.vmap"):
        assert torch.equal(_vmap_internals.vmap(torch.sum)(x), x.sum(1))
    made = _vmap_internals._vmap(lambda t: (t.sum(), None), 0, 0, allow_none_pass_through=True)(x)
    assert torch.equal(made[0], x.sum(1)) and made[1] is None
    assert _vmap_internals._vmap(lambda t: None, 0, 0, True)(x) is None


@pytest.mark.parametrize("length", [0, 5, 32, 64, 100, 1000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int32])
def test_products_of_pairs_are_those_of_single_pairs(length, dtype):
    """Many sums at a time: each has the bits and the dtype that it has alone."""
    x = (torch.randn(37, length, dtype=torch.float64) * 8).to(dtype)
    y = (torch.randn(37, length, dtype=torch.float64) * 8).to(dtype)
    rows, columns = x.unsqueeze(1), y.unsqueeze(2)
    batches = torch.bmm(rows, columns)
    alone = [torch.bmm(rows[i : i + 1], columns[i : i + 1]) for i in range(len(x))]
    assert torch.equal(batches, torch.cat(alone))
    x, y = x.double().round().to(dtype), y.double().round().to(dtype)  # exact sums in any order
    batches = torch.bmm(x.unsqueeze(1), y.unsqueeze(2))
    added = torch.baddbmm(batches, x.unsqueeze(1), y.unsqueeze(2), alpha=2)
    torch.testing.assert_close(added, batches * 3)
    for given, dims in (((x, y), (0, 0)), ((x.t().contiguous(), y), (1, 0))):
        result = vmap(torch.dot, in_dims=dims)(*given)
        assert result.dtype == dtype
        assert torch.equal(result, batches.flatten())
    one = vmap(torch.dot, in_dims=(0, None))(x, y[0])
    torch.testing.assert_close(one, torch.stack([torch.dot(a, y[0]) for a in x]))


@pytest.mark.parametrize(
    "made",
    [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)), torch.Tensor.storage],
    ids=["copy", "deepcopy", "pickle", "storage"],
)
def test_what_takes_the_memory_of_a_slice_is_refused(made):
    """The memory holds all slices: what came back was the first one, for each."""
    with pytest.raises(NotImplementedError, match="Cannot access storage"):
        vmap(lambda x: x + len(list(made(x))))(torch.randn(3, 2))


def _doubled_part(x):
    y = x * 2
    part = y[:2]
    part.mul_(x[:2])
    return part.sum()


def _moved_part(x):
    y = x * 2
    part = y[:-1].clone()
    y[1:] *= part
    return y.sum()


@pytest.mark.parametrize("f", [_doubled_part, _moved_part])
def test_gradients_of_writes_to_parts(f):
    """Windows that backward makes have the batch of the gradient, or get that of what is written."""
    m = torch.randn(3, 4, dtype=torch.float64)
    for transform in (torch.func.grad, lambda f: torch.func.jacrev(torch.func.grad(f))):
        expected = torch.stack([transform(f)(x) for x in m])
        torch.testing.assert_close(vmap(transform(f))(m), expected)
    given = m[0].clone().requires_grad_()
    (g,) = torch.autograd.grad(f(given), given)
    torch.testing.assert_close(torch.func.grad(f)(m[0]), g)
    torch.testing.assert_close(
        torch.func.hessian(f)(m[0]), torch.autograd.functional.hessian(f, m[0])
    )


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adagrad", "ASGD", "Rprop", "NAdam"])
def test_steps_of_optimizers(name):
    m, g = torch.randn(3, 4), torch.randn(3, 4)

    def stepped(x, grad):
        p = x.clone()
        p.grad = grad
        optimizer = getattr(torch.optim, name)([p], lr=0.1)
        optimizer.step()
        optimizer.step()
        return p

    expected = torch.stack([stepped(x, y) for x, y in zip(m, g, strict=True)])
    torch.testing.assert_close(vmap(stepped)(m, g), expected)


def test_a_step_of_an_optimizer_names_what_has_no_batch():
    p, other = torch.zeros(4), torch.zeros(4)

    def stepped(x):
        p.grad = x
        torch.optim.SGD([p], lr=0.1).step()
        return x

    with pytest.raises(RuntimeError, match="inplace arithmetic.* in sgd_step_"):
        vmap(stepped)(torch.randn(3, 4))

    def mixed(x):
        own = x.clone()
        own.grad, other.grad = x, torch.ones(4)
        torch.optim.SGD([own, other], lr=0.1).step()
        return own

    with pytest.raises(RuntimeError, match="sgd_step_.*params"):
        vmap(mixed)(torch.randn(3, 4))
    assert p.equal(torch.zeros(4)) and other.equal(torch.zeros(4))


def test_resize_in_place():
    """The memory of all slices is resized, as PyTorch has it."""
    m = torch.arange(6.0).reshape(2, 3)
    assert vmap(lambda x: x.clone().resize_(3, 1))(m).equal(m.unsqueeze(2))
    assert vmap(lambda x: x.clone().resize_(1))(m).equal(torch.tensor([[0.0], [1.0]]))
    assert vmap(lambda x: x.clone().resize_(5) * 2)(m).shape == (2, 5)


@pytest.mark.filterwarnings("ignore:TypedStorage")
@pytest.mark.parametrize("read", ["untyped_storage", "storage", "storage_type"])
def test_the_memory_of_a_slice_is_refused(read):
    with pytest.raises(NotImplementedError, match="Cannot access storage"):
        vmap(lambda x: x * len(str(getattr(x, read)())))(torch.randn(2, 3))


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_products_of_one_sparse_matrix(layout):
    dense = torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    s = dense.to_sparse(layout=layout)
    m = torch.randn(4, 3, 5)
    for dim in (0, 2):
        found = vmap(lambda y: torch.sparse.mm(s, y), in_dims=dim)(m.movedim(0, dim))
        torch.testing.assert_close(found, dense @ m)
    torch.testing.assert_close(vmap(lambda y: s @ y)(m[:1]), dense @ m[:1])
    vectors = torch.randn(4, 3)
    torch.testing.assert_close(vmap(lambda y: s.mv(y))(vectors), vectors @ dense.t())


_SQUARE = torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0], [0.0, 0.0, 4.0]])
_COO, _CSR = _SQUARE.to_sparse(), _SQUARE.to_sparse_csr()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: torch.sparse.addmm(x, _COO, _SQUARE),
        lambda x: torch.sparse.addmm(_SQUARE, _COO, x, beta=2, alpha=3),
        lambda x: torch.addmm(x[0], _CSR, x, beta=0.5),
        lambda x: torch.addmm(x, x, _COO, beta=0),
        lambda x: torch.addmm(x, _COO, _COO, alpha=2),
        lambda x: torch.bmm(torch.stack([_COO, _COO]), torch.stack([x, x + 1])),
        lambda x: torch.bmm(torch.stack([x, x + 1]), torch.stack([_COO, _COO])),
        lambda x: x @ _COO,
        lambda x: _COO @ x,
        lambda x: (_COO * x).to_dense(),
        lambda x: x.sparse_mask(_COO).to_dense(),
        lambda x: x.sparse_mask(_COO).coalesce().values(),
        lambda x: (
            x + torch.sparse_coo_tensor(_COO.indices(), x[0, :1].expand(4), (3, 3)).to_dense()
        ),
        lambda x: torch.sparse_coo_tensor([[0, 1, 0], [2, 1, 2]], x[0], (3, 3)).coalesce().values(),
        lambda x: torch.sparse_coo_tensor([[0, 1, 0], [2, 1, 2]], x[0], (3, 3)) @ x,
        lambda x: torch.sparse_csr_tensor([0, 1, 3, 3], [2, 0, 1], x[0], (3, 3)) @ _SQUARE,
        lambda x: torch.sparse.softmax(
            torch.sparse_coo_tensor([[0, 1, 0], [2, 1, 1]], x[0], (3, 3)), 1
        ).to_dense(),
        lambda x: torch.sparse.sampled_addmm(_CSR, x, x.t()).to_dense(),
    ],
)
@pytest.mark.parametrize("batch", [1, 4])
def test_sparse_tensors_among_slices(f, batch):
    x = torch.rand(batch, 3, 3)
    torch.testing.assert_close(vmap(f)(x), torch.stack([f(s) for s in x]))


def test_sparse_results_of_slices_are_refused():
    for layout in (torch.sparse_coo, torch.sparse_csr):
        with pytest.raises(RuntimeError, match="differ in size"):
            vmap(lambda x, layout=layout: x.to_sparse(layout=layout))(torch.rand(2, 3, 3))
    with pytest.raises(NotImplementedError, match="cannot be a result"):
        vmap(lambda x: torch.sparse_coo_tensor([[0, 1, 1]], x, (3,)))(torch.rand(2, 3))


def test_leaves_that_are_made_for_a_slice():
    """A leaf of one slice has that slice's gradient; one from outside has the sum over all of them."""
    outer = torch.ones(3, requires_grad=True)
    x = torch.arange(6.0).view(2, 3)

    def of(make):
        def f(x):
            w = make()
            return torch.autograd.grad((w * w * x).sum(), w)[0]

        return vmap(f)(x)

    assert torch.equal(of(lambda: torch.ones(3, requires_grad=True)), 2 * x)
    assert torch.equal(of(lambda: outer.detach().requires_grad_()), 2 * x)
    assert torch.equal(of(lambda: outer), (2 * x).sum(0).expand(2, 3))

    def accumulated(x):
        w = torch.full((3,), 2.0, requires_grad=True)
        (w * x).sum().backward()
        return w.grad

    assert torch.equal(vmap(accumulated)(x), x)

    def nested(x):
        w = torch.ones(
            (), requires_grad=True
        )  # of the outer level: shared by the slices of the inner one
        inner = vmap(lambda v: torch.autograd.grad(w * v, w)[0])
        return inner(x)

    assert torch.equal(vmap(nested)(x), x.sum(1, keepdim=True).expand(2, 3))


@pytest.mark.timeout(60)
def test_modes_that_answer_with_any_shape_end():
    class Answers(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return torch.ones(2)

    a = torch.ones(2, 3, 5, 2, 1)
    mask = torch.zeros(2, 1, 1, 1, dtype=torch.bool)
    for f in (
        lambda t: t * a,
        lambda t: torch.where(mask, t, a),
        lambda t: t.index_put((mask[0],), t),
    ):
        with Answers():
            try:
                torch.vmap(f)(a)
            except (RuntimeError, ValueError, IndexError) as error:
                assert "internal" not in str(error)
