"""TorchSharp's native half, as it is, over rushlight: it compiles, links, and gives the right numbers.

RUSHLIGHT_TORCHSHARP is the folder of its sources, `src/Native/LibTorchSharp`; none of them are ours.
"""

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rushlight.utils import cpp_extension

SOURCES = os.environ.get("RUSHLIGHT_TORCHSHARP")
TESTS = Path(__file__).resolve().parent.parent
PROGRAM = TESTS / "cpp_programs" / "torchsharp.cpp"


def compiled(source, folder):
    """The object of one source; the compiler's words where it makes none."""
    target = folder / f"{source.stem}.o"
    includes = [*cpp_extension.include_paths(), SOURCES, TESTS / "cpp"]
    language = ["gcc"] if source.suffix == ".c" else ["g++", "-std=c++17"]
    command = [*language, "-w", "-O0", "-fPIC", *(f"-I{i}" for i in includes), "-c", source]
    ran = subprocess.run([*command, "-o", target], capture_output=True, text=True)
    assert ran.returncode == 0, f"{source.name}: {ran.stderr[:2000]}"
    return target


def test_the_program_calls_many_functions():
    called = set(re.findall(r"\bTHS\w+_\w+", PROGRAM.read_text()))
    listed = re.findall(r"\b(UNARY|UNARY_ONLY|BINARY)\((\w+), ", PROGRAM.read_text())
    assert len(called) + len(listed) > 250


@pytest.mark.timeout(900)
@pytest.mark.skipif(SOURCES is None, reason="no sources of TorchSharp: RUSHLIGHT_TORCHSHARP")
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer would watch the compiler")
def test_its_functions_give_the_right_numbers(tmp_path):
    sources = [PROGRAM, *sorted(Path(SOURCES).glob("*.cpp")), *Path(SOURCES).glob("*.c")]
    assert len(sources) > 20
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda source: compiled(source, tmp_path), sources))
    folders = cpp_extension.library_paths()
    links = [f"-L{f}" for f in folders] + [f"-Wl,-rpath,{f}" for f in folders]
    program = tmp_path / "program"
    command = ["g++", *objects, *links, "-ltorch", "-ltorch_cpu", "-lc10", "-o", program]
    subprocess.run(command, check=True)
    ran = subprocess.run([program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
