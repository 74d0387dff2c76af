"""Indexing, gathers and scatters: numpy's rules, hostile indices, aliasing, thread counts."""

import itertools

import numpy as np
import pytest

import rushlight as torch

HOSTILE = [2**63 - 1, -(2**63), 2**32, -(2**32), 10**6, 3, -4]
DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.int64,
    torch.uint8,
    torch.bool,
    torch.complex128,
]


@pytest.fixture
def threads():
    """Restores the number of threads."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def pieces(d, n):
    """Indices of one dimension of n elements."""
    i = np.array([0, n - 1, -1])
    return [slice(None), i, i.reshape(3, 1), np.arange(n) % 2 == 0][:: 1 if d < 2 else 3]


A = np.arange(3 * 4 * 5).reshape(3, 4, 5)


def combinations():
    """Index tuples that numpy accepts."""
    found = []
    for index in itertools.product(*(pieces(d, n) for d, n in enumerate(A.shape))):
        try:
            A[index]
        except IndexError:
            continue
        found.append(index)
    return found


def as_torch(index):
    return tuple(torch.tensor(i) if isinstance(i, np.ndarray) else i for i in index)


@pytest.mark.parametrize("permute", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_reads_and_writes_as_numpy(permute):
    back = np.argsort(permute)
    for index in combinations():
        # Another order in memory, the same tensor.
        t = torch.tensor(np.ascontiguousarray(A.transpose(permute))).permute(*back.tolist())
        np.testing.assert_array_equal(t[as_torch(index)].numpy(), A[index])
        a = A.copy()
        a[index] = -7
        t[as_torch(index)] = -7
        np.testing.assert_array_equal(t.numpy(), a)


@pytest.mark.parametrize("bad", HOSTILE)
def test_hostile_indices_are_refused(bad):
    x = torch.zeros(3, 3)
    i = torch.tensor([0, bad])
    wide = i.reshape(2, 1)
    ones = torch.ones(2, 3)
    calls = [
        lambda: x[i],
        lambda: x[:, i],
        lambda: x.index_put_((i,), torch.tensor(1.0)),
        lambda: x.index_select(0, i),
        lambda: x.index_put_((i,), ones, accumulate=True),
        lambda: x.index_add_(0, i, ones),
        lambda: x.index_copy_(1, i, ones.t()),
        lambda: x.index_fill_(0, i, 1),
        lambda: x.gather(0, wide),
        lambda: x.scatter_(0, wide, 1.0),
        lambda: x.scatter_(1, wide, ones),
        lambda: x.scatter_add_(0, wide, ones),
        lambda: x.scatter_reduce_(0, wide, ones, "amax"),
        lambda: x.take_along_dim(wide, 0),
        lambda: torch.nn.functional.embedding(i, x),
        lambda: torch.nn.functional.cross_entropy(ones, i),
        lambda: torch.nn.functional.nll_loss(ones, i),
    ]
    if abs(bad) > 9:
        calls += [lambda: x.take(i), lambda: x.put_(i, torch.ones(2))]
    for n, call in enumerate(calls):
        with pytest.raises((IndexError, RuntimeError)):
            call()
            pytest.fail(f"call {n} took the index {bad}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_element_sizes(dtype):
    t = torch.arange(12).reshape(3, 4).to(dtype)
    i = torch.tensor([2, 0])
    a = t.numpy()
    np.testing.assert_array_equal(t[i].numpy(), a[[2, 0]])
    np.testing.assert_array_equal(
        t.gather(1, torch.tensor([[3], [1], [0]])).numpy(), a[[0, 1, 2], [3, 1, 0]][:, None]
    )
    np.testing.assert_array_equal(torch.cat((t, t), 1).numpy(), np.concatenate((a, a), 1))
    np.testing.assert_array_equal(t.flip(1).numpy(), a[:, ::-1])
    np.testing.assert_array_equal(
        t[t.to(torch.float64) > 5].numpy() if dtype != torch.complex128 else a[a.real > 5],
        a[a.real > 5],
    )
    np.testing.assert_array_equal(t.roll(1, 1).numpy(), np.roll(a, 1, 1))
    np.testing.assert_array_equal(t.tril().numpy(), np.tril(a))


def test_adds_where_indices_repeat():
    t = torch.zeros(4)
    t.index_put_((torch.tensor([1, 1, 3]),), torch.tensor([1.0, 2.0, 4.0]), accumulate=True)
    assert t.tolist() == [0, 3, 0, 4]
    t = torch.zeros(3, dtype=torch.bool)
    t.index_put_((torch.tensor([1, 1]),), torch.tensor([True, True]), accumulate=True)
    assert t.tolist() == [False, True, False]
    # The last write stays.
    assert torch.zeros(2).index_put_(
        (torch.tensor([0, 0, 0]),), torch.tensor([1.0, 2.0, 3.0])
    ).tolist() == [3, 0]


@pytest.mark.parametrize("count", [2, 3, 5])
def test_adding_does_not_depend_on_threads(threads, count):
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.standard_normal((500, 300)).astype(np.float32))
    i = torch.from_numpy(rng.integers(0, 40, 500))
    j = torch.from_numpy(rng.integers(0, 300, (500, 300)))
    functions = [
        lambda: torch.zeros(40, 300).index_add_(0, i, x),
        lambda: torch.zeros(500, 300).scatter_add_(1, j, x),
        lambda: torch.zeros(500, 300).scatter_add_(0, j, x),
        lambda: torch.zeros(40, 300).index_put_((i,), x, accumulate=True),
    ]
    torch.set_num_threads(1)
    alone = [f() for f in functions]
    torch.set_num_threads(count)
    for f, expected in zip(functions, alone, strict=True):
        assert torch.equal(f(), expected)


def test_aliased_sources():
    t = torch.arange(6.0)
    with pytest.raises(RuntimeError, match="single memory location"):
        t[torch.tensor([0, 1, 2])] = t[3:]
    assert t.tolist() == [0, 1, 2, 3, 4, 5]
    t = torch.arange(4.0)
    t.index_add_(0, torch.tensor([3, 2, 1, 0]), t)
    assert t.tolist() == [3, 3, 3, 3]
    t = torch.arange(4.0)
    t.scatter_(0, torch.tensor([3, 2, 1, 0]), t)
    assert t.tolist() == [3, 2, 1, 0]


def test_expanded_targets_are_refused():
    t = torch.zeros(1, 3).expand(4, 3)
    for call in (
        lambda: t.index_add_(0, torch.tensor([0]), torch.ones(1, 3)),
        lambda: t.scatter_(0, torch.tensor([[0]]), 1.0),
        lambda: t.masked_scatter_(torch.ones(4, 3, dtype=torch.bool), torch.ones(12)),
    ):
        with pytest.raises(RuntimeError):
            call()


def test_or_written_with_a_warning():
    for call in (
        lambda t: t.masked_fill_(torch.tensor([True, False, True]), 1),
        lambda t: t.index_fill_(1, torch.tensor([0, 2]), 1),
        lambda t: t.index_put_((torch.tensor([0, 1]), torch.tensor([0, 2])), torch.tensor(1.0)),
    ):
        t = torch.zeros(1, 3).expand(4, 3)
        with pytest.warns(UserWarning, match="expanded"):
            call(t)
        assert t.tolist() == [[1, 0, 1]] * 4


@pytest.mark.parametrize("shape", [(0,), (5,), (1000,), (70_000,), (3, 0), (300, 211), (4, 5, 600)])
@pytest.mark.parametrize("share", [0.0, 0.03, 0.5, 1.0])
def test_compressing(shape, share):
    mask = np.random.default_rng(0).random(shape) < share
    x = np.arange(mask.size).reshape(shape)
    np.testing.assert_array_equal(torch.tensor(mask).nonzero().numpy(), np.argwhere(mask))
    for dtype in (np.int64, np.float32, np.uint8, np.complex128):
        np.testing.assert_array_equal(
            torch.tensor(x.astype(dtype))[torch.tensor(mask)].numpy(), x.astype(dtype)[mask]
        )
    filled = torch.tensor(x).masked_fill(torch.tensor(mask), -1).numpy()
    np.testing.assert_array_equal(filled, np.where(mask, -1, x))


def test_negative_strides_do_not_exist_but_flips_do():
    x = np.arange(2 * 3 * 70).reshape(2, 3, 70)
    for dims in itertools.chain.from_iterable(
        itertools.combinations(range(3), k) for k in range(4)
    ):
        np.testing.assert_array_equal(
            torch.tensor(x).flip(*dims).numpy() if dims else x, np.flip(x, dims)
        )
        np.testing.assert_array_equal(
            torch.tensor(x).transpose(0, 2).flip(dims).numpy(), np.flip(x.transpose(2, 1, 0), dims)
        )


def test_cat_keeps_channels_last():
    t = torch.ones(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    joined = torch.cat((t, t * 2), 1)
    assert joined.is_contiguous(memory_format=torch.channels_last)
    assert joined[:, 3:].unique().tolist() == [2] and joined[:, :3].unique().tolist() == [1]


def test_gradients_of_index_tensors():
    x = torch.arange(12.0).reshape(3, 4).requires_grad_()
    x[torch.tensor([0, 0, 2])].sum().backward()
    assert x.grad[:, 0].tolist() == [2, 0, 1]
    x.grad = None
    x[x > 5].sum().backward()
    assert x.grad.sum().item() == 6


@pytest.mark.parametrize("diagonal", [2**62, -(2**62), 2**63 - 1])
def test_diagonals_far_out(diagonal):
    t = torch.ones(3, 3)
    assert t.tril(diagonal).sum().item() == (9 if diagonal > 0 else 0)
    assert t.triu(diagonal).sum().item() == (0 if diagonal > 0 else 9)


def test_results_too_large_are_refused():
    for call in (
        lambda: torch.ones(2).repeat(2**62),
        lambda: torch.ones(2).repeat_interleave(2**62),
    ):
        with pytest.raises(RuntimeError):
            call()


@pytest.mark.parametrize("shape", [(0,), (2, 0), (1,) * 40 + (0,)])
def test_an_index_without_elements_may_have_any_rank(shape):
    x = torch.arange(6.0).view(2, 3)
    index = torch.empty(shape, dtype=torch.int64)
    assert torch.gather(x, 1, index).shape == torch.Size(shape)
    for same in (
        x.scatter(1, index, x),
        x.scatter(1, index, 5.0),
        x.scatter(1, index, x, reduce="multiply"),
        x.scatter_add(1, index, x),
        x.scatter_reduce(1, index, x, "amax"),
    ):
        assert torch.equal(same, x)


def test_one_count_for_all_does_not_look_at_each():
    x = torch.empty(2**40, device="meta")
    assert x.repeat_interleave(torch.tensor([2])).shape == (2**41,)
    assert torch.ones(2, 3).repeat_interleave(torch.tensor(2, dtype=torch.int32), 1).shape == (2, 6)
    with pytest.raises(RuntimeError, match="negative"):
        torch.ones(2).repeat_interleave(torch.tensor([-1]))
    with pytest.raises(RuntimeError, match="Long or Int"):
        torch.ones(2).repeat_interleave(torch.tensor([1.0]))


def test_segments_that_equal_the_initial_value_keep_their_gradient():
    for reduce, initial in (("max", 2.0), ("min", 2.0), ("max", -1.0), ("min", 9.0)):
        x = torch.tensor([2.0, 2.0, 2.0, 5.0], requires_grad=True)
        out = torch.segment_reduce(x, reduce, lengths=torch.tensor([2, 1, 1]), initial=initial)
        assert out.tolist()[:2] == [2.0, 2.0]
        out[:2].sum().backward()
        assert x.grad.tolist() == [0.5, 0.5, 1.0, 0.0]
    beaten = torch.tensor([1.0], requires_grad=True)
    out = torch.segment_reduce(beaten, "max", lengths=torch.tensor([1]), initial=2.0)
    out.backward()
    assert out.item() == 2.0 and beaten.grad.item() == 0.0


def test_types_of_errors_of_slices():
    t, rows = torch.zeros(3, 3), torch.ones(2, 3)
    index = torch.tensor([0, 1])
    for bad in (torch.ones(3, 3), torch.ones(3), torch.ones(1, 2, 3), torch.tensor(1.0)):
        with pytest.raises(IndexError, match="index_copy_"):
            t.index_copy(0, index, bad)
        with pytest.raises(RuntimeError, match="index_add_"):
            t.index_add(0, index, bad)
    for wrong in (rows.double(), rows.long(), torch.ones(2, 2)):
        with pytest.raises(RuntimeError, match="index_copy_"):
            t.index_copy(0, index, wrong)
    with pytest.raises(RuntimeError, match="dtype"):
        t.index_copy(0, index.float(), rows)
    with pytest.raises(IndexError, match="int64"):
        t.index_fill(0, index.float(), 1)
    with pytest.raises(RuntimeError, match="vector"):
        t.index_fill(0, index[None], 1)


def test_masks_without_dimensions():
    """As NumPy: they take no dimension, and select all or nothing."""
    x = torch.arange(6.0).reshape(2, 3)
    index, index_put = torch.ops.aten.index, torch.index_put
    first = torch.tensor([0])
    for truth in (True, False):
        for dtype in (torch.bool, torch.uint8):
            mask = torch.tensor(truth).to(dtype)
            assert np.array_equal(index(x, [mask]), x.numpy()[np.array(truth)])
            assert np.array_equal(index(x, [mask, first]), x.numpy()[np.array(truth), [0]])
            assert np.array_equal(index(torch.tensor(3.0), [mask]), np.array(3.0)[np.array(truth)])
            for indices in ((mask,), (mask, first), (None, mask)):
                for accumulate in (False, True):
                    found = index_put(x, indices, torch.tensor(9.0), accumulate)
                    wanted = x.clone()
                    if truth:
                        part = wanted[:1] if first is indices[-1] else wanted
                        part.copy_(part + 9 if accumulate else torch.full_like(part, 9))
                    assert torch.equal(found, wanted)
            leaf = x.clone().requires_grad_()
            index_put(leaf, (mask,), torch.tensor(9.0)).sum().backward()
            assert torch.equal(leaf.grad, torch.full_like(x, float(not truth)))


@pytest.mark.parametrize(
    "update",
    [
        lambda x, i, n: x.index_add(0, i, x[:1]),
        lambda x, i, n: x.index_copy(0, i, x[:1]),
        lambda x, i, n: x.index_reduce(0, i, x[:1], "amax"),
        lambda x, i, n: x.scatter(0, n, x),
        lambda x, i, n: x.scatter(0, n, 1.0),
        lambda x, i, n: x.scatter(0, n, x, reduce="add"),
        lambda x, i, n: x.scatter(0, n, 1.0, reduce="add"),
        lambda x, i, n: x.scatter_add(0, n, x),
        lambda x, i, n: x.scatter_reduce(0, n, x, "sum"),
        lambda x, i, n: x.masked_fill(x > 1, 1.0),
        lambda x, i, n: x.masked_fill(x > 1, torch.tensor(1.0)),
        lambda x, i, n: x.masked_scatter(x > 1, x.contiguous()),
    ],
)
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_updated_copies_are_contiguous(update, device):
    """Whatever the strides of the input: programs take views of them. In place and with `out=` they stay."""
    x = torch.arange(6.0, device=device).view(2, 3).t()
    index = torch.tensor([0], device=device)
    numbers = torch.zeros(3, 2, dtype=torch.int64, device=device)
    made = update(x, index, numbers)
    assert made.is_contiguous() and made.view(-1).shape == (6,) and x.stride() == (1, 3)
    if device == "cpu":
        assert torch.equal(made, update(x.contiguous(), index, numbers))
    for kept in (
        x.index_fill(0, index, 1.0),
        x.index_put((index,), x[:1]),
        x.clone().masked_fill_(x > 1, 1),
    ):
        assert kept.stride() == (1, 3)
