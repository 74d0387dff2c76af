"""The constructs of TorchScript's language reference: programs give what Python gives, or the error that is named."""

import copy
import io

import pytest

import rushlight as torch
from tests.fuzz.scripts_names import plain
from tests.python import script_expressions, script_statements

TABLES = (script_expressions.TABLE, script_statements.TABLE)


def outcome(function, arguments):
    """What a call gives, or how it ends."""
    try:
        return plain(function(*copy.deepcopy(arguments)))
    except Exception as error:
        return "raises", str(error).strip().splitlines()[-1].split(": ")[-1]


def made(construct):
    return construct() if isinstance(construct, type) else construct


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("construct", "arguments"),
    [
        pytest.param(*one, id=one[0].__name__)
        for table in TABLES
        for one in (*table.rows, *table.beyond_rows)
    ],
)
def test_constructs(construct, arguments):
    expected = outcome(made(construct), arguments)
    program = torch.jit.script(made(construct))
    saved = io.BytesIO()
    torch.jit.save(program, saved)
    assert outcome(program, arguments) == expected
    saved.seek(0)
    if construct.__name__ != "Layered":  # its state has changed
        assert outcome(torch.jit.load(saved), arguments) == expected


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("construct", "words"),
    [
        pytest.param(one, words, id=one.__name__)
        for table in TABLES
        for one, (words,) in table.refusals
    ],
)
def test_refusals(construct, words):
    with pytest.raises((RuntimeError, torch.jit.frontend.NotSupportedError), match=words):
        torch.jit.script(construct)
