"""The list of what is accepted (`rushlight._accepted`): complete, true, and what is made of it."""

import ast
import fnmatch
import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight
from rushlight import _accepted

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(rushlight.__file__).parent


def is_public(name):
    return not name.startswith("_") or name in ("__init__", "__new__")


def only_refuses(function):
    """Whether all that a function does is to raise, or to be overridden."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return all(isinstance(statement, ast.Raise) for statement in body) and bool(body)


def parameters(function):
    a = function.args
    named = [arg.arg for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if arg]
    bound = named[:1] in (["self"], ["cls"])
    return named[1:] if bound else named


def functions_in(node, path):
    """The functions of a module and its classes, with their paths; not those inside functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from functions_in(child, f"{path}.{child.name}")
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{path}.{child.name}", child
        elif isinstance(child, ast.If | ast.Try | ast.With):
            yield from functions_in(child, path)


def all_functions():
    found = {}
    for file in sorted(PACKAGE.glob("**/*.py")):
        parts = file.relative_to(PACKAGE).with_suffix("").parts
        path = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found.update(functions_in(ast.parse(file.read_text()), path))
    return {path.lstrip("."): function for path, function in found.items()}


FUNCTIONS = all_functions()


def unread(function):
    """The parameters that a function's body never looks at."""
    nodes = [node for statement in function.body for node in ast.walk(statement)]
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return [] if "locals" in names else [p for p in parameters(function) if p not in names]


def test_parameters_are_read_or_listed():
    missing = []
    for path, function in FUNCTIONS.items():
        if not is_public(path.rpartition(".")[2]) or only_refuses(function):
            continue
        if path.startswith("as_torch."):  # Python's import system calls these
            continue
        listed = set()
        for row in _accepted.rows_of(path):
            names = row.names if row.names != "" else parameters(function)
            listed.update(names.split() if isinstance(names, str) else names)
        missing += [f"{path}({name})" for name in unread(function) if name not in listed]
    assert not missing, "neither read nor in rushlight._accepted.ROWS: " + ", ".join(missing)


def has_flags(path, names):
    value = importlib.import_module("rushlight")
    for part in path.split("."):
        value = getattr(value, part)
    return all(hasattr(value, name) for name in names)


@pytest.mark.parametrize("row", _accepted.ROWS, ids=lambda row: f"{row.where} {row.names}"[:60])
def test_rows_name_what_is_there(row):
    assert row.reason
    assert row.effect in ("no effect", "fixed value", "refused", "takes effect")
    if isinstance(row.names, dict):
        assert has_flags(row.where, row.names)
        return
    for pattern in row.where.split():
        found = [f for path, f in FUNCTIONS.items() if fnmatch.fnmatchcase(path, pattern)]
        assert found, f"nothing is called {pattern}"
        known = {name for function in found for name in parameters(function)}
        if len(row.where.split()) == 1:
            assert set(row.names.split()) <= known
        else:
            assert not row.names or known & set(row.names.split())


def linear():
    return rushlight.nn.Linear(2, 2).parameters()


def optimizers_with(name):
    for kind in vars(rushlight.optim).values():
        if inspect.isclass(kind) and name in inspect.signature(kind).parameters:
            yield kind


# By name: calls that are refused.
REFUSALS = {
    "enabled": lambda: rushlight.autograd.profiler.emit_nvtx().__enter__(),
}


def test_every_refusal_is_tried():
    refused = [row.names.split() for row in _accepted.ROWS if row.effect == _accepted.REFUSED]
    assert {name for names in refused for name in names} == REFUSALS.keys()


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_refused_raises(name):
    with pytest.raises((NotImplementedError, ValueError, RuntimeError)):
        REFUSALS[name]()


def test_flags_have_the_listed_values_at_first():
    code = (
        "import rushlight as t\n"
        "from rushlight._accepted import ROWS\n"
        "from operator import attrgetter\n"
        "rows = [row for row in ROWS if isinstance(row.names, dict)]\n"
        "assert rows\n"
        "for row in rows:\n"
        "    space = attrgetter(row.where)(t)\n"
        "    assert row.names == {name: getattr(space, name) for name in row.names}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["cudnn", "mkldnn", "opt_einsum", "nnpack"])
def test_flags_are_declared_and_can_be_held(name):
    module = importlib.import_module(f"rushlight.backends.{name}")
    flags = _accepted.flags_of(f"backends.{name}")
    assert inspect.get_annotations(module).keys() == flags.keys()
    before = {flag: getattr(module, flag) for flag in flags}
    with module.flags(enabled=True):
        assert module.enabled is True
    assert {flag: getattr(module, flag) for flag in flags} == before


def test_the_page_is_written_from_the_list():
    """`python -m rushlight._accepted >docs/accepted.md` writes it."""
    assert (ROOT / "docs/accepted.md").read_text() == _accepted.page()


PROGRAM = """
import rushlight as t
t.backends.cudnn.benchmark = True
t.backends.cudnn.benchmark = False
parameters = [t.nn.Parameter(t.ones(2))]
t.optim.AdamW(parameters, fused=True)
t.optim.SGD(parameters, lr=0.1)
t.nn.utils.clip_grad_norm_(parameters, 1.0)
t.compile(lambda x: x, mode="max-autotune")
t.mps.empty_cache()
"""


def stderr_of(verbose):
    environment = {**os.environ, "RUSHLIGHT_VERBOSE": verbose}
    command = [sys.executable, "-c", PROGRAM]
    run = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return run.stderr


def test_verbose_programs_tell_what_has_no_effect():
    names = re.findall("rushlight: (.*) has no effect: .", stderr_of("1"))
    assert names == [
        "backends.cudnn.benchmark",
        "optim.adamw.AdamW(fused=...)",
        "compiler.compile(mode=...)",
        "_absent.empty_cache()",
    ]


def test_other_programs_say_nothing():
    assert stderr_of("0") == stderr_of("") == ""
