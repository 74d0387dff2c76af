"""Quantisation, by its old place."""

from rushlight.ao.quantization import *  # noqa: F403
from rushlight.ao.quantization import __all__ as __all__
