"""The text of tensors, letter by letter."""

import math
import os
import shutil

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.utils import cpp_extension

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


# ---- C++ ----


@pytest.fixture(scope="module")
def cpp(tmp_path_factory):
    if shutil.which("c++") is None or "LD_PRELOAD" in os.environ:
        pytest.skip("needs a C++ compiler, and no sanitizer that would watch it")
    source = """
    #include <sstream>
    std::string text(torch::Tensor x) {
      std::ostringstream out;
      out << x;
      return out.str();
    }
    """
    folder = str(tmp_path_factory.mktemp("text"))
    return cpp_extension.load_inline(
        "rl_test_text", source, functions="text", build_directory=folder
    )


def printed_tensors():
    dtypes = [*(getattr(torch, name) for name in STORED), torch.bool]
    for shape in ((), (0,), (2, 0, 3), (1,), (5,), (30,), (2, 3), (2, 2, 2), (1, 2, 1, 7)):
        for dtype in dtypes:
            numbers = torch.arange(math.prod(shape), dtype=torch.float64) * 1.5 - 3
            kept = numbers.abs() if dtype in UNSIGNED else numbers
            yield kept.reshape(shape).to(dtype)
    for shape in ((2000,), (40, 40), (7, 3, 100), (2, 1000), (1001, 1)):
        yield torch.arange(math.prod(shape)).reshape(shape)
        yield (
            (torch.arange(math.prod(shape)) / 7).reshape(shape).t_()
            if len(shape) == 2
            else (torch.arange(math.prod(shape)) / 7).reshape(shape)
        )
    for values in (
        [INF, -INF, NAN],
        [INF, 1.0, -2.25],
        [-0.0, 0.0],
        [1e-5, 1.0],
        [1e9, 2.0],
        [123456.789, 0.001],
        [1e300, -1e-300],
        [complex(NAN, -1.5), 1j, complex(2, -INF)],
    ):
        yield torch.tensor(values)
        yield torch.tensor(values, dtype=torch.complex128 if 1j in values else torch.float64)
    x = torch.arange(3.0, requires_grad=True)
    yield from (x, x * 2, x[1:], x.detach(), x.reshape(3, 1).expand(3, 40) * 1.0)
    yield torch.zeros(3, device="meta")
    yield torch.zeros(2, 2, device="meta", dtype=torch.int8)
    yield torch.eye(3).to_sparse()
    yield torch.zeros(0, 3, dtype=torch.float64).to_sparse()
    yield (torch.eye(3) * x).to_sparse_csr()
    yield torch.eye(4).to_sparse_csc()
    yield torch.eye(4, dtype=torch.int32).to_sparse_bsr((2, 2))


STORED = [
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex32",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e5m2",
]
UNSIGNED = {torch.uint8, torch.uint16, torch.uint32, torch.uint64}


def test_cpp_prints_alike(cpp):
    count = 0
    for t in printed_tensors():
        assert cpp.text(t) == repr(t)
        count += 1
    assert count > 190
    assert torch.vmap(lambda x: torch.tensor(len(cpp.text(x))) + x)(torch.ones(2)).tolist()[0] > 20
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(torch.ones(2), torch.zeros(2))
        assert cpp.text(dual) == repr(dual) and "tangent=" in repr(dual)
    torch.set_default_dtype(torch.float64)
    try:
        for t in (torch.ones(2), torch.ones(2, dtype=torch.float32), torch.ones(1) * 1j):
            assert cpp.text(t) == repr(t)
    finally:
        torch.set_default_dtype(torch.float32)
