"""Quantised layers."""

from __future__ import annotations

from rushlight._lazy import lazy
from rushlight._texts.docstrings import describe_forwards as _describe_forwards
from rushlight.ao.nn.quantized.modules import *  # noqa: F403
from rushlight.ao.nn.quantized.modules import __all__ as __all__

with lazy(__name__):
    from rushlight.ao.nn.quantized import dynamic, modules  # noqa: F401

_describe_forwards(globals())
