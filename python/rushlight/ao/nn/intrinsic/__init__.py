"""Fused modules: each replaces several modules that quantisation treats as one."""

from __future__ import annotations

from rushlight._lazy import lazy
from rushlight.ao.nn.intrinsic.modules import *  # noqa: F403
from rushlight.ao.nn.intrinsic.modules import __all__ as __all__
from rushlight.ao.nn.intrinsic.modules import _FusedModule as _FusedModule

with lazy(__name__):
    from rushlight.ao.nn.intrinsic import modules, qat, quantized  # noqa: F401
