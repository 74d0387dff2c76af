"""`import rushlight.as_torch` turns on the alias: `import torch` then finds rushlight.

For programs that cannot be changed: `torch`, `torch.nn.functional` and so on are then this package
and its modules, the same objects under two names, also for `importlib.util.find_spec`,
`importlib.metadata.version`, and for those who ask a class for its module or a module for its
name.
What is missing says so by PyTorch's name. Raises ImportError if PyTorch itself is loaded
already.

`python -m rushlight run script.py` starts a program like that; `pytest -p rushlight.as_torch` runs
tests so.
"""

from __future__ import annotations

import functools
import importlib
import importlib.machinery
import importlib.util
import os
import sys
import types
from typing import Any

import rushlight
from rushlight import _C
from rushlight._lazy import foreign_name
from rushlight._library.stable import load_names

# What is found in what; the longest name of ours counts.
_ROOTS = {
    "torch": "rushlight",
    "torchvision": "rushlight.vision",
    "functorch": "rushlight._functorch.package",
    "torchao": "rushlight.ao.torchao",
}
_PLACES = tuple((ours, root) for root, ours in sorted(_ROOTS.items(), reverse=True))

# What is asked for its module.
_NAMED = (type, types.FunctionType, types.BuiltinFunctionType, _C._Offered)


class _PublicModules(dict[str, str]):
    """Our names of modules → PyTorch's; other names stay as they are."""

    def __missing__(self, name: str) -> str:
        found = next((p for p in _PLACES if f"{name}.".startswith(f"{p[0]}.")), ("", ""))
        self[name] = public = found[1] + name.removeprefix(found[0])
        return public


_PUBLIC = _PublicModules()


@functools.cache
def _has_torchao() -> bool:
    """Whether the package itself is installed, which then takes its place."""
    return importlib.machinery.PathFinder.find_spec("torchao") is not None


def _ours(name: str) -> str | None:
    """Our name of a module of PyTorch's, None for other modules."""
    root, _, rest = name.partition(".")
    if root == "torchao" and _has_torchao():
        return None
    return _ROOTS[root] + ("." + rest if rest else "") if root in _ROOTS else None


def _is_imported_from(frame: types.FrameType) -> bool:
    """Whether a frame is within `from module import name`."""
    from opcode import opmap

    return frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]


def _missing(module: types.ModuleType, ours: str, name: str):
    """A `__getattr__` for a module, by our and PyTorch's name: what is missing is named so."""
    inner = vars(module).get("__getattr__") or (lambda attribute: foreign_name(ours, attribute))

    def __getattr__(attribute: str) -> Any:
        try:
            return inner(attribute)
        except AttributeError as error:
            if f"has no attribute {attribute!r}" not in str(error):
                raise
        if attribute.startswith("__"):
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        message = f"rushlight has no {name}.{attribute} yet"
        # `from module import attribute` would put a message of its own in the place of this.
        if _is_imported_from(sys._getframe(1)):
            raise ImportError(message, name=name)
        raise AttributeError(message, name=attribute, obj=module)

    return __getattr__


def _mirror(module: types.ModuleType, name: str) -> None:
    """Gives a module of ours, called `name`, and what it holds, PyTorch's name as well."""
    public = _PUBLIC[name]
    sys.modules[public] = module
    module.__name__ = public  # the import system goes by the spec
    for value in list(vars(module).values()):
        if isinstance(value, _NAMED):
            home = getattr(value, "__module__", None)
            if isinstance(home, str) and _PUBLIC[home] != home:
                try:
                    value.__module__ = _PUBLIC[home]
                except TypeError:  # a type of the extension
                    continue
    vars(module)["__getattr__"] = _missing(module, name, public)


class _Watch:
    """Finds our modules as others do; once they have run, they have PyTorch's names, too."""

    def find_spec(self, fullname: str, path=None, target=None):
        if fullname.partition(".")[0] != "rushlight":
            return None
        after = sys.meta_path[sys.meta_path.index(self) + 1 :]
        found = (finder.find_spec(fullname, path, target) for finder in after)
        spec = next((spec for spec in found if spec is not None), None)
        loader: Any = spec and spec.loader
        if loader is not None:
            run = loader.exec_module

            def exec_module(module: types.ModuleType) -> None:
                run(module)
                if module.__spec__ is spec:  # not that of a module with another name
                    _mirror(module, fullname)

            loader.exec_module = exec_module
        return spec


def _is_asked() -> bool:
    """Whether a finder is called by somebody who asks for a spec, not by an import."""
    frame: Any = sys._getframe(2)
    while frame.f_back and frame.f_code.co_name in ("_find_spec", "find_spec"):
        if frame.f_code.co_filename == importlib.util.__file__:
            return True
        frame = frame.f_back
    return frame.f_code.co_name != "_find_and_load_unlocked"


class _Finder:
    """Finds torch.X where rushlight.X is, torchvision.X where rushlight.vision.X is."""

    def find_spec(self, name: str, path=None, target=None):
        source = _ours(name)
        if source is None:
            return None
        try:
            found = importlib.util.find_spec(source)
        except ModuleNotFoundError:  # nor is there what it would be in
            found = None
        asked = _is_asked()
        if found is not None:
            # What is imported is a package, so that this finder tells what it has not.
            package = not asked or found.submodule_search_locations is not None
            loader: Any = self  # by its methods; the base class would import much
            return importlib.machinery.ModuleSpec(name, loader, origin=source, is_package=package)
        # What somebody else has put under a name of PyTorch's lies where that package says.
        beside = None if path is None else importlib.machinery.PathFinder.find_spec(name, path)
        if beside is not None:
            return beside
        # Those who ask get None; those who import are told what is missing.
        if not asked:
            raise ModuleNotFoundError(f"rushlight has no {name} yet", name=name)
        return None

    def get_code(self, name: str):
        """The code of a module that is run by `python -m`."""
        source: Any = _ours(name)
        spec: Any = importlib.util.find_spec(source)
        return spec.loader.get_code(source)

    def create_module(self, spec: Any) -> types.ModuleType:
        module = importlib.import_module(spec.origin)
        spec.loader_state = module.__spec__  # the import system is about to replace it
        return module

    def exec_module(self, module: Any) -> None:
        module.__spec__ = module.__spec__.loader_state

    def find_distributions(self, context: Any = None):
        """For `importlib.metadata`, which is imported by those who ask alone."""
        from rushlight.foreign.distribution import NameAndVersion

        name = None if context is None else context.name
        if name in (None, "torch"):
            yield NameAndVersion("torch", str(rushlight.__version__))
        if name in (None, "torchvision"):
            yield NameAndVersion(
                "torchvision", importlib.import_module("rushlight.vision").__version__
            )


def install():
    """Turn on the alias; calling it again is a no-op."""
    loaded = sys.modules.get("torch")
    if loaded is rushlight:
        return
    if loaded is not None:
        raise ImportError("rushlight.as_torch must be imported before torch")
    sys.meta_path[:0] = [_Finder(), _Watch()]
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "rushlight" and name != __name__:
            _mirror(module, name)
    module: Any = rushlight
    module.torch = rushlight  # as the package there imports itself
    load_names()


def for_children():
    """Turn on the alias in Python processes that this process starts.

    They inherit RUSHLIGHT_AS_TORCH=1 and, in PYTHONPATH, a folder whose `sitecustomize` reads it.
    """
    os.environ["RUSHLIGHT_AS_TORCH"] = "1"
    package = rushlight.__path__[0]
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    for path in (os.path.dirname(package), os.path.join(package, "_startup")):
        paths = [path, *(p for p in paths if p not in ("", path))]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)


def pytest_configure(config):
    """Called by pytest if this module is one of its plugins."""
    for_children()


install()
