"""What the C++ headers ask of a compiler, and of programs."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight
from ops.headers import ABSENT, NAMES
from tests.parity.cpp_names import names_of

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
    # bindings of other languages call by name some 7,000, the states of optimisers 700; what
    # TORCH_LIBRARY, LOG and CHECK need, which libtorch's header brings as well, takes 14,000.
    assert 50_000 < peak <= 295_000, f"g++ takes {peak} KiB"


def test_every_name_of_a_header_is_installed():
    names = {
        f"{folder}/{name}" + ("" if name.endswith(".hpp") else ".h")
        for folders in NAMES.values()
        for folder, listed in folders.items()
        for name in listed.split()
    }
    names |= {name for listed in ABSENT.values() for name in listed.split()}
    assert len(names) > 300
    assert [name for name in sorted(names) if not (INCLUDE / name).is_file()] == []


HEADERS = """torch/torch.h torch/script.h torch/csrc/autograd/engine.h ATen/record_function.h
    torch/nn/parallel/data_parallel.h ATen/native/cpu/Loops.h ATen/autocast_mode.h
    ATen/DeviceAccelerator.h ATen/TensorUtils.h ATen/TensorGeometry.h ATen/cpu/vec/vec.h
    ATen/AccumulateType.h ATen/DLConvertor.h c10/cuda/CUDAGuard.h
    torch/csrc/utils/tensor_flatten.h torch/csrc/jit/frontend/tracer.h
    torch/csrc/jit/serialization/export.h torch/csrc/distributed/c10d/ProcessGroup.hpp
    torch/csrc/distributed/c10d/TCPStore.hpp torch/csrc/stable/library.h torch/csrc/stable/ops.h"""


def test_names_of_programs_do_not_disturb_headers(tmp_path):
    """A program may have anything of rushlight's names outside namespaces, and use namespace std."""
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        pytest.skip("there is no g++")
    standard = "#include <bits/stdc++.h>\n#include <unistd.h>\nusing namespace std;\n"

    def errors(text):
        source = tmp_path / "program.cpp"
        source.write_text(text)
        flags = ["-w", "-std=c++17", "-fsyntax-only", "-fmax-errors=0", f"-I{INCLUDE}"]
        said = subprocess.run([compiler, *flags, source], capture_output=True, text=True).stderr
        return re.findall(r"^(\S+):(\d+):\d+: (?:fatal )?error: (.*)", said, re.M)

    found = (n for f in (INCLUDE / "rushlight").glob("*.h") for n in names_of(f.read_text()))
    inner = {n.split("::")[1] for n in found if re.fullmatch(r"rushlight::\w+", n)}
    names = sorted(inner)
    lines = [f"struct {name} {{}};" for name in names]
    before = standard.count("\n")
    # Those that C has cannot be a program's.
    taken = {int(line) - before - 1 for _, line, _ in errors(standard + "\n".join(lines) + "\n")}
    own = "\n".join(line for i, line in enumerate(lines) if i not in taken) + "\n"
    assert own.count("\n") > 1000
    assert errors(standard + own + "".join(f"#include <{h}>\n" for h in HEADERS.split())) == []
