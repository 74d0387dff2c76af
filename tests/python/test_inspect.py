"""What `inspect` and completion see of functions: that they are functions, their parameters, and what `dir` shows."""

import importlib
import inspect
import re
import subprocess
import sys
import types

import pytest

import rushlight as torch
from rushlight.nn import functional as F

MODULES = ("", ".nn.functional", ".linalg", ".fft", ".special", ".nn.init", ".autograd", ".Tensor")


def shown():
    """(place, name, function) of all public functions and methods."""
    for place in MODULES:
        owner = torch.Tensor if place == ".Tensor" else importlib.import_module("rushlight" + place)
        for name in dir(owner):
            value = getattr(owner, name)
            is_function = (
                callable(value) and not inspect.isclass(value) and not name.startswith("_")
            )
            if is_function and getattr(value, "__module__", "") not in ("typing", "builtins"):
                yield f"torch{place}", name, value


FUNCTIONS = list(shown())


def test_every_public_function_has_a_signature():
    assert len(FUNCTIONS) > 1200
    wrong = []
    for place, name, function in FUNCTIONS:
        try:
            inspect.signature(function)
        except (TypeError, ValueError) as error:
            wrong.append(f"{place}.{name}: {error}")
        if not inspect.isroutine(function) and not isinstance(function, functools_like()):
            wrong.append(f"{place}.{name} is no routine but {type(function)}")
    assert not wrong, "\n".join(wrong)


def functools_like():
    """Callables that are objects by right: packets of ops, decorators that are classes."""
    return (type(torch.ops.aten.add), type)


def test_names_are_those_of_the_docstring():
    """Each parameter stands in a line of the docstring that shows a call."""
    checked, wrong = 0, []
    for place, name, function in FUNCTIONS:
        if not isinstance(function, (types.BuiltinFunctionType, types.MethodDescriptorType)):
            continue
        doc = (function.__doc__ or "").split("\n\n")[0]
        calls = [line for line in doc.splitlines() if re.match(r"\w+\(.*\) -> ", line)]
        if not calls:
            continue
        said = set(re.findall(r"(\w+?)_?: ", " ".join(calls))) | {"self", "input"}
        checked += 1
        given = {n.rstrip("_") for n in inspect.signature(function).parameters}
        if not given <= said:
            wrong.append(f"{place}.{name}: {sorted(given - said)} of {calls}")
    assert not wrong, "\n".join(wrong)
    assert checked > 800


def shown_calls(function):
    return (function.__doc__ or "").split("\n\n")[0].splitlines()


def test_methods_show_self_and_only_what_they_take():
    checked = 0
    for place, name, function in FUNCTIONS:
        if place != "torch.Tensor" or not isinstance(function, types.MethodDescriptorType):
            continue
        calls = [line for line in shown_calls(function) if " -> " in line]
        checked += bool(calls)
        assert list(inspect.signature(function).parameters)[:1] == ["self"], name
        for call in calls:
            assert re.match(rf"{name}\(self\b", call), call
            assert not re.search(r"\b(input|out): ", call), call
    assert checked > 380


def test_in_place_functions_say_so():
    changing = {
        name: function
        for _, name, function in FUNCTIONS
        if name.endswith("_") and not inspect.isfunction(function) and shown_calls(function)
    }
    assert len(changing) > 150
    assert not [name for name, f in changing.items() if "in place" not in f.__doc__.lower()]
    doc = torch.Tensor.add_.__doc__
    assert doc.startswith("add_(self, other: Tensor | Number, *, alpha: Number | Tensor = 1) -> ")
    assert "In place: self is changed and returned." in doc and "self keeps its own" in doc
    assert "In place: input is changed and returned." in torch.relu_.__doc__
    assert "In place" not in torch.Tensor.add.__doc__


def names(function):
    return list(inspect.signature(function).parameters)


def test_some_signatures():
    assert str(inspect.signature(torch.add)) == "(input, other, *, alpha=1, out=None)"
    assert str(inspect.signature(torch.Tensor.add)) == "(self, /, other, *, alpha=1)"
    assert str(inspect.signature(torch.ones(2).add)) == "(other, *, alpha=1)"
    assert str(inspect.signature(torch.permute)) == "(input, dims)"
    assert str(inspect.signature(torch.Tensor.view)) == "(self, /, *size, dtype=None)"
    assert names(torch.zeros)[:2] == ["size", "dtype"]
    assert names(torch.max) == ["input", "dim", "keepdim", "out", "other"]
    assert names(F.cross_entropy)[:3] == ["input", "target", "weight"]
    assert names(torch.linalg.norm)[:3] == ["input", "ord", "dim"]
    assert names(torch.tensor) == ["data", "dtype", "device", "requires_grad", "pin_memory"]
    assert inspect.signature(torch.clamp).bind(torch.ones(2), max=1).arguments["max"] == 1
    with pytest.raises(TypeError):
        inspect.signature(torch.add).bind(torch.ones(2))
    assert torch.add.__doc__.startswith("add(input: ")  # `help` shows all forms


def test_functions_of_python_are_functions():
    for function in (
        F.cross_entropy,
        F.softmax,
        torch.einsum,
        torch.meshgrid,
        F.scaled_dot_product_attention,
    ):
        assert inspect.isroutine(function) and callable(function)
    for function in (F.cross_entropy, F.softmax, torch.einsum, torch.meshgrid):
        assert inspect.isfunction(function) and isinstance(function, types.FunctionType)
        assert function.__code__.co_varnames and inspect.getsource(function).lstrip()[:1] in "d@"
        assert not inspect.isbuiltin(function)
    assert inspect.isbuiltin(torch.add) and not inspect.isfunction(torch.add)


def test_help_is_readable():
    import pydoc

    text = pydoc.render_doc(torch.add, renderer=pydoc.plaintext)
    assert "add(input, other, *, alpha=1, out=None)" in text
    assert "cross_entropy(input" in pydoc.render_doc(F.cross_entropy, renderer=pydoc.plaintext)


def test_dir_shows_what_is_public():
    names = dir(torch)
    assert names == sorted(set(names))
    assert {
        "add",
        "nn",
        "linalg",
        "Tensor",
        "float32",
        "compile",
        "load",
        "__version__",
        "cond",
    } <= set(names)
    assert not [
        n for n in names if n.startswith(("linalg_", "fft_", "special_")) or n.endswith("_step_")
    ]
    assert not [n for n in names if n.startswith("_") and not n.startswith("__")]
    assert {"softmax", "relu_", "cross_entropy"} <= set(dir(F))
    for module in (F, torch.linalg, torch.fft, torch.special, torch.nn, torch.optim):
        assert not {
            "TYPE_CHECKING",
            "Any",
            "annotations",
            "namespace",
            "lazy",
            "ops",
            "warn",
        } & set(dir(module))
    assert set(torch.linalg.__all__) <= set(dir(torch.linalg))
    # What is not shown is there all the same.
    assert torch.linalg_norm(torch.ones(4)).item() == 2 and torch.ones(2).rsub(3).tolist() == [2, 2]
    hidden = {"rsub", "nonzero_numpy", "one_hot"}
    assert not hidden & set(dir(torch.Tensor)) and not hidden & set(dir(torch.ones(2)))
    assert not hidden & set(dir(torch.nn.Parameter))


def test_names_of_subclasses_are_shown():
    class Named(torch.Tensor):
        def one_hot(self):
            return self

    t = torch.ones(2).as_subclass(Named)
    t.extra = 1
    assert (
        {"one_hot", "extra", "add"} <= set(dir(t))
        and "one_hot" in dir(Named)
        and "rsub" not in dir(t)
    )


def test_completion():
    """As a terminal asks: `torch.Tensor.<TAB>` and `torch.<TAB>`."""
    import rlcompleter

    completer = rlcompleter.Completer({"torch": torch, "x": torch.ones(2)})
    found = set()
    for i in range(3000):
        match = completer.complete("torch.lin", i)
        if match is None:
            break
        found.add(match.rstrip("("))
    assert found == {"torch.linalg", "torch.linspace"}
    assert completer.complete("x.one_h", 0) is None and completer.complete("x.exp_", 0) is not None


def test_signatures_cost_the_import_nothing():
    code = "import sys, rushlight; print('inspect' in sys.modules, 'rushlight._names.listed' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.split() == ["False", "False"]
