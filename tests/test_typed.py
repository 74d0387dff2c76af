"""Type checkers pass programs that use the package as one installs it: what it does not export by name is an error there.

`./dev lint` runs pyright and mypy over the same files in the checkout, where a checker is less strict with names.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight
from docs import counts, docstrings

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = [*ROOT.glob("examples/*.py"), ROOT / "tests/typed/programs.py"]

# Names that can be imported and refuse to be called: the manifest of PyTorch's names has them alone.
REFUSED = {"export.draft_export", "onnx.ExportableModule", "onnx.InputObserver"}
REFUSED |= {"distributed.optim.DistributedOptimizer"}
REFUSED |= {"distributed.tensor.experimental.context_parallel"}


def check(folder, checker, *options):
    """What a checker says of the programs in a folder of their own."""
    run = subprocess.run(
        [sys.executable, "-m", checker, *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(rushlight.__file__).parent.parent)},
        capture_output=True,
        text=True,
    )
    return run.returncode, run.stdout + run.stderr


@pytest.fixture
def folder(tmp_path):
    for path in PROGRAMS:
        shutil.copy(path, tmp_path)
    settings = {"typeCheckingMode": "strict", "pythonVersion": "3.10"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    return tmp_path


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_pyright_passes_programs_strictly(folder):
    pytest.importorskip("pyright")
    status, said = check(folder, "pyright", "--pythonpath", sys.executable)
    assert status == 0, said


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_mypy_passes_programs(folder):
    pytest.importorskip("mypy")
    files = [path.name for path in PROGRAMS]
    status, said = check(folder, "mypy", "--disable-error-code=import-untyped", *files)
    assert status == 0, said


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_checkers_know_all_public_names(folder):
    """Each function and class of the reference, where its page says that it stands."""
    pytest.importorskip("pyright")
    lines = [*(f"import {path}" for path in docstrings.modules())]
    lines += [f"rushlight.{name}" for name in docstrings.public_names() if name not in REFUSED]
    (folder / "names.py").write_text("\n".join([*lines, ""]))
    settings = {
        "typeCheckingMode": "basic",
        "reportUnusedExpression": False,
        "include": ["names.py"],
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    status, said = check(folder, "pyright", "--pythonpath", sys.executable)
    assert status == 0, said


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_types_of_public_names_are_exact():
    """All of those that programs use most, and nearly all others (docs/counts.py says which are not)."""
    pytest.importorskip("pyright")
    used = counts.most_used()
    assert len(used) > 340
    types = counts.revealed(used)
    assert [name for name in used if not counts.is_exact(name, types[name])] == []
    names = docstrings.public_names()
    types = counts.revealed(names)
    exact = [name for name in names if counts.is_exact(name, types[name])]
    assert len(exact) > 0.96 * len(names)
