"""Native halves of bindings of other languages, unchanged: they compile, link, and give right numbers.

A variable says where the sources of each lie; none of them are ours.
"""

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from rushlight.utils import cpp_extension

TESTS = Path(__file__).resolve().parent.parent


class Binding(NamedTuple):
    variable: str  # says where the sources lie
    program: str  # calls their functions
    function: str  # how one of them is named, and how tables of the program list more
    listed: str
    calls: int  # that the program makes at least
    left_out: tuple[str, ...] = ()  # sources that need the language itself


BINDINGS = {
    # .NET; the folder is src/Native/LibTorchSharp
    "TorchSharp": Binding(
        "RUSHLIGHT_TORCHSHARP",
        "torchsharp.cpp",
        r"\bTHS\w+_\w+",
        r"\b(?:UNARY|UNARY_ONLY|BINARY)\((\w+), ",
        250,
    ),
    # Rust; the folder is torch-sys/libtch
    "tch-rs": Binding(
        "RUSHLIGHT_TCH",
        "tch.cpp",
        r"\b(?:atg?|ato|atc|ati|ats)_\w+",
        r"\b(?:UNARY|BINARY)\((\w+), ",
        200,
        ("torch_python.cpp",),
    ),
}


def compiled(source, includes, folder):
    """The object of one source; the compiler's words where it makes none."""
    target = folder / f"{source.stem}.o"
    includes = [*cpp_extension.include_paths(), *includes, TESTS / "cpp"]
    language = ["gcc"] if source.suffix == ".c" else ["g++", "-std=c++17"]
    command = [*language, "-w", "-O0", "-fPIC", *(f"-I{i}" for i in includes), "-c", source]
    ran = subprocess.run([*command, "-o", target], capture_output=True, text=True)
    assert ran.returncode == 0, f"{source.name}: {ran.stderr[:2000]}"
    return target


@pytest.mark.parametrize("name", BINDINGS)
def test_the_program_calls_many_functions(name):
    binding = BINDINGS[name]
    text = (TESTS / "cpp_programs" / binding.program).read_text()
    called = set(re.findall(binding.function, text)) | set(re.findall(binding.listed, text))
    assert len(called) > binding.calls


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", BINDINGS)
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer would watch the compiler")
def test_its_functions_give_the_right_numbers(name, tmp_path):
    binding = BINDINGS[name]
    folder = os.environ.get(binding.variable)
    if folder is None:
        pytest.skip(f"no sources of {name}: {binding.variable}")
    found = [*sorted(Path(folder).glob("*.cpp")), *Path(folder).glob("*.c")]
    found = [source for source in found if source.name not in binding.left_out]
    assert len(found) > 1
    sources = [TESTS / "cpp_programs" / binding.program, *found]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda source: compiled(source, [folder], tmp_path), sources))
    folders = cpp_extension.library_paths()
    links = [f"-L{f}" for f in folders] + [f"-Wl,-rpath,{f}" for f in folders]
    program = tmp_path / "program"
    command = ["g++", *objects, *links, "-ltorch", "-ltorch_cpu", "-lc10", "-o", program]
    subprocess.run(command, check=True)
    ran = subprocess.run(
        [program], capture_output=True, text=True, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
