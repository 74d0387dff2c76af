"""`ao.quantization.fuse_modules`, under its deprecated name."""

from rushlight.ao.quantization.fuse_modules import *  # noqa: F403
from rushlight.ao.quantization.fuse_modules import __all__ as __all__
