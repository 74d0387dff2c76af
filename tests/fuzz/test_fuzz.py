"""Short runs of the fuzzers on this build; `./dev fuzz` is the long one, under sanitizers."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight as torch
from rushlight import gguf, nn, safetensors

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments, env=None):
    return subprocess.run(
        [sys.executable, "-m", "tests.fuzz", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        env=env,
    )


@pytest.mark.timeout(620)
def test_no_call_crashes():
    done = run("--calls", "10000", "--seed", "ci")
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


@pytest.mark.timeout(620)
def test_nothing_beside_ops_crashes():
    done = run("beside", "--calls", "6000", "--seed", "ci", "--hang", "200")
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


@pytest.mark.timeout(620)
def test_no_archive_crashes():
    done = run("archives", "--calls", "4000", "--seed", "ci", "--hang", "200")
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


@pytest.mark.timeout(620)
def test_programs_compile_to_what_they_say():
    done = run("programs", "--calls", "8000", "--seed", "ci", "--hang", "200")
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


@pytest.mark.parametrize("kind", ["ops", "beside", "archives", "programs"])
def test_programs_follow_from_the_seed(kind):
    seeds = ("a", "a", "b")
    first, again, other = (run(kind, "--show", "7", "--seed", seed).stdout for seed in seeds)
    assert first == again != other
    assert len(first.splitlines()) > 8


def test_a_crash_is_found(tmp_path):
    """The parent sees a worker die, and prints the line that killed it."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\n"
        "if '--worker' in sys.orig_argv:\n"
        "    import tests.fuzz.names as names\n"
        "    names.start = lambda *a: os.kill(os.getpid(), 9)\n"
    )
    path = os.pathsep.join([str(tmp_path), str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = run("--calls", "100", "--findings", "2", env=os.environ | {"PYTHONPATH": path})
    assert done.returncode == 1
    assert "the worker ended with -9" in done.stdout and "2 findings" in done.stdout
    assert "dtype = start(" in done.stdout


@pytest.mark.timeout(620)
def test_no_file_crashes():
    pytest.importorskip("PIL")
    command = [sys.executable, "-m", "tests.fuzz.files", "--files", "2000", "--seconds", "500"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


# ---- readers of bytes, in C++ ----


def small_files(target, folder):
    """Files that the target reads."""
    net, x = nn.Sequential(nn.Linear(3, 2), nn.ReLU()).eval(), torch.ones(1, 3)
    names = {"load": ("net.pt", "net.pt2"), "gguf": ("net.gguf",), "safetensors": ("net.st",)}
    paths = [folder / name for name in names[target]]
    if target == "load":
        torch.save(net.state_dict(), paths[0])
        torch.export.save(torch.export.export(net, (x,)), paths[1])
    elif target == "gguf":
        gguf.save(paths[0], {"general.name": "net"}, {"weight": net[0].weight.detach()})
    else:
        safetensors.save_file({"weight": net[0].weight.detach()}, paths[0])
    return paths


@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer would watch the compiler")
@pytest.mark.parametrize("target", ["load", "gguf", "safetensors"])
def test_readers_of_damaged_bytes(target, tmp_path):
    source = ROOT / "tests" / "fuzz" / f"{target}.cpp"
    head = source.read_text().partition("#include")[0]
    parts = re.findall(r"(src/\w+/){([\w,]+)}(\.cpp)", head)
    sources = [f"{folder}{name}{end}" for folder, names, end in parts for name in names.split(",")]
    compiler = [*filter(None, [shutil.which("ccache")]), os.environ.get("CXX", "g++")]
    flags = ["-std=c++20", "-O1", "-fopenmp-simd", "-Iinclude", "-Isrc"]
    objects = [tmp_path / f"{i}.o" for i in range(len(sources) + 2)]
    inputs = [*sources, str(source), "tests/fuzz/driver.cpp"]
    for name, made in zip(inputs, objects, strict=True):  # one by one, which ccache knows
        subprocess.run([*compiler, *flags, "-c", name, "-o", made], cwd=ROOT, check=True)
    program = tmp_path / "fuzz"
    subprocess.run([compiler[-1], *objects, "-o", program], check=True)
    done = subprocess.run(
        [program, "20000", "1", *small_files(target, tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0 and done.stdout.startswith("20000 runs"), done.stderr[-2000:]
