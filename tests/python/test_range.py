"""Numbers at the ends of the range: what can be represented comes out right, on the way there
squares and sums may be as large as they like."""

import pytest

import rushlight as torch
from rushlight.nn import functional as F

WIDE = [torch.float32, torch.bfloat16, torch.float64]
# Powers of two, so that scaled inputs are exact and results may be compared with those of ordinary ones.
SIZES = {
    torch.float32: [2.0**66, 2.0**120, 2.0**125],
    torch.bfloat16: [2.0**66, 2.0**110, 2.0**120],
    torch.float64: [2.0**600, 2.0**1000, 2.0**1020],
}
CASES = [(dtype, size) for dtype in WIDE for size in SIZES[dtype]]
TINY = [(torch.float32, 2.0**-90), (torch.bfloat16, 2.0**-90)]


def ordinary(*sizes, dtype):
    torch.manual_seed(0)
    return torch.randn(*sizes).clamp(-2, 2).to(dtype)


def assert_scaled(found, expected, scale=1.0):
    """found is expected times a power of two."""
    assert found.dtype == expected.dtype
    digits = {torch.bfloat16: 0.01, torch.float32: 2e-6, torch.float64: 1e-13}[found.dtype]
    wanted = expected.double() * scale
    least = 2.0**-120 if found.dtype != torch.float64 else 2.0**-1000  # below, digits are missing
    torch.testing.assert_close(
        found.double(), wanted, rtol=digits, atol=digits * wanted.abs().max().item() + least
    )


@pytest.mark.parametrize("dim", [None, 0, 1, 2])
@pytest.mark.parametrize(("dtype", "size"), CASES + TINY, ids=str)
def test_standard_deviation(dtype, size, dim):
    x = ordinary(17, 6, 300, dtype=dtype)
    for t in (x, x.transpose(0, 2)):
        assert_scaled((t * size).std(dim), t.std(dim), size)
        spread, mean = torch.std_mean(t * size, dim)
        assert_scaled(spread, t.std(dim), size)
        assert_scaled(mean, t.mean() if dim is None else t.mean(dim), size)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("size", [2.0**60, 2.0**-60])
def test_variances_that_can_be_represented(dtype, size):
    x = ordinary(4000, 3, dtype=dtype)
    assert_scaled((x * size).var(0), x.var(0), size * size)
    assert_scaled(torch.var_mean(x * size, 0)[1], x.mean(0), size)


def test_sums_of_large_equal_numbers_have_a_mean():
    for dtype, most in (
        (torch.float32, 3e38),
        (torch.bfloat16, 2.0**127),
        (torch.float64, 1.5e308),
    ):
        x = torch.full((100, 7), most, dtype=dtype)
        for dim in (0, 1):
            spread, mean = torch.var_mean(x, dim)
            assert (mean - most).abs().max().item() <= most * 1e-6
            assert spread.isfinite().all()
    assert torch.tensor([1e20, -1e20]).var().item() == float("inf")
    assert torch.tensor([1.0, float("inf")]).std().isnan()
    assert torch.tensor([1.0, float("nan")], dtype=torch.float64).std().isnan()


NORMS = {
    "layer_norm": lambda x, w, b: F.layer_norm(x, x.shape[1:], w.view(6, 1).expand(6, x.shape[2]), b.view(6, 1).expand(6, x.shape[2])),
    "layer_norm, plain": lambda x, w, b: F.layer_norm(x, x.shape[2:]) * w.view(6, 1) + b.view(6, 1),
    "rms_norm": lambda x, w, b: F.rms_norm(x, x.shape[1:], w.view(6, 1).expand(6, x.shape[2])) + b.view(6, 1),
    "group_norm": lambda x, w, b: F.group_norm(x, 2, w, b),
    "instance_norm": lambda x, w, b: F.instance_norm(x, None, None, w, b),
    "batch_norm": lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
    "batch_norm, rows": lambda x, w, b: F.batch_norm(x.transpose(1, 2).reshape(-1, 6), None, None, w, b, True),
    "normalize": lambda x, w, b: F.normalize(x, dim=2) * w.view(6, 1) + b.view(6, 1),
}  # fmt: skip


@pytest.mark.parametrize(("dtype", "size"), CASES, ids=str)
@pytest.mark.parametrize("name", NORMS)
def test_norms(name, dtype, size):
    f = NORMS[name]

    def run(factor):
        x = (ordinary(5, 6, 40, dtype=dtype) * factor).requires_grad_()
        w = (1 + ordinary(6, dtype=dtype) / 4).requires_grad_()
        b = ordinary(6, dtype=dtype).requires_grad_()
        y = f(x, w, b)
        g = ordinary(*reversed(y.shape), dtype=dtype).permute(*reversed(range(y.dim())))
        return y.detach(), *torch.autograd.grad(y, (x, w, b), g)

    y, dx, dw, db = run(size)
    base = 2.0**30  # so large that eps is nothing beside the variance
    expected = run(base)
    assert_scaled(y, expected[0])
    assert_scaled(dw, expected[2])
    assert_scaled(db, expected[3])
    assert_scaled(dx * (size / base), expected[1])  # the slope shrinks as elements grow


def test_running_statistics_of_large_numbers():
    x = torch.tensor([[1e19, 1.0], [-1e19, 3.0], [1e19, 5.0], [-1e19, 7.0]])
    mean, var = torch.zeros(2), torch.ones(2)
    y = F.batch_norm(x * 1.0, mean, var, training=True, momentum=1.0)
    assert y[:, 0].tolist() == [1, -1, 1, -1]
    assert mean.tolist() == [0, 4]
    torch.testing.assert_close(var, x.double().var(0).float())


@pytest.mark.parametrize(("dtype", "size"), CASES, ids=str)
def test_lengths_and_distances(dtype, size):
    x = ordinary(7, 30, dtype=dtype)
    y = ordinary(30, 5, dtype=dtype).t()
    large, other = x * (size / 64), y * (size / 64)
    scale = size / 64
    assert_scaled(large.norm(dim=1), x.norm(dim=1), scale)
    assert_scaled(large.norm(dim=0), x.norm(dim=0), scale)
    assert_scaled(torch.linalg.vector_norm(large), torch.linalg.vector_norm(x), scale)
    assert_scaled(torch.cdist(large, other), torch.cdist(x, y), scale)
    assert_scaled(torch.pdist(large), torch.pdist(x), scale)
    assert_scaled(
        F.pairwise_distance(large[:5], other, eps=0), F.pairwise_distance(x[:5], y, eps=0), scale
    )
    assert_scaled(torch.renorm(large, 2, 0, 1.0), torch.renorm(x * 2.0**60, 2, 0, 1.0))


def test_distances_of_small_numbers():
    x = ordinary(7, 30, dtype=torch.float32)
    assert_scaled(torch.cdist(x * 2.0**-90, x[:3] * 2.0**-90) * 2.0**90, torch.cdist(x, x[:3]))
    assert (torch.cdist(x, x).diagonal() == 0).all()
