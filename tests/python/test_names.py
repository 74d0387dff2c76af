"""What `import rushlight` loads, and the names that its packages load on first use."""

import ast
import importlib
import inspect
import operator
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight
from rushlight._names import listed as _listed

# `as_torch` acts when it is imported: no name of the package leads there by itself.
MODULES = [
    info.name
    for info in pkgutil.walk_packages(rushlight.__path__, "rushlight.")
    if info.name != "rushlight.as_torch"
]
LAZY = [
    name
    for name in ["rushlight", *MODULES]
    if "_lazy import lazy" in Path(importlib.import_module(name).__file__ or "").read_text("latin1")
]


def places(package):
    """The table of a package: name → (module, attribute)."""
    return inspect.getclosurevars(package.__getattr__).nonlocals["places"]


def loaded_by(code):
    """The modules that a fresh interpreter holds after running `code`."""
    code += "; import sys; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(run.stdout.split())


BASE = ("_C", "_C._functorch", "_lazy", "_tensor", "functional", "return_types")


def test_the_import_loads_the_base_alone():
    modules = loaded_by("import rushlight")
    own = {name for name in modules if name.partition(".")[0] == "rushlight"}
    base = {"rushlight", *(f"rushlight.{m}" for m in BASE)}
    assert own == base
    assert "numpy" not in modules


def test_no_module_loads_numpy():
    """Images are Pillow's and numpy's."""
    light = [m for m in MODULES if not m.startswith("rushlight.vision.")]
    modules = loaded_by(f"import {', '.join(light)}")
    assert modules >= set(light)
    assert not {"numpy", "PIL"} & modules


def test_files_of_tensors_load_without_nn(tmp_path):
    path = tmp_path / "tensor.pt"
    rushlight.save({"a": rushlight.ones(2), "b": rushlight.nn.Parameter(rushlight.ones(2))}, path)
    modules = loaded_by(f"import rushlight; rushlight.load({str(path)!r})")
    assert "rushlight.serialization" in modules
    assert "rushlight.nn" not in modules


@pytest.mark.parametrize("name", LAZY)
def test_what_dir_lists_is_there(name):
    package = importlib.import_module(name)
    shown = {entry for entry in places(package) if name != "rushlight" or _listed.is_shown(entry)}
    assert shown <= set(dir(package))
    missing = [entry for entry in dir(package) if not hasattr(package, entry)]
    assert not missing
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = package.nothing


@pytest.mark.parametrize("name", LAZY)
def test_type_checkers_see_the_same_names(name):
    package = importlib.import_module(name)
    tree = ast.parse(inspect.getsource(package))
    blocks = [n for n in tree.body if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test)]
    seen = {
        alias.asname or alias.name
        for block in blocks
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    # Those made in a loop over dtypes are not written anywhere.
    made = {f"{kind}{what}" for kind in rushlight._KINDS for what in ("Tensor", "Storage")}
    made |= {f"{kind}Storage" for kind in rushlight._CODE_KINDS}
    assert seen - {"*"} == places(package).keys() - made


def test_public_modules_are_attributes():
    public = [name for name in MODULES if "._" not in name and name.count(".") <= 2]
    missing = []
    for name in public:
        try:
            operator.attrgetter(name.partition(".")[2])(rushlight)
        except AttributeError:
            missing.append(name)
    assert not missing


def test_a_function_is_not_replaced_by_its_module():
    """`autograd.gradcheck` and others have the name of the module that they stand in."""
    code = (
        "import rushlight as t\n"
        "from rushlight.autograd.gradcheck import GradcheckError\n"
        "assert t.autograd.gradcheck(t.sin, [t.ones(2, dtype=t.double, requires_grad=True)])"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
