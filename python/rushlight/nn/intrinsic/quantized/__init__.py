"""`ao.nn.intrinsic.quantized`, under its deprecated name."""

from rushlight.ao.nn.intrinsic.quantized import *  # noqa: F403
from rushlight.ao.nn.intrinsic.quantized import __all__ as __all__
