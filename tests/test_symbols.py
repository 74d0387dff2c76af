"""What object files may share: nothing compiled for one processor may run on a lesser one.

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
