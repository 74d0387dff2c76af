"""Layers for quantisation-aware training: their weights are rounded to codes in every step."""

from rushlight.ao.nn.qat.modules import *  # noqa: F403
from rushlight.ao.nn.qat.modules import __all__ as __all__
