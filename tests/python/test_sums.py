"""Sums of 16 bits: five thousand ones make five thousand, wherever they meet.

A sum that is rounded at every step stops at 256 in bfloat16 and at 2048 in half.
"""

import pytest

import rushlight as torch
from rushlight.nn import functional as F
from rushlight.vision import ops as vision

N = 5000
SMALL = [torch.bfloat16, torch.float16]


def ones(dtype, *sizes):
    return torch.ones(*sizes, dtype=dtype)


def nowhere(*sizes):
    """Indices that are all the same."""
    return torch.zeros(*sizes, dtype=torch.int64)


def sparse(dtype):
    return torch.sparse_coo_tensor(nowhere(1, N), ones(dtype, N), (3,))


# What five thousand ones of a dtype come to: each of the elements that are returned.
FORWARD = {
    "scatter_add": lambda t: torch.zeros(3, dtype=t).scatter_add(0, nowhere(N), ones(t, N))[:1],
    "scatter_add, columns": lambda t: torch.zeros(4, 3, dtype=t).scatter_add(0, nowhere(N, 3), ones(t, N, 3))[0],
    "scatter_add, rows": lambda t: torch.zeros(2, 3, dtype=t).scatter_add(1, nowhere(2, N), ones(t, 2, N))[:, 0],
    "scatter_add, far": lambda t: torch.zeros(10 * N, dtype=t).scatter_add(0, nowhere(N) + 7, ones(t, N))[7:8],
    "scatter_add, far columns": lambda t: torch.zeros(10 * N, 2, dtype=t).scatter_add(0, nowhere(N, 2) + 7, ones(t, N, 2))[7],
    "scatter, add": lambda t: torch.zeros(3, dtype=t).scatter(0, nowhere(N), ones(t, N), reduce="add")[:1],
    "scatter, value": lambda t: torch.zeros(3, dtype=t).scatter(0, nowhere(N), 1, reduce="add")[:1],
    "scatter_reduce, sum": lambda t: torch.ones(3, dtype=t).scatter_reduce(0, nowhere(N - 1), ones(t, N - 1), "sum")[:1],
    "scatter_reduce, mean": lambda t: torch.zeros(3, dtype=t).scatter_reduce(0, nowhere(N), 10 * ones(t, N), "mean", include_self=False)[:1] * 500,
    "index_reduce, mean": lambda t: torch.zeros(3, dtype=t).index_reduce(0, nowhere(N), 10 * ones(t, N), "mean", include_self=False)[:1] * 500,
    "index_add": lambda t: torch.zeros(3, dtype=t).index_add(0, nowhere(N), ones(t, N))[:1],
    "index_add, rows": lambda t: torch.zeros(3, 20, dtype=t).index_add(0, nowhere(N), ones(t, N, 20))[0],
    "index_add, columns": lambda t: torch.zeros(20, 3, dtype=t).index_add(1, nowhere(N), ones(t, 20, N))[:, 0],
    "index_add, far": lambda t: torch.zeros(10 * N, 20, dtype=t).index_add(0, nowhere(N) + 7, ones(t, N, 20))[7],
    "index_add, strided": lambda t: torch.zeros(3, 6, dtype=t).t()[::2].index_add_(0, nowhere(N), ones(t, N, 3))[0],
    "index_add, alpha": lambda t: torch.zeros(3, dtype=t).index_add(0, nowhere(N), ones(t, N), alpha=0.5)[:1] * 2,
    "index_put": lambda t: torch.zeros(3, dtype=t).index_put((nowhere(N),), ones(t, N), accumulate=True)[:1],
    "index_put, two": lambda t: torch.zeros(3, 4, dtype=t).index_put((nowhere(N), nowhere(N) - 1), ones(t, N), accumulate=True)[0, 3:],
    "index_put, apart": lambda t: torch.zeros(3, 4, 5, dtype=t).transpose(1, 2).index_put((nowhere(N), nowhere(N)), ones(t, N, 4), accumulate=True)[0, 0],
    "put_": lambda t: torch.zeros(3, dtype=t).put_(nowhere(N) - 1, ones(t, N), accumulate=True)[2:],
    "put_, far": lambda t: torch.zeros(10 * N, dtype=t).put_(nowhere(N), ones(t, N), accumulate=True)[:1],
    "embedding_bag": lambda t: F.embedding_bag(nowhere(1, N), ones(t, 2, 3), mode="sum"),
    "embedding_bag, mean": lambda t: F.embedding_bag(nowhere(1, N), 10 * ones(t, 2, 3), mode="mean") * 500,
    "embedding_bag, weights": lambda t: F.embedding_bag(nowhere(1, N), 2 * ones(t, 2, 3), mode="sum", per_sample_weights=ones(t, 1, N) / 2),
    "segment_reduce, sum": lambda t: torch.segment_reduce(ones(t, N), "sum", lengths=torch.tensor([N])),
    "segment_reduce, mean": lambda t: torch.segment_reduce(10 * ones(t, N), "mean", lengths=torch.tensor([N])) * 500,
    "coalesce": lambda t: sparse(t).coalesce().values(),
    "to_dense": lambda t: sparse(t).to_dense()[:1],
    "dense + sparse": lambda t: (torch.zeros(3, dtype=t) + sparse(t))[:1],
    "sparse.sum": lambda t: torch.sparse.sum(sparse(t)),
    "sparse.mm": lambda t: torch.sparse.mm(ones(t, 1, N).to_sparse(), ones(t, N, 2)),
    "csr @ dense": lambda t: ones(t, 1, N).to_sparse_csr() @ ones(t, N, 2),
    "fold": lambda t: F.fold(ones(t, 1, N, N), (1, 2 * N - 1), (1, N))[0, 0, 0, N - 1 : N],
    "sum": lambda t: ones(t, N).sum(),
    "sum, columns": lambda t: ones(t, N, 3).sum(0),
    "nansum": lambda t: ones(t, N).nansum(),
    "mean": lambda t: (10 * ones(t, N)).mean() * 500,
    "sum_to_size": lambda t: ones(t, N, 2).sum_to_size(1, 2),
    "cumsum": lambda t: ones(t, N).cumsum(0)[-1],
    "cumsum, columns": lambda t: ones(t, N, 3).cumsum(0)[-1],
    "trapezoid": lambda t: torch.trapezoid(ones(t, N + 1)),
    "trapezoid, dx": lambda t: torch.trapezoid(ones(t, N + 1), dx=2) / 2,
    "cumulative_trapezoid": lambda t: torch.cumulative_trapezoid(ones(t, N + 1))[-1],
    "trace": lambda t: ones(t, 1).expand(N, N).trace(),
    "dot": lambda t: ones(t, N) @ ones(t, N),
    "vdot": lambda t: torch.vdot(ones(t, N), ones(t, N)),
    "mv": lambda t: ones(t, 3, N) @ ones(t, N),
    "addmv": lambda t: torch.addmv(torch.zeros(3, dtype=t), ones(t, 3, N), ones(t, N)),
    "mm": lambda t: ones(t, 3, N) @ ones(t, N, 2),
    "addmm": lambda t: torch.addmm(torch.zeros(3, 2, dtype=t), ones(t, 3, N), ones(t, N, 2)),
    "bmm": lambda t: ones(t, 2, 3, N) @ ones(t, 2, N, 2),
    "addbmm": lambda t: torch.addbmm(torch.zeros(3, 2, dtype=t), ones(t, N // 2, 3, 2), ones(t, N // 2, 2, 2)),
    "einsum": lambda t: torch.einsum("i,i->", ones(t, N), ones(t, N)),
    "tensordot": lambda t: torch.tensordot(ones(t, N, 2), ones(t, N, 2), ([0], [0])),
    "linear": lambda t: F.linear(ones(t, 2, N), ones(t, 3, N)),
    "bilinear": lambda t: F.bilinear(ones(t, 1, N // 50), ones(t, 1, 50), ones(t, 1, N // 50, 50)),
    "conv1d": lambda t: F.conv1d(ones(t, 1, 1, N), ones(t, 1, 1, N)),
    "conv1d, channels": lambda t: F.conv1d(ones(t, 1, N, 3), ones(t, 2, N, 1)),
    "conv_transpose1d": lambda t: F.conv_transpose1d(ones(t, 1, N, 1), ones(t, N, 1, 1)),
    "norm, 1": lambda t: ones(t, N).norm(1),
    "norm, 2": lambda t: (50 * ones(t, N * 2)).norm(2),
    "norm, 3": lambda t: (500 * ones(t, 1000)).norm(3),
    "norm, 0": lambda t: ones(t, N).norm(0),
    "count_nonzero": lambda t: ones(t, N).count_nonzero().to(t),
    "dist": lambda t: torch.dist(ones(t, N), torch.zeros(N, dtype=t), 1),
    "cdist": lambda t: torch.cdist(ones(t, 2, N), torch.zeros(3, N, dtype=t), 1),
    "pairwise_distance": lambda t: F.pairwise_distance(ones(t, 2, N), torch.zeros(2, N, dtype=t), 1, eps=0),
    "cosine_similarity": lambda t: F.cosine_similarity(ones(t, N), ones(t, N), 0) * N,
    "cosine_similarity, large": lambda t: F.cosine_similarity(300 * ones(t, 9), 300 * ones(t, 9), 0) * N,
    "bincount": lambda t: torch.bincount(nowhere(N), ones(t, N)).to(t),
    "nll_loss": lambda t: -F.nll_loss(ones(t, N, 2), nowhere(N), reduction="sum"),
    "nll_loss, mean": lambda t: -F.nll_loss(10 * ones(t, N, 2), nowhere(N), ones(t, 2)) * 500,
    "cross_entropy": lambda t: F.cross_entropy(ones(t, N // 10, 2) * torch.tensor([-10, 0], dtype=t), nowhere(N // 10), reduction="sum"),
    "l1_loss": lambda t: F.l1_loss(ones(t, N), torch.zeros(N, dtype=t), reduction="sum"),
    "mse_loss": lambda t: F.mse_loss(ones(t, N), torch.zeros(N, dtype=t), reduction="sum"),
    "avg_pool1d": lambda t: F.avg_pool1d(10 * ones(t, 1, 1, N), N) * 500,
    "adaptive_avg_pool1d": lambda t: F.adaptive_avg_pool1d(10 * ones(t, 1, 1, N), 1) * 500,
    "lp_pool1d": lambda t: F.lp_pool1d(ones(t, 1, 1, N), 1, N),
    "interpolate, area": lambda t: F.interpolate(10 * ones(t, 1, 1, N), 1, mode="area") * 500,
    "logsumexp": lambda t: torch.zeros(N, dtype=t).logsumexp(0).exp(),
    "logcumsumexp": lambda t: torch.zeros(N, dtype=t).logcumsumexp(0)[-1].exp(),
    "roi_align": lambda t: vision.roi_align(10 * ones(t, 1, 1, 80, 80), torch.tensor([[0, 1, 1, 72, 72]], dtype=t), 1) * 500,
}  # fmt: skip


# Functions of an input of ones, with sizes, whose every element has five thousand uses.
BACKWARD = {
    "gather": ((1,), lambda x: x.gather(0, nowhere(N))),
    "gather, sparse": ((1,), lambda x: x.gather(0, nowhere(N), sparse_grad=True)),
    "take_along_dim": ((1, 3), lambda x: x.take_along_dim(nowhere(N, 1), 0)),
    "index_select": ((1, 3), lambda x: x.index_select(0, nowhere(N))),
    "index": ((1, 3), lambda x: x[nowhere(N)]),
    "index, two": ((1, 1, 3), lambda x: x[nowhere(N), nowhere(N)]),
    "take": ((1,), lambda x: x.take(nowhere(N))),
    "embedding": ((1, 3), lambda x: F.embedding(nowhere(N), x)),
    "embedding, sparse": ((1, 3), lambda x: F.embedding(nowhere(N), x, sparse=True)),
    "embedding_bag": ((1, 3), lambda x: F.embedding_bag(nowhere(1, N), x, mode="sum")),
    "embedding_bag, weights": ((1, 1), lambda x: F.embedding_bag(nowhere(1, 1), ones(x.dtype, 1, N), mode="sum", per_sample_weights=x)),
    "expand": ((1, 3), lambda x: x.expand(N, 3).clone()),
    "repeat": ((3,), lambda x: x.repeat(N)),
    "repeat_interleave": ((3,), lambda x: x.repeat_interleave(N)),
    "broadcast": ((3,), lambda x: x * ones(x.dtype, N, 3)),
    "as_strided": ((1,), lambda x: x.as_strided((N,), (0,))),
    "as_strided, far": ((3,), lambda x: x.as_strided((N, 3), (0, 1)) * 1),
    "cummax": ((1,), lambda x: torch.cat([x, torch.zeros(N - 1, dtype=x.dtype)]).cummax(0).values),
    "cumsum": ((1,), lambda x: torch.cat([x, torch.zeros(N - 1, dtype=x.dtype)]).cumsum(0)),
    "where": ((), lambda x: torch.where(ones(x.dtype, N) > 0, x, 0.0)),
    "masked_fill": ((), lambda x: torch.zeros(N, dtype=x.dtype).masked_fill(ones(x.dtype, N) > 0, x)),
    "index_put": ((), lambda x: torch.zeros(N, dtype=x.dtype).index_put((torch.arange(N),), x)),
    "prelu": ((1,), lambda x: F.prelu(-ones(x.dtype, N), x) * -1),
    "linear, bias": ((2,), lambda x: F.linear(ones(x.dtype, N, 1), ones(x.dtype, 2, 1), x)),
    "linear, weight": ((2, 1), lambda x: F.linear(ones(x.dtype, N, 1), x)),
    "conv1d, bias": ((2,), lambda x: F.conv1d(ones(x.dtype, 1, 1, N), ones(x.dtype, 2, 1, 1), x)),
    "conv1d, weight": ((2, 1, 1), lambda x: F.conv1d(ones(x.dtype, 1, 1, N), x)),
    "layer_norm, bias": ((2,), lambda x: F.layer_norm(ones(x.dtype, N, 2), (2,), None, x)),
    "batch_norm, bias": ((2,), lambda x: F.batch_norm(ones(x.dtype, N, 2), None, None, None, x, True)),
    "group_norm, bias": ((2,), lambda x: F.group_norm(ones(x.dtype, N, 2), 1, None, x)),
    "pad, replicate": ((1, 1, 1), lambda x: F.pad(x, (N - 1, 0), "replicate")),
    "max_pool1d": ((1, 1, 1), lambda x: F.max_pool1d(F.pad(x, (N - 1, N - 1)), N, 1)),
    "avg_pool1d": ((1, 1, 1), lambda x: N * F.avg_pool1d(F.pad(x, (N - 1, N - 1)), N, 1)),
    "unfold": ((1,), lambda x: F.pad(x, (N - 1, N - 1)).unfold(0, N, 1)),
    "nn.unfold": ((1, 1, 1, 1), lambda x: F.unfold(F.pad(x, (N - 1, N - 1)), (1, N))),
    "interpolate, nearest": ((1, 1, 1), lambda x: F.interpolate(x, N)),
    "interpolate, linear": ((1, 1, 1), lambda x: F.interpolate(x, N, mode="linear")),
    "interpolate, bicubic": ((1, 1, 1, 1), lambda x: F.interpolate(x, (1, N), mode="bicubic")),
    "grid_sample": ((1, 1, 1, 1), lambda x: F.grid_sample(x, torch.zeros(1, 1, N, 2, dtype=x.dtype), align_corners=True)),
    "roi_align": ((1, 1, 1, 1), lambda x: vision.roi_align(x, torch.zeros(N, 5, dtype=x.dtype), 1)),
    "roi_pool": ((1, 1, 1, 1), lambda x: vision.roi_pool(x, torch.zeros(N, 5, dtype=x.dtype), 1)),
    "scatter_reduce, mean": ((1,), lambda x: N * torch.zeros(1, dtype=x.dtype).scatter_reduce(0, nowhere(N), x.expand(N), "mean", include_self=False)),
    "scatter_reduce, amax": ((1,), lambda x: N * torch.zeros(1, dtype=x.dtype).scatter_reduce(0, nowhere(N), x.expand(N), "amax")),
}  # fmt: skip


@pytest.mark.parametrize("dtype", SMALL, ids=str)
@pytest.mark.parametrize("name", FORWARD)
def test_five_thousand_ones(name, dtype):
    found = FORWARD[name](dtype)
    assert found.dtype == dtype
    assert found.numel() > 0
    expected = torch.tensor(float(N)).to(dtype)
    logarithmic = "log" in name  # a rounding of the logarithm is one of digits of the number
    if logarithmic:
        assert abs(found.item() / N - 1) < (0.03 if dtype == torch.bfloat16 else 0.004)
    else:
        assert found.unique().tolist() == [expected.item()]


@pytest.mark.parametrize("dtype", SMALL, ids=str)
@pytest.mark.parametrize("name", BACKWARD)
def test_five_thousand_gradients(name, dtype):
    sizes, f = BACKWARD[name]
    x = torch.ones(sizes, dtype=dtype, requires_grad=True)
    f(x).sum().backward()
    grad = x.grad.to_dense() if x.grad.is_sparse else x.grad
    assert grad.dtype == dtype
    assert grad.unique().tolist() == [torch.tensor(float(N)).to(dtype).item()]


def random_like(target, n, seed=0):
    """Targets are written at places that few, many or all elements share."""
    torch.manual_seed(seed)
    return torch.randint(0, target, (n,))


def meeting_cases():
    """Writers of x into places, and the sizes of their target."""
    for size, n in ((7, 40), (7, 3), (1000, 40), (5, 1), (300, 300)):
        i = random_like(size, n)
        yield (
            f"index_add {size} {n}",
            (size, 3),
            lambda t, i=i: t.index_add(0, i, filled(t, len(i), 3)),
        )
        yield (
            f"index_add wide {size} {n}",
            (size, 200),
            lambda t, i=i: t.index_add(0, i, filled(t, len(i), 200), alpha=3),
        )
        yield (
            f"index_add inner {size} {n}",
            (4, size),
            lambda t, i=i: t.index_add(1, i, filled(t, 4, len(i))),
        )
        yield (
            f"index_put {size} {n}",
            (size, 2, 3),
            lambda t, i=i: t.index_put((i,), filled(t, len(i), 2, 3), accumulate=True),
        )
        yield (
            f"index_put apart {size} {n}",
            (size, 2, size),
            lambda t, i=i: t.index_put((i, slice_all(2), i), filled(t, 2, len(i)), accumulate=True),
        )
        yield (
            f"put {size} {n}",
            (size, 2),
            lambda t, i=i: t.clone().put_(i * 2 - 1, filled(t, len(i)), accumulate=True),
        )
        yield (
            f"scatter_add {size} {n}",
            (size, 6),
            lambda t, i=i: t.scatter_add(0, spread(i, 5), filled(t, len(i), 5)),
        )
        yield (
            f"scatter_add rows {size} {n}",
            (4, size),
            lambda t, i=i: t.scatter_add(1, spread(i, 3).t(), filled(t, 3, len(i))),
        )
        for reduce in ("sum", "prod", "mean", "amax"):
            for own in (True, False):
                yield (
                    f"scatter_reduce {reduce} {own} {size} {n}",
                    (size, 2, 3),
                    lambda t, i=i, r=reduce, o=own: t.scatter_reduce(
                        0, spread(i, 6).view(-1, 2, 3), filled(t, len(i), 2, 3), r, include_self=o
                    ),
                )
        for reduce in ("mean", "prod"):
            yield (
                f"index_reduce {reduce} {size} {n}",
                (3, size),
                lambda t, i=i, r=reduce: t.index_reduce(1, i, filled(t, 3, len(i)), r),
            )


def slice_all(n):
    return torch.arange(n)[:, None]


def spread(i, n):
    """Each column meets in places of its own."""
    return (i[:, None] + torch.arange(n)) % (i.max() + 1)


def filled(t, *sizes):
    torch.manual_seed(1)
    return (torch.randn(*sizes) * 0.5 + 1).bfloat16().to(t.dtype)


CASES = {name: (sizes, f) for name, sizes, f in meeting_cases()}


@pytest.mark.parametrize("dtype", SMALL, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_places_are_rounded_once(name, dtype):
    """The bits of the sum in float32, rounded; in any layout, from any number of threads."""
    sizes, f = CASES[name]
    base = filled(torch.empty(0, dtype=dtype), *sizes)
    expected = f(base.float()).to(dtype)
    layouts = [
        base,
        base.transpose(0, -1).contiguous().transpose(0, -1),
        torch.stack([base, base], -1)[..., 0],
    ]
    before = torch.get_num_threads()
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        for t in layouts:
            assert f(t).equal(expected)
            assert f(t.clone()).equal(expected)
    torch.set_num_threads(before)


def test_complex_halves_are_rounded_once():
    ones_ = torch.complex(torch.ones(N), -torch.ones(N)).to(torch.complex32)
    found = torch.zeros(3, dtype=torch.complex32).index_add(0, nowhere(N), ones_)
    assert found[0].to(torch.complex64).item() == complex(5000, -5000)


@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_writing_in_place_leaves_the_rest_alone(dtype):
    """Not even the bits of NaN change where nothing is added."""
    whole = torch.full((6, 5), float("nan"), dtype=dtype)
    whole.view(torch.int16)[:] += torch.arange(30, dtype=torch.int16).view(6, 5) % 4
    before = whole.view(torch.int16).clone()
    whole[1:4:2, 1:4].index_add_(1, torch.tensor([0, 0]), ones(dtype, 2, 2))
    whole[0].index_put_((torch.tensor([2, 2, 2]),), ones(dtype, 3), accumulate=True)
    same = whole.view(torch.int16) == before
    same[1:4:2, 1:4] = True
    same[0] = True
    assert same.all()
