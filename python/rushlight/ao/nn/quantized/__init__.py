"""Quantised layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight._lazy import lazy
from rushlight.ao.nn.quantized.modules import *  # noqa: F403
from rushlight.ao.nn.quantized.modules import __all__ as __all__

if TYPE_CHECKING:
    from rushlight.ao.nn.quantized import dynamic, modules  # noqa: F401
else:
    __getattr__, __dir__ = lazy(__name__, "dynamic modules")
