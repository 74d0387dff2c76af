"""Programs of TorchScript's language, made at random and by hand: PyTorch and rushlight agree on each.

What compiles there compiles here, with equal results, and archives of one are programs of the other.
"""

import copy
import importlib.util
import io
import sys
from pathlib import Path

import numpy as np
import pytest

import rushlight
from tests.fuzz import scripts
from tests.fuzz.scripts_names import module_of, outcome, runs
from tests.python import script_expressions, script_statements

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")
PROGRAMS, BLOCK, SAMPLE = 200, 25, 5


def close(a, b):
    """Whether two outcomes are equal, numbers up to rounding: sums are taken in other orders."""
    if isinstance(a, float) and isinstance(b, float):
        return bool(np.isclose(a, b, rtol=1e-5, atol=1e-5, equal_nan=True))
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(close, a, b))
    return a == b


def runs_there(text, folder):
    """The module and `runs` of PyTorch; None where its compiler ends with an assertion of its own."""
    module = module_of(text, torch, folder)
    try:
        return module, runs(module, torch)
    except RuntimeError as error:
        if "INTERNAL ASSERT FAILED" in str(error):
            return None
        raise


@pytest.mark.parametrize("first", range(0, PROGRAMS, BLOCK))
def test_random_programs(first, tmp_path):
    failed = 0
    for index in range(first, first + BLOCK):
        text = scripts.text_of("parity", index)
        ours = module_of(text, rushlight, tmp_path)
        eager, scripted, archive = runs(ours, rushlight)
        assert eager == scripted, f"program {index}"
        there = runs_there(text, tmp_path)
        if there is None:
            failed += 1
            continue
        theirs, (eager_there, scripted_there, archive_there) = there
        assert eager_there == scripted_there, f"program {index}"
        assert close(eager, eager_there), f"program {index}"
        if index % SAMPLE == 0:
            loaded = torch.jit.load(io.BytesIO(archive))
            assert close(outcome(loaded, theirs.arguments()), eager), f"program {index}"
            loaded = rushlight.jit.load(io.BytesIO(archive_there))
            assert close(outcome(loaded, ours.arguments()), eager), f"program {index}"
    assert failed <= 1


def table_of_pytorch(constructs, tmp_path):
    """A table of constructs with PyTorch in the place of this library."""
    text = Path(constructs.__file__).read_text()
    path = tmp_path / "constructs_of_pytorch.py"
    path.write_text(text.replace("import rushlight as torch", "import torch"))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    made = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made.TABLE


@pytest.mark.parametrize(
    "constructs", [script_expressions, script_statements], ids=["expressions", "statements"]
)
def test_constructs_are_those_of_pytorch(constructs, tmp_path):
    """What is in `rows` compiles there, too, what is in `beyond_rows` and `refusals` does not."""
    theirs = table_of_pytorch(constructs, tmp_path)
    for construct, arguments in theirs.rows:
        made = construct if not isinstance(construct, type) else construct()
        again = construct if not isinstance(construct, type) else construct()
        eager = outcome(again, copy.deepcopy(arguments))
        assert outcome(torch.jit.script(made), copy.deepcopy(arguments)) == eager, (
            construct.__name__
        )
    for construct, _ in (*theirs.beyond_rows, *theirs.refusals):
        with pytest.raises(Exception):  # noqa: B017  # each lack has an error of its own
            torch.jit.script(construct() if isinstance(construct, type) else construct)
