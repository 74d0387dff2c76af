"""Run by Python when it starts with this folder in PYTHONPATH and RUSHLIGHT_AS_TORCH=1.

Nothing is loaded before a program asks for torch, by an import or by its version. Another
`sitecustomize` that this one hides runs as it would without it.
"""

import importlib
import importlib.machinery
import importlib.util
import os
import sys


class _AliasFinder:
    """The first to be asked for torch lets `rushlight.as_torch` answer from then on."""

    def _alias(self):
        sys.meta_path.remove(self)
        importlib.import_module("rushlight.as_torch")

    def find_spec(self, name, path=None, target=None):
        if name not in ("torch", "torchvision", "functorch"):
            return None
        self._alias()
        # What is there already would be run again, by its own loader.
        sys.modules.pop(name, None)
        return sys.meta_path[0].find_spec(name, path, target)

    def find_distributions(self, context):
        if context.name != "torch":
            return ()
        self._alias()
        return getattr(sys.meta_path[0], "find_distributions")(context)  # noqa: B009


def _run_the_hidden():
    here = os.path.dirname(os.path.abspath(__file__))
    paths = [path for path in sys.path if os.path.abspath(path) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", paths)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


_run_the_hidden()
if os.environ.get("RUSHLIGHT_AS_TORCH", "0") not in ("", "0"):
    sys.meta_path.insert(0, _AliasFinder())
