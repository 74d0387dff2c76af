"""Layers of codes with relu in them."""

from rushlight.ao.nn.intrinsic.quantized.modules import *  # noqa: F403
from rushlight.ao.nn.intrinsic.quantized.modules import __all__ as __all__
