"""The list of what is accepted (`rushlight.foreign.accepted`): complete, true, and what is made of it."""

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
from rushlight.foreign import accepted
from rushlight.foreign.rows import RAISES, Flags
from tests import unread

ROOT = Path(__file__).resolve().parents[2]


def known():
    """What rows may name: paths below `rushlight`, with their parameters, fields or options."""
    found = {path: set(unread.parameters(f)) for path, f in unread.functions().items()}
    for paths in (unread.op_parameters(), unread.fields(), unread.options()):
        for path, names in paths.items():
            found.setdefault(path, set()).update(names)
    return found


KNOWN = known()


def is_listed(path, name=None):
    """Whether a row names a parameter, or a function for what it does as a whole."""
    return any(name in row.names.split() or row.names == "" for row in rows_with_names(path))


def rows_with_names(path):
    return [row for row in accepted.rows_of(path) if not isinstance(row, Flags)]


def missing(found):
    """What is found and not listed, to be read in a message."""
    return [f"{path}({name})" for path, name in found if not is_listed(path, name)]


def test_parameters_are_read_or_listed():
    found = missing(unread.unread_parameters())
    assert not found, "neither read nor in rushlight.foreign.tables: " + ", ".join(found)


def test_private_parameters_are_read_or_listed():
    found = missing(unread.unread_private_parameters())
    assert not found, "nobody reads these, let them go: " + ", ".join(found)


def test_what_is_stored_is_read_or_listed():
    found = missing(unread.stored_and_unread()) + missing(unread.unread_fields())
    assert not found, "stored and never read, nor in ROWS: " + ", ".join(found)


def test_functions_do_something_or_are_listed():
    found = [path for path in unread.idle_functions() if not is_listed(path)]
    found += [path for path in unread.unread_settings() if not is_listed(path)]
    assert not found, "do nothing, and are not in ROWS: " + ", ".join(found)


def test_options_of_commands_are_read_or_listed():
    found = missing(unread.unread_options())
    assert not found, "options that nobody reads, and not in ROWS: " + ", ".join(found)


def test_arguments_of_ops_are_used_or_listed():
    found = missing(unread.unread_op_parameters())
    assert not found, "no implementation uses these, nor are they in ROWS: " + ", ".join(found)
    assert len(unread.seen_ops()) > 900


def has_flags(path, names):
    value = importlib.import_module("rushlight")
    for part in path.split("."):
        value = getattr(value, part)
    return all(hasattr(value, name) for name in names)


@pytest.mark.parametrize("row", accepted.ROWS, ids=lambda row: f"{row.where} {row.names}"[:60])
def test_rows_name_what_is_there(row):
    assert row.reason
    assert row.effect in ("no effect", "fixed value", "refused", "takes effect")
    if isinstance(row, Flags):
        assert has_flags(row.where, row.names.split())
        return
    for pattern in row.where.split():
        found = [names for path, names in KNOWN.items() if fnmatch.fnmatchcase(path, pattern)]
        assert found, f"nothing is called {pattern}"
        names = set().union(*found)
        if len(row.where.split()) == 1:
            assert set(row.names.split()) <= names
        else:
            assert not row.names or names & set(row.names.split())


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
    refused = [row.names.split() for row in accepted.ROWS if row.effect == RAISES]
    assert {name for names in refused for name in names} == REFUSALS.keys()


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_refused_raises(name):
    with pytest.raises((NotImplementedError, ValueError, RuntimeError)):
        REFUSALS[name]()


@pytest.mark.parametrize("name", ["cudnn", "mkldnn", "opt_einsum", "nnpack"])
def test_flags_are_declared_and_can_be_held(name):
    module = importlib.import_module(f"rushlight.backends.{name}")
    (row,) = (row for row in accepted.rows_of(f"backends.{name}") if isinstance(row, Flags))
    flags = row.names.split()
    assert [*inspect.get_annotations(module)] == flags
    before = {flag: getattr(module, flag) for flag in flags}
    with module.flags(enabled=True):
        assert module.enabled is True
    assert {flag: getattr(module, flag) for flag in flags} == before


def test_the_page_is_written_from_the_list():
    """`python -m rushlight.foreign.accepted >docs/accepted.md` writes it."""
    assert (ROOT / "docs/accepted.md").read_text() == accepted.page()


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
        "foreign.absent.empty_cache()",
    ]


def test_other_programs_say_nothing():
    assert stderr_of("0") == stderr_of("") == ""
