"""What `import rushlight` loads, and the names that its packages load on first use."""

import builtins
import importlib
import math
import operator
import pkgutil
import subprocess
import sys
import types
from pathlib import Path

import pytest

import rushlight
from rushlight import _lazy
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
    """Name → where it stands, of the names that a package loads when they are first used."""
    return package.__getattr__.__self__.places


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
    public = {entry for entry in places(package) if not entry.startswith("_")}
    shown = {entry for entry in public if name != "rushlight" or _listed.is_shown(entry)}
    assert shown <= set(dir(package))
    missing = [entry for entry in dir(package) if not hasattr(package, entry)]
    assert not missing
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = package.nothing


def test_names_that_wait_are_no_other_things():
    """What a block of `lazy` imports is not there already, unless as a module that was loaded."""
    code = f"""
import importlib, importlib.util, sys
spec = importlib.util.spec_from_file_location("rushlight._lazy", {_lazy.__file__!r})
_lazy = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(_lazy)
found = []

class lazy(_lazy.lazy):
    def __enter__(self):
        self.before = {{n for n, v in self._space.items() if type(v) is not type(sys)}}
        super().__enter__()

    def __exit__(self, *_):
        super().__exit__()
        found.extend(f"{{self._package}}.{{name}}" for name in self.before & {{*self.places}})

_lazy.lazy = lazy
for name in {LAZY}:
    importlib.import_module(name)
print(*found)
"""
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.split() == [], run.stdout


def test_a_block_notes_its_own_imports_alone(monkeypatch):
    package = types.ModuleType("a_package")
    package.__package__ = "a_package"
    monkeypatch.setitem(sys.modules, "a_package", package)
    space, before = vars(package), builtins.__import__
    with _lazy.lazy("a_package", {"math": "tau"}):
        import json  # this file is not the package

        exec("from math import pi as half_turn\nfrom . import nothing", space)
        with pytest.raises(ImportError, match="from module import name"):
            exec("import math", space)
        with pytest.raises(ImportError, match="from module import name"):
            exec("from math import *", space)
    assert builtins.__import__ is before and json.dumps([]) == "[]"
    assert "half_turn" not in space
    assert (package.half_turn, package.tau) == (math.pi, math.tau)
    assert {"half_turn", "nothing", "tau"} <= set(dir(package))
    with pytest.raises(ModuleNotFoundError, match="a_package"):
        _ = package.nothing


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


def test_a_function_is_not_replaced_by_a_module_of_the_manifest():
    code = (
        "from rushlight.vision.ops.roi_align import RoIAlign\n"
        "from rushlight.vision import ops\n"
        "assert callable(ops.roi_align) and ops.RoIAlign is RoIAlign"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_alias_loads_the_manifest_when_something_is_missing():
    light = loaded_by("import rushlight.as_torch, torch.nn, torch.optim")
    assert not [m for m in light if m.startswith("rushlight.foreign")]
    assert "rushlight.foreign.tables.compiler" in loaded_by(
        "import rushlight.as_torch, torch; hasattr(torch, 'nothing')"
    )
