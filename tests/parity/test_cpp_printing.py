"""Modules of the C++ API print themselves, and name their parameters, as libtorch's do."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import rushlight

torch = pytest.importorskip("torch")

PROGRAM = Path(__file__).resolve().parent.parent / "cpp_programs" / "printing.cpp"
# Lines that differ: what libtorch prints, and why it is not what is printed here.
DIFFERENT = {
    "torch::nn::MultiMarginLoss(p=1, margin=1, weight=[ Tensor (undefined) ], reduction=kMean)": (
        "torch::nn::MultiMarginLoss()",
        "no other loss prints its weight and reduction",
    ),
}


def compiled(folder, include, libraries):
    flags = ["-std=c++17", "-O0", "-w", *(f"-I{path}" for path in include)]
    search = [f"-L{libraries[0]}", f"-Wl,-rpath,{libraries[0]}"]
    names = [f"-l{name}" for name in libraries[1:]]
    subprocess.run(["g++", *flags, PROGRAM, "-o", folder / "printing", *search, *names], check=True)
    return subprocess.run(
        [folder / "printing"], check=True, capture_output=True, text=True
    ).stdout.splitlines()


@pytest.mark.timeout(900)  # of which libtorch's headers take nearly all
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer watches")
def test_modules_print_alike(tmp_path):
    package, rival = Path(rushlight.__file__).parent, Path(torch.__file__).parent
    (tmp_path / "ours").mkdir()
    ours = compiled(tmp_path / "ours", [package / "include"], [package / "lib", "rushlight"])
    headers = rival / "include"
    theirs = compiled(
        tmp_path,
        [headers, headers / "torch" / "csrc" / "api" / "include"],
        [rival / "lib", "torch", "torch_cpu", "c10"],
    )
    assert ours == [DIFFERENT.get(line, (line,))[0] for line in theirs]
