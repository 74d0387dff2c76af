"""`ao.quantization.quantization_mappings`, by its old place."""

from rushlight.ao.quantization.quantization_mappings import *  # noqa: F403
from rushlight.ao.quantization.quantization_mappings import __all__ as __all__
