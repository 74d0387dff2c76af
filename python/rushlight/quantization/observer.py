"""`ao.quantization.observer`, under its deprecated name."""

from rushlight.ao.quantization.observer import *  # noqa: F403
from rushlight.ao.quantization.observer import __all__ as __all__
