"""Arguments of ops: what is taken, in which forms, and the errors for what is not."""

import numpy as np
import pytest

import rushlight as torch

V = torch.arange(4.0)
M = torch.ones(2, 3)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: V.unsqueeze(), r'unsqueeze\(\) missing 1 required positional arguments: "dim"'),
        (lambda: M.new_ones(), r'new_ones\(\) missing 1 required positional arguments: "size"'),
        (lambda: torch.ones(), r'ones\(\) missing 1 required positional arguments: "size"'),
        (lambda: V.unsqueeze(True), r"argument 'dim' \(position 1\) must be int, not bool"),
        (
            lambda: V.unsqueeze(1.0),
            r"unsqueeze\(\): argument 'dim' \(position 1\) must be int, not float",
        ),
        (lambda: torch.unsqueeze(V, "a"), r"argument 'dim' \(position 2\) must be int, not str"),
        (
            lambda: torch.zeros(2.0),
            r"zeros\(\): argument 'size' \(position 1\) must be tuple of ints, not float",
        ),
        (lambda: torch.zeros(2, 3.0), r"zeros\(\): argument 'size'.*must be tuple of ints"),
        (
            lambda: torch.zeros((2, 3.0)),
            r"must be tuple of ints, but found element of type float at pos 1",
        ),
        (lambda: torch.zeros(True), r"must be tuple of ints, not bool"),
        (
            lambda: torch.ones(2, requres_grad=True),
            r"ones\(\) got an unexpected keyword argument 'requres_grad'",
        ),
        (lambda: torch.relu(V, V), r"relu\(\) takes 1 positional argument but 2 were given"),
        (lambda: torch.exp(V, input=V), r"exp\(\) got multiple values for argument 'input'"),
        (lambda: V.add("x"), r"add\(\): argument 'other' \(position 1\) must be Tensor, not str"),
        (
            lambda: torch.add(V, "x"),
            r"add\(\): argument 'other' \(position 2\) must be Tensor, not str",
        ),
        (
            lambda: torch.full((2,), "a"),
            r"argument 'fill_value' \(position 2\) must be Number, not str",
        ),
        (
            lambda: torch.cat(V),
            r"cat\(\): argument 'tensors' \(position 1\) must be tuple of Tensors, not Tensor",
        ),
        (lambda: torch.cat([V, 1]), r"found element of type int at pos 1"),
        (lambda: torch.cat((V, V), dim="a"), r"cat\(\): argument 'dim' must be int, not str"),
        (lambda: M.reshape("a"), r"argument 'shape' \(position 1\) must be tuple of ints, not str"),
        (lambda: V.requires_grad_(1), r"must be bool, not int"),
        (lambda: V.size("a"), r"size\(\): argument 'dim' \(position 1\) must be int, not str"),
        (
            lambda: torch.tensor([1.0], foo=1),
            r"tensor\(\) got an unexpected keyword argument 'foo'",
        ),
        (lambda: torch.tensor(), r'tensor\(\) missing 1 required positional arguments: "data"'),
        (lambda: torch.tensor(1, 2), r"tensor\(\) takes 1 positional argument but 2 were given"),
        (lambda: torch.zeros(2, dtype="float32"), r"argument 'dtype' must be torch.dtype, not str"),
        (lambda: torch.zeros(2, device=1.5), r"argument 'device' must be torch.device, not float"),
        (
            lambda: torch.squeeze(M, "a"),
            r"squeeze\(\) received an invalid combination of arguments - got \(Tensor, str\)",
        ),
        (lambda: M.view(), r"view\(\) (received an invalid combination|missing 1 required)"),
        (
            lambda: torch.where(M > 0, M),
            r"where\(\) received an invalid combination of arguments - got \(Tensor, Tensor\)",
        ),
    ],
)
def test_errors(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_invalid_combination_lists_what_is_expected():
    with pytest.raises(TypeError) as error:
        torch.squeeze(M, ["a", 1])
    text = str(error.value)
    assert "got (Tensor, list of [str, int]), but expected one of:" in text
    assert " * (Tensor input, int dim)" in text and " * (Tensor input, tuple of ints dim)" in text


@pytest.mark.parametrize(
    "size", [(2, 3), ((2, 3),), ([2, 3],), (torch.Size([2, 3]),), (np.int64(2), torch.tensor(3))]
)
def test_sizes(size):
    assert torch.zeros(*size).shape == (2, 3)
    assert torch.arange(6).view(*size).shape == (2, 3)
    assert torch.arange(6).reshape(*size).shape == (2, 3)


def test_sizes_by_keyword():
    assert torch.zeros(size=(2, 3)).shape == (2, 3)
    assert (
        M.permute(dims=(1, 0)).shape == M.permute(1, 0).shape == M.permute([1, 0]).shape == (3, 2)
    )


def test_other_names():
    assert torch.sum(M, axis=0).shape == (3,)
    assert M.sum(axis=1, keepdims=True).shape == (2, 1)
    assert torch.add(input=V, other=1).tolist() == [1, 2, 3, 4]


def test_dims():
    assert M.sum(0).shape == M.sum((0,)).shape == M.sum([0]).shape == (3,)
    assert M.sum(dim=(0, 1)).shape == ()
    assert M.sum(np.int64(0)).shape == (3,)
    assert M.sum(dim=None).shape == ()


@pytest.mark.parametrize(
    "number", [2, 2.0, np.float32(2), np.int8(2), torch.tensor(2.0), torch.tensor(2)]
)
def test_scalars(number):
    assert torch.add(V, V, alpha=number).tolist() == [0, 3, 6, 9]
    assert torch.full((1,), number).item() == 2


def test_complex_scalars():
    assert torch.full((1,), 1j).dtype is torch.complex64


def test_tensors_with_gradients_are_no_numbers():
    with pytest.raises(TypeError):
        torch.full((2,), torch.tensor(1.0, requires_grad=True))


@pytest.mark.parametrize(
    "given, dtype", [(float, "float64"), (int, "int64"), (bool, "bool"), (torch.half, "float16")]
)
def test_dtypes(given, dtype):
    assert torch.zeros(1, dtype=given).dtype is getattr(torch, dtype)
    assert V.to(given).dtype is getattr(torch, dtype)


def test_devices():
    for place in ("cpu", torch.device("cpu")):
        assert torch.zeros(1, device=place).is_cpu
    assert torch.zeros(1, device="meta").is_meta
    with pytest.raises(RuntimeError, match="at start of device string"):
        torch.zeros(1, device="gpu")


def test_out_keeps_the_object():
    out = torch.empty(4)
    assert torch.exp(V, out=out) is out
    values, indices = torch.empty(3), torch.empty(3, dtype=torch.int64)
    result = torch.max(M, 0, out=(values, indices))
    assert result.values is values and result.indices is indices
    with pytest.raises(TypeError):
        torch.exp(V, out=1)
    with pytest.raises((TypeError, RuntimeError)):
        torch.max(M, 0, out=(values,))


def test_methods_have_no_out():
    with pytest.raises(TypeError, match="unexpected keyword argument 'out'"):
        V.exp(out=torch.empty(4))


def test_in_place_returns_the_object():
    t = torch.ones(2)
    assert t.add_(1) is t and t.mul_(torch.tensor(2.0)) is t and t.tolist() == [4, 4]


def test_named_results():
    r = torch.max(torch.tensor([[1.0, 3.0], [2.0, 0.0]]), 1)
    values, indices = r
    assert r.values is r[0] is values and indices.tolist() == [1, 0]
    assert isinstance(r, tuple) and type(r).__name__ == "max"
    assert repr(r) == "torch.return_types.max(\nvalues=tensor([3., 2.]),\nindices=tensor([1, 0]))"
    assert type(r) is torch.return_types.max


def test_none_is_no_tensor():
    with pytest.raises(TypeError, match="must be Tensor, not NoneType"):
        torch.exp(None)


def test_huge_ints():
    with pytest.raises(TypeError, match="zeros..: 'size' failed to unpack .* pos 2: Over"):
        torch.zeros(1, 2**70)
    with pytest.raises(ValueError, match="Overflow"):
        V.sum(2**70)
    with pytest.raises(RuntimeError, match="select.*index.*Overflow"):
        torch.ops.aten.select.int(V, 0, 2**70)
    with pytest.raises((RuntimeError, OverflowError)):
        V + 2**70


def test_names_of_functions():
    assert torch.add.__name__ == "add" and torch.add.__module__ == "rushlight"
    assert "add" in torch.add.__doc__


def test_a_tensor_of_one_integer_is_an_int_of_a_list():
    one, row = torch.tensor(2), torch.tensor([2])
    assert torch.zeros([row, one, 3]).shape == torch.zeros(row, one, 3).shape == (2, 2, 3)
    assert torch.ones(4).reshape(row, -1).shape == torch.ones(4).view([row, one]).shape == (2, 2)
    x = torch.ones(1, 1, 4, 4)
    assert x.expand(row, -1, -1, -1).shape == (2, 1, 4, 4)
    assert torch.nn.functional.interpolate(x, size=[row, row]).shape == (1, 1, 2, 2)
    assert torch.nn.functional.pad(x, [row, one, 0, row]).shape == (1, 1, 6, 8)
    for wrong in (torch.tensor([2, 3]), torch.tensor(2.0), torch.tensor(True)):
        with pytest.raises(TypeError, match="must be tuple of ints"):
            torch.zeros([wrong, 3])
