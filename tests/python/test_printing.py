"""The text of tensors, letter by letter."""

import math

import pytest

import rushlight as torch
from rushlight import nn

INF, NAN = math.inf, math.nan


@pytest.fixture(autouse=True)
def default_options():
    yield
    torch.set_printoptions(profile="default")


def tensor(values, dtype=None):
    return torch.tensor(values, dtype=None if dtype is None else getattr(torch, dtype))


@pytest.mark.parametrize(
    "values, dtype, text",
    [
        (9, None, "tensor(9)"),
        (2.0, None, "tensor(2.)"),
        (-0.5, None, "tensor(-0.5000)"),
        (-0.0, None, "tensor(-0.)"),
        (True, None, "tensor(True)"),
        (NAN, None, "tensor(nan)"),
        (1e10, None, "tensor(1.0000e+10)"),
        (12345678.0, None, "tensor(12345678.)"),
        (2, "uint8", "tensor(2, dtype=torch.uint8)"),
        (0.1, "float16", "tensor(0.1000, dtype=torch.float16)"),
        (1 + 2j, None, "tensor(1.+2.j)"),
        (-1.5 - 0.25j, "complex128", "tensor(-1.5000-0.2500j, dtype=torch.complex128)"),
        ([], None, "tensor([])"),
        ([], "int64", "tensor([], dtype=torch.int64)"),
        ([1, 0, 2], "bool", "tensor([ True, False,  True])"),
        ([1, -20, 300], None, "tensor([  1, -20, 300])"),
        ([1.0, 2.0], "float64", "tensor([1., 2.], dtype=torch.float64)"),
        ([3.0, 0.0, -0.0], None, "tensor([3., 0., -0.])"),
        ([0.5, INF, NAN], None, "tensor([0.5000,    inf,    nan])"),
        ([INF, -INF], None, "tensor([inf, -inf])"),
        ([1e-5, 1.0], None, "tensor([1.0000e-05, 1.0000e+00])"),
        ([20000.0, 1.0], None, "tensor([2.0000e+04, 1.0000e+00])"),
        ([0.001, 0.5], None, "tensor([0.0010, 0.5000])"),
        ([1 + 2j, -0.5j], None, "tensor([1.+2.0000j, -0.-0.5000j])"),
        ([1.0, 1.5], "bfloat16", "tensor([1.0000, 1.5000], dtype=torch.bfloat16)"),
    ],
)
def test_values(values, dtype, text):
    assert repr(tensor(values, dtype)) == str(tensor(values, dtype)) == text


@pytest.mark.parametrize(
    "shape, text",
    [
        ((0, 3), "tensor([], size=(0, 3))"),
        ((2, 2), "tensor([[0., 0.],\n        [0., 0.]])"),
        ((2, 1, 2), "tensor([[[0., 0.]],\n\n        [[0., 0.]]])"),
    ],
)
def test_shapes(shape, text):
    assert repr(torch.zeros(shape)) == text


def test_long_lines_are_broken():
    assert repr(torch.arange(20).to(torch.float32) / 4) == (
        "tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000, 1.2500, 1.5000, 1.7500, 2.0000,\n"
        "        2.2500, 2.5000, 2.7500, 3.0000, 3.2500, 3.5000, 3.7500, 4.0000, 4.2500,\n"
        "        4.5000, 4.7500])"
    )


def test_large_tensors_are_summarised():
    assert repr(torch.arange(1001)) == "tensor([   0,    1,    2,  ...,  998,  999, 1000])"
    assert repr(torch.arange(1000)).count("...") == 0
    rows = repr(torch.arange(2000).reshape(100, 20)).split("\n")
    assert rows[0] == "tensor([[   0,    1,    2,  ...,   17,   18,   19],"
    assert rows[3] == "        ...,"
    assert rows[-1] == "        [1980, 1981, 1982,  ..., 1997, 1998, 1999]])"
    assert repr(torch.zeros(8, 3, 60)).count("\n\n        ...,\n\n") == 1


def test_gradient_suffixes():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    assert repr(x) == "tensor([1., 2.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2., 4.], grad_fn=<MulBackward0>)"
    assert repr((x * 2).detach()) == "tensor([2., 4.])"
    with torch.no_grad():
        assert repr(x * 2) == "tensor([2., 4.])"


def test_suffixes_go_to_a_line_of_their_own():
    x = torch.ones(9, dtype=torch.float64, requires_grad=True) / 8
    assert repr(x) == (
        "tensor([0.1250, 0.1250, 0.1250, 0.1250, 0.1250, 0.1250, 0.1250, 0.1250, 0.1250],\n"
        "       dtype=torch.float64, grad_fn=<DivBackward0>)"
    )


def test_meta():
    x = torch.empty(2, 3, device="meta")
    assert repr(x) == "tensor(..., device='meta', size=(2, 3))"


def test_default_dtype():
    torch.set_default_dtype(torch.float64)
    try:
        assert repr(torch.ones(1)) == "tensor([1.])"
        assert repr(torch.ones(1, dtype=torch.float32)) == "tensor([1.], dtype=torch.float32)"
    finally:
        torch.set_default_dtype(torch.float32)


def test_parameters_and_subclasses():
    class Mine(torch.Tensor):
        pass

    assert repr(nn.Parameter(torch.ones(1))) == (
        "Parameter containing:\ntensor([1.], requires_grad=True)"
    )
    assert repr(torch.ones(1).as_subclass(Mine)) == "Mine([1.])"


@pytest.mark.parametrize(
    "options, text",
    [
        ({"precision": 2}, "tensor([0.12, 1.50])"),
        ({"sci_mode": True}, "tensor([1.2346e-01, 1.5000e+00])"),
        ({"profile": "short"}, "tensor([0.12, 1.50])"),
        ({"linewidth": 10}, "tensor([0.1235,\n        1.5000])"),
        ({"threshold": 1, "edgeitems": 1}, "tensor([0.1235, 1.5000])"),
    ],
)
def test_options(options, text):
    torch.set_printoptions(**options)
    assert repr(torch.tensor([0.123456, 1.5])) == text


def test_edge_items():
    torch.set_printoptions(threshold=5, edgeitems=1)
    assert repr(torch.arange(10)) == "tensor([0,  ..., 9])"
    assert repr(torch.arange(16).reshape(4, 4)) == (
        "tensor([[ 0,  ...,  3],\n        ...,\n        [12,  ..., 15]])"
    )


def test_scientific_notation_can_be_forbidden():
    torch.set_printoptions(sci_mode=False)
    assert repr(torch.tensor([1e-5, 1.0])) == "tensor([0.0000, 1.0000])"


def test_format():
    x = torch.tensor(2.5)
    assert f"{x}" == "2.5" and f"{x:.4f}" == "2.5000" and f"{x!s}" == "tensor(2.5000)"
    assert f"{torch.tensor([1, 2])}" == "tensor([1, 2])"
