"""Errors of launched processes."""

from __future__ import annotations

from rushlight.distributed.elastic.multiprocessing import errors
from rushlight.distributed.elastic.multiprocessing.errors import record

__all__ = ["errors", "record"]
