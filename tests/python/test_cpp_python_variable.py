"""Extensions of Python's C API that take and give tensors by libtorch's functions."""

import os
import shutil
from pathlib import Path

import pytest

import rushlight as torch
from rushlight.utils import cpp_extension

PROGRAM = Path(__file__).resolve().parent.parent / "cpp_programs" / "python_variable.cpp"


@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer would watch the compiler")
def test_tensors_cross_by_the_functions_of_variables(tmp_path):
    module = cpp_extension.load("python_variable", str(PROGRAM), build_directory=str(tmp_path))
    x = torch.ones(3, requires_grad=True)
    y = module.doubled(x)
    y.sum().backward()
    assert y.tolist() == [2, 2, 2] and x.grad.tolist() == [2, 2, 2]
    assert module.same(x) is x
    assert module.doubled([1.0]) is None
    assert module.refusal(x) is None
    assert "expected a Tensor, not list" in module.refusal([1.0])
