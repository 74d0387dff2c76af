"""`ao.nn.quantized`, under its deprecated name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight._lazy import lazy
from rushlight.ao.nn.quantized import *  # noqa: F403
from rushlight.ao.nn.quantized import __all__ as __all__

if TYPE_CHECKING:
    from rushlight.nn.quantized import dynamic  # noqa: F401
else:
    __getattr__, __dir__ = lazy(__name__, "dynamic")
