"""`ao.quantization.stubs`, under its deprecated name."""

from rushlight.ao.quantization.stubs import *  # noqa: F403
from rushlight.ao.quantization.stubs import __all__ as __all__
