"""`ao.quantization.qconfig`, by its old place."""

from rushlight.ao.quantization.qconfig import *  # noqa: F403
from rushlight.ao.quantization.qconfig import __all__ as __all__
