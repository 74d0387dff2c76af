"""`ao.quantization.qconfig`, under its deprecated name."""

from rushlight.ao.quantization.qconfig import *  # noqa: F403
from rushlight.ao.quantization.qconfig import __all__ as __all__
