"""`t[index]` and `t[index] = value` against numpy, their views, dtypes and errors."""

import numpy as np
import pytest

import rushlight as torch

A = np.arange(24.0).reshape(2, 3, 4)
BASIC = [
    0,
    -1,
    (0, 1),
    (1, -1, 2),
    slice(None),
    slice(1, None),
    (slice(None), slice(0, 3, 2)),
    Ellipsis,
    (Ellipsis, 0),
    (0, Ellipsis),
    (0, Ellipsis, 1),
    None,
    (None, 0, None),
    (slice(None), None, 1),
    (Ellipsis, None),
    (),
    (slice(5, 1),),
    (slice(-2, None), slice(None, -1)),
    (slice(None),) * 3,
    (1, slice(1, 3), slice(None, None, 3)),
    np.int64(1),
    (np.int32(0), np.int8(2)),
    (slice(np.int64(1), None),),
]
ADVANCED = [
    [0, 1, 1],
    [[1, 0], [0, 1]],
    ([0, 1], [2, 0]),
    (slice(None), [0, 2]),
    (0, [2, 0], slice(1, 3)),
    ([0, 1], slice(None), [3, 0]),
    A > 10,
    (A > 10)[:, 0, 3],
    (slice(None), [True, False, True]),
    ([True, False], 0),
    (Ellipsis, [0, 3]),
    (None, [0]),
    np.array([1, 0]),
    np.array([[0], [1]]),
    (np.array([0]), slice(None), np.array([1, 2])),
    True,
    False,
    (True, 0),
    (A[:, :, 0] > 4, 1),
    (0, A[0] > 5),
    (slice(0), [0]),
    np.array(True),
    range(2),
]


def as_torch(index):
    if isinstance(index, np.ndarray):
        return torch.from_numpy(index) if index.ndim else torch.tensor(bool(index))
    return tuple(as_torch(i) for i in index) if isinstance(index, tuple) else index


def expected(array, index):
    if isinstance(index, list) and isinstance(index[0], list):
        index = tuple(index)  # a list of lists stands for a tuple
    return array[list(index) if isinstance(index, range) else index]


@pytest.mark.parametrize("index", BASIC + ADVANCED, ids=str)
@pytest.mark.parametrize("tensors", [False, True])
def test_read(index, tensors):
    got = torch.tensor(A)[as_torch(index) if tensors else index]
    want = expected(A, index)
    assert tuple(got.shape) == want.shape
    np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("index", BASIC + ADVANCED, ids=str)
def test_write(index):
    if isinstance(index, list) and isinstance(index[0], list):
        index = tuple(index)
    want = A.copy()
    place = list(index) if isinstance(index, range) else index
    shape = want[place].shape
    value = -np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    duplicates = isinstance(index, list) and len(set(map(str, index))) < len(index)
    want[place] = -1 if duplicates else value
    got = torch.tensor(A)
    got[index] = -1 if duplicates else torch.tensor(value)
    np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("index", BASIC, ids=str)
def test_basic_indices_are_views(index):
    t = torch.tensor(A)
    view = t[index]
    assert view is not t
    view.fill_(-1)
    want = A.copy()
    want[index] = -1
    np.testing.assert_array_equal(t.numpy(), want)


@pytest.mark.parametrize("index", BASIC, ids=str)
def test_gradient(index):
    x = torch.tensor(A, requires_grad=True)
    x[index].sum().backward()
    want = np.zeros_like(A)
    want[index] = 1
    np.testing.assert_array_equal(x.grad.numpy(), want)


def test_gradient_of_assignment():
    x, v = torch.ones(3, 4, requires_grad=True), torch.ones(2, requires_grad=True)
    y = x * 2
    y[1, 1:3] = v * 5
    y.sum().backward()
    want = np.full((3, 4), 2.0)
    want[1, 1:3] = 0
    np.testing.assert_array_equal(x.grad.numpy(), want)
    assert v.grad.tolist() == [5, 5]


def test_assignment_to_a_leaf():
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        x[0] = 5


def test_values():
    t = torch.zeros(2, 3)
    t[0] = torch.tensor([1, 2, 3])  # another dtype
    t[1] = 7
    assert t.tolist() == [[1, 2, 3], [7, 7, 7]]
    t[:, 1] = torch.tensor([[[5.0]]])  # leading ones are dropped
    t[0, 0] = torch.tensor(9)
    t[0, 2] = np.float64(4)
    assert t.tolist() == [[9, 5, 4], [7, 5, 7]]
    with pytest.raises(RuntimeError, match=r"shape|expanded size|size of tensor|broadcast"):
        t[0] = torch.ones(2)
    with pytest.raises(TypeError, match="can't assign a str"):
        t[0] = "a"
    with pytest.raises(TypeError, match="deleting"):
        del t[0]


def test_masks():
    t = torch.tensor([[1.0, -2.0], [-3.0, 4.0]])
    assert t[t > 0].tolist() == [1, 4]
    t[t < 0] = 0
    assert t.tolist() == [[1, 0], [0, 4]]
    t[t > 0] = torch.tensor([8.0, 9.0])
    assert t.tolist() == [[8, 0], [0, 9]]
    with (
        pytest.warns(UserWarning, match="uint8 is now deprecated")
        if not torch.is_warn_always_enabled()
        else _always()
    ):
        torch.set_warn_always(True)
        try:
            assert t[torch.tensor([0, 1], dtype=torch.uint8)].shape == (1, 2)
        finally:
            torch.set_warn_always(False)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.int64, torch.bool])
def test_one_element_behind_a_mask_is_converted(dtype):
    whole = torch.zeros(2, 3, dtype=dtype)
    values = (torch.tensor(3), torch.tensor(2.5), torch.tensor(True), torch.tensor([[2.0]]))
    for index in (
        torch.tensor([False, True]),
        (torch.tensor([False, True]), 1),
        torch.tensor([[True, False, True], [False, True, False]]),
        (slice(None), torch.tensor([True, False, True])),
        [False, True],
    ):
        for value in values:
            t, by_number = whole.clone(), whole.clone()
            t[index] = value
            by_number[index] = value.item()
            assert t.dtype is dtype and torch.equal(t, by_number) and t.any()
    with pytest.raises(RuntimeError, match="does not fit"):
        torch.zeros(2, dtype=torch.uint8)[torch.tensor([True, False])] = torch.tensor(300)
    with pytest.raises(RuntimeError, match="dtypes match"):
        torch.zeros(2)[torch.tensor([True, False])] = torch.tensor([1, 2])
    with pytest.raises(RuntimeError, match="dtypes match"):
        torch.zeros(2)[[0]] = torch.tensor(1)
    w = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    t = torch.zeros(3)
    t[torch.tensor([True, False, True])] = w
    t.sum().backward()
    assert w.grad.item() == 2


def _always():
    return pytest.warns(UserWarning)


def test_zero_dimensional_tensors():
    s = torch.tensor(5)
    assert s[...].item() == s[()].item() == 5 and s[None].shape == (1,)
    t = torch.arange(4)
    assert t[torch.tensor(2)].item() == 2 and t[torch.tensor(2)].shape == ()
    s[...] = 7
    assert s.item() == 7


T = torch.tensor(A)


@pytest.mark.parametrize(
    "index, error, message",
    [
        (2, IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
        (-3, IndexError, "index -3 is out of bounds for dimension 0 with size 2"),
        ((0, 3), IndexError, "index 3 is out of bounds for dimension 1 with size 3"),
        ((0, 0, 0, 0), IndexError, "too many indices for tensor of dimension 3"),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
        (slice(None, None, 0), ValueError, "slice step cannot be zero"),
        ("a", TypeError, "invalid data type 'str'"),
        (1.0, IndexError, r"only integers, slices.*, not float"),
        (torch.tensor(1.0), IndexError, "must be long, int, byte or bool tensors"),
        ([0, 5], IndexError, "out of"),
        (torch.tensor([True, False, True]), IndexError, "mask \\[3\\] does not match dimension 0"),
        (object(), IndexError, "only integers"),
        ({}, IndexError, "only integers"),
        (slice(0.5, 1), TypeError, "slice indices must be integers"),
        (2**70, ValueError, "Overflow"),
    ],
    ids=str,
)
def test_errors(index, error, message):
    with pytest.raises(error, match=message):
        T[index]
    with pytest.raises(error, match=message):
        T.clone()[index] = 0


def test_index_of_a_zero_dimensional_tensor():
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        torch.tensor(1)[0]


def test_many_new_dimensions():
    with pytest.raises((IndexError, RuntimeError)):
        T[(None,) * 200]


@pytest.mark.filterwarnings("ignore:Casting complex")
@pytest.mark.parametrize(
    "value", [torch.tensor(2 + 1j), torch.tensor([2 + 1j]), torch.tensor(2), [2.0, 2.0, 2.0]]
)
def test_a_bool_as_the_index(value):
    """All of a tensor, or nothing of it, as a new dimension in front of size 1 or 0; values are converted as by copy_."""
    value = value if isinstance(value, torch.Tensor) else torch.tensor(value)
    y = torch.ones(3)
    y[True] = value
    assert y.tolist() == [2, 2, 2]
    y[False] = torch.zeros(())
    assert y.tolist() == [2, 2, 2]
    whole = torch.ones(3, requires_grad=True)
    copy = whole * 1
    copy[True] = torch.zeros(())
    copy.sum().backward()
    assert whole.grad.tolist() == [0, 0, 0]
    for index in (True, False):
        with pytest.raises(RuntimeError, match="without overflow"):
            y[index] = 1j
