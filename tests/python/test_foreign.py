"""The manifest of PyTorch's paths and refusals (`rushlight.foreign`): true, whole, and what is made of it."""

import ast
import importlib
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight
from rushlight import foreign
from rushlight.foreign import refusals

PACKAGE = Path(rushlight.__path__[0])


def program(code):
    """Runs it in a process without the alias."""
    clean = {k: v for k, v in os.environ.items() if k != "RUSHLIGHT_AS_TORCH"}
    run = subprocess.run([sys.executable, "-c", code], env=clean, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


def is_hidden(path):
    """Whether a thing of another kind has the name of a module in its package: only programs that
    know the package as torchvision import such a module."""
    package, _, child = f"rushlight.{path}".rpartition(".")
    held = vars(importlib.import_module(package)).get(child)
    return held is not None and not isinstance(held, type(sys))


@pytest.mark.parametrize("path", foreign.MODULES)
def test_a_path_leads_to_what_the_table_says(path):
    row = foreign.MODULES[path]
    if is_hidden(path):
        assert isinstance(row, str) and importlib.import_module(f"rushlight.{row}")
        return
    module = importlib.import_module(f"rushlight.{path}")
    if isinstance(row, str):
        theirs = importlib.import_module(f"rushlight.{row}")
        names = [name for name in vars(theirs) if not name.startswith("_")]
        assert (
            module is theirs
            or foreign.find_spec(f"rushlight.{path}").submodule_search_locations == []
        )
        assert all(hasattr(module, name) for name in names)
    for name in module.__all__ if isinstance(row, dict) else ():
        assert getattr(module, name) is not None
        assert name in dir(module)


def test_paths_are_not_those_of_files():
    paths = {*foreign.MODULES}
    files = {p for p in paths if (PACKAGE / p.replace(".", "/")).with_suffix(".py").exists()}
    folders = {p for p in paths if (PACKAGE / p.replace(".", "/") / "__init__.py").exists()}
    assert not files | folders


def test_all_paths_are_imported_under_the_alias():
    visible = [path for path in foreign.MODULES if "vision" not in path.split(".")]
    lines = ["import rushlight.as_torch"]
    for i, path in enumerate(visible):
        package, _, child = f"torch.{path}".rpartition(".")
        lines += [f"import torch.{path} as m{i}", f"from {package} import {child} as c{i}"]
        lines += [f"from torch.{path} import *"]
    nested = [path for path in foreign.MODULES if path.startswith("vision.")]
    lines += [f"import torchvision.{path.removeprefix('vision.')}" for path in nested]
    lines += ["import torchvision", "assert callable(torchvision.ops.roi_align)"]
    program("\n".join(lines))


def test_a_module_is_loaded_once():
    program(
        "import rushlight.quantization.observer as old, rushlight.ao.quantization.observer as new\n"
        "assert old is new and new.__spec__.name == new.__name__\n"
        "import rushlight.as_torch, torch.optim._muon, torch.optim.muon\n"
        "assert torch.optim._muon is torch.optim.muon\n"
        "assert torch.optim.muon.__name__ == 'torch.optim.muon'\n"
    )


def test_functions_are_not_replaced_by_modules_of_their_name():
    program(
        "import rushlight.quantization.fuse_modules, rushlight.distributed._composable.replicate\n"
        "assert callable(rushlight.quantization.fuse_modules)\n"
        "assert callable(rushlight.distributed._composable.replicate)\n"
    )


@pytest.mark.parametrize("root", ["rushlight", "torch"])
def test_pickles_that_name_such_a_module_are_loaded(root):
    places = "quantization.observer\nMinMaxObserver", "_tags\nTag", "optim._muon\nMuon"
    data = [f"c{root}.{place}\n.".encode() for place in places]
    assert program(
        f"import {'rushlight' if root == 'rushlight' else 'rushlight.as_torch'}, pickle\n"
        f"print(*(pickle.loads(d).__name__ for d in {data}))"
    ).split() == ["MinMaxObserver", "Tag", "Muon"]
    assert pickle.loads(b"crushlight._info\nfinfo\n.") is rushlight.finfo


@pytest.mark.parametrize(
    "row", foreign.REFUSED, ids=lambda row: f"{row.where} {row.functions}"[:40]
)
def test_refused_names_are_there_and_raise(row):
    module = importlib.import_module(f"rushlight.{row.where}")
    for name in row.functions.split() + row.classes.split():
        with pytest.raises(RuntimeError, match=f"rushlight has no .*{name} yet: "):
            getattr(module, name)()
        assert getattr(module, name) is getattr(module, name)
        assert refusals.why_refused(getattr(module, name), called=True) == row.why
    for name in row.classes.split():
        assert not isinstance(1, getattr(module, name))


# What type checkers read, though it stands elsewhere: documented modules.
DOCUMENTED = {
    "multiprocessing.pool",
    "multiprocessing.queue",
    "nn.parameter",
    "vision.transforms.transforms",
    *(
        f"nn.modules.{family}"
        for family in ("channelshuffle", "distance", "dropout", "fold", "padding", "pixelshuffle")
    ),
}


def only_repeats(path):
    """Whether a file has nothing but imports and lists of names."""
    tree = ast.parse(path.read_text())
    hidden = [
        n for n in tree.body if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test)
    ]
    body = [n for n in tree.body[bool(ast.get_docstring(tree)) :] if n not in hidden]
    body += [n for block in hidden for n in block.body]
    imports = [n for n in body if isinstance(n, ast.Import | ast.ImportFrom)]
    lists = [
        n for n in body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__all__"
    ]
    return bool(imports) and len(imports) + len(lists) == len(body)


def test_no_file_only_repeats_what_stands_elsewhere():
    found = {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for path in PACKAGE.glob("**/*.py")
        if path.name != "__init__.py" and only_repeats(path)
    }
    assert found == DOCUMENTED
