"""`dir` of every module shows what is public: what it says, or makes, and no import of its own."""

import ast
import inspect
import types
from pathlib import Path

import pytest

from tests.untouched import public_modules

# They choose among names of the extension, or of other packages.
CHOOSES = {"rushlight", "rushlight.nn.functional", "rushlight.multiprocessing"}
MODULES = {
    name: module
    for name, module in public_modules().items()
    if not name.startswith("rushlight.foreign")
}


def imported(module):
    """Names that a file imports for itself: not as `X as X`, not from its own package, not lazily."""
    body = ast.parse(Path(module.__file__ or "").read_text()).body
    under = [n for node in body if isinstance(node, ast.If | ast.Try) for n in node.body]
    found = set()
    for node in [*body, *under]:
        if isinstance(node, ast.Import):
            found.update((a.asname or a.name).partition(".")[0] for a in node.names)
        elif isinstance(node, ast.ImportFrom) and not (
            module.__file__.endswith("__init__.py") and node.level
        ):
            found.update(a.asname or a.name for a in node.names if a.asname != a.name)
    return found


def shown(module):
    return {name for name in dir(module) if not name.startswith("__")}


@pytest.mark.parametrize("name", sorted(MODULES.keys() - CHOOSES))
def test_dir_shows_no_import_and_nothing_private(name):
    module = MODULES[name]
    names, listed = shown(module), set(getattr(module, "__all__", ()))
    inner = {n for n in names if isinstance(getattr(module, n), types.ModuleType)}
    assert listed <= set(dir(module))
    assert not (names - listed - inner) & imported(module)
    assert not [n for n in names - listed if n.startswith("_")]
    others = {n for n in inner if not getattr(module, n).__name__.startswith("rushlight.")}
    assert others <= listed


def test_files_say_what_is_public():
    """Files that are no packages have `__all__`; a package may have what it imports."""
    lacking = {
        name
        for name, module in MODULES.items()
        if not hasattr(module, "__path__") and not hasattr(module, "__all__")
    }
    assert lacking == {"rushlight.nn.functional", "rushlight.version"} & lacking


def test_what_is_not_shown_is_there():
    from rushlight.optim import adam

    assert shown(adam) == {"Adam"}
    assert adam.StatewiseOptimizer.__name__ == "StatewiseOptimizer"


def test_sources_and_reloads_work_as_of_any_module():
    import importlib

    from rushlight.vision.ops import losses

    assert "def sigmoid_focal_loss" in inspect.getsource(losses)
    assert shown(importlib.reload(losses)) == set(losses.__all__)
