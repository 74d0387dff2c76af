"""Annotations accept what is accepted: numbers are not inferred to be whole from a default that is."""

import ast

import pytest

from tests import unread
from tests.typed import numbers


def defaults(function):
    """(parameter, default) of a function's definition."""
    a = function.args
    positional = [*a.posonlyargs, *a.args]
    yield from zip(positional[len(positional) - len(a.defaults) :], a.defaults, strict=True)
    yield from ((p, d) for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if d is not None)


def is_number(node):
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return False
    return isinstance(value, int | float) and not isinstance(value, bool)


def test_numbers_are_annotated():
    bare, seen = [], 0
    for path, function in unread.functions().items():
        if unread.is_public(path.rpartition(".")[2]):
            numbers_of = [p for p, default in defaults(function) if is_number(default)]
            seen += len(numbers_of)
            bare += [f"{path}({p.arg})" for p in numbers_of if p.annotation is None]
    assert not bare, "say what these take: " + ", ".join(bare)
    assert seen > 850


@pytest.mark.filterwarnings("ignore:Initializing zero-element")
def test_the_typed_program_runs():
    numbers.main()
