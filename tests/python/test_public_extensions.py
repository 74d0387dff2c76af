"""Public extensions, built by their own setups under the alias: their functions give the right numbers.

RUSHLIGHT_EXTENSIONS is a folder of checkouts named OWNER+NAME, as of github.com/OWNER/NAME; those
that are not there are skipped. None of them is ours.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight

CHECKOUTS = os.environ.get("RUSHLIGHT_EXTENSIONS")
PROGRAM = Path(__file__).resolve().parent.parent / "cpp_programs" / "public_extensions.py"
# The check → the checkout, and the folder of its setup.
EXTENSIONS = {
    "scatter": ("rusty1s+pytorch_scatter", "."),
    "cluster": ("rusty1s+pytorch_cluster", "."),
    "spline_conv": ("rusty1s+pytorch_spline_conv", "."),
    "correlation": ("ClementPinard+Pytorch-Correlation-extension", "."),
    "sort": ("teddykoker+torchsort", "."),
    "lpc": ("DiffAPF+torchlpc", "."),
    "abn": ("mapillary+inplace_abn", "."),
    "muladd": ("pytorch+extension-cpp", "."),
    "causal": ("idiap+fast-transformers", "."),
    "points": ("torch-points3d+torch-points-kernels", "."),
    "linear": ("RaulMurillo+cpp-torch", "src/linear"),
    "lltm": ("goldsborough+pytorch-cpp-extension", "cpp"),
    "example": ("narumiruna+pytorch-cpp-extension-example", "."),
    "align": ("tky823+monotonic-alignment_torch-cpp", "."),
}


NEEDED = {"lpc": "numba"}  # packages that theirs import


def test_each_has_a_check():
    checks = set(re.findall(r"(?m)^def (\w+)\(\):", PROGRAM.read_text()))
    assert checks == set(EXTENSIONS) and len(checks) >= 10


@pytest.mark.timeout(1200)
@pytest.mark.skipif(CHECKOUTS is None, reason="no public extensions: RUSHLIGHT_EXTENSIONS")
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer would watch the compiler")
@pytest.mark.parametrize("name", EXTENSIONS)
def test_it_builds_and_computes(name, tmp_path):
    checkout, folder = EXTENSIONS[name]
    source = Path(CHECKOUTS or ".") / checkout
    if not source.is_dir():
        pytest.skip(f"there is no {source}")
    pytest.importorskip(NEEDED.get(name, "rushlight"))
    work = tmp_path / "checkout"
    shutil.copytree(source, work, ignore=shutil.ignore_patterns("*.so", "build", ".git"))
    if (work / "monotonic_align").is_dir():
        (work / "monotonic_align" / "_cpp_extensions").mkdir()  # as pip does
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(rushlight.__file__).parent.parent),
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",  # where no nvcc is
        "SETUPTOOLS_SCM_PRETEND_VERSION": "1",
    }
    setup = "setup_cpu.py" if (work / folder / "setup_cpu.py").exists() else "setup.py"
    for command in ([setup, "build_ext", "--inplace"], [str(PROGRAM), name]):
        done = subprocess.run(
            [sys.executable, "-m", "rushlight", "run", *command],
            cwd=work / folder,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    assert done.stdout.split()[-1] == "right"
