"""Errors of launched processes: `record` writes them to a file that the launcher reads."""

from __future__ import annotations

import functools
import json
import os
import signal
import time
import traceback
from dataclasses import dataclass, field
from typing import Any

from rushlight._raised import is_of_another

__all__ = ["ChildFailedError", "ErrorHandler", "ProcessFailure", "get_error_handler", "record"]

_FILE = "TORCHELASTIC_ERROR_FILE"


class ErrorHandler:
    """Writes the error of this process to the file that the launcher names.

    For an example see `distributed.elastic.multiprocessing.record`.
    """

    def initialize(self) -> None:
        """A no-op: nothing is to be prepared."""

    def record_exception(self, error: BaseException) -> None:
        """Write an exception with its traceback."""
        path = os.environ.get(_FILE)
        if not path:
            return
        content = {
            "message": {
                "message": f"{type(error).__name__}: {error}",
                "extraInfo": {
                    "py_callstack": "".join(
                        traceback.format_exception(type(error), error, error.__traceback__)
                    ),
                    "timestamp": str(int(time.time())),
                },
            },
            # Not in PyTorch's files.
            "moment": time.time(),
            "of_another": is_of_another(error),
        }
        with open(f"{path}.part", "w") as file:
            json.dump(content, file)
        os.replace(f"{path}.part", path)


def get_error_handler() -> ErrorHandler:
    """The error handler of this process.

    For an example see `distributed.elastic.multiprocessing.record`.
    """
    return ErrorHandler()


def record(fn=None, error_handler: ErrorHandler | None = None):
    """A decorator that lets the launcher show the traceback of an error in `fn`.

    Args:
        fn: the function; left out, a decorator is given.
        error_handler: writes the error; that of this process by default.

    Example:
        >>> from rushlight.distributed.elastic.multiprocessing import record
        >>> @record
        ... def main():
        ...     return "done"
        >>> main()
        'done'
    """
    if fn is None:
        return functools.partial(record, error_handler=error_handler)
    handler = error_handler or get_error_handler()

    @functools.wraps(fn)
    def call_and_record(*args, **kwargs):
        handler.initialize()
        try:
            return fn(*args, **kwargs)
        except SystemExit as end:
            if end.code:
                handler.record_exception(end)
            raise
        except ChildFailedError as error:
            _, failure = error.get_first_failure()
            if failure.error_file_data is not None and os.environ.get(_FILE):
                with open(os.environ[_FILE], "w") as file:
                    json.dump(failure.error_file_data, file)
            raise
        except Exception as error:
            handler.record_exception(error)
            raise

    return call_and_record


@dataclass
class ProcessFailure:
    """How a process failed.

    Args:
        local_rank: its number on this machine.
        pid: its number in the system.
        exitcode: its status; negative: the signal that ended it.
        error_file: where it wrote its error.

    For an example see `distributed.elastic.multiprocessing.record`.
    """

    local_rank: int
    pid: int
    exitcode: int
    error_file: str = ""
    error_file_data: Any = field(init=False, default=None)
    message: str = field(init=False, default="")
    timestamp: int = field(init=False, default=0)
    moment: float = field(init=False, default=0.0, repr=False)  # the timestamp, more exactly
    of_another: bool = field(init=False, default=False)  # it ended because another one had

    def __post_init__(self):
        self.moment = time.time()
        self.timestamp = int(self.moment)
        try:
            with open(self.error_file) as file:
                self.error_file_data = json.load(file)
        except (OSError, ValueError):
            if self.exitcode < 0:
                self.message = (
                    f"Signal {-self.exitcode} ({self.signal_name()}) received by PID {self.pid}"
                )
            else:
                self.message = (
                    "The error's trace is not known: @record around the worker's main function "
                    "writes it down"
                )
            return
        message = self.error_file_data["message"]
        if isinstance(message, dict):
            self.timestamp = int(message["extraInfo"]["timestamp"])
            self.moment = float(self.error_file_data.get("moment", self.timestamp))
            self.of_another = bool(self.error_file_data.get("of_another"))
            self.message = message["extraInfo"]["py_callstack"]
        else:
            self.message = message

    def signal_name(self) -> str:
        """The name of the signal that ended the process."""
        if self.exitcode >= 0:
            return "<N/A>"
        try:
            return signal.Signals(-self.exitcode).name
        except ValueError:
            return "<Invalid Signal>"


def _order(failure):
    return failure.of_another, failure.moment


class ChildFailedError(Exception):
    """Launched processes failed: the first failure, and the others.

    Args:
        name: of the program.
        failures: by rank.

    For an example see `distributed.elastic.multiprocessing.record`.
    """

    def __init__(self, name: str, failures: dict[int, ProcessFailure]):
        if not failures:
            raise ValueError("a ChildFailedError without a failure")
        self.name = name
        self.failures = failures
        super().__init__(self.format_msg())

    def get_first_failure(self):
        """(rank, failure) of the first process that failed by itself."""
        rank = min(self.failures, key=lambda r: _order(self.failures[r]))
        return rank, self.failures[rank]

    def format_msg(self) -> str:
        """The text of the error."""
        first, _ = self.get_first_failure()
        line = "=" * 60
        parts = [line, f"{self.name} FAILED", "-" * 60, "Failures:"]
        others = [self._show(r, f) for r, f in self.failures.items() if r != first]
        parts += others or ["  <NO_OTHER_FAILURES>"]
        parts += ["-" * 60, "Root Cause (first observed failure):"]
        parts += [self._show(first, self.failures[first]), line]
        return "\n".join(parts)

    @staticmethod
    def _show(rank, failure):
        when = time.strftime("%Y-%m-%d_%H:%M:%S", time.localtime(failure.timestamp))
        message = failure.message.rstrip().replace("\n", "\n    ")
        return (
            f"  time      : {when}\n"
            f"  rank      : {rank} (local_rank: {failure.local_rank})\n"
            f"  exitcode  : {failure.exitcode} (pid: {failure.pid})\n"
            f"  error_file: {failure.error_file or '<N/A>'}\n"
            f"  traceback : {message}"
        )
