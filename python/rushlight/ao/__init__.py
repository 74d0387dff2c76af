"""Quantisation of networks (`ao.quantization`) and its modules (`ao.nn`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight._lazy import lazy

if TYPE_CHECKING:
    from rushlight.ao import nn, quantization  # noqa: F401
else:
    __getattr__, __dir__ = lazy(__name__, "nn quantization")
