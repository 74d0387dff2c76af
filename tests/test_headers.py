"""What the C++ headers ask of a compiler."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import rushlight

INCLUDE = Path(rushlight.__file__).parent / "include"


def test_torch_header_is_light(tmp_path):
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        pytest.skip("there is no g++")
    version = subprocess.run(
        [compiler, "-dumpversion"], capture_output=True, text=True, check=True
    ).stdout
    if not version.startswith("12"):
        pytest.skip("the limit is one of g++ 12; others take their own memory")
    source = tmp_path / "one.cpp"
    source.write_text("#include <torch/torch.h>\n")
    process = subprocess.Popen(
        [compiler, "-std=c++17", "-fsyntax-only", f"-I{INCLUDE}", str(source)]
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    assert used.ru_maxrss <= 250_000, f"g++ takes {used.ru_maxrss} KiB"
