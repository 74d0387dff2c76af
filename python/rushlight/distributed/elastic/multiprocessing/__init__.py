"""Launched processes: their output and their errors."""

from __future__ import annotations

from rushlight.distributed.elastic.multiprocessing import errors
from rushlight.distributed.elastic.multiprocessing.api import DefaultLogsSpecs, Std, to_map
from rushlight.distributed.elastic.multiprocessing.errors import record

__all__ = ["DefaultLogsSpecs", "Std", "errors", "record", "to_map"]
