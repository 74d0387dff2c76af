"""`ao.quantization.stubs`, by its old place."""

from rushlight.ao.quantization.stubs import *  # noqa: F403
from rushlight.ao.quantization.stubs import __all__ as __all__
