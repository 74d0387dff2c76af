"""What is done in a process that was forked."""

from __future__ import annotations

import os

__all__ = ["register_after_fork"]


def register_after_fork(func):
    """Calls a function in each child that this process forks."""
    os.register_at_fork(after_in_child=func)
