"""`ao.quantization.observer`, by its old place."""

from rushlight.ao.quantization.observer import *  # noqa: F403
from rushlight.ao.quantization.observer import __all__ as __all__
