"""`ao.quantization.quantize`, under its deprecated name."""

from rushlight.ao.quantization.quantize import *  # noqa: F403
from rushlight.ao.quantization.quantize import __all__ as __all__
