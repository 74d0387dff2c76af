"""Chains of noted ops: what a program sees is what it sees without `compile`."""

import copy
import pickle
import threading

import numpy as np
import pytest

import rushlight as torch
from rushlight import _C, nn
from tests.fuzz import chains

N = 20_000


def values(seed=3, shape=(N,)):
    return torch.from_numpy(
        np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    ).clone()


def counted(function, *args):
    """(what it returns, passes over memory, steps, results that were never written)."""
    before = _C._chain_counts()
    result = function(*args)
    return result, *(after - b for after, b in zip(_C._chain_counts()[:3], before[:3], strict=True))


@pytest.mark.parametrize("threads", (1, 2, 3, 5))
def test_random_programs_have_the_bits_of_eager_ones(threads):
    before = torch.get_num_threads()
    try:
        for seed in range(40 * threads, 40 * threads + 40):
            assert chains.difference(seed, threads) is None
    finally:
        torch.set_num_threads(before)


FOLDS = {
    "layer norm": lambda x, w: (
        (x - x.mean(-1, keepdim=True))
        * torch.rsqrt((x - x.mean(-1, keepdim=True)).square().mean(-1, keepdim=True) + 1e-5)
        * w
    ),
    "RMS norm": lambda x, w: x * (x.square().mean(-1).unsqueeze(-1) + 1e-6).rsqrt() * w,
    "softmax": lambda x, w: (lambda e: e / e.sum(-1, keepdim=True))(
        torch.exp(x - x.amax(-1, keepdim=True))
    ),
    "log softmax": lambda x, w: x - x.logsumexp(-1, keepdim=True) + w,
    "two dimensions": lambda x, w: x - x.amin((-2, -1), keepdim=True),
    "in place": lambda x, w: x.clone().sub_(x.mean(-1, keepdim=True)).mul_(w),
    "products": lambda x, w: torch.sigmoid(x).prod(-1, keepdim=True) + x * w,
}


@pytest.mark.parametrize(
    "shape",
    [
        (64, 512),
        (3, 16, 1024),
        (40, 4160),
        (2, 3, 16384),
        (1, 16384 * 3),
        (130, 64),
        (7, 33, 192),
        (64, 256),
        (100, 130),
    ],
)
@pytest.mark.parametrize("name", FOLDS)
def test_folds_of_rows_have_the_bits_of_eager_ones(name, shape):
    x, w = values(shape=shape), values(shape=shape[-1:])
    with torch.no_grad():
        expected = FOLDS[name](x, w)
        before = torch.get_num_threads()
        for threads in (1, 2, 3, 5):
            torch.set_num_threads(threads)
            assert torch.equal(torch.compile(FOLDS[name])(x, w), expected)
        torch.set_num_threads(before)


@pytest.mark.parametrize("name", ["layer norm", "RMS norm", "softmax", "log softmax"])
def test_a_norm_is_one_pass(name):
    x, w = values(shape=(64, 640)), values(shape=(640,))
    with torch.no_grad():
        _, passes, steps, unseen = counted(torch.compile(FOLDS[name]), x, w)
    assert passes == 1
    assert unseen == steps - 1


def test_columns_of_a_wider_tensor_are_numbers_of_rows():
    x, wide = values(shape=(70, 128)), values(5, shape=(70, 128))
    for function in (
        lambda x, wide: torch.remainder(x, wide[:, 3:4]),
        lambda x, wide: x * wide[:, :1] + wide[:, 2:3] - 1,
        lambda x, wide: torch.where(wide[:, :1] > 0, x, wide[:, 1:2]) * 2,
        lambda x, wide: (x.view(7, 10, 128) * wide.view(7, 10, 128)[:, :1, :1] + x[:1]).sum(-1),
    ):
        for _ in range(3):
            assert torch.equal(torch.compile(function)(x, wide), function(x, wide))


JOINS = {
    "rotary": lambda x, w: (
        torch.cat((-x[..., x.size(-1) // 2 :], x[..., : x.size(-1) // 2]), -1) * w + x * w
    ),
    "three parts": lambda x, w: torch.cat((x[..., :64], x * 2 + w, x[..., 64:128].exp()), -1) + 1,
    "part twice": lambda x, w: (lambda y: torch.cat((y, y), -1) - 1)(x.sigmoid()),
    "of two dtypes": lambda x, w: torch.cat((x.double() + 1, x[..., :64]), -1) * 2,
    "folded": lambda x, w: (lambda y: y - y.mean(-1, keepdim=True))(torch.cat((-x, x * w), -1)),
    "kept": lambda x, w: torch.cat((x.relu(), x[..., :64] + w[:64]), -1),
    "written into what it reads": lambda x, w: x.clone().copy_(
        torch.cat((x[..., 64:] * 2, x[..., :64]), -1)
    ),
}


@pytest.mark.parametrize("shape", [(64, 256), (3, 16, 512), (70, 128), (1, 8192)])
@pytest.mark.parametrize("name", JOINS)
def test_joined_rows_have_the_bits_of_eager_ones(name, shape):
    x, w = values(shape=shape), values(shape=shape[-1:])
    with torch.no_grad():
        expected = JOINS[name](x, w)
        before = torch.get_num_threads()
        for threads in (1, 2, 3, 5):
            torch.set_num_threads(threads)
            assert torch.equal(torch.compile(JOINS[name])(x, w), expected)
        torch.set_num_threads(before)
        _, passes, steps, _ = counted(torch.compile(JOINS[name]), x, w)
        assert passes < steps


def test_a_rotary_embedding_is_one_pass():
    x, w = values(shape=(64, 256)), values(shape=(256,))
    assert counted(torch.compile(JOINS["rotary"]), x, w)[1] == 1


def test_parts_are_read_before_they_are_written():
    def function(x):
        joined = torch.cat((x[:, 64:] + 1, x[:, :64]), -1)
        x.mul_(2)
        x[:, :64] += joined[:, 64:]
        return joined * 3

    eager, compiled = values(shape=(70, 128)), values(shape=(70, 128))
    assert torch.equal(torch.compile(function)(compiled), function(eager))
    assert torch.equal(compiled, eager)


def test_copies_are_steps():
    def function(x):
        y = x.clone()
        y.mul_(2)
        z = y.to(torch.float64) + 1
        kept = torch.empty_like(x).copy_(z)
        return kept, z.to(torch.int32).to(torch.float32) - y[:1], x[:, :64].contiguous() * 2

    x = values(shape=(70, 128))
    found, passes, steps, _ = counted(torch.compile(function), x)
    assert (passes, steps) == (2, 8)  # a view of what is pending ends the first
    for a, b in zip(found, function(x), strict=True):
        assert torch.equal(a, b) and a.dtype == b.dtype


def test_a_copy_has_what_was_there():
    def function(x):
        y = x.clone()
        z = x.t().contiguous()
        x.add_(1)
        w = y + 1
        y.zero_()
        return w, z, y, x.expand(3, *x.shape).clone()

    eager, compiled = values(shape=(70, 128)), values(shape=(70, 128))
    for a, b in zip(torch.compile(function)(compiled), function(eager), strict=True):
        assert torch.equal(a, b)


def test_one_row_has_values_of_any_dtype():
    def function(x):
        top = x.logsumexp(-1, keepdim=True)
        return torch.erf(top >= -1.5), (top > 2) + top, x * (top >= 0) - top

    x = values(shape=(8960,))
    for a, b in zip(torch.compile(function)(x), function(x), strict=True):
        assert torch.equal(a, b)


def test_what_is_folded_can_be_looked_at():
    x = values(shape=(64, 640))

    @torch.compile
    def f(x):
        mean = x.mean(-1, keepdim=True)
        centred = x - mean
        scale = (mean + 2).rsqrt()
        first = float(mean[0])  # completes what has been noted
        return mean, centred, scale, centred * scale, first

    with torch.no_grad():
        mean, centred, scale, product, first = f(x)
        assert torch.equal(mean, x.mean(-1, keepdim=True))
        assert torch.equal(centred, x - mean)
        assert torch.equal(scale, (mean + 2).rsqrt())
        assert torch.equal(product, centred * scale)
        assert first == float(mean[0])


def test_a_chain_is_one_pass():
    x = values()

    @torch.compile
    def function(x):
        return torch.relu(x * 2 + 1) - 0.5

    result, passes, steps, unseen = counted(function, x)
    assert (passes, steps, unseen) == (1, 4, 3)
    assert torch.equal(result, torch.relu(x * 2 + 1) - 0.5)


def test_results_that_nobody_sees_are_not_computed():
    def function(x):
        x.exp()
        return x + 1

    _, passes, steps, unseen = counted(torch.compile(function), values())
    assert (passes, steps, unseen) == (1, 2, 1)


def test_backward_of_a_chain_is_noted():
    weight = values(5).requires_grad_()
    x = values()

    def loss(x):
        return (torch.tanh(x * weight) ** 2 * 0.5 + weight).sum()

    expected = torch.autograd.grad(loss(x), weight)[0]
    result = torch.compile(loss)(x)
    found, passes, steps, unseen = counted(lambda: torch.autograd.grad(result, weight)[0])
    assert steps > 3 and passes < steps and unseen > 0
    assert torch.equal(found, expected)


def test_an_optimizer_step_is_noted():
    def adam(p, g, m, v):
        m.mul_(0.9).add_(g, alpha=0.1)
        v.mul_(0.999).addcmul_(g, g, value=0.001)
        p.addcdiv_(m, v.sqrt().add_(1e-8), value=-0.01)

    eager = [values(i).abs() for i in range(4)]
    noted = [t.clone() for t in eager]
    adam(*eager)
    _, passes, steps, _ = counted(torch.compile(adam), *noted)
    assert (passes, steps) == (1, 7)
    for a, b in zip(eager, noted, strict=True):
        assert torch.equal(a, b)


# ---- who completes a chain ----


def test_memory_is_written_after_it_has_been_read():
    def function(x):
        old = x * 2
        x.add_(1)
        x[3] = 7
        return old

    x = values()
    before = x.clone()
    assert torch.equal(torch.compile(function)(x), before * 2)
    before.add_(1)[3] = 7
    assert torch.equal(x, before)


def test_arrays_see_and_are_seen():
    def function(x):
        y = x * 2
        seen = y.numpy()  # completes
        seen[0] = 5
        y.add_(1)  # the array's memory: at once
        again = seen.copy()
        other = x.numpy()
        z = x + 1  # x may change behind its back from here on
        other[1] = 100
        return y, again, z

    eager = function(values())
    for a, b in zip(eager, torch.compile(function)(values()), strict=True):
        assert np.array_equal(np.asarray(a), np.asarray(b))


def test_an_address_is_of_memory_that_is_there():
    import ctypes

    def function(x):
        y = x + 1
        address = y.data_ptr()
        y.mul_(3)
        return ctypes.cast(address, ctypes.POINTER(ctypes.c_float))[4]

    assert torch.compile(function)(values()) == function(values())


def test_threads_complete_each_others_chains():
    shared = values()
    found = []

    def read(y):
        found.append(float(y[7]))

    @torch.compile
    def function(x):
        y = x * 3
        thread = threading.Thread(target=read, args=(y,))
        thread.start()
        thread.join()
        return y + 1

    assert torch.equal(function(shared), shared * 3 + 1)
    assert found == [float(shared[7] * 3)]


def test_many_threads_note_over_shared_memory():
    weight = values()
    expected = [torch.tanh(weight * i + 1) * weight for i in range(8)]
    results = [None] * 8

    def work(i):
        function = torch.compile(lambda: torch.tanh(weight * i + 1) * weight)
        for _ in range(50):
            results[i] = function()

    workers = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for a, b in zip(expected, results, strict=True):
        assert torch.equal(a, b)


def test_an_exception_leaves_what_was_computed():
    kept = []

    @torch.compile
    def function(x):
        kept.append(x + 1)
        kept[0].mul_(2)
        raise ValueError("stop")

    x = values()
    with pytest.raises(ValueError, match="stop"):
        function(x)
    assert torch.equal(kept[0], (x + 1) * 2)


def test_errors_come_at_the_call():
    @torch.compile
    def function(x):
        y = x + 1
        try:
            y + x[:-1]
        except RuntimeError as error:
            return str(error), y
        return None

    message, y = function(values())
    assert "must match the size" in message and torch.equal(y, values() + 1)


def test_storages_that_change_size():
    def function(x):
        y = x + 1
        y.untyped_storage().resize_(2 * y.untyped_storage().nbytes())
        return y[:10] * 2

    assert torch.equal(torch.compile(function)(values()), function(values()))


def test_long_chains_and_many_shapes():
    def function(x):
        for i in range(200):
            x = x * 1.01 + i
        parts = [x[: 9000 + 100 * i] * 2 + 1 for i in range(9)]
        return torch.cat(parts) + 1

    assert torch.equal(torch.compile(function)(values()), function(values()))


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.complex64]
)
def test_results_are_rounded_step_by_step(dtype):
    def function(x, y):
        return (x * y + x - y * 3) * x

    x, y = (values(i).mul(7).to(dtype) for i in (1, 2))
    result, passes, steps, _ = counted(torch.compile(function), x, y)
    assert torch.equal(result, function(x, y)) and passes < steps == 5


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_register_code_rounds_16_bit_floats(dtype):
    def function(x, y, w):
        a = torch.sigmoid(x) * x + w
        b = torch.where(a > y, a * 0.1, y.float().to(dtype) - 3)
        norm = a.float() * torch.rsqrt(a.float().square().mean(-1, keepdim=True) + 1e-6)
        return torch.maximum(b, -x), norm.to(dtype) * w, a.to(torch.float32) / 3, b.clone(), a >= b

    def special(seed, shape):
        t = values(seed, shape=shape) * 1000
        for i, value in enumerate((np.nan, np.inf, -np.inf, -0.0, 1e-40, 65519.0, 65520.0)):
            t.view(-1)[5 * i] = value
        return t.to(dtype)

    x, y, w = special(1, (70, 128)), special(2, (70, 128)), special(3, (128,))
    for _ in range(3):
        for a, b in zip(torch.compile(function)(x, y, w), function(x, y, w), strict=True):
            same = (a == b) | ((a != a) & (b != b))
            assert a.dtype == b.dtype and bool(same.all())


# ---- names ----


def test_names_that_run_programs_as_they_are():
    for backend in ("eager", "aot_eager"):
        _, passes, steps, _ = counted(torch.compile(lambda x: x + 1, backend=backend), values())
        assert (passes, steps) == (0, 0)
    stance = torch.compiler.set_stance("force_eager")
    try:
        assert counted(torch.compile(lambda x: x + 1), values())[1:] == (0, 0, 0)
    finally:
        torch.compiler.set_stance("default")
    assert stance.stance == "force_eager"
    assert counted(torch.compile(lambda x: x + 1), values())[1] == 1


def test_disable_runs_at_once():
    @torch.compiler.disable
    def inner(x):
        return x * 2 + 1

    assert inner._torchdynamo_disable
    _, passes, steps, _ = counted(torch.compile(lambda x: inner(x) - x), values())
    assert (passes, steps) == (1, 1)
    layer = torch.compiler.disable(nn.ReLU())
    assert torch.equal(layer(values()), values().relu())


def test_modules():
    net = nn.Sequential(nn.Linear(8, 300), nn.GELU(), nn.Linear(300, 8))
    x = values(shape=(50, 8))
    expected = net(x)
    for made in (
        torch.compile(net),
        copy.deepcopy(torch.compile(net)),
        pickle.loads(pickle.dumps(torch.compile(net))),
    ):
        result, _, steps, _ = counted(made, x)
        assert steps > 0 and torch.equal(result, expected)
    net.compile()
    result, _, steps, _ = counted(net, x)
    assert steps > 0 and torch.equal(result, expected)


def test_code_is_kept_and_forgotten():
    torch.compiler.reset()
    assert _C._code_count() == 0
    function = torch.compile(lambda x: torch.relu(x * 2 + 1))
    function(values())
    function(values())
    assert _C._code_count() == 1
    for n in (9000, 16_384, 70_001):  # another size is the same chain
        function(values(shape=(n,)))
    assert _C._code_count() == 1
    torch.compiler.reset()
    assert _C._code_count() == 0
