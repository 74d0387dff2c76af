"""Modules of quantised networks."""

from __future__ import annotations

from rushlight._lazy import lazy

with lazy(__name__):
    from rushlight.ao.nn import intrinsic, qat, quantized  # noqa: F401
