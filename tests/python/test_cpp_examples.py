"""The C++ examples build and learn; the template is a project of its own wherever it is copied."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight as torch

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "cpp"
PACKAGE = Path(torch.__file__).parent

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++"),
    pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer would watch the compiler"),
]


def run(*command, cwd):
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, env={**os.environ, "PATH": path}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(name, folder):
    lib = PACKAGE / "lib"
    flags = ["-std=c++17", "-O0", f"-I{PACKAGE / 'include'}", f"-L{lib}", f"-Wl,-rpath,{lib}"]
    run("g++", *flags, EXAMPLES / f"{name}.cpp", "-lrushlight", "-o", folder / name, cwd=folder)
    return folder / name


@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
def test_the_template_is_a_project(tmp_path):
    project = tmp_path / "project"
    shutil.copytree(EXAMPLES / "template", project)
    prefix = torch.utils.cmake_prefix_path
    run("cmake", "-B", "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", cwd=project)
    run("cmake", "--build", "build", cwd=project)
    lines = run("build/train", "600", cwd=project).splitlines()
    tenths = [line for line in lines if "% " in line]
    assert len(tenths) == 10 and tenths[-1].startswith("[" + "=" * 24 + "] 100 %")
    curve = lines[10:-1]
    assert len(curve) == 10 and "*" in curve[0] and "*" in curve[-1]
    assert float(lines[-1].split()[-1]) < 0.3
    said = run("build/predict", "0.5", "-2", cwd=project).split()
    assert said[::3] == ["0.5", "-2"]
    assert abs(float(said[2]) - 0.479) < 0.3 and abs(float(said[5]) + 0.909) < 0.3
    state = torch.load(project / "model.pt")
    assert set(state) == {f"{n}.{p}" for n in ("up", "middle", "down") for p in ("weight", "bias")}


def test_digits(tmp_path):
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 10, (300,), generator=generator)
    pixels = torch.zeros(300, 8, 8)
    pixels[torch.arange(300), labels // 5, labels % 5] = 16
    rows = [
        ",".join(f"{v:g}" for v in [*p.flatten().tolist(), n])
        for p, n in zip(pixels, labels.tolist(), strict=True)
    ]
    (tmp_path / "digits.csv").write_text("\n".join(rows))
    out = run(build("digits", tmp_path), "digits.csv", cwd=tmp_path)
    assert float(re.search(r"([\d.]+) % of 60 held-out digits are right", out)[1]) > 80
    assert "*" in out and (tmp_path / "digits.pgm").read_bytes().startswith(b"P5")


def test_char_gpt(tmp_path):
    (tmp_path / "text.txt").write_text("abcdefgh" * 100)
    out = run(build("char_gpt", tmp_path), "text.txt", "20", cwd=tmp_path)
    assert "100 %" in out and (tmp_path / "char_gpt.pgm").exists()
    losses = [float(x) for x in re.findall(r"loss ([\d.]+)", out)]
    assert losses[-1] < losses[0]
