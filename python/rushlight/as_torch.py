"""`import rushlight.as_torch` lets `import torch` find rushlight.

For programs that cannot be changed: `torch`, `torch.nn.functional` and so on are then this package
and its modules, also for `importlib.util.find_spec` and `importlib.metadata.version`. Raises
ImportError where PyTorch itself is loaded already.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

import rushlight

VERSION = "2.8.0+rushlight"


class _Alias(types.ModuleType):
    """The module `torch`: rushlight with the version that programs ask for."""

    __version__ = VERSION

    def __getattr__(self, name):
        return getattr(rushlight, name)

    def __setattr__(self, name, value):
        if name.startswith("__"):
            super().__setattr__(name, value)
        else:
            setattr(rushlight, name, value)

    def __dir__(self):
        return dir(rushlight)


_ROOTS = {"torch": "rushlight", "torchvision": "rushlight.vision"}


class _Distribution(importlib.metadata.Distribution):
    """What `importlib.metadata` tells of torch."""

    def read_text(self, filename):
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: torch\nVersion: {VERSION}\n"

    def locate_file(self, path):
        return Path(rushlight.__path__[0]).parent / path


class _Finder(importlib.metadata.DistributionFinder, importlib.abc.Loader):
    """Finds torch.X where rushlight.X is, torchvision.X where rushlight.vision.X is."""

    def find_spec(self, name: str, path=None, target=None):
        root, _, rest = name.partition(".")
        if root not in _ROOTS:
            return None
        source = _ROOTS[root] + ("." + rest if rest else "")
        if importlib.util.find_spec(source) is None:
            return None
        return importlib.machinery.ModuleSpec(name, self, origin=source, is_package=True)

    def create_module(self, spec: Any) -> types.ModuleType:
        if spec.name == "torch":
            return _Alias("torch", rushlight.__doc__)
        module = importlib.import_module(spec.origin)
        spec.loader_state = module.__spec__  # the import system is about to replace it
        return module

    def exec_module(self, module: Any) -> None:
        if not isinstance(module, _Alias):
            module.__spec__ = module.__spec__.loader_state

    def find_distributions(self, context=importlib.metadata.DistributionFinder.Context()):  # noqa: B008
        if context.name in (None, "torch"):
            yield _Distribution()


def install():
    """Puts the alias in place; the second time does nothing."""
    loaded = sys.modules.get("torch")
    if isinstance(loaded, _Alias):
        return
    if loaded is not None:
        raise ImportError("rushlight.as_torch must be imported before torch")
    sys.meta_path.insert(0, _Finder())
    importlib.import_module("torch").__file__ = rushlight.__file__


install()
