"""Functions take `out=` in Python where PyTorch's do, by the stubs of both."""

import re
from pathlib import Path

import pytest

import rushlight

torch = pytest.importorskip("torch")

# Lists of results cannot be given; products of sparse and dense matrices have an out= in PyTorch's stubs alone; none
# stands beside arguments that are written.
LACKING = {
    "split_copy",
    "split_with_sizes_copy",
    "unbind_copy",
    "hspmm",
    "sspaddmm",
    "saddmm",
    "_native_batch_norm_legit",
}


def takers(path):
    """Name -> whether a signature of that name in a stub takes `out`."""
    found = {}
    text = re.sub(r"\s+", " ", path.read_text())
    for name, arguments in re.findall(r"def (\w+)\((.*?)\) ?->", text):
        found[name] = found.get(name, False) or re.search(r"\bout ?:", arguments) is not None
    return found


def test_out_is_taken_where_pytorch_takes_it():
    ours = takers(Path(rushlight.__file__).parent / "_functions.pyi")
    theirs = takers(Path(torch.__file__).parent / "_C" / "_VariableFunctions.pyi")
    both = ours.keys() & theirs.keys()
    assert len(both) > 500
    assert {n for n in both if ours[n] and not theirs[n]} == set()
    assert {n for n in both if theirs[n] and not ours[n]} == LACKING
