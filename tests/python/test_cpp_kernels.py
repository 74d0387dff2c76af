"""Kernels as extensions write them: TensorIterator, AT_DISPATCH macros; libtorch's headers by name."""

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

import rushlight as torch
from rushlight.utils import cpp_extension

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler"),
    pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer would watch the compiler"),
]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    cpp_extension.load(
        "kernels",
        str(ROOT / "tests/cpp_programs/kernels.cpp"),
        is_python_module=False,
        build_directory=str(tmp_path_factory.mktemp("kernels")),
    )
    return torch.ops.kernels


@pytest.mark.parametrize("threads", [1, 4])
def test_iterators(kernels, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        a, b = torch.randn(70, 40, 50), torch.randn(50)
        for x, y in ((a, b), (a.transpose(0, 2), torch.randn(1, 1)), (a[:, ::2], a[:1, 1::2])):
            assert torch.equal(kernels.fused(x, y), x * y + x)
        assert torch.equal(kernels.fused(a, torch.arange(50)), a * torch.arange(50) + a)
        ints = torch.arange(6).reshape(2, 3)
        assert torch.equal(kernels.fused(ints, ints.short()), ints * ints + ints)
        assert kernels.fused(torch.tensor(2.0), torch.tensor(3.0)).item() == 8
        assert kernels.fused(torch.zeros(0, 3), torch.ones(3)).shape == (0, 3)
    finally:
        torch.set_num_threads(before)


def test_outputs_and_checks(kernels):
    a, b = torch.randn(3, 4), torch.randn(4)
    out = torch.empty(3, 4, dtype=torch.float64)
    assert kernels.fused_out(a, b, out) is out and torch.equal(out, (a * b + a).double())
    assert torch.equal(kernels.fused_out(a, b, a.clone()), a * b + a)
    assert torch.equal(kernels.greater(a, b), a > b)
    assert kernels.counted(torch.zeros(2, 3, dtype=torch.int64), 5).tolist() == [
        [5, 6, 7],
        [8, 9, 10],
    ]
    x = torch.randn(5, 7, dtype=torch.float64).t()
    assert abs(kernels.total(x) - x.sum().item()) < 1e-12
    with pytest.raises(RuntimeError, match="result type"):
        kernels.fused_out(a, b, torch.empty(3, 4, dtype=torch.int64))
    with pytest.raises(RuntimeError, match="single memory location"):
        whole = torch.randn(8)
        kernels.fused_out(whole[:4], b, whole[2:6])
    with pytest.raises(RuntimeError, match="must match"):
        kernels.fused(torch.zeros(2), torch.zeros(3))
    with pytest.raises(RuntimeError):
        kernels.counted(torch.zeros(2), 0)  # the function is of another type


def test_macros_and_helpers(kernels):
    assert [kernels.name_of(torch.zeros(1, dtype=t)) for t in (torch.float64, torch.float32)] == [
        "d",
        "f",
    ]
    assert kernels.name_of(torch.ones(1, dtype=torch.bool)) == "b"
    with pytest.raises((NotImplementedError, RuntimeError), match="not implemented for 'Long'"):
        kernels.name_of(torch.ones(1, dtype=torch.int64))
    assert (
        kernels.picked(torch.tensor([7]))
        == kernels.picked(torch.tensor([7], dtype=torch.int32))
        == 7
    )
    cuda = 9 if torch.cuda.is_available() else 4
    assert kernels.helpers() == [2, 3, 499500, 4, 1, 0, cuda]


def test_checks_of_arguments(kernels):
    x = torch.tensor([3.0, 4.0])
    assert kernels.first(x, x) == 4 and kernels.first(x.half(), x.half()) == 4
    assert kernels.first(x.int(), x.int()) == 4
    assert kernels.first(x.clone().requires_grad_(), x) == 104
    with pytest.raises(RuntimeError, match="Expected 1-dimensional tensor, but got 2-dimensional"):
        kernels.first(x[None], x)
    with pytest.raises(
        RuntimeError, match="argument #1 'x' to have same size as tensor for argument"
    ):
        kernels.first(x, x[:1])
    with pytest.raises(RuntimeError, match="to have the same type"):
        kernels.first(x, x.double())
    with pytest.raises(RuntimeError, match="Expected contiguous tensor"):
        kernels.first(torch.zeros(4)[::2], x)
    with pytest.raises(RuntimeError, match="nothing is there"):
        kernels.first(x[:0], x[:0])


def test_headers_by_libtorchs_names(tmp_path):
    include = Path(cpp_extension.include_paths()[0])
    names = sorted(
        str(path.relative_to(include))
        for part in ("ATen", "c10", "torch")
        for path in (include / part).rglob("*.h")
    )
    absent = [n for n in names if (include / n).read_text().startswith("#error")]
    names = [n for n in names if n != "torch/nanobind.h" and n not in absent]
    assert len(names) > 300
    assert "ATen/cuda/CUDABlas.h" in absent
    source = tmp_path / "headers.cpp"
    source.write_text("".join(f"#include <{name}>\n" for name in names) + "at::Tensor t;\n")
    python = sysconfig.get_path("include")
    subprocess.run(
        ["c++", "-std=c++17", "-fsyntax-only", f"-I{include}", f"-I{python}", str(source)],
        check=True,
    )
