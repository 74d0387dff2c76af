"""New memory under deterministic algorithms: NaN, or an integer dtype's greatest number."""

import pytest

import rushlight as torch
from rushlight.utils import deterministic

DTYPES = [
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.float8_e4m3fn),
    *(torch.complex64, torch.complex32, torch.bool, torch.uint8, torch.int16, torch.int64),
    *(torch.uint16, torch.uint64),
]


@pytest.fixture
def marked():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)
    deterministic.fill_uninitialized_memory = True


def is_marked(t):
    if t.dtype.is_floating_point or t.dtype.is_complex:
        return t.to(torch.complex128).isnan().all().item()
    greatest = True if t.dtype == torch.bool else torch.iinfo(t.dtype).max
    return all(value == greatest for value in t.flatten().tolist())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_empty(marked, dtype):
    zeros = torch.zeros(3, 4, dtype=dtype)
    for t in (
        torch.empty(3, 4, dtype=dtype),
        torch.empty(3, 4, out=torch.zeros(1, dtype=dtype)),
        torch.empty_like(zeros),
        torch.empty_like(zeros.t()),
        torch.empty_strided((3, 4), (1, 5), dtype=dtype),
        torch.empty_permuted((2, 3, 4), (1, 0, 2), dtype=dtype),
        zeros.new_empty(2),
        zeros.new_empty_strided((2, 2), (1, 2)),
    ):
        assert is_marked(t)
    assert is_marked(torch.Tensor(3)) and is_marked(torch.FloatTensor(2, 2))
    assert not zeros.any() and torch.empty(0, dtype=dtype).numel() == 0
    torch.empty(3, dtype=dtype, device="meta")


@pytest.mark.parametrize("dtype", [torch.float32, torch.int16, torch.complex64], ids=str)
def test_resize(marked, dtype):
    t = torch.ones(2, 3, dtype=dtype)
    t.resize_(3, 4)
    flat = t.flatten()
    assert (flat[:6] == 1).all() and is_marked(flat[6:])
    t.resize_(2)
    assert (t == 1).all()
    view = torch.ones(4, dtype=dtype)[2:].resize_(4)
    assert (view[:2] == 1).all() and is_marked(view[2:])


def test_the_flag(marked):
    assert deterministic.fill_uninitialized_memory is True
    deterministic.fill_uninitialized_memory = False
    ones = torch.ones(1000)
    del ones
    assert not torch.empty(1000).isnan().all()
    deterministic.fill_uninitialized_memory = True
    torch.use_deterministic_algorithms(False)
    assert not torch.empty(1000).isnan().all()
    with pytest.raises(RuntimeError, match="expected a bool"):
        deterministic.fill_uninitialized_memory = 1
