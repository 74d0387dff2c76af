"""A plug-in for pytest: calls of the package are held to its annotations while tests run.

    python -m pytest -p tests.annotated -k examples_print tests/python/test_docstrings.py

The run fails where a function is given, or gives, what its annotations do not say (by typeguard, of
the group `lint`). Not for tests of wrong arguments.
"""

import builtins
import sys
import typing

import pytest
from typeguard import (
    CollectionCheckStrategy,
    ForwardRefPolicy,
    TypeguardFinder,
    config,
    install_import_hook,
)

# Functions there have an argument `globals`, which typeguard's own code calls.
_UNFIT = {"rushlight._lazy", "rushlight.utils.benchmark.utils.timer"}
# Where an annotation says less than what comes, since programs (`jit.script`) need one type.
_NARROWER = {
    "MaxPool1d.forward",
    "MaxPool2d.forward",
    "MaxPool3d.forward",
    "Sequential.forward",
    "GoogLeNet.forward",
    "Inception3.forward",
    "summed",  # a generator by an alias, which typeguard takes for the type of what it returns
}

_found = {}


def _note(error, memo):
    frame = sys._getframe(1)
    while frame is not None and "typeguard" in frame.f_code.co_filename:
        frame = frame.f_back
    code = frame.f_code
    if code.co_qualname in _NARROWER or ".proxy.Proxy) is not an instance" in str(error):
        return  # modules are traced by values that stand for tensors
    _found.setdefault(f"{code.co_filename}:{frame.f_lineno} {code.co_qualname}: {error}", None)


class _Finder(TypeguardFinder):
    def should_instrument(self, module_name):
        return super().should_instrument(module_name) and module_name not in _UNFIT


builtins.Any = typing.Any  # where modules import it for type checkers alone
config.typecheck_fail_callback = _note
config.forward_ref_policy = ForwardRefPolicy.IGNORE
config.collection_check_strategy = CollectionCheckStrategy.FIRST_ITEM
install_import_hook("rushlight", cls=_Finder)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if _found:
        session.exitstatus = 1


def pytest_terminal_summary(terminalreporter):
    for text in _found:
        terminalreporter.write_line(f"ANNOTATION {text}")
