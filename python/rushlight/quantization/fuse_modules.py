"""`ao.quantization.fuse_modules`, by its old place."""

from rushlight.ao.quantization.fuse_modules import *  # noqa: F403
from rushlight.ao.quantization.fuse_modules import __all__ as __all__
