"""`ao.nn.intrinsic.quantized`, by its old place."""

from rushlight.ao.nn.intrinsic.quantized import *  # noqa: F403
from rushlight.ao.nn.intrinsic.quantized import __all__ as __all__
