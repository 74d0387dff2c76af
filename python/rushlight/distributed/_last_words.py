"""What an exception that ends a process of a group says: its rank on each line, and to the launcher
why the process ended.

Of several processes that fail most do so because another one did. The first whose failure is its own
is the cause.
"""

from __future__ import annotations

import io
import os
import sys

from rushlight.distributed.elastic.multiprocessing.errors import get_error_handler

__all__ = ["sign"]

_rank: int | None = None


def sign(rank: int) -> None:
    """Let an exception that ends this process say its rank from now on."""
    global _rank
    if _rank is None:
        before = sys.excepthook
        sys.excepthook = lambda kind, error, trace: _show(before, kind, error, trace)
    _rank = rank


def _show(before, kind, error, trace):
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if path and not os.path.exists(path) and not issubclass(kind, KeyboardInterrupt):
        get_error_handler().record_exception(error)
    shown, sys.stderr = sys.stderr, io.StringIO()
    try:
        before(kind, error, trace)
    finally:
        text, sys.stderr = sys.stderr.getvalue(), shown
        if shown is not None:
            lines = (f"[rank{_rank}]: {line}" for line in text.splitlines(keepends=True))
            shown.write("".join(lines))
            shown.flush()
