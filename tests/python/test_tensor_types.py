"""Types of tensors and storages by name, and tensors that are put on other memory."""

import sys

import numpy as np
import pytest

import rushlight as torch


def test_default_types_by_tensor_types():
    before = torch.get_default_dtype()
    try:
        with pytest.warns(UserWarning, match=r"deprecated as of PyTorch 2\.1"):
            torch.set_default_tensor_type(torch.DoubleTensor)
        assert torch.get_default_dtype() == torch.float64 and torch.ones(1).dtype == torch.float64
        with pytest.warns(UserWarning):
            torch.set_default_tensor_type("torch.FloatTensor")
        assert torch.get_default_dtype() == torch.float32
        with pytest.warns(UserWarning), pytest.raises(TypeError, match="only floating-point"):
            torch.set_default_tensor_type(torch.IntTensor)
        with pytest.raises(TypeError, match="invalid type object"):
            torch.set_default_tensor_type(torch.float32)
        if not torch.cuda.is_available():
            for kind in (torch.cuda.FloatTensor, "torch.cuda.FloatTensor"):
                with pytest.warns(UserWarning), pytest.raises(TypeError, match="no CUDA device"):
                    torch.set_default_tensor_type(kind)
            assert torch.ones(1).is_cpu  # where they were before
    finally:
        torch.set_default_dtype(before)


def test_tensor_types_say_what_they_are_and_are_no_bases():
    kinds = (torch.FloatTensor, torch.cuda.FloatTensor, torch.sparse.FloatTensor)
    assert [kind.is_cuda for kind in kinds] == [False, True, False]
    assert [kind.is_sparse for kind in kinds] == [False, False, True]
    for kind in kinds:
        with pytest.raises(TypeError, match="is not an acceptable base type"):
            type("Own", (kind,), {})


def test_an_array_without_dimensions_is_one_number():
    array = np.array(5.5)
    for kind, value in ((torch.Tensor, 5.5), (torch.DoubleTensor, 5.5)):
        made = kind(array)
        assert made.shape == () and made == value and isinstance(made, kind)


def test_tensors_set_on_other_memory():
    x = torch.arange(6.0)
    y = torch.ones(2)
    assert y.set_(x, 1, (2, 2)) is y and y.tolist() == [[1, 2], [3, 4]] and y._version == 1
    y[0, 0] = 9
    assert x[1] == 9
    assert torch.ones(2).set_(x.untyped_storage(), 2, (2,), (2,)).tolist() == [2, 4]
    assert torch.ones(2, dtype=torch.int32).set_(x.untyped_storage()).shape == (6,)
    assert torch.ones(2).set_().shape == (0,) and torch.ones(2).set_(x).stride() == (1,)
    assert torch.ones(1).set_(torch.ones(2), 0, (10,)).shape == (10,)  # the memory grows
    with pytest.raises(RuntimeError, match="Could not set tensor of type"):
        torch.ones(2, dtype=torch.int32).set_(x)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        torch.ones(2, requires_grad=True).set_(x)
    with pytest.raises(RuntimeError, match="invalid storage offset"):
        torch.ones(2).set_(x, -1, (1,))
    with pytest.raises(RuntimeError, match="different device"):
        torch.ones(2).set_(torch.ones(2, device="meta"))
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        torch.ones(2).set_(x, 0)


def test_other_memory_has_no_derivative():
    """Which element came from where is not known: backward refuses, and does not cut or invent a graph."""
    a = torch.ones(3, requires_grad=True)
    other = torch.full((3,), 5.0)
    takes = {
        "of another": lambda: (a * 2).set_(other),
        "of a result": lambda: torch.ones(3).set_(a * 7),
        "of a leaf": lambda: torch.ones(2).set_(a),
        "a part": lambda: (a * 2).set_(other.untyped_storage(), 1, (2,)),
        "into a view": lambda: (a * 2)[:2].set_(other),
    }
    for name, take in takes.items():
        y = take()
        assert y.requires_grad, name
        with pytest.raises(RuntimeError, match="derivative for set_ is not implemented"):
            y.sum().backward()
    y = a * 2
    with torch.no_grad():
        y.set_(other)
    assert y.grad_fn.name() == "MulBackward0" and y.tolist() == [5, 5, 5]


def test_sizes_of_storages_are_those_of_their_bytes():
    empty, full = (torch.zeros(n).untyped_storage() for n in (0, 1000))
    assert sys.getsizeof(full) - sys.getsizeof(empty) == 4000


def test_arrays_of_parameters_where_nothing_is_recorded():
    w = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        w.numpy()
    with torch.no_grad():
        w.numpy()[0] = 3
    assert w[0] == 3
