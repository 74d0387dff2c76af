"""Dynamically quantised layers: weights are codes, inputs and results are floats."""

from rushlight.ao.nn.quantized.dynamic.modules import *  # noqa: F403
from rushlight.ao.nn.quantized.dynamic.modules import __all__ as __all__
