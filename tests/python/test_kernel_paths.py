"""Kernels that choose a way by size or layout: each way against NumPy, with equal bits on one thread and on two."""

import math

import numpy as np
import pytest

import rushlight as torch
from rushlight.nn import functional as F

RNG = np.random.default_rng(0)


def on_threads(f):
    """The result of f on two threads; that on one must have the same bits."""
    before = torch.get_num_threads()
    results = []
    for n in (1, 2):
        torch.set_num_threads(n)
        results.append(np.array(f().numpy()))
    torch.set_num_threads(before)
    assert results[0].tobytes() == results[1].tobytes()
    return results[1]


def softmax(x, axis, log):
    with np.errstate(invalid="ignore"):
        e = np.exp(x - x.max(axis, keepdims=True))
        return np.log(e / e.sum(axis, keepdims=True)) if log else e / e.sum(axis, keepdims=True)


# Rows of less than a vector, of vectors and a rest, by chunks; tiles of columns, and columns too long for one.
SOFTMAX = [
    ((300, 7), 1),
    ((64, 300), 1),
    ((3, 70_001), 1),
    ((300, 70), 0),
    ((2, 70, 300), 1),
    ((5000, 37), 0),
    ((2, 3000, 5), 1),
]


@pytest.mark.parametrize("shape, dim", SOFTMAX)
@pytest.mark.parametrize("log", [False, True])
def test_softmax(shape, dim, log):
    x = (RNG.standard_normal(shape) * 3).astype(np.float32)
    t = torch.tensor(x)
    y = on_threads(lambda: t.log_softmax(dim) if log else t.softmax(dim))
    np.testing.assert_allclose(y, softmax(x.astype(np.float64), dim, log), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("shape, dim", SOFTMAX)
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_softmax_backward(shape, dim, log, dtype):
    x = torch.tensor(RNG.standard_normal(shape).astype(np.float32)).to(dtype)
    g = torch.tensor(RNG.standard_normal(shape).astype(np.float32)).to(dtype)

    def gradient():
        leaf = x.clone().requires_grad_()
        (leaf.log_softmax(dim) if log else leaf.softmax(dim)).backward(g)
        return leaf.grad.float()

    y = softmax(x.double().numpy(), dim, False)
    grad = g.double().numpy()
    sums = (grad if log else grad * y).sum(dim, keepdims=True)
    expected = grad - y * sums if log else y * (grad - sums)
    scale = 1e-4 if dtype == torch.float32 else 4e-2
    np.testing.assert_allclose(
        on_threads(gradient), expected, rtol=scale, atol=scale * np.abs(sums).max() * y.max() + 1e-6
    )


@pytest.mark.parametrize("shape, dim", SOFTMAX)
def test_softmax_of_infinities_and_nan(shape, dim):
    x = np.moveaxis(RNG.standard_normal(shape).astype(np.float32), dim, 0).copy()
    x.reshape(x.shape[0], -1)[: x.shape[0] // 2, 0] = -math.inf  # half a line: zeros
    x.reshape(x.shape[0], -1)[:, 1] = -math.inf
    x.reshape(x.shape[0], -1)[-1, 2] = math.nan
    x = np.moveaxis(x, 0, dim)
    y = on_threads(lambda: torch.tensor(x).softmax(dim))
    np.testing.assert_allclose(y, softmax(x.astype(np.float64), dim, False), rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
@pytest.mark.parametrize("n", [3, 31, 64, 65, 1000, 5000])
def test_extremes_at_every_place(dtype, n):
    x = (RNG.standard_normal((40, n)) * 30).astype(dtype)
    for row in range(40):
        x[row, RNG.integers(n)] = 120 if dtype != "uint8" else 255
    t = torch.tensor(x)
    np.testing.assert_array_equal(t.amax(1).numpy(), x.max(1))
    np.testing.assert_array_equal(t.amin(1).numpy(), x.min(1))
    np.testing.assert_array_equal(t.argmax(1).numpy(), x.argmax(1))
    np.testing.assert_array_equal(t.argmin(1).numpy(), x.argmin(1))
    if dtype.startswith("float"):
        for row in range(40):
            x[row, RNG.integers(n)] = math.nan
        t = torch.tensor(x)
        assert np.isnan(t.amax(1).numpy()).all() and np.isnan(t.amin(1).numpy()).all()
        np.testing.assert_array_equal(t.argmax(1).numpy(), np.isnan(x).argmax(1))


@pytest.mark.parametrize("n", [1, 7, 8, 9, 100, 3001, 200_000])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_cumsum(n, dtype):
    x = (RNG.standard_normal((2, n)) * 10).astype(dtype)
    y = on_threads(lambda: torch.tensor(x).cumsum(1))
    expected = np.cumsum(x, 1, dtype="int64" if dtype == "int32" else "float64")
    np.testing.assert_allclose(y, expected, rtol=1e-6, atol=1e-3 if dtype == "float32" else 1e-9)


@pytest.mark.parametrize("n", [5, 100, 4097])
def test_norm_in_double(n):
    x = (RNG.standard_normal((50, n)) * 1e25).astype(np.float32)  # squares overflow a float
    expected = np.linalg.norm(x.astype(np.float64), axis=1)
    np.testing.assert_allclose(torch.tensor(x).norm(dim=1).numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(torch.tensor(x.T.copy()).norm(dim=0).numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("inner", [1, 2, 3, 4, 7, 8, 16, 31, 32, 33, 64, 100, 300])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64", "complex128"])
def test_copies_of_rows(inner, dtype):
    x = RNG.integers(0, 200, (6, 5, 2 * inner)).astype(dtype)
    t = torch.tensor(x)
    for view, array in (
        (t[:, :, :inner].permute(1, 0, 2), x[:, :, :inner].transpose(1, 0, 2)),
        (t[:, 1:4, ::2], x[:, 1:4, ::2]),
        (t.permute(2, 0, 1)[::3], x.transpose(2, 0, 1)[::3]),
        (t[1:2].expand(4, 5, 2 * inner), np.broadcast_to(x[1:2], (4, 5, 2 * inner))),
    ):
        np.testing.assert_array_equal(view.contiguous().numpy(), array)
        target = torch.zeros(*array.shape[:-1], 3 * array.shape[-1], dtype=t.dtype)
        for step in (1, 2, 3):
            target[..., : step * array.shape[-1] : step] = view
            np.testing.assert_array_equal(
                target[..., : step * array.shape[-1] : step].numpy(), array
            )


@pytest.mark.parametrize("columns", [16, 48, 64, 100, 256])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
def test_arithmetic_on_parts_of_rows(columns, dtype):
    x = RNG.integers(0, 90, (700, 300)).astype(dtype)
    t = torch.tensor(x)
    a, b = x[:, :columns], x[:, 300 - columns :]
    s, u = t[:, :columns], t[:, 300 - columns :]
    np.testing.assert_array_equal(on_threads(lambda: s + u), a + b)
    np.testing.assert_array_equal(on_threads(lambda: s + u[:1]), a + b[:1])
    np.testing.assert_array_equal(on_threads(lambda: s + u[:, :1]), a + b[:, :1])
    np.testing.assert_array_equal(on_threads(lambda: s > 40), a > 40)
    wide = torch.tensor(x)
    wide[:, :columns] += 3
    np.testing.assert_array_equal(wide.numpy()[:, :columns], a + np.array(3, dtype))
    np.testing.assert_array_equal(wide.numpy()[:, columns:], x[:, columns:])


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64", "complex128"])
def test_masked_fill(dtype):
    x = RNG.integers(0, 2, (70, 33)).astype(dtype)
    mask = RNG.random((70, 33)) < 0.3
    expected = np.where(mask, np.array(1, dtype), x)
    t = torch.tensor(x)
    np.testing.assert_array_equal(t.masked_fill(torch.tensor(mask), 1).numpy(), expected)
    turned = t.t()
    turned.masked_fill_(torch.tensor(mask.T.copy()), 1)
    np.testing.assert_array_equal(t.numpy(), expected)


@pytest.mark.parametrize("step", [1, 2])
def test_gather_and_scatter_along_rows(step):
    x = RNG.standard_normal((50, 40)).astype(np.float32)
    index = RNG.integers(0, 40 // step, (50, 700))
    t = torch.tensor(x)[:, ::step]
    i = torch.tensor(index)
    np.testing.assert_array_equal(
        on_threads(lambda: t.gather(1, i)), np.take_along_axis(x[:, ::step], index, 1)
    )
    source = RNG.integers(0, 9, (50, 700)).astype(np.float32)
    expected = np.zeros((50, 40 // step), np.float32)
    for row in range(50):
        np.add.at(expected[row], index[row], source[row])
    total = torch.zeros(50, 40)[:, ::step]
    np.testing.assert_array_equal(total.scatter_add(1, i, torch.tensor(source)).numpy(), expected)
    index[49, 699] = 40 // step
    with pytest.raises(RuntimeError, match="out of bounds"):
        t.gather(1, torch.tensor(index))
    with pytest.raises(RuntimeError, match="out of bounds"):
        total.scatter_add_(1, torch.tensor(index), torch.tensor(source))


@pytest.mark.parametrize(
    "low, high",
    [(0, 1), (-5, 300), (-(2**31), 2**31 - 1), (2**62, 2**62 + 70_000), (-(2**63), 2**63 - 1)],
)
@pytest.mark.parametrize("n", [40, 3000, 200_000])
def test_integers_of_any_range(low, high, n):
    x = RNG.integers(low, high, n, endpoint=True)
    t = torch.tensor(x)
    for descending in (False, True):
        values, indices = t.sort(descending=descending, stable=True)
        order = np.argsort(x, kind="stable")
        if descending:
            order = n - 1 - np.argsort(x[::-1], kind="stable")[::-1]
        np.testing.assert_array_equal(indices.numpy(), order)
        np.testing.assert_array_equal(values.numpy(), x[order])
    got = torch.unique(t, return_inverse=True, return_counts=True)
    for mine, theirs in zip(
        got, np.unique(x, return_inverse=True, return_counts=True), strict=True
    ):
        np.testing.assert_array_equal(mine.numpy(), theirs)


def test_unique_keeps_every_nan():
    x = torch.tensor([math.nan, 1.0, -0.0, math.nan, 0.0, 1.0])
    values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
    assert values.tolist()[:2] == [0.0, 1.0] and all(math.isnan(v) for v in values.tolist()[2:])
    assert counts.tolist() == [2, 2, 1, 1]
    assert inverse.tolist() == [2, 1, 0, 3, 0, 1]


def test_erf():
    x = np.concatenate(
        [np.linspace(-6, 6, 20_001), [0.0, -0.0, math.inf, -math.inf, 1e-40, 3.9999, 4.0]]
    ).astype(np.float32)
    y = torch.tensor(x).erf().numpy()
    np.testing.assert_allclose(y, [math.erf(v) for v in x.tolist()], rtol=5e-7, atol=1e-44)
    assert (np.signbit(y) == np.signbit(x)).all() and np.abs(y).max() == 1
    assert torch.tensor([math.nan] * 20).erf().isnan().all()


def test_exp_at_the_ends():
    x = [-math.inf, -1000.0, -104.0, -103.5, -87.4, -1e-40, 0.0, 88.7, 88.73, 89.0, 1e30, math.inf]
    with np.errstate(over="ignore", under="ignore"):
        expected = np.exp(np.array(x, np.float32).astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(torch.tensor(x).exp().numpy(), expected, rtol=3e-7, atol=1.5e-45)
    assert torch.tensor([math.nan]).exp().isnan().all()


def test_conversions_past_the_caches():
    x = torch.arange(12_000_000, dtype=torch.float32)
    np.testing.assert_array_equal(x.to(torch.float64).numpy(), x.numpy().astype(np.float64))


@pytest.mark.parametrize("failing", [0, 30, 63])
def test_the_first_error_is_reported(failing):
    index = np.zeros((64, 16384), np.int64)
    index[failing:, 5] = 100 + np.arange(64 - failing)
    with pytest.raises(RuntimeError, match="index 100 is out of bounds"):
        torch.zeros(64, 8).gather(1, torch.tensor(index))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_power_of_every_sign(dtype):
    ends = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        2.0,
        -2.0,
        3.0,
        -3.0,
        0.5,
        -0.5,
        2.5,
        -2.5,
        math.inf,
        -math.inf,
        math.nan,
    ]
    ends += [1e30, -1e30, 8388609.0, -8388609.0, 1e10, 7.0, -7.0]
    x, y = (a.ravel().astype(dtype) for a in np.meshgrid(ends, ends))
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.float64), y.astype(np.float64)).astype(dtype)
    got = torch.tensor(x).pow(torch.tensor(y)).numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-5)
    assert (np.signbit(got) == np.signbit(expected))[~np.isnan(expected)].all()


@pytest.mark.parametrize("dim", [0, 1])
def test_bytes_that_are_bools(dim):
    x = RNG.random((300, 70)) < 0.5
    t = torch.tensor(x)
    np.testing.assert_array_equal((~t).numpy(), ~x)
    np.testing.assert_array_equal((t ^ ~t.flip(dim)).numpy(), x ^ ~np.flip(x, dim))
    for dtype in (torch.int32, torch.int8, torch.float16, torch.float64, torch.complex64):
        np.testing.assert_array_equal(t.to(dtype).numpy(), x.astype(str(dtype).split(".")[1]))


# ---- division ----


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8])
def test_quotients_of_integers_are_exact(dtype):
    ends = np.iinfo(dtype)
    n = 20_001
    x, y = (RNG.integers(ends.min, ends.max, n, dtype=dtype, endpoint=True) for _ in range(2))
    y >>= RNG.integers(0, ends.bits, n).astype(dtype)  # of every size
    x[::3] = y[::3] * RNG.integers(-3, 4, x[::3].size).astype(dtype) if ends.min < 0 else y[::3]
    x[::7], x[1::7], y[2::7] = ends.max, ends.min, ends.max
    y[y == 0] = 1
    y[(y == -1) & (x == ends.min)] = 1  # the quotient that does not exist
    a, b = torch.tensor(x), torch.tensor(y)
    assert (on_threads(lambda: a // b) == x // y).all()
    assert (on_threads(lambda: a % b) == x % y).all()
    assert (on_threads(lambda: a.fmod(b)) == np.fmod(x, y)).all()
    assert (on_threads(lambda: a[::2] // b[::2]) == x[::2] // y[::2]).all()
    truncated = torch.div(a, b, rounding_mode="trunc").numpy()
    assert (truncated == (x - np.fmod(x, y)) // y).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("spread", [1, 20, 60])
def test_remainders_of_floating_point_numbers_are_exact(dtype, spread):
    n = 10_001
    x, y = (
        (RNG.standard_normal(n) * 2.0 ** RNG.integers(-spread, spread, n)).astype(dtype)
        for _ in range(2)
    )
    x[::5] = y[::5] * RNG.integers(-9, 9, x[::5].size).astype(dtype)
    x[::17], x[1::17], x[2::17], x[3::17] = 0.0, -0.0, math.inf, math.nan
    y[4::17], y[5::17], y[6::17], y[7::17] = 0.0, math.inf, -math.inf, math.nan
    with np.errstate(invalid="ignore"):
        expected = np.fmod(x, y)
    a, b = torch.tensor(x), torch.tensor(y)
    rest = on_threads(lambda: a.fmod(b))
    np.testing.assert_array_equal(rest, expected)
    number = ~np.isnan(expected)
    assert (np.signbit(rest) == np.signbit(expected))[number].all()
    np.testing.assert_array_equal(a[::3].fmod(b[::3]).numpy(), expected[::3])


@pytest.mark.parametrize("shape", [(10,), (70_000,), (200, 300)])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64])
def test_a_zero_divisor_is_found_anywhere(shape, dtype):
    for place in (0, 3, -1):
        y = torch.ones(shape, dtype=dtype)
        y.view(-1)[place] = 0
        for divisor in (y, y.t() if y.dim() == 2 else y):
            with pytest.raises(RuntimeError, match="ZeroDivisionError"):
                torch.ones_like(divisor) // divisor


# ---- sums ----


@pytest.mark.parametrize("n", [1, 3, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 1000, 2048, 2049])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_sums_of_rows(n, dtype):
    x = (RNG.standard_normal((130, n)) * 50).astype(dtype)
    t = torch.tensor(x)
    total = on_threads(lambda: t.sum(1))
    np.testing.assert_allclose(total, x.astype(np.float64).sum(1), rtol=1e-4, atol=1e-2)
    apart = torch.tensor(np.repeat(x, 2, axis=0))[::2]  # rows at a distance
    assert (apart.sum(1).numpy() == total).all()
    assert (torch.stack([row.sum() for row in t]).numpy() == total).all()
    assert (t.view(13, 10, n).sum(2).numpy().reshape(-1) == total).all()


SHORT = [1, 2, 3, 7, 16, 17, 24, 25, 32, 33, 64, 65]


@pytest.mark.parametrize("n", SHORT)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_exponentials_of_short_rows(n, dtype):
    """A row gives the same bits alone and among others, and those of a long computation nearly."""
    x = torch.tensor(RNG.standard_normal((131, n)) * 4).to(dtype)
    x[5] = -torch.inf
    x[6, -1] = torch.inf
    x[7, 0] = torch.nan
    g = torch.tensor(RNG.standard_normal((131, n))).to(dtype)
    rtol, atol = {2: (0.01, 0.04), 4: (1e-5, 1e-5), 8: (1e-12, 1e-12)}[dtype.itemsize]
    close = {"rtol": rtol, "atol": atol}
    exact = x.double().numpy()
    with np.errstate(invalid="ignore", divide="ignore"):
        top = exact.max(1, keepdims=True)
        e = np.exp(exact - top)
        soft = e / e.sum(1, keepdims=True)
        log_soft = exact - top - np.log(e.sum(1, keepdims=True))
    for function, expected in ((F.softmax, soft), (F.log_softmax, log_soft)):
        found = torch.from_numpy(on_threads(lambda f=function: f(x, 1).double()))
        finite = np.isfinite(expected)
        np.testing.assert_allclose(found.numpy()[finite], expected[finite], **close)
        assert (np.isnan(found.numpy()) == np.isnan(expected)).all()
        for i in (0, 5, 6, 7, 130):
            alone = function(x[i], 0).double()
            assert torch.equal(alone.nan_to_num(7), found[i].nan_to_num(7))
    a = x[8:].clone().requires_grad_()
    soft, log_soft = F.softmax(a, 1), F.log_softmax(a, 1)
    (grad,) = torch.autograd.grad(soft, a, g[8:])
    y, d = soft.detach().double(), g[8:].double()
    np.testing.assert_allclose(grad.double(), y * (d - (d * y).sum(1, keepdim=True)), **close)
    (grad,) = torch.autograd.grad(log_soft, a, g[8:])
    expected = d - log_soft.detach().double().exp() * d.sum(1, keepdim=True)
    np.testing.assert_allclose(grad.double(), expected, **close)


@pytest.mark.parametrize("columns", [1, 2, 3, 10, 15, 16])
@pytest.mark.parametrize("rows", [2, 70, 2100, 40000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_few_columns(columns, rows, dtype):
    x = torch.tensor(RNG.standard_normal((2, rows, columns))).to(dtype)
    exact = x.double().numpy()
    close = {
        "rtol": 1e-2 if dtype.itemsize == 2 else 1e-4,
        "atol": 1e-1 if dtype.itemsize == 2 else 1e-3,
    }
    np.testing.assert_allclose(on_threads(lambda: x.sum(1).double()), exact.sum(1), **close)
    assert (on_threads(lambda: x.amax(1).double()) == exact.max(1)).all()
    assert (on_threads(lambda: x.argmax(1)) == exact.argmax(1)).all()
    np.testing.assert_allclose(x.double().var(1).numpy(), exact.var(1, ddof=1), rtol=1e-9)
    e = np.exp(exact - exact.max(1, keepdims=True))
    soft = on_threads(lambda: F.softmax(x, 1).double())
    np.testing.assert_allclose(
        soft, e / e.sum(1, keepdims=True), rtol=0.02 if dtype.itemsize == 2 else 1e-4, atol=1e-6
    )


@pytest.mark.parametrize("n", SHORT)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int16, torch.float64, torch.int64])
def test_order_of_short_rows(n, dtype):
    x = torch.tensor(RNG.integers(-4, 4, (37, n))).to(dtype)  # many are equal
    plain = x.numpy()
    for descending in (False, True):
        values, at = x.sort(dim=1, descending=descending, stable=True)
        order = np.argsort(-plain.astype(np.float64) if descending else plain, 1, kind="stable")
        assert (at.numpy() == order).all()
        assert (values.numpy() == np.take_along_axis(plain, order, 1)).all()
    values, at = x.topk(max(1, n // 2), 1)
    assert (values.numpy() == -np.sort(-plain.astype(np.int64), 1)[:, : max(1, n // 2)]).all()
    assert torch.equal(x.gather(1, at), values)
    values, at = x.median(1)
    assert (values.numpy() == np.sort(plain, 1)[:, (n - 1) // 2]).all()
    assert torch.equal(x.gather(1, at[:, None])[:, 0], values)
    assert (x.kthvalue(n, 1)[0].numpy() == plain.max(1)).all()


@pytest.mark.parametrize("n", SHORT)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
def test_batches_of_short_sums(n, dtype):
    a = torch.tensor(RNG.integers(-3, 4, (150, 1, n))).to(dtype)
    b = torch.tensor(RNG.integers(-3, 4, (150, n, 1))).to(dtype)
    exact = np.einsum("bin,bnj->bij", a.double().numpy(), b.double().numpy())
    assert (on_threads(lambda: torch.bmm(a, b).double()) == exact).all()
    assert (
        torch.baddbmm(a[:, :, :1], a, b, beta=2).double().numpy()
        == 2 * a[:, :, :1].double().numpy() + exact
    ).all()


# ---- matrices ----


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 12, 16, 17])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("batch", [1, 3, 4, 50])
def test_small_matrices(n, dtype, batch):
    x = (RNG.standard_normal((batch, n, n)) + 2 * np.eye(n)).astype(dtype)
    b = RNG.standard_normal((batch, n, 3)).astype(dtype)
    a = torch.tensor(x)
    exact = x.astype(np.float64)
    scale = np.finfo(dtype).eps * 40 * np.linalg.cond(exact).max()
    inverse = on_threads(lambda: torch.linalg.inv(a))
    close = {"rtol": 0, "atol": scale * np.abs(np.linalg.inv(exact)).max()}
    np.testing.assert_allclose(inverse, np.linalg.inv(exact), **close)
    close["atol"] *= 10
    np.testing.assert_allclose(
        torch.linalg.solve(a, torch.tensor(b)).numpy(), np.linalg.solve(exact, b), **close
    )
    left = torch.linalg.solve(a, torch.tensor(b).mT, left=False).numpy()
    np.testing.assert_allclose(
        left, np.linalg.solve(exact.swapaxes(1, 2), b).swapaxes(1, 2), **close
    )
    det = np.linalg.det(exact)
    np.testing.assert_allclose(
        on_threads(lambda: torch.linalg.det(a)), det, rtol=scale, atol=scale * np.abs(det).max()
    )
    p, lower, upper = torch.linalg.lu(a)
    np.testing.assert_allclose((p @ lower @ upper).numpy(), x, atol=scale * np.abs(x).max())
    assert (torch.linalg.inv(a[-1]).numpy() == inverse[-1]).all()  # wherever it stands in a batch


def test_small_singular_matrices_are_named():
    a = torch.eye(3).repeat(6, 1, 1)
    a[4, 1, 1] = 0
    assert torch.linalg.inv_ex(a).info.tolist() == [0, 0, 0, 0, 2, 0]
    with pytest.raises(
        torch.linalg.LinAlgError, match=r"\(Batch element 4\): .* element 2 of the diagonal"
    ):
        torch.linalg.inv(a)
    with pytest.raises(torch.linalg.LinAlgError, match=r"\(Batch element 4\).*singular"):
        torch.linalg.solve(a, a)
    assert torch.linalg.det(a).tolist() == [1, 1, 1, 1, 0, 1]
    a[2, 0, 1] = math.nan
    assert math.isnan(torch.linalg.det(a @ a.mT)[2].item())


# ---- distances ----


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, math.inf])
@pytest.mark.parametrize(
    "rows, others, width", [(5, 3, 2), (70, 1, 9), (3, 300, 70), (130, 67, 65), (40, 40, 300)]
)
def test_distances(p, rows, others, width):
    x, y = RNG.standard_normal((rows, width)), RNG.standard_normal((others, width))
    y[0] = x[0]
    size = np.abs(x[:, None] - y)
    expected = {0.0: (size != 0).sum(-1), math.inf: size.max(-1)}.get(p)
    if expected is None:
        expected = (size**p).sum(-1) ** (1 / p)
    a, b = torch.tensor(x), torch.tensor(y)
    direct = {"compute_mode": "donot_use_mm_for_euclid_dist"}
    found = on_threads(lambda: torch.cdist(a, b, p, **direct))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert (torch.cdist(b, a, p, **direct).numpy() == found.T).all()
    assert (torch.cdist(a[1:3], b, p, **direct).numpy() == found[1:3]).all()
    own = on_threads(lambda: torch.cdist(a, a, p, **direct))
    assert (own == torch.cdist(a, a.clone(), p, **direct).numpy()).all()
    places = np.triu_indices(rows, 1)
    assert (torch.pdist(a, p).numpy() == own[places]).all()


# ---- transforms ----


@pytest.mark.parametrize("n", [64, 100, 128, 256, 512, 2048, 8192, 65536])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transforms_of_every_length(n, dtype):
    x = RNG.standard_normal((3, n)).astype(dtype)
    z = x + 1j * RNG.standard_normal((3, n)).astype(dtype)
    exact = z.astype(np.complex128)

    def close(t, expected):
        scale = np.finfo(dtype).eps * 8 * np.abs(expected).max()
        found = on_threads(lambda: torch.view_as_real(t()) if t().is_complex() else t())
        found = found[..., 0] + 1j * found[..., 1] if np.iscomplexobj(expected) else found
        np.testing.assert_allclose(found, expected, rtol=0, atol=scale)

    a, c = torch.tensor(x), torch.tensor(z)
    close(lambda: torch.fft.fft(c), np.fft.fft(exact))
    close(lambda: torch.fft.ifft(c, norm="ortho"), np.fft.ifft(exact, norm="ortho"))
    close(lambda: torch.fft.rfft(a), np.fft.rfft(x.astype(np.float64)))
    close(lambda: torch.fft.fft(a), np.fft.fft(x.astype(np.float64)))
    half = exact[:, : n // 2 + 1]
    close(lambda: torch.fft.irfft(c[:, : n // 2 + 1]), np.fft.irfft(half))
    whole = torch.fft.fft(c)
    assert torch.equal(torch.fft.fft(c[1]), whole[1])
    turned = torch.fft.fft(c.t().contiguous(), dim=0)  # bits do not depend on the layout
    assert torch.equal(turned.t(), whole) or (n & (n - 1)) != 0 or n < 128
    np.testing.assert_allclose(
        turned.t().numpy(), whole.numpy(), rtol=0, atol=np.finfo(dtype).eps * 200 * n**0.5
    )


# ---- images of bytes ----


def resized_exactly(x, size):
    """An antialiased bilinear resize of (C, H, W) bytes in exact arithmetic, rounded after each axis."""
    for axis, n in ((2, size[1]), (1, size[0])):
        m = x.shape[axis]
        reach = max(m / n, 1.0)
        weights = np.zeros((n, m))
        for i in range(n):
            centre = (i + 0.5) * m / n
            weights[i] = np.maximum(0, 1 - np.abs((np.arange(m) + 0.5 - centre) / reach))
        weights /= weights.sum(1, keepdims=True)
        x = np.moveaxis(np.tensordot(weights, x, (1, axis)), 0, axis)
        x = np.clip(np.floor(x + 0.5), 0, 255)
    return x


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5, 20])
@pytest.mark.parametrize("size", [(20, 31), (75, 90), (1, 1), (41, 33)])
@pytest.mark.parametrize("last", [False, True])
def test_resized_bytes(channels, size, last):
    x = RNG.integers(0, 256, (channels, 41, 67), dtype=np.uint8)
    t = torch.tensor(x)[None]
    t = t.contiguous(memory_format=torch.channels_last) if last else t
    y = on_threads(
        lambda: torch.nn.functional.interpolate(
            t, size=size, mode="bilinear", antialias=True
        ).contiguous()
    )
    assert np.abs(y[0].astype(int) - resized_exactly(x, size)).max() <= 1
    alone = torch.nn.functional.interpolate(
        t[:, :1].contiguous(), size=size, mode="bilinear", antialias=True
    )
    assert (alone.numpy()[0, 0] == y[0, 0]).all()


# ---- positions ----


def test_indices_of_any_layout():
    x = RNG.standard_normal((300, 40)).astype(np.float32)
    t = torch.tensor(x)
    i = RNG.integers(-300, 300, (5000, 3))
    j = RNG.integers(-40, 40, (5000, 2))
    rows, columns = torch.tensor(i)[:, 1], torch.tensor(j)[:, 0]
    assert (on_threads(lambda: t[rows, columns]) == x[i[:, 1], j[:, 0]]).all()
    wide = on_threads(lambda: t[rows.view(50, 100).t(), columns[:100, None]])
    assert (wide == x[i[:, 1].reshape(50, 100).T, j[:100, :1]]).all()
    assert (t.t()[columns, rows[0]].numpy() == x.T[j[:, 0], i[0, 1]]).all()
    for wrong in (300, -301, 2**62, -(2**63)):
        bad = rows.clone()
        bad[4321] = wrong
        with pytest.raises(
            IndexError, match=f"index {wrong} is out of bounds for dimension 0 with size 300"
        ):
            t[bad, columns]


@pytest.mark.parametrize("n", [1000, 150_000])
@pytest.mark.parametrize("high", [5, 1 << 20, (1 << 62) - 1])
def test_unique_integers(n, high):
    x = RNG.integers(-high, high, n)
    x[7] = -high
    t = torch.tensor(x)
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    assert (on_threads(t.unique) == values).all()
    found = torch.unique(t, return_counts=True)
    assert (found[0].numpy() == values).all() and (found[1].numpy() == counts).all()
    found = torch.unique(t.view(10, -1), return_inverse=True)
    assert (found[0].numpy() == values).all() and (
        found[1].numpy().reshape(-1) == inverse.reshape(-1)
    ).all()


@pytest.mark.parametrize("kind", ["wide", "few", "one far", "equal", "close"])
@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float32, np.float64])
def test_very_long_rows_sort_stably(kind, dtype):
    n = 300_000
    x = (RNG.standard_normal(n) * (100 if dtype == np.uint8 else 1e9)).astype(np.int64)
    x = {"few": x % 3, "equal": x * 0 + 7, "close": x % 1000 + 10**6}.get(kind, x).astype(dtype)
    if kind == "one far":
        x[1:] = x[1:] % 100
        x[0] = np.iinfo(dtype).max if np.issubdtype(dtype, np.integer) else 1e30
    t = torch.tensor(x)
    for descending in (False, True):
        order = on_threads(lambda d=descending: torch.sort(t, stable=True, descending=d).indices)
        key = -x.astype(np.float64) if descending else x
        assert (order == np.argsort(key, kind="stable")).all()
