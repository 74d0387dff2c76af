"""Layers with a weight of codes, of floats."""

from rushlight.ao.nn.quantized.dynamic.modules import *  # noqa: F403
from rushlight.ao.nn.quantized.dynamic.modules import __all__ as __all__
