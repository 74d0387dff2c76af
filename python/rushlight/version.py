"""Versions: `rushlight` is the version of this package, and `__version__` that of the PyTorch whose
API it has; platforms that this installation does not support are None.
"""

from rushlight import torch_version as _torch_version
from rushlight._C import _version
from rushlight.cuda._library import toolkit_version as _toolkit_version

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rushlight", "xpu"]

__version__ = str(_torch_version.__version__)
rushlight: str = _version
debug = False
cuda: str | None = _toolkit_version()
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
git_version = "unknown"
