"""Default timeouts of process groups."""

from __future__ import annotations

from rushlight.distributed.distributed_c10d import default_pg_timeout

__all__ = [
    "default_pg_timeout",
]
