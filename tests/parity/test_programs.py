"""Small programs, run with PyTorch and with rushlight: equal results, or errors of one type.

They stand in programs/*.txt: `### name`, then code in which `torch` is the library and `np` numpy.
What it leaves in `out` is compared; errors by their type, warnings by their category.
"""

import re
import warnings
from pathlib import Path

import numpy
import pytest

import rushlight
from tests.parity.compare import assert_alike

torch = pytest.importorskip("torch")

PROGRAMS = {
    f"{file.stem}: {name}": code
    for file in sorted(Path(__file__).parent.joinpath("programs").glob("*.txt"))
    for name, code in re.findall(
        r"^### ([^\n]*)\n(.*?)(?=^### |\Z)", file.read_text(), re.DOTALL | re.MULTILINE
    )
}


def plain(value, library):
    """A result as data that compares by value."""
    if isinstance(value, library.Tensor):
        t = value.detach()
        values = ["meta", *t.shape] if t.is_meta else t.tolist()
        node = None if value.grad_fn is None else value.grad_fn.name()
        return [type(value).__name__, str(t.dtype), values, value.requires_grad, node]
    if isinstance(value, dict):
        return {str(k): plain(v, library) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v, library) for v in value]
    if isinstance(value, complex):
        return [value.real, value.imag]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return re.sub(r"0x[0-9a-f]+|\brushlight\.|\btorch\.", "", str(value))


def run(library, code, name):
    if library is rushlight:
        code = re.sub(r"\b(from|import) torch\b", r"\1 rushlight", code)
    names = {"torch": library, "np": numpy, "out": None, "__name__": "program"}
    library.manual_seed(0)
    library.set_warn_always(True)  # what another test was warned of, too
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(compile(code, name, "exec"), names)
            result, error = plain(names["out"], library), None
        except Exception as raised:
            result, error = None, type(raised).__name__
        finally:
            library.set_warn_always(False)
    # What is about PyTorch itself, or about speed, says nothing of the program.
    kinds = [
        w.category.__name__
        for w in caught
        if w.category is not DeprecationWarning and "slow" not in str(w.message)
    ]
    return result, error, kinds


@pytest.mark.parametrize("name", PROGRAMS)
def test_equals_torch(name):
    expected, expected_error, expected_warnings = run(torch, PROGRAMS[name], name)
    result, error, kinds = run(rushlight, PROGRAMS[name], name)
    assert error == expected_error
    assert_alike(result, expected)
    assert kinds == expected_warnings
