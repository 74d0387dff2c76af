"""Layers for quantisation-aware training: their weights are rounded to codes in every step."""

from rushlight._texts.docstrings import describe_forwards as _describe_forwards
from rushlight.ao.nn.qat.modules import *  # noqa: F403
from rushlight.ao.nn.qat.modules import __all__ as __all__

_describe_forwards(globals())
