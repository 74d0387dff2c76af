"""`OptimizedModule`: what `compile` makes of a module."""

from __future__ import annotations

from rushlight.compiler import OptimizedModule

__all__ = ["OptimizedModule", "is_dynamo_supported"]


def is_dynamo_supported():
    """Whether this Python can compile and export programs: every one can."""
    return True


def is_inductor_supported():
    """Whether programs are compiled to native code: no."""
    return False
