"""`ao.nn.intrinsic`, under its deprecated name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight._lazy import lazy
from rushlight.ao.nn.intrinsic import *  # noqa: F403
from rushlight.ao.nn.intrinsic import __all__ as __all__

if TYPE_CHECKING:
    from rushlight.nn.intrinsic import qat, quantized  # noqa: F401
else:
    __getattr__, __dir__ = lazy(__name__, "qat quantized")
