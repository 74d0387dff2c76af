"""The CMake package: the C++ example, a project of its own, finds rushlight, builds and learns."""

import gzip
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import rushlight

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "cpp"


def test_the_versions_of_headers_and_library_agree():
    header = Path(rushlight.utils.cmake_prefix_path).parents[1] / "include/rushlight/version.h"
    assert f'RUSHLIGHT_VERSION "{rushlight.__version__}"' in header.read_text()


@pytest.mark.skipif(shutil.which("readelf") is None, reason="needs readelf")
def test_libraries_find_each_other_wherever_they_lie():
    """By names and paths relative to themselves: a wheel is unpacked anywhere."""
    package = Path(rushlight.__file__).parent
    libraries = {f.name: f for f in (*package.glob("*.so"), *package.glob("lib/*.so*"))}
    assert {"librushlight.so", Path(rushlight._C.__file__).name} <= libraries.keys()
    for name, path in libraries.items():
        command = ["readelf", "-d", path]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        entries = re.findall(r"\((\w+)\)\s+(?:Shared library|Library \w+): \[(.*)\]", text)
        if path.parent.name == "lib":
            assert ("SONAME", name) in entries
        paths = [value for kind, value in entries if kind in ("RUNPATH", "RPATH")]
        assert all(value.startswith("$ORIGIN") for value in paths), (name, paths)
        if {value for kind, value in entries if kind == "NEEDED"} & libraries.keys():
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
