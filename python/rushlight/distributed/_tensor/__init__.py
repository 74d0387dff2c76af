"""Tensors spread over devices, under an old name."""

from __future__ import annotations

from rushlight.distributed.tensor import *  # noqa: F403
from rushlight.distributed.tensor import __all__ as __all__
