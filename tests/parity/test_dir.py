"""`dir` shows nothing that PyTorch does not show, but for what is offered here alone; signatures have documented names."""

import importlib
import inspect
import re

import pytest

import rushlight

torch = pytest.importorskip("torch")

# What rushlight has and PyTorch has not, or not there.
OWN = {
    "": {
        *("gguf", "language", "onnx", "safetensors", "vision"),
        *("is_batch_invariant", "use_batch_invariant"),
    }
}
PLACES = ("", "Tensor", "nn.functional", "linalg", "fft", "special")
# What is not written, or taken by position alone, and why.
OTHERS = {
    "hspmm": "its result is sparse: there is no out=",
    "sspaddmm": "its result is sparse: there is no out=",
    "std_mean": "PyTorch's documents have out=, its function has not",
    "var_mean": "PyTorch's documents have out=, its function has not",
}


def owner(module, place):
    if place == "Tensor":
        return module.Tensor
    return importlib.import_module(module.__name__ + ("." + place if place else ""))


@pytest.mark.parametrize("place", PLACES)
def test_dir(place):
    ours, theirs = dir(owner(rushlight, place)), dir(owner(torch, place))
    extra = {n for n in set(ours) - set(theirs) if not n.startswith("_")}
    assert extra <= OWN.get(place, set())
    assert len(set(ours) & set(theirs)) > 30


def documented(function):
    """The names of parameters that the first line of a docstring of PyTorch's has."""
    found = re.match(r"\s*\w[\w.]*\((.*?)\) ->", function.__doc__ or "", re.DOTALL)
    if found is None:
        return None
    text = re.sub(r"[\[(][^\[\]()]*[\])]", "", found.group(1))
    names = [part.split("=")[0].split(":")[0].strip().lstrip("*\\") for part in text.split(",")]
    return [n for n in names if re.fullmatch(r"[A-Za-z_]\w*", n)]


def in_schemas(place, name):
    """Parameters of an op by any overload: documents have others at times, which no call takes."""
    prefix = place + "_" if place in ("linalg", "fft", "special") else ""
    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{prefix}{name}")
    return {argument.name for schema in schemas for argument in schema.arguments}


@pytest.mark.parametrize("place", PLACES)
def test_documented_parameters_are_there(place):
    checked, wrong = 0, []
    for name in dir(owner(rushlight, place)):
        ours = getattr(owner(rushlight, place), name)
        theirs = getattr(owner(torch, place), name, None)
        if name.startswith("_") or not inspect.isroutine(ours) or theirs is None:
            continue
        wanted = documented(theirs)
        if not wanted:
            continue
        checked += 1
        have = {n.rstrip("_") for n in inspect.signature(ours).parameters}
        missing = [n for n in wanted if n.rstrip("_") not in have and n in in_schemas(place, name)]
        if missing and f"{place}.{name}".lstrip(".") not in OTHERS:
            wrong.append(f"{place}.{name}: {missing} not in {sorted(have)}")
    assert not wrong, "\n".join(wrong)
    assert checked > {"": 350, "Tensor": 150, "linalg": 30}.get(place, 5)
