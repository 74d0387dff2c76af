"""Dynamically quantised layers: weights are codes, inputs and results are floats."""

from rushlight._texts.docstrings import describe_forwards as _describe_forwards
from rushlight.ao.nn.quantized.dynamic.modules import *  # noqa: F403
from rushlight.ao.nn.quantized.dynamic.modules import __all__ as __all__

_describe_forwards(globals())
