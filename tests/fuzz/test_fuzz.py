"""Short runs of the fuzzers on this build; `./dev fuzz` is the long one, under sanitizers."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
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


COMPILER = [*filter(None, [shutil.which("ccache")]), os.environ.get("CXX", "g++")]
without_sanitizers = pytest.mark.skipif(
    "LD_PRELOAD" in os.environ, reason="a sanitizer would watch the compiler"
)


def built(target, folder, sources=(), includes=("include",), link=()):
    """The program that runs a target on damaged files."""
    flags = ["-std=c++20", "-O1", "-fopenmp-simd", *(f"-I{path}" for path in (*includes, "src"))]
    inputs = [*sources, f"tests/fuzz/{target}.cpp", "tests/fuzz/driver.cpp"]
    objects = [folder / f"{i}.o" for i in range(len(inputs))]
    for name, made in zip(inputs, objects, strict=True):  # one by one, which ccache knows
        subprocess.run([*COMPILER, *flags, "-c", name, "-o", made], cwd=ROOT, check=True)
    program = folder / "fuzz"
    subprocess.run([COMPILER[-1], *objects, *link, "-o", program], check=True)
    return program


def runs_without_finding(program, files, env=None):
    done = subprocess.run([program, "20000", "1", *files], capture_output=True, text=True, env=env)
    return done.returncode == 0 and done.stdout.startswith("20000 runs"), done.stderr[-2000:]


@without_sanitizers
@pytest.mark.parametrize("target", ["load", "gguf", "safetensors"])
def test_readers_of_damaged_bytes(target, tmp_path):
    head = (ROOT / "tests" / "fuzz" / f"{target}.cpp").read_text().partition("#include")[0]
    parts = re.findall(r"(src/\w+/){([\w,]+)}(\.cpp)", head)
    sources = [f"{folder}{name}{end}" for folder, names, end in parts for name in names.split(",")]
    good, said = runs_without_finding(
        built(target, tmp_path, sources), small_files(target, tmp_path)
    )
    assert good, said


class Branches(nn.Module):
    def forward(self, x):
        return {
            "y": torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,)),
            "n": (x[1:], 3),
        }


class Loops(nn.Module):
    def forward(self, x, names: dict[str, int]):
        parts: list[torch.Tensor] = []
        while int(x.sum()) < 3 and len(parts) < 2:
            parts.append(x[..., :2] + 1)
        return torch.cat(parts), [str(name) + "s" for name in names]


def entries(path, end):
    """What the entries of a zip file with this end hold."""
    with zipfile.ZipFile(path) as file:
        return [file.read(name) for name in file.namelist() if name.endswith(end)]


@without_sanitizers
def test_damaged_programs(tmp_path):
    """Graphs of exported programs, and sources of TorchScript, in archives that are whole otherwise."""
    package = Path(torch.__file__).parent
    library = package / "lib"
    link = [library / "librushlight.so", f"-Wl,-rpath,{library}"]
    program = built("programs", tmp_path, includes=[package / "include"], link=link)
    torch.export.save(torch.export.export(Branches(), (torch.ones(2, 3),)), tmp_path / "net.pt2")
    torch.jit.save(torch.jit.script(Loops()), tmp_path / "net.pt")
    for name, end in (("net.pt2", "models/model.json"), ("net.pt", "test_fuzz.py")):
        seed = tmp_path / "seed"
        seed.write_bytes(*entries(tmp_path / name, end))
        env = {"RUSHLIGHT_FUZZ_FILE": str(tmp_path / name), "RUSHLIGHT_FUZZ_ENTRY": end}
        good, said = runs_without_finding(program, [seed], os.environ | env)
        assert good, (name, said)
