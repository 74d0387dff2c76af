"""The error of a checkpoint that failed in some process."""

from __future__ import annotations

import traceback
from typing import Any

__all__ = ["CheckpointException"]


class CheckpointException(BaseException):
    """Errors by rank: `failures[rank]` is an exception and the place where it was raised.

    Args:
        msg: the message.
        failures: by rank, the exception and the place where it was raised.

    Example:
        >>> error = torch.distributed.checkpoint.CheckpointException("no", {})
        >>> error.failures
        {}
    """

    def __init__(self, msg: str, failures: dict[int, Any]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, Any]:
        """Exceptions and where they were raised, by rank."""
        return self._failures

    def __str__(self):
        lines = [f"CheckpointException ranks:{self._failures.keys()}"]
        for rank, (error, stack) in self._failures.items():
            trace = "".join(traceback.format_list(stack)) if stack else ""
            kind = "".join(traceback.format_exception_only(type(error), error))
            lines.append(f"Traceback (most recent call last): (RANK {rank})\n{trace}{kind}")
        return "\n".join(lines)


def _wrap_exception(exc: BaseException):
    """An exception and its stack, as other processes can get them."""
    return exc, traceback.extract_tb(exc.__traceback__)


def _is_wrapped_exception(obj) -> bool:
    return isinstance(obj, tuple) and len(obj) == 2 and isinstance(obj[0], BaseException)
