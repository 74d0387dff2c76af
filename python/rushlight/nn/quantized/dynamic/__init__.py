"""`ao.nn.quantized.dynamic`, under its deprecated name."""

from rushlight.ao.nn.quantized.dynamic import *  # noqa: F403
from rushlight.ao.nn.quantized.dynamic import __all__ as __all__
