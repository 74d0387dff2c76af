"""Fused modules: each replaces several modules that quantisation treats as one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight._lazy import lazy
from rushlight.ao.nn.intrinsic.modules import *  # noqa: F403
from rushlight.ao.nn.intrinsic.modules import __all__ as __all__
from rushlight.ao.nn.intrinsic.modules import _FusedModule as _FusedModule

if TYPE_CHECKING:
    from rushlight.ao.nn.intrinsic import modules, qat, quantized  # noqa: F401
else:
    __getattr__, __dir__ = lazy(__name__, "modules qat quantized")
