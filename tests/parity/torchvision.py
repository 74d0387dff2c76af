"""torchvision as an oracle: imported beside PyTorch's CPU build, where it is installed.

Its compiled part may want CUDA's libraries. Where it does not load, the two ops that its Python part asks for by name
are declared without kernels, and what compares with the others is skipped (`compiled`). Beside a CPU build it loads
where stand-ins for libc10_cuda.so (with what it names of c10::cuda and at::cuda), libtorch_cuda.so and libcudart.so
are on LD_LIBRARY_PATH.
"""

import importlib
import importlib.util
import sys
from pathlib import Path

import pytest


def compiled(*files):
    """Whether these files of its compiled part are loaded."""
    import torch

    try:
        for file in files:
            found = importlib.util.find_spec("torchvision").origin
            torch.ops.load_library(str(Path(found).with_name(file)))
    except OSError:
        return False
    return True


def load():
    """The module; skips the tests of whoever calls it where there is none."""
    torch = pytest.importorskip("torch")
    if importlib.util.find_spec("torchvision") is None:
        pytest.skip("torchvision is not installed", allow_module_level=True)
    if "torchvision" not in sys.modules and not compiled("_C.so"):
        global _library  # declarations last as long as it does
        _library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            _library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return importlib.import_module("torchvision")
