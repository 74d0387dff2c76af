"""What the C++ headers ask of a compiler."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight

MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
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
    # A process of its own starts the compiler: a child's peak is at least its parent's size.
    command = [compiler, "-std=c++17", "-fsyntax-only", f"-I{INCLUDE}", str(source)]
    measured = subprocess.run(
        [sys.executable, "-c", MEASURE, *command], capture_output=True, text=True, check=True
    )
    peak = int(measured.stdout)
    # The standard headers that programs find behind it take 22,000 of them, the functions that
    # bindings of other languages call by name some 7,000, the states of optimisers 700.
    assert 50_000 < peak <= 284_000, f"g++ takes {peak} KiB"
