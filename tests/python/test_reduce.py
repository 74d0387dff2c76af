"""Reductions, scans, softmax: accuracy, layouts, NaN, ties, empty tensors, thread counts."""

import math

import numpy as np
import pytest

import rushlight as torch

NAN, INF = float("nan"), float("inf")
LAYOUTS = {
    "rows": lambda t: t,
    "transposed": lambda t: t.t().contiguous().t(),
    "strided": lambda t: torch.stack((t, t), -1).reshape(t.shape[0], -1)[:, ::2],
    "reversed_dims": lambda t: t.clone().as_strided(t.shape, (1, t.shape[0])).copy_(t),
}


def random(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.fixture
def threads():
    """Restores the number of threads."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "shape", [(3, 5), (40, 2000), (2000, 40), (1, 70000), (70000, 3), (130, 130)]
)
@pytest.mark.parametrize("dim", [None, 0, 1])
def test_every_path_of_the_driver(layout, shape, dim):
    x = random(*shape)
    t = LAYOUTS[layout](torch.tensor(x))
    for name, reference in {
        "sum": np.sum,
        "mean": np.mean,
        "amax": np.max,
        "amin": np.min,
        "argmax": np.argmax,
        "argmin": np.argmin,
        "var": lambda a, axis: np.var(a, axis=axis, ddof=1 if a.size > 1 else 0),
    }.items():
        if name == "var" and (shape[0] == 1 and dim == 0):
            continue
        args = () if dim is None else (dim,)
        actual = getattr(t, name)(*args).numpy()
        np.testing.assert_allclose(actual, reference(x, axis=dim), rtol=1e-12, atol=1e-12)
    axis = (0, 1) if dim is None else dim
    np.testing.assert_allclose(
        t.logsumexp(axis).numpy(), np.log(np.exp(x).sum(axis=axis)), rtol=1e-12, atol=1e-13
    )
    np.testing.assert_allclose(
        t.norm(3, dim).numpy(), (np.abs(x) ** 3).sum(axis=dim) ** (1 / 3), rtol=1e-12
    )


def test_kept_dimension_between_reduced_ones():
    x = random(6, 7, 300)
    np.testing.assert_allclose(torch.tensor(x).sum((0, 2)).numpy(), x.sum((0, 2)), rtol=1e-12)
    np.testing.assert_allclose(
        torch.tensor(x).permute(2, 0, 1).var((0, 1)).numpy(), x.var((2, 0), ddof=1), rtol=1e-12
    )
    wide = torch.tensor(x[:, :1, :1]).expand(6, 7, 300)
    np.testing.assert_allclose(wide.sum((1, 2)).numpy(), x[:, 0, 0] * 2100, rtol=1e-12)


def test_float32_sums_are_accurate():
    x = random(10_000_019, dtype=np.float32) + np.float32(1)
    exact = x.sum(dtype=np.float64)
    assert abs(torch.from_numpy(x).sum().item() - exact) <= 1e-6 * abs(exact)
    columns = torch.from_numpy(x[:10_000_000].reshape(1_000_000, 10)).sum(0).double().numpy()
    np.testing.assert_allclose(
        columns, x[:10_000_000].reshape(-1, 10).sum(0, dtype=np.float64), rtol=1e-6
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_sums_round_once(dtype):
    t = torch.full((5000,), 0.1, dtype=dtype)
    assert t.sum().item() == (t.double().sum()).to(dtype).item()
    assert t.reshape(5000, 1).expand(5000, 20).sum(0)[3].item() == t.double().sum().to(dtype).item()


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
def test_variance_far_from_zero(offset):
    x = (random(100_000) + offset).astype(np.float32)
    t = torch.from_numpy(x)
    expected = x.astype(np.float64).var(ddof=1)
    assert t.var().item() == pytest.approx(expected, rel=1e-5)
    assert t.reshape(-1, 50).var(0).double().mean().item() == pytest.approx(
        x.reshape(-1, 50).astype(np.float64).var(0, ddof=1).mean(), rel=1e-5
    )


@pytest.mark.parametrize("threads_used", [2, 3, 5])
@pytest.mark.parametrize(
    "shape, dim",
    [((300_001,), 0), ((3, 200_000), 1), ((200_000, 3), 0), ((5000, 700), 0), ((700, 5000), 1)],
)
def test_thread_count_changes_no_bit(threads, threads_used, shape, dim):
    t = torch.from_numpy(random(*shape, dtype=np.float32))
    functions = [
        lambda: t.sum(dim),
        lambda: t.var(dim),
        lambda: t.logsumexp(dim),
        lambda: t.softmax(dim),
        lambda: t.cumsum(dim),
        lambda: t.norm(3, dim),
        lambda: t.max(dim)[1],
        lambda: t.sum(),
    ]
    torch.set_num_threads(1)
    alone = [f() for f in functions]
    torch.set_num_threads(threads_used)
    for f, expected in zip(functions, alone, strict=True):
        assert torch.equal(f(), expected)


def test_nan_wins_and_first_of_equals():
    t = torch.tensor([[1.0, NAN, 3.0, NAN], [2.0, 2.0, 1.0, 2.0]])
    assert math.isnan(t.max().item()) and math.isnan(t.amin().item())
    assert t.argmax(1).tolist() == [1, 0] and t.argmin(1).tolist() == [1, 2]
    values, indices = t.max(0)
    assert indices.tolist() == [1, 0, 0, 0] and math.isnan(values[1].item())
    long = torch.zeros(5000)
    long[[1500, 4000]] = 7.0
    assert long.argmax().item() == 1500
    long[4500] = NAN
    assert long.argmax().item() == 4500
    assert torch.zeros(70, 40).argmax(0).tolist() == [0] * 40


@pytest.mark.parametrize(
    "dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool]
)
def test_integer_results(dtype):
    t = torch.tensor([[1, 0, 3], [2, 5, 0]]).to(dtype)
    assert t.sum().dtype is torch.int64 and t.prod().dtype is torch.int64
    assert t.max().dtype is dtype and t.any().item() is not False
    assert t.sum(0, dtype=torch.float32).dtype is torch.float32
    assert t.count_nonzero(0).tolist() == [2, 1, 1]


def test_nothing_to_reduce():
    t = torch.zeros(0, 3)
    assert t.sum(0).tolist() == [0, 0, 0] and t.prod(0).tolist() == [1, 1, 1]
    assert t.sum(1).shape == (0,) and t.max(1)[0].shape == (0,)
    assert all(math.isnan(v) for v in t.mean(0).tolist()) and math.isnan(
        torch.zeros(0).var().item()
    )
    assert t.logsumexp(0).tolist() == [-INF] * 3
    assert t.any().item() is False and t.all().item() is True
    assert torch.ones(1).var().isnan().item()


def test_norm_does_not_overflow_early():
    assert torch.tensor([3e30, 4e30]).norm().item() == pytest.approx(5e30, rel=1e-6)
    assert torch.tensor([3e-30, 4e-30]).norm().item() == pytest.approx(5e-30, rel=1e-6)
    assert (
        torch.tensor([1.0, -5.0]).norm(INF).item() == 5
        and torch.tensor([1.0, -5.0]).norm(-INF).item() == 1
    )
    assert torch.tensor([3 + 4j, 0j]).norm().item() == pytest.approx(5)


def test_complex_sums_and_spread():
    z = random(400) + 1j * random(400, seed=1)
    t = torch.tensor(z)
    assert t.sum().item() == pytest.approx(z.sum())
    assert t.mean().item() == pytest.approx(z.mean())
    assert t.var().item() == pytest.approx(z.var(ddof=1))


@pytest.mark.parametrize("dim", [0, 1])
def test_softmax_of_extremes(dim):
    t = torch.tensor([[1e4, -1e4, 0.0], [1e4, INF, -INF]])
    t = t if dim == 1 else t.t()
    p = t.softmax(dim) if dim == 1 else t.softmax(dim).t()
    assert p[0].tolist() == [1, 0, 0] and p[1].isnan().any()
    assert torch.tensor([-INF, -INF]).softmax(0).isnan().all()
    assert torch.tensor([-INF, 0.0]).log_softmax(0).tolist() == [-INF, 0]


@pytest.mark.parametrize(
    "shape, dim", [((7, 3000), 1), ((3000, 7), 0), ((4, 33, 50), 1), ((5, 1), 1)]
)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_against_numpy(shape, dim, name):
    x = random(*shape)
    e = np.exp(x - x.max(axis=dim, keepdims=True))
    p = e / e.sum(axis=dim, keepdims=True)
    expected = p if name == "softmax" else np.log(p)
    np.testing.assert_allclose(getattr(torch.tensor(x), name)(dim).numpy(), expected, rtol=1e-11)
    np.testing.assert_allclose(
        getattr(torch.tensor(x, dtype=torch.float32), name)(dim).numpy(),
        expected,
        rtol=2e-5,
        atol=1e-6,
    )


@pytest.mark.parametrize("n", [1, 7, 16, 1000, 70_000, 200_000])
def test_scans(n):
    x = random(n)
    np.testing.assert_allclose(torch.tensor(x).cumsum(0).numpy(), x.cumsum(), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        torch.tensor(x).reshape(n, 1).expand(n, 5).cumsum(0)[:, 2].numpy(), x.cumsum(), atol=1e-9
    )
    ones = torch.ones(n, dtype=torch.int8)
    assert ones.cumsum(0)[-1].item() == n
    values, indices = torch.tensor(x).cummax(0)
    np.testing.assert_array_equal(values.numpy(), np.maximum.accumulate(x))
    np.testing.assert_array_equal(x[indices.numpy()], values.numpy())


def test_scan_in_place_and_out():
    t = torch.arange(4.0)
    address = t.data_ptr()
    assert t.cumsum_(0).tolist() == [0, 1, 3, 6] and t.data_ptr() == address
    out = torch.empty(4)
    assert torch.cumsum(torch.ones(4), 0, out=out) is out and out.tolist() == [1, 2, 3, 4]


def test_more_dimensions_than_usual():
    t = torch.ones([1] * 60 + [3, 2])
    assert t.sum().item() == 6 and t.sum(60).shape[-1] == 2


def test_logsumexp_of_nothing_but_minus_infinity():
    inf = float("inf")
    assert torch.logsumexp(torch.tensor([-inf, -inf]), 0).item() == -inf
    assert torch.logsumexp(torch.tensor([-inf, inf]), 0).item() == inf
