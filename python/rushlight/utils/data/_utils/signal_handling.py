"""Worker processes that end are noticed: by the signal that the system sends their parent."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable
from typing import Any

__all__ = ["_error_if_any_worker_fails", "_remove_worker_pids", "_set_worker_pids"]

_workers: dict[int, tuple[int, ...]] = {}  # by the loader's number
_watching = False


def _set_worker_pids(loader_id: int, pids: Iterable[int]) -> None:
    """The processes of a loader."""
    if loader_id in _workers:
        raise ValueError("_set_worker_pids should be called only once for each loader")
    _workers[loader_id] = tuple(pids)


def _remove_worker_pids(loader_id: int) -> None:
    """Forgets the processes of a loader, which may end from now on."""
    if loader_id not in _workers:
        raise ValueError(f"no worker processes are known of the loader {loader_id}")
    del _workers[loader_id]


def _error_if_any_worker_fails() -> None:
    """RuntimeError if a worker has ended by a signal or with another status than 0."""
    for loader, pids in _workers.items():
        for pid in pids:
            try:
                # Looked at, and left for whoever waits for it.
                ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                continue
            if ended is None or (ended.si_code == os.CLD_EXITED and ended.si_status == 0):
                continue
            _workers[loader] = ()  # said once
            if ended.si_code == os.CLD_EXITED:
                raise RuntimeError(
                    f"DataLoader worker (pid {pid}) exited unexpectedly with exit code "
                    f"{ended.si_status}. Its own messages may say why; num_workers=0 shows them"
                )
            name = signal.Signals(ended.si_status).name
            raise RuntimeError(f"DataLoader worker (pid {pid}) is killed by signal: {name}")


def _set_SIGCHLD_handler() -> None:
    """Lets the main thread raise as soon as a worker fails; what handled the signal goes on."""
    global _watching
    if _watching or threading.current_thread() is not threading.main_thread():
        return
    before: Any = signal.getsignal(signal.SIGCHLD)

    def handle(number: int, frame: Any) -> None:
        _error_if_any_worker_fails()
        if callable(before):
            before(number, frame)

    signal.signal(signal.SIGCHLD, handle)
    _watching = True


def _set_worker_signal_handlers() -> None:
    """Nothing: a worker that crashes ends by its signal, which the parent sees."""
