"""Quantised layers followed by relu."""

from rushlight._texts.docstrings import describe_forwards as _describe_forwards
from rushlight.ao.nn.intrinsic.quantized.modules import *  # noqa: F403
from rushlight.ao.nn.intrinsic.quantized.modules import __all__ as __all__

_describe_forwards(globals())
