"""`ao.quantization.fake_quantize`, by its old place."""

from rushlight.ao.quantization.fake_quantize import *  # noqa: F403
from rushlight.ao.quantization.fake_quantize import __all__ as __all__
