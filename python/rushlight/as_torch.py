"""`import rushlight.as_torch` lets `import torch` find rushlight.

For programs that cannot be changed: `torch`, `torch.nn.functional` and so on are then this package
and its modules. Raises ImportError where PyTorch itself is loaded already.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types

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


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds torch.X where rushlight.X is, torchvision.X where rushlight.vision.X is."""

    def find_spec(self, name, path=None, target=None):
        root, _, rest = name.partition(".")
        if root not in _ROOTS:
            return None
        source = _ROOTS[root] + ("." + rest if rest else "")
        if name == "torch" or importlib.util.find_spec(source) is None:
            return None
        return importlib.machinery.ModuleSpec(name, self, origin=source, is_package=True)

    def create_module(self, spec):
        module = importlib.import_module(spec.origin)
        self._spec = module.__spec__  # the import system is about to replace it
        return module

    def exec_module(self, module):
        module.__spec__ = self._spec


def install():
    """Puts the alias in place; the second time does nothing."""
    loaded = sys.modules.get("torch")
    if isinstance(loaded, _Alias):
        return
    if loaded is not None:
        raise ImportError("rushlight.as_torch must be imported before torch")
    alias = _Alias("torch", rushlight.__doc__)
    alias.__path__ = []
    sys.modules["torch"] = alias
    sys.meta_path.insert(0, _Finder())


install()
