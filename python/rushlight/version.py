"""What was built: `__version__`; platforms that this installation is not for are None."""

from rushlight._C import _version
from rushlight.cuda._library import toolkit_version as _toolkit_version

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]

__version__ = _version
debug = False
cuda: str | None = _toolkit_version()
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
git_version = "unknown"
