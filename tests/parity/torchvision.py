"""torchvision as an oracle: imported beside PyTorch's CPU build, where it is installed.

Its compiled part wants CUDA, so the two ops that its Python part asks for by name are declared without kernels.
"""

import importlib
import importlib.util
import sys

import pytest


def load():
    """The module; skips the tests of whoever calls it where there is none."""
    torch = pytest.importorskip("torch")
    if importlib.util.find_spec("torchvision") is None:
        pytest.skip("torchvision is not installed", allow_module_level=True)
    if "torchvision" not in sys.modules:
        global _library  # declarations last as long as it does
        _library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            _library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return importlib.import_module("torchvision")
