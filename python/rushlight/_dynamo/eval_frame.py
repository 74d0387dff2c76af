"""`OptimizedModule`: what `compile` makes of a module."""

from __future__ import annotations

from rushlight.compiler import OptimizedModule

__all__ = ["OptimizedModule", "is_dynamo_supported"]


def is_dynamo_supported():
    """Whether programs are compiled: no."""
    return False


is_inductor_supported = is_dynamo_supported
