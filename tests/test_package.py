"""The CMake package: the C++ examples, a project of its own, find rushlight, build and learn."""

import contextlib
import gzip
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import rushlight
from rushlight import nn

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "cpp"


def test_the_versions_of_headers_and_library_agree():
    header = Path(rushlight.utils.cmake_prefix_path).parents[1] / "include/rushlight/version.h"
    assert f'RUSHLIGHT_VERSION "{rushlight.version.rushlight}"' in header.read_text()


@pytest.mark.skipif(shutil.which("readelf") is None, reason="needs readelf")
def test_libraries_find_each_other_wherever_they_lie():
    """By names and paths relative to themselves: a wheel is unpacked anywhere."""
    package = Path(rushlight.__file__).parent
    files = (*package.glob("*.so"), *package.glob("lib/*.so*"))
    # The others are scripts that name them for the linker.
    libraries = {f.name: f for f in files if f.read_bytes()[:4] == b"\x7fELF"}
    assert {"librushlight.so", Path(rushlight._C.__file__).name} <= libraries.keys()
    found = {}
    for name, path in libraries.items():
        command = ["readelf", "-d", path]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found[name] = re.findall(r"\((\w+)\)\s+(?:Shared library|Library \w+): \[(.*)\]", text)
    needs = {
        name: {value for kind, value in entries if kind == "NEEDED"} & libraries.keys()
        for name, entries in found.items()
    }
    # An RPATH counts for what a library's libraries need, too: those of the system have none.
    led, waiting = set(), [n for n, entries in found.items() if ("RPATH", "$ORIGIN") in entries]
    while waiting:
        new = needs[waiting.pop()] - led
        led |= new
        waiting += new
    for name, path in libraries.items():
        entries = found[name]
        if path.parent.name == "lib":
            assert ("SONAME", name) in entries
        paths = [value for kind, value in entries if kind in ("RUNPATH", "RPATH")]
        assert all(value.startswith("$ORIGIN") for value in paths), (name, paths)
        if needs[name] and not (name in led and not paths):
            assert paths == ["$ORIGIN" if path.parent.name == "lib" else "$ORIGIN/lib"]


@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer would watch the compiler")
def test_another_project_finds_the_package(tmp_path):
    datasets = pytest.importorskip("sklearn.datasets")
    images = Path(datasets.__path__[0]) / "data" / "digits.csv.gz"
    (tmp_path / "digits.csv").write_bytes(gzip.decompress(images.read_bytes()))
    build = tmp_path / "build"
    prefix = f"-DCMAKE_PREFIX_PATH={rushlight.utils.cmake_prefix_path}"
    subprocess.run(["cmake", "-S", EXAMPLE, "-B", build, "-G", "Ninja", prefix], check=True)
    subprocess.run(["cmake", "--build", build], check=True)
    command = [build / "digits", tmp_path / "digits.csv"]
    run = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path)
    assert (tmp_path / "digits.pt").exists()
    accuracy = re.findall(r"([\d.]+) %", run.stdout)[-1]
    assert float(accuracy) > 90
    programs = {
        "dcgan": ["digits.csv", "2"],
        "char_gpt": [Path(__file__).resolve(), "40"],
    }
    for name, arguments in programs.items():
        subprocess.run([build / name, *arguments], check=True, cwd=tmp_path, capture_output=True)
    for picture in ("digits.pgm", "dcgan.pgm", "char_gpt.pgm"):
        assert (tmp_path / picture).read_bytes().startswith(b"P5\n")
    if (build / "server").exists():
        digits = (tmp_path / "digits.csv").read_text().splitlines()[:80]
        assert answers(build / "server", tmp_path, "digits.pt", digits) > 70
        export_classifier(tmp_path)
        assert answers(build / "server", tmp_path, "digits.pt2", digits) > 70


@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer would watch the compiler")
def test_the_template_is_a_project_wherever_it_is_copied(tmp_path):
    project = tmp_path / "project"
    shutil.copytree(EXAMPLE / "template", project)

    def run(*command):
        done = subprocess.run(command, cwd=project, check=True, capture_output=True, text=True)
        return done.stdout

    prefix = f"-DCMAKE_PREFIX_PATH={rushlight.utils.cmake_prefix_path}"
    run("cmake", "-B", "build", "-G", "Ninja", prefix)
    run("cmake", "--build", "build")
    lines = run("build/train", "600").splitlines()
    assert len(lines) == 21 and lines[9].startswith("[" + "=" * 24 + "] 100 %  loss ")
    curve = lines[10:20]
    assert "*" in curve[0] and "*" in curve[-1]
    assert float(lines[-1].split()[-1]) < 0.3
    said = run("build/predict", "0.5", "-2").split()
    assert said[::3] == ["0.5", "-2"]
    assert abs(float(said[2]) - 0.479) < 0.3 and abs(float(said[5]) + 0.909) < 0.3
    state = rushlight.load(project / "model.pt")
    assert set(state) == {f"{n}.{p}" for n in ("up", "middle", "down") for p in ("weight", "bias")}


def export_classifier(folder):
    """A program that tells digits, for C++: a linear layer that has seen them all."""
    rows = np.loadtxt(folder / "digits.csv", delimiter=",", dtype=np.float32)
    images = rushlight.from_numpy(rows[:, :64]).view(-1, 1, 8, 8) / 16
    labels = rushlight.from_numpy(rows[:, 64]).long()
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    optimizer = rushlight.optim.Adam(net.parameters(), lr=0.05)
    for _ in range(60):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(images), labels).backward()
        optimizer.step()
    program = rushlight.export.export(net, (images[:1],))
    rushlight.export.save(program, folder / "digits.pt2")


def answers(program, folder, network, lines):
    """How many of the digits a server of the network gets right, asked by eight threads."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def right(line):
        *pixels, digit = line.split(",")
        answer = ask(f"http://127.0.0.1:{port}/digit", " ".join(pixels).encode())
        return int(answer.split()[0]) == int(float(digit))

    server = subprocess.Popen([program, network, str(port)], cwd=folder)
    try:
        for _ in range(100):
            with contextlib.suppress(ConnectionError, urllib.error.URLError):
                assert ask(f"http://127.0.0.1:{port}/picture.pgm").startswith(b"P5")
                break
            time.sleep(0.1)
        with ThreadPoolExecutor(8) as threads:
            return sum(threads.map(right, lines))
    finally:
        server.kill()
        server.wait()


def ask(address, body=None):
    """What a server answers."""
    with urllib.request.urlopen(address, data=body, timeout=30) as response:
        return response.read()
