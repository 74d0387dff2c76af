"""What object files may share: nothing compiled for one processor may run on another."""

import shutil
import subprocess
from pathlib import Path

import pytest

OBJECTS = Path(__file__).resolve().parent.parent / "build" / "release" / "CMakeFiles"


@pytest.mark.parametrize("isa", ["v2", "v3", "v4"])
def test_kernels_leak_no_functions(isa):
    """The linker keeps one copy of an inline function, whichever level it was compiled for."""
    files = sorted((OBJECTS / f"rl_isa_{isa}.dir").rglob("*.o"))
    if not files or shutil.which("nm") is None:
        pytest.skip("needs the release build and nm")
    names = subprocess.run(
        ["nm", "--demangle", "--defined-only", "--no-sort", *files],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    leaked = set()
    for line in names.splitlines():
        words = line.split(maxsplit=2)
        if len(words) == 3 and words[1] == "W" and f"rushlight::cpu::{isa}::" not in words[2]:
            leaked.add(words[2])
    assert not leaked, "\n".join(sorted(leaked))
