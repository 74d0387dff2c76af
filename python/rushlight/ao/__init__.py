"""Quantisation of networks (`ao.quantization`) and its modules (`ao.nn`)."""

from __future__ import annotations

from rushlight._lazy import lazy

with lazy(__name__):
    from rushlight.ao import nn, quantization  # noqa: F401
