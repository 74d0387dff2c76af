"""`spawn`: run a function in several processes and raise their errors."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rushlight._raised import is_of_another
from rushlight._warnings import warn

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]


# How long a process that others have lost may take to end.
_CAUSE_SECONDS = 5


class ProcessException(Exception):
    """A process failed; `error_index` is its index.

    Args:
        msg: what went wrong.
        error_index: the index of the process.
        pid: its number.

    For an example see `multiprocessing.spawn`.
    """

    def __init__(self, msg: str, error_index: int, pid: int | None) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.pid = pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """The function of a process raised; the message contains its traceback.

    Args:
        msg: the message.
        error_index: the number of the process.
        error_pid: its number in the system.

    Example:
        >>> error = torch.multiprocessing.ProcessRaisedException("no", error_index=1, error_pid=300)
        >>> error.error_index
        1
    """

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg, error_index, error_pid)


class ProcessExitedException(ProcessException):
    """A process ended by a signal or with an exit code other than 0.

    Args:
        msg: the message.
        error_index: the number of the process.
        error_pid: its number in the system.
        exit_code: what it ended with.
        signal_name: the signal that ended it, or None.

    Example:
        >>> error = torch.multiprocessing.ProcessExitedException("no", 1, 300, exit_code=3)
        >>> error.exit_code
        3
    """

    def __init__(
        self,
        msg: str,
        error_index: int,
        error_pid: int,
        exit_code: int,
        signal_name: str | None = None,
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self):
        return type(self), (
            self.msg,
            self.error_index,
            self.pid,
            self.exit_code,
            self.signal_name,
        )


def _run(fn, i, args, error_file):
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # the parent is told itself
    except Exception as error:
        with open(f"{error_file}.part", "wb") as file:
            pickle.dump(traceback.format_exc(), file)
            pickle.dump((is_of_another(error), time.time()), file)
        os.replace(f"{error_file}.part", error_file)
        sys.exit(1)


class ProcessContext:
    """The processes that `start_processes` started.

    For an example see `multiprocessing.spawn`.

    Args:
        processes: the processes.
        error_files: where each writes the error that ended it.
    """

    def __init__(self, processes: Sequence[Any], error_files: Sequence[Any]) -> None:
        self.processes = processes
        self.error_files = error_files
        self.sentinels = {p.sentinel: i for i, p in enumerate(processes)}
        self._failed: dict[int, float] = {}  # when it was seen of which process

    def pids(self):
        """The process ids."""
        return [p.pid for p in self.processes]

    def _stop_others(self, timeout):
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        end = time.monotonic() + timeout
        for process in self.processes:
            process.join(max(0, end - time.monotonic()))
        for process in self.processes:
            if process.is_alive():
                process.kill()
                process.join()

    def join(self, timeout=None, grace_period=None):
        """Wait until a process ends; True once all have ended. If one fails, the others are
        terminated.

        Raises:
            ProcessRaisedException: the function raised in one of them.
            ProcessExitedException: one of them ended otherwise than it should.
        """
        if not self.sentinels:
            return True
        self._look(timeout)
        if not self._failed:
            return not self.sentinels
        # The process that others have lost may still be ending.
        end = time.monotonic() + _CAUSE_SECONDS
        while self.sentinels and self._cause()[0] and time.monotonic() < end:
            self._look(0.05)
        _, _, failed = self._cause()
        self._stop_others(30 if grace_period is None else grace_period)
        self._raise(failed)
        return False

    def _look(self, timeout):
        """Wait until processes have ended; how they did."""
        for sentinel in multiprocessing.connection.wait(list(self.sentinels), timeout=timeout):
            index = self.sentinels.pop(sentinel)
            process = self.processes[index]
            process.join()
            if process.exitcode != 0:
                self._failed[index] = time.time()

    def _cause(self):
        """(Whether because of another, when, which one) of the first that failed by itself."""
        failures = {index: (False, when, index) for index, when in self._failed.items()}
        for index, path in enumerate(self.error_files):
            if os.path.getsize(path) > 0:
                with open(path, "rb") as file:
                    pickle.load(file)  # the traceback
                    failures[index] = (*pickle.load(file), index)
        return min(failures.values())

    def _raise(self, index):
        process = self.processes[index]
        file = self.error_files[index]
        if os.path.getsize(file) > 0:
            with open(file, "rb") as content:
                original = pickle.load(content)
            message = f"\n\n-- Process {index} terminated with the following error:\n{original}"
            raise ProcessRaisedException(message, index, process.pid)
        code = process.exitcode
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"<Unknown signal {-code}>"
            raise ProcessExitedException(
                f"process {index} terminated with signal {name}", index, process.pid, code, name
            )
        raise ProcessExitedException(
            f"process {index} terminated with exit code {code}", index, process.pid, code
        )


class SpawnContext(ProcessContext):
    """`ProcessContext` under the name of the result of `spawn`.

    For an example see `multiprocessing.spawn`.

    Args:
        processes: the processes.
        error_files: where each writes the error that ended it.
    """


def start_processes(
    fn: Callable[..., Any],
    args: Any = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
    numa_options: Any = None,
) -> ProcessContext | None:
    """Run `fn(i, *args)` in `nprocs` processes; wait for them with `join=True`, else return
    them.

    Args:
        fn: a function of the module that is run.
        args: its arguments after the number.
        nprocs: how many processes.
        join: whether to wait for them.
        daemon: whether they end with this one.
        start_method: "spawn", "fork" or "forkserver".
        numa_options: accepted, without effect.

    Example:
        >>> torch.multiprocessing.start_processes(print, nprocs=0)
    """
    context: Any = multiprocessing.get_context(start_method)
    processes, files = [], []
    for i in range(nprocs):
        # An empty file per process, in which it leaves its error.
        descriptor, file = tempfile.mkstemp(prefix="rushlight-error-")
        os.close(descriptor)
        process = context.Process(target=_run, args=(fn, i, args, file), daemon=daemon)
        process.start()
        processes.append(process)
        files.append(file)
    result = SpawnContext(processes, files)
    if not join:
        return result
    try:
        while not result.join():
            pass
    finally:
        for file in files:
            if os.path.exists(file):
                os.remove(file)
    return None


def spawn(
    fn: Callable[..., Any],
    args: Any = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """`start_processes` with the start method "spawn".

    Args:
        fn: a function of a module, called with the number of the process and `args`.
        args: further arguments.
        nprocs: how many processes.
        join: whether to wait for their end; else a `SpawnContext` is returned.
        daemon: whether they end with this process.
        start_method: accepted with a warning where it is another one than "spawn".

    Raises:
        ProcessRaisedException, ProcessExitedException: as `ProcessContext.join`.

    Example:
        >>> import time
        >>> torch.multiprocessing.spawn(divmod, args=(3,), nprocs=2)
    """
    if start_method != "spawn":
        warn(
            f"spawn always uses start_method=spawn, got {start_method!r}; use start_processes",
            FutureWarning,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
