"""Sorting and ranks by behaviour: every dtype, stability, NaN, long rows, thread counts."""

import math

import numpy as np
import pytest

import rushlight as torch

NAN = float("nan")
DTYPES = ["uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bool"]


def data(dtype, *shape):
    rng = np.random.default_rng(0)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if "int" in dtype:
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    return rng.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 5, 48, 49, 300, 3000])
@pytest.mark.parametrize("descending", [False, True])
def test_sorts_stably(dtype, n, descending):
    x = data(dtype, 3, n)
    values, indices = torch.tensor(x).sort(1, descending=descending)
    keys = np.argsort(x, axis=1, kind="stable")
    if descending:  # equal elements keep their order
        keys = n - 1 - np.argsort(x[:, ::-1], axis=1, kind="stable")[:, ::-1]
    np.testing.assert_array_equal(indices.numpy(), keys)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, keys, 1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_long_rows(dtype):
    before = torch.get_num_threads()
    x = data(dtype, 300_000)
    x[::7] = x[0]
    results = []
    for threads in (1, 2, 3, 5):
        torch.set_num_threads(threads)
        results.append(torch.tensor(x).sort())
    torch.set_num_threads(before)
    order = np.argsort(x, kind="stable")
    for values, indices in results:
        np.testing.assert_array_equal(indices.numpy(), order)
        np.testing.assert_array_equal(values.numpy(), x[order])


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_any_dimension_and_layout(dim):
    x = data("float64", 5, 60, 7)
    np.testing.assert_array_equal(torch.tensor(x).sort(dim)[0].numpy(), np.sort(x, dim))
    np.testing.assert_array_equal(
        torch.tensor(x).transpose(0, 2).sort(dim)[0].numpy(), np.sort(x.transpose(2, 1, 0), dim)
    )
    np.testing.assert_array_equal(
        torch.tensor(x).topk(2, dim)[0].numpy(), np.flip(np.sort(x, dim), dim).take([0, 1], dim)
    )
    np.testing.assert_array_equal(
        torch.tensor(x).kthvalue(2, dim)[0].numpy(), np.sort(x, dim).take(1, dim)
    )


def test_nan_is_largest_and_zeros_are_equal():
    t = torch.tensor([NAN, 1.0, -0.0, 0.0, -NAN, float("inf"), float("-inf")])
    values, indices = t.sort()
    assert indices.tolist() == [6, 2, 3, 1, 5, 0, 4]
    assert math.copysign(1, values[1].item()) == -1
    assert t.sort(descending=True)[1].tolist() == [0, 4, 5, 1, 2, 3, 6]
    assert t.topk(3)[1].tolist() == [0, 4, 5]
    assert t.topk(2, largest=False)[1].tolist() == [6, 2]
    assert math.isnan(t.median().item()) and t.nanmedian().item() == 0
    assert t.median(0)[1].item() == 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [1, 4, 100, 999])
def test_topk(dtype, k):
    x = data(dtype, 4, 1000)
    for largest in (True, False):
        values, indices = torch.tensor(x).topk(k, 1, largest)
        expected = torch.tensor(x).sort(1, descending=largest)
        assert torch.equal(values, expected[0][:, :k]) and torch.equal(indices, expected[1][:, :k])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [1, 2, 500, 1000])
def test_kthvalue_is_the_stable_sorts(dtype, k):
    t = torch.tensor(data(dtype, 4, 1000))
    values, indices = t.kthvalue(k, 1)
    expected = t.sort(1)
    assert torch.equal(values, expected[0][:, k - 1]) and torch.equal(
        indices, expected[1][:, k - 1]
    )


def test_mode_takes_the_smallest_of_the_most_frequent():
    assert torch.tensor([3, 1, 2, 2, 1]).mode()[0].item() == 1
    values, indices = torch.tensor([[5, 5, 1], [2, 3, 3]]).mode(1)
    assert values.tolist() == [5, 3] and indices.tolist() == [1, 2]


@pytest.mark.parametrize("dtype", DTYPES)
def test_unique(dtype):
    x = data(dtype, 40, 30)
    if dtype != "bool":
        x = (x / 4).round().astype(dtype) if "float" in dtype else x // 8
    values, inverse, counts = torch.unique(torch.tensor(x), return_inverse=True, return_counts=True)
    expected = np.unique(x, return_inverse=True, return_counts=True)
    np.testing.assert_array_equal(values.numpy(), expected[0])
    np.testing.assert_array_equal(inverse.numpy().ravel(), expected[1].ravel())
    np.testing.assert_array_equal(counts.numpy(), expected[2])


def test_searching():
    edges = torch.tensor([1.0, 2.0, 2.0, 5.0])
    values = torch.tensor([0.0, 1.0, 2.0, 6.0, NAN])
    assert torch.searchsorted(edges, values).tolist() == [0, 0, 1, 4, 4]
    assert torch.bucketize(values, edges, right=True).tolist() == [0, 1, 3, 4, 4]
    order = torch.tensor([3, 0, 2, 1])
    assert torch.searchsorted(
        torch.tensor([2.0, 9.0, 5.0, 1.0]), values[1:3], sorter=order
    ).tolist() == [0, 1]
    with pytest.raises(RuntimeError, match="sorter"):
        torch.searchsorted(edges, values, sorter=torch.tensor([0, 1, 2, 9]))


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.ones(3).topk(-1),
        lambda: torch.ones(3).topk(2**62),
        lambda: torch.ones(3).kthvalue(2**62),
        lambda: torch.bincount(torch.tensor([2**62])),
        lambda: torch.bincount(torch.tensor([1]), minlength=-1),
        lambda: torch.ones(3).sort(5),
        lambda: torch.histc(torch.ones(3), -1),
        lambda: torch.histc(torch.tensor([float("inf")]), 3),
    ],
)
def test_bad_arguments(call):
    with pytest.raises((RuntimeError, IndexError)):
        call()


def test_searchsorted_of_bools_follows_the_sorter():
    sequence, sorter = torch.tensor([True, False]), torch.tensor([1, 0])
    assert torch.searchsorted(sequence, torch.tensor([False, True]), sorter=sorter).tolist() == [
        0,
        1,
    ]


def test_equal_middle_elements_share_the_gradient():
    for reduced in (torch.median, torch.nanmedian):
        x = torch.tensor([[1.0, 2.0, 2.0], [5.0, 2.0, 0.0]], requires_grad=True)
        reduced(x).backward()
        assert x.grad.mul(3).tolist() == [[0, 1, 1], [0, 1, 0]]
    x = torch.tensor([1.0, math.nan, math.nan], requires_grad=True)
    x.median().backward()
    assert x.grad.tolist() == [0, 0.5, 0.5]


@pytest.mark.parametrize("dim", [0, -1])
def test_a_number_has_no_slices(dim):
    for op in (torch.unique, torch.unique_consecutive):
        with pytest.raises(IndexError, match="0-d"):
            op(torch.tensor(3.0), dim=dim)
        assert op(torch.tensor(3.0)).tolist() == [3]
    with pytest.raises(IndexError, match="0-d"):
        torch.linalg.cross(torch.tensor(3.0), torch.tensor(3.0), dim=dim)
