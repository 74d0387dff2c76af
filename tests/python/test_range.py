"""Numbers at the ends of the range: what can be represented comes out right, on the way there
squares and sums may be as large as they like."""

import functools

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


# ---- norms of any order ----

ORDERS = [0.5, 1, 1.5, 2, 3, 4, 10, -1, -3]
# What the largest power of these has, no order above can represent; digits are all there.
SCALES = {
    torch.float32: [2.0**-110, 2.0**-70, 2.0**70, 2.0**110],
    torch.bfloat16: [2.0**-110, 2.0**70, 2.0**110],
    torch.float64: [2.0**-1000, 2.0**-530, 2.0**530, 2.0**1000],
    torch.complex64: [2.0**-110, 2.0**110],
    torch.complex128: [2.0**-1000, 2.0**1000],
}
SCALED = [(dtype, size) for dtype, sizes in SCALES.items() for size in sizes]


def away_from_zero(*sizes, dtype):
    """Numbers between 1/2 and 2, of both signs."""
    torch.manual_seed(0)
    x = torch.rand(*sizes, dtype=torch.float64) * 1.5 + 0.5
    x = x * torch.randint(0, 2, sizes).mul(2).sub(1)
    return (torch.complex(x, x.flip(0)) if dtype.is_complex else x).to(dtype)


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize(("dtype", "size"), SCALED, ids=str)
def test_norms_of_any_order(dtype, size, p):
    for sizes in ((7, 30), (30, 7), (3, 5000)):
        x = away_from_zero(*sizes, dtype=dtype)
        if p == 0.5:
            size = min(max(size, 2.0**-60), 2.0**60)  # these are far larger than their elements
        for dim in (None, 0, 1):
            ordinary = torch.linalg.vector_norm(x, p, dim)
            assert_scaled(torch.linalg.vector_norm(x * size, p, dim), ordinary, size)
        x = x.clone().requires_grad_()
        large = (x.detach() * size).requires_grad_()
        g = away_from_zero(sizes[0], dtype=x.abs().dtype)
        (expected,) = torch.autograd.grad(x.norm(p, 1), x, g)
        (found,) = torch.autograd.grad(large.norm(p, 1), large, g)
        assert found.isfinite().all()
        near = (
            0.02 if dtype == torch.bfloat16 else 1e-5 if x.abs().dtype == torch.float32 else 1e-12
        )
        assert (found - expected).abs().max() <= near * expected.abs().max()


@pytest.mark.parametrize("p", [2, 3, -1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_norms_of_rows_of_all_sizes(dtype, p):
    """A row has the norm that it has alone, and what is not finite stays."""
    x = away_from_zero(6, 40, dtype=dtype)
    small, large = (1e-30, 1e30) if dtype == torch.float32 else (1e-250, 1e250)
    x = x * torch.tensor([1, small, large, 0, 1, 1], dtype=dtype).unsqueeze(1)
    x[4, 3], x[5, 3] = float("inf"), float("nan")
    alone = torch.stack([row.norm(p) for row in x])
    torch.testing.assert_close(x.norm(p, 1), alone, rtol=1e-6, atol=0, equal_nan=True)
    assert alone[3] == 0 and alone[5].isnan()
    assert alone[4] == float("inf") or p < 0
    exact = (x[:3].double() / x[:3].double().abs().amax(1, True)).abs().pow(p).sum(1).pow(1 / p)
    exact = exact * x[:3].double().abs().amax(1)
    torch.testing.assert_close(alone[:3].double(), exact, rtol=1e-6, atol=0)


def test_second_derivatives_of_norms_of_any_order():
    for p in (1.5, 3, 4, -2):
        x = away_from_zero(3, 4, dtype=torch.float64).requires_grad_()
        assert torch.autograd.gradgradcheck(lambda x, p=p: x.norm(p, 1), x)
    zero = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    for p in (0.5, 1.5, 3, -2):
        (first,) = torch.autograd.grad(zero.norm(p), zero, create_graph=True)
        assert first.tolist() == [0, 0, 0]
        assert torch.autograd.grad(first.sum(), zero)[0].tolist() == [0, 0, 0]


@pytest.mark.parametrize("size", [2.0**-70, 2.0**70, 2.0**110])
def test_clipping_by_any_order(size):
    for p in (2.0, 3.0, 5.0):
        w = torch.nn.Parameter(torch.zeros(30))
        g = away_from_zero(30, dtype=torch.float32)
        w.grad = g * size
        found = torch.nn.utils.clip_grad_norm_([w], size / 4, norm_type=p)
        assert_scaled(found, g.norm(p), size)
        if size > 1:  # otherwise 1e-6 is added
            assert_scaled(w.grad, g / g.norm(p) / 4, size)


@pytest.mark.parametrize("size", [1.0, 1e150, 1e300])
@pytest.mark.parametrize("p", [2.0, 3.0, float("inf")])
def test_rows_of_tables_that_are_too_long(size, p):
    w = away_from_zero(4, 6, dtype=torch.float64) * size
    rows = F.embedding(torch.tensor([1, 3]), w, max_norm=size, norm_type=p)
    torch.testing.assert_close((rows / size).norm(p, 1), torch.ones(2).double(), rtol=1e-6, atol=0)


@pytest.mark.parametrize("p", [1.5, 3, 7])
@pytest.mark.parametrize(("dtype", "size"), [c for c in SCALED if not c[0].is_complex], ids=str)
def test_distances_of_any_order(dtype, size, p):
    size /= 8 if size > 1 else 1
    x, y = away_from_zero(5, 30, dtype=dtype), away_from_zero(19, 30, dtype=dtype).flip(1)
    assert_scaled(torch.cdist(x * size, y * size, p), torch.cdist(x, y, p), size)
    assert_scaled(torch.pdist(x * size, p), torch.pdist(x, p), size)
    far, apart = x * size, y[:5] * size
    if size > 1:
        assert_scaled(
            F.pairwise_distance(far, apart, p, eps=0), F.pairwise_distance(x, y[:5], p, eps=0), size
        )
        triplet = F.triplet_margin_loss(far, apart, far.flip(0), margin=size, p=p, eps=0)
        ordinary = F.triplet_margin_loss(x, y[:5], x.flip(0), margin=1.0, p=p, eps=0)
        assert_scaled(triplet, ordinary, size)
    assert_scaled(F.normalize(far, p, eps=0), F.normalize(x, p, eps=0))
    slopes = []
    for factor in (1, size):
        inputs = [(t * factor).requires_grad_() for t in (x, y)]
        distances = torch.cdist(*inputs, p)
        slopes.append(torch.autograd.grad(distances, inputs, torch.ones_like(distances)))
    near = 0.02 if dtype == torch.bfloat16 else 1e-5 if dtype == torch.float32 else 1e-12
    for found, expected in zip(slopes[1], slopes[0], strict=True):
        assert (found - expected).abs().max() <= near * 20 * expected.abs().max()


@pytest.mark.parametrize("size", [2.0**-90, 2.0**-70, 2.0**70, 2.0**110])
def test_distances_by_a_product(size):
    x, y = (
        away_from_zero(30, 300, dtype=torch.float32),
        away_from_zero(40, 300, dtype=torch.float32),
    )
    assert_scaled(torch.cdist(x * size, y * size), torch.cdist(x, y, compute_mode=None), size)


# ---- angles ----


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_angles_between_vectors_of_any_size(dtype):
    x, y = (
        away_from_zero(4, 30, dtype=torch.float64),
        away_from_zero(4, 30, dtype=torch.float64).flip(1),
    )
    expected = (x * y).sum(1) / x.norm(dim=1) / y.norm(dim=1)
    sizes = {
        torch.float64: [2.0**-1000, 2.0**-530, 2.0**530, 2.0**1020],
        torch.float16: [2.0**-10, 1.0, 2.0**13],
    }.get(dtype, [2.0**-120, 2.0**-66, 2.0**66, 2.0**120])
    near = {torch.float64: 1e-13, torch.float32: 2e-6}.get(dtype, 0.02)
    for a in sizes:
        for b in (1.0, *sizes):
            u, v = ((t * s).to(dtype).requires_grad_() for t, s in ((x, a), (y, b)))
            found = F.cosine_similarity(u, v, eps=0)
            assert (found.double() - expected).abs().max() <= near, (a, b)
            if dtype.itemsize < 4 or a < 2.0**-125:
                continue
            (slope,) = torch.autograd.grad(found.sum(), u)
            wanted = y / x.norm(dim=1, keepdim=True) / y.norm(dim=1, keepdim=True)
            wanted = wanted - expected.unsqueeze(1) * x / x.norm(dim=1, keepdim=True).square()
            assert (slope.double() * a - wanted).abs().max() <= 10 * near
            assert F.cosine_embedding_loss(u, v, torch.ones(4)).isfinite()
    large = (x * sizes[-1]).to(dtype)
    assert F.cosine_embedding_loss(large, large, torch.ones(4)).abs() <= near


def test_lengths_count_as_eps_at_least():
    x = torch.tensor([[3e-30, 4e-30], [3.0, 4.0], [3e25, 4e25]])
    assert F.cosine_similarity(x, x, eps=5e-30).tolist() == pytest.approx([1, 1, 1])
    assert F.cosine_similarity(x, x, eps=1e-29).tolist() == pytest.approx([0.25, 1, 1])
    assert F.cosine_similarity(x, x, eps=50).tolist() == pytest.approx([0, 0.01, 1], rel=1e-6)
    zero = torch.zeros(1, 2)
    assert F.cosine_similarity(zero, x[2:]).item() == 0
    assert F.cosine_similarity(torch.zeros(2, 0), torch.zeros(2, 0)).tolist() == [0, 0]


# ---- pooling, response ----


@pytest.mark.parametrize("p", [1.5, 2, 3, 8])
@pytest.mark.parametrize("size", [2.0**-110, 2.0**-60, 2.0**60, 2.0**110])
def test_pools_of_any_order(size, p):
    for dims, pool in ((1, F.lp_pool1d), (2, F.lp_pool2d), (3, F.lp_pool3d)):
        x = away_from_zero(2, 3, *[7] * dims, dtype=torch.float32).abs()
        for kernel, stride, ceil in ((3, None, False), (2, 3, True), (3, 2, True)):
            f = functools.partial(
                pool, norm_type=p, kernel_size=kernel, stride=stride, ceil_mode=ceil
            )
            one, other = x.clone().requires_grad_(), (x * size).requires_grad_()
            assert_scaled(f(other), f(one), size)
            g = torch.autograd.grad(f(one).sum(), one)[0]
            assert_scaled(torch.autograd.grad(f(other).sum(), other)[0], g)
    mixed = torch.tensor([[1e25, 3e25, 0, 0, 3.0, 4.0, 3e-30, 4e-30, float("inf"), 1.0]])
    found = F.lp_pool1d(mixed, 2, 2)
    assert found[0, :4].tolist() == pytest.approx([10**0.5 * 1e25, 0, 5, 5e-30], rel=1e-6)
    assert found[0, 4] == float("inf")


@pytest.mark.parametrize("size", [2.0**-70, 2.0**70, 2.0**110])
@pytest.mark.parametrize("k", [0.0, 1.0])
def test_local_responses_of_any_size(size, k):
    x = away_from_zero(2, 6, 5, dtype=torch.float32)
    found = F.local_response_norm(x * size, 3, alpha=0.5, beta=0.75, k=k)
    wide = F.local_response_norm(x.double() * size, 3, alpha=0.5, beta=0.75, k=k)
    torch.testing.assert_close(found.double(), wide, rtol=1e-5, atol=1e-44)


# ---- squares of float64 that vanish ----


@pytest.mark.parametrize("size", [2.0**-530, 2.0**-560, 2.0**-700, 2.0**-1000])
def test_spreads_of_small_doubles(size):
    x = ordinary(17, 6, 300, dtype=torch.float64)
    for t in (x, x.transpose(0, 2), torch.complex(x, x.flip(0))):
        for dim in (None, 0, 2):
            assert_scaled((t * size).std(dim), t.std(dim), size)
            spread, mean = torch.std_mean(t * size, dim)
            assert_scaled(spread, t.std(dim), size)
            torch.testing.assert_close(mean / size, t.mean() if dim is None else t.mean(dim))
    if size * size > 0:
        torch.testing.assert_close(
            (x * size).var(0), x.var(0) * size * size, rtol=1e-5, atol=5e-324
        )
    rows = torch.stack([x[0, 0], x[0, 0] * size, torch.ones_like(x[0, 0]), x[0, 0] * 0])
    assert rows.std(1)[1].item() == pytest.approx(x[0, 0].std().item() * size, rel=1e-12)
    assert rows.std(1)[2:].tolist() == [0, 0]
    assert rows.std(1)[0] == x[0, 0].std()
