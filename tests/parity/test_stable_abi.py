"""One binary of the stable ABI loads in rushlight and in PyTorch, whoever's headers it was made with."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight

torch = pytest.importorskip("torch")

SOURCE = Path(__file__).resolve().parent.parent / "cpp_programs" / "stable.cpp"
PACKAGE = Path(rushlight.__file__).parent
TORCH = Path(torch.__file__).parent
# What the ops give, in either library.
CALLS = """
import sys
import {module} as torch

torch.ops.load_library(sys.argv[1])
ops = torch.ops.stable_test
x = torch.arange(6.0).reshape(2, 3)
print(ops.scaled(x), ops.scaled(x.int(), 3.0), ops.scaled(x.half()))
print(ops.joined([x, x.t()]), ops.parts(x, [1, 2], None, True, "h", 1.5))
print(ops.parts(x, [], x, False, "")[1:], ops.made([2, 1], torch.bfloat16, torch.device("cpu")))
ops.fill_(x, 3.0)
print(x, ops.trace(torch.eye(3, dtype=torch.float64)), ops.told(x.t()), ops.told(x[1:]))
print(ops.all(torch.arange(6.0, dtype=torch.float64).reshape(2, 3)))
t = ops.lent()
print(t, ops.num_deleted())
del t
print(ops.num_deleted(), ops.scaled.default.tags == [torch.Tag.pt2_compliant_tag])
for call in (lambda: ops.wrong(x), lambda: ops.joined([]), lambda: ops.scaled(x.bool())):
    try:
        call()
    except RuntimeError as error:
        print(error)
"""
SAID = (
    "shape '[7]' is invalid for input of size 6",
    "nothing to join, not even 1",
    "not implemented for 'Bool'",
)


def build(target, include, libraries):
    names = ["-Wl,--no-as-needed", "-ltorch", "-ltorch_cpu", "-lc10"]
    command = ["g++", "-std=c++20", "-O0", "-w", "-shared", "-fPIC", f"-I{include}", SOURCE]
    subprocess.run([*command, "-o", target, f"-L{libraries}", *names], check=True)


def printed(module, binary):
    path = PACKAGE.parent if module == "rushlight" else TORCH.parent
    ran = subprocess.run(
        [sys.executable, "-c", CALLS.format(module=module), binary],
        env={**os.environ, "PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    lines = ran.stdout.splitlines()
    for said, line in zip(SAID, lines[-3:], strict=True):
        assert said in line
    return lines[:-3]


@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer watches")
def test_binaries_load_in_both(tmp_path):
    ours, theirs = tmp_path / "ours.so", tmp_path / "theirs.so"
    build(ours, PACKAGE / "include", PACKAGE / "lib" / "stable")
    build(theirs, TORCH / "include", TORCH / "lib")
    texts = [printed(module, b) for module in ("rushlight", "torch") for b in (ours, theirs)]
    assert len(texts[0]) > 20 and all(text == texts[0] for text in texts)
