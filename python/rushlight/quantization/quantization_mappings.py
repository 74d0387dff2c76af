"""`ao.quantization.quantization_mappings`, under its deprecated name."""

from rushlight.ao.quantization.quantization_mappings import *  # noqa: F403
from rushlight.ao.quantization.quantization_mappings import __all__ as __all__
