"""What object files may share and do: nothing compiled for one processor may run on a lesser one, and nothing that
threads use is destroyed when the process ends.

Of an inline function that several objects hold the linker keeps the first copy. So the core must
be linked first, then the kernels from the lowest level up, and a lower level may not count on an
inline function of a higher one.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from rushlight import _C

BUILD = Path(__file__).resolve().parent.parent / "build" / "release"
LEVELS = ["rl_core", "rl_generated", "rl_calling"] + [
    f"rl_isa_{part}{level}"
    for level in _C._built_levels().split(", ")
    for part in ("", "generated_")
]


@pytest.fixture(scope="module", autouse=True)
def built():
    if not (BUILD / "build.ninja").exists() or shutil.which("nm") is None:
        pytest.skip("needs the release build and nm")


def symbols(level):
    """What the objects of a level define inline, and what they take from elsewhere."""
    files = sorted((BUILD / "CMakeFiles" / f"{level}.dir").rglob("*.o"))
    listed = subprocess.run(["nm", *files], check=True, capture_output=True, text=True).stdout
    pairs = [line.split()[-2:] for line in listed.splitlines() if len(line.split()) >= 2]
    weak = {name for kind, name in pairs if kind == "W"}
    taken = {name for kind, name in pairs if kind == "U"}
    return weak, taken


def test_objects_are_linked_from_the_lowest_level_up():
    lines = (BUILD / "build.ninja").read_text().splitlines()
    link = next(line for line in lines if line.startswith("build lib/librushlight.so:"))
    levels = [LEVELS.index(part.split("/")[1][:-4]) for part in link.split() if part.endswith(".o")]
    assert levels == sorted(levels)
    assert set(levels) == set(range(len(LEVELS)))


def test_no_level_takes_inline_functions_from_a_higher_one():
    inline, taken = set(), set()
    for level in LEVELS:
        weak, needed = symbols(level)
        assert not (weak - inline) & taken
        inline |= weak
        taken |= needed


# Sources of the core that destroy something when main() has ended, and why no thread minds.
DESTROYED = {
    "builtins_dict": "rows of a table, which are read once, before there is a graph to run",
    "builtins_list": "the same",
    "builtins_math": "the same",
    "builtins_number": "the same",
    "builtins_string": "the same",
    "builtins_tensor": "the same",
    "file_store": "the name of a key, too short to be anywhere else",
    "tcp_store": "the same",
    "internal_functions": "std::cout is flushed",
    "make": "names of nodes (function.h)",
    "products": "the same",
    "pocket_double": "plans that pocketfft keeps",
    "pocket_float": "the same",
}


def test_what_threads_use_is_never_destroyed():
    """Threads of Python, and of the library, compute until the process is gone."""
    files = [f for level in LEVELS for f in (BUILD / "CMakeFiles" / f"{level}.dir").rglob("*.o")]
    listed = subprocess.run(["nm", "-uA", *files], check=True, capture_output=True, text=True)
    found = {
        Path(line.split(":")[0]).name.partition(".")[0]
        for line in listed.stdout.splitlines()
        if line.endswith(" __cxa_atexit")
    }
    assert found == set(DESTROYED)
