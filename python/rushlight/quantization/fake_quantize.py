"""`ao.quantization.fake_quantize`, under its deprecated name."""

from rushlight.ao.quantization.fake_quantize import *  # noqa: F403
from rushlight.ao.quantization.fake_quantize import __all__ as __all__
