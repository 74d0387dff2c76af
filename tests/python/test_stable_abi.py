"""Ops over the stable ABI: what they take and give, what their binary needs, errors."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight as torch
from rushlight._library import stable
from rushlight.utils import cpp_extension

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler"),
    pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer would watch the compiler"),
]
SOURCE = Path(__file__).resolve().parent.parent / "cpp_programs" / "stable.cpp"
PACKAGE = Path(torch.__file__).parent


@pytest.fixture(scope="module")
def ops(tmp_path_factory):
    path = cpp_extension.load(
        "stable_test_ops",
        str(SOURCE),
        is_python_module=False,
        build_directory=str(tmp_path_factory.mktemp("stable")),
    )
    assert os.path.realpath(path) in torch.ops.loaded_libraries
    return torch.ops.stable_test


def test_numbers_of_every_dtype(ops):
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64):
        x = torch.arange(3000).to(dtype).reshape(30, 100).t() % 7
        assert torch.equal(ops.scaled(x, 3.0), x * 3)
    assert torch.equal(ops.scaled(torch.zeros(0)), torch.zeros(0))
    assert ops.scaled(torch.tensor(2.5)).item() == 5
    with pytest.raises(RuntimeError, match="\"scaled\" not implemented for 'Bool'"):
        ops.scaled(torch.tensor(True))


def test_what_crosses(ops):
    x, y = torch.arange(6.0).reshape(2, 3), torch.ones(1)
    assert torch.equal(ops.joined([x, x.t()]), torch.cat([x.flatten(), x.t().flatten()]))
    first, count, word, sizes, number = ops.parts(x, [1, 2], None, True, "hé", 1.5)
    assert torch.equal(first, x) and (count, word, sizes, number) == (3, "hé!", [1, 2], 3.0)
    first, count, word, sizes, number = ops.parts(x, [], y, False, "")
    assert torch.equal(first, y) and (count, word, sizes, number) == (0, "!", [], None)
    made = ops.made([2, 1], torch.bfloat16, torch.device("cpu"))
    assert made.dtype is torch.bfloat16 and made.tolist() == [[7], [7]]
    ops.fill_(x, 3.0)
    assert x.eq(3).all() and x._version > 0
    assert ops.trace(torch.arange(9.0, dtype=torch.float64).reshape(3, 3).t()) == 12
    assert ops.told(x.t()) == "2 6 1 3 strided 4 0 cpu here -1"
    assert ops.told(x[1:]) == "2 3 3 1 contiguous 4 3 cpu here -1"


def test_functions_of_stable(ops):
    x = torch.arange(6.0, dtype=torch.float64).reshape(2, 3)
    expected = [
        x.t(),
        x.unsqueeze(0),
        x,
        x[1],
        x @ x.t(),
        x.amax(1),
        x.amax((0, 1), True),
        torch.nn.functional.pad(x, (1, 2), value=5),
        x.flatten(),
        x.reshape(-1, 1),
        x.float(),
        x,
        x.sum(),
        x.sum(1, True),
        x.sum(0),
        x * 0.5,
        torch.zeros(2, dtype=torch.int64),
        torch.tensor([2.0, 4.0], dtype=torch.float64),
    ]
    given = ops.all(x)
    assert len(given) == len(expected)
    for a, b in zip(given, expected, strict=True):
        assert a.dtype is b.dtype and torch.equal(a, b)


def test_memory_that_is_lent_is_given_back(ops):
    before = ops.num_deleted()
    t = ops.lent()
    view = t[1:]
    del t
    assert view.tolist() == [2] and ops.num_deleted() == before
    del view
    assert ops.num_deleted() == before + 1


def test_errors_arrive(ops):
    with pytest.raises(RuntimeError, match=r"shape '\[7\]' is invalid for input of size 6"):
        ops.wrong(torch.zeros(6))
    with pytest.raises(RuntimeError, match="nothing to join, not even 1"):
        ops.joined([])
    with pytest.raises(RuntimeError, match="expected scalar type Double but found Float"):
        ops.trace(torch.eye(2))


def test_schemas_and_transforms(ops):
    op = ops.scaled.default
    assert str(op._schema) == "stable_test::scaled(Tensor x, float by=2.0) -> Tensor"
    assert torch.Tag.pt2_compliant_tag in op.tags
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="register_autograd"):
        ops.scaled(x).sum().backward()
    assert torch.vmap(ops.scaled)(torch.ones(2, 3)).tolist() == [[2, 2, 2]] * 2


SETUP = """
import setuptools
from torch.utils import cpp_extension

setuptools.setup(
    name="stable_ops",
    version="1",
    packages=["stable_ops"],
    ext_modules=[
        cpp_extension.CppExtension(
            "stable_ops._C",
            ["stable.cpp"],
            extra_compile_args={"cxx": ["-O0", "-DTORCH_TARGET_VERSION=0x020d000000000000"]},
            py_limited_api=True,
        )
    ],
    cmdclass={"build_ext": cpp_extension.BuildExtension},
)
"""
USE = """
import sys, torch, stable_ops._C
assert "rushlight" in torch.__version__
print(torch.ops.stable_test.scaled(torch.ones(2)).tolist())
"""


def test_a_setup_builds_a_binary_for_both(tmp_path):
    pytest.importorskip("setuptools")
    (tmp_path / "stable_ops").mkdir()
    (tmp_path / "stable_ops" / "__init__.py").touch()
    (tmp_path / "setup.py").write_text(SETUP)
    start = (
        '#include <Python.h>\nstatic PyModuleDef def = {PyModuleDef_HEAD_INIT, "_C", nullptr, -1,'
        " nullptr, nullptr, nullptr, nullptr, nullptr};\n"
        "PyMODINIT_FUNC PyInit__C() { return PyModule_Create(&def); }\n"
    )
    (tmp_path / "stable.cpp").write_text(start + SOURCE.read_text())
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    run = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
    python = [sys.executable, "-m", "rushlight", "run"]
    done = subprocess.run([*python, "setup.py", "build_ext", "--inplace"], **run)
    assert done.returncode == 0, done.stdout + done.stderr
    (binary,) = (tmp_path / "stable_ops").glob("_C*.so")
    assert ".abi3." in binary.name
    needed = subprocess.run(["readelf", "-d", binary], capture_output=True, text=True).stdout
    names = set(re.findall(r"NEEDED.*\[(lib\w+)\.so", needed))
    assert {"libtorch", "libtorch_cpu", "libc10"} <= names and "librushlight" not in names
    listed = subprocess.run(
        ["nm", "-DC", "--undefined-only", binary], capture_output=True, text=True
    )
    assert "rushlight" not in listed.stdout and "aoti_torch_library_init_def" in listed.stdout
    (tmp_path / "use.py").write_text(USE)
    done = subprocess.run([*python, "use.py"], **run)
    assert (done.returncode, done.stdout.strip()) == (0, "[2.0, 2.0]"), done.stderr
    # Without the folder that the setup knew, as from a wheel that was built elsewhere.
    moved = binary.read_bytes().replace(
        str(PACKAGE).encode(), b"/nowhere".ljust(len(str(PACKAGE)), b"_")
    )
    binary.write_bytes(moved)
    done = subprocess.run([*python, "use.py"], **run)
    assert (done.returncode, done.stdout.strip()) == (0, "[2.0, 2.0]"), done.stderr


def test_names_of_libraries_hold_nothing():
    for name in stable.NAMES:
        path = PACKAGE / "lib" / "stable" / name
        assert path.stat().st_size < 16384
        needed = subprocess.run(["readelf", "-d", path], capture_output=True, text=True).stdout
        assert "librushlight.so" in needed and f"soname: [{name}]" in needed
