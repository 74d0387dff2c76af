"""What loaders of other packages, with processes of their own, take from this one."""

import multiprocessing
import os
import queue
import signal
import threading
import time

import pytest

from rushlight.utils.data import _utils
from rushlight.utils.data._utils import pin_memory, signal_handling, worker


def test_constants_and_parts():
    assert _utils.MP_STATUS_CHECK_INTERVAL > 0 and _utils.python_exit_status is False
    assert _utils.HAS_NUMPY in (True, False) and not _utils.IS_WINDOWS
    assert _utils.collate.default_collate([1, 2]).tolist() == [1, 2]
    assert worker._IterableDatasetStopIteration(3).worker_id == 3
    assert worker._ResumeIteration().seed is None and worker._ResumeIteration(7).seed == 7


def test_a_worker_knows_whether_its_parent_lives(monkeypatch):
    watchdog = worker.ManagerWatchdog()
    assert watchdog.is_alive()
    monkeypatch.setattr(os, "getppid", lambda: -1)
    assert not watchdog.is_alive()
    monkeypatch.undo()
    assert not watchdog.is_alive()  # it does not come back


@pytest.mark.parametrize("how", ["killed", "exits", "ends well"])
def test_workers_that_fail_are_named(how):
    method = multiprocessing.get_context("fork")
    go = method.Event()

    def run():
        if how == "killed":
            signal.pause()
        go.wait()
        os._exit(0 if how == "ends well" else 3)

    process = method.Process(target=run)
    process.start()
    before = signal.getsignal(signal.SIGCHLD)
    signal_handling._set_worker_pids(1, [process.pid])
    try:
        signal_handling._error_if_any_worker_fails()  # it lives
        if how == "killed":
            os.kill(process.pid, signal.SIGKILL)
        else:
            go.set()
        deadline = time.monotonic() + 20
        said = "killed by signal: SIGKILL" if how == "killed" else "exit code 3"
        if how == "ends well":
            process.join()
            signal_handling._error_if_any_worker_fails()
            return
        with pytest.raises(RuntimeError, match=rf"\(pid {process.pid}\).*{said}"):
            while time.monotonic() < deadline:
                signal_handling._error_if_any_worker_fails()
                time.sleep(0.01)
        signal_handling._error_if_any_worker_fails()  # it is said once
    finally:
        signal_handling._remove_worker_pids(1)
        signal.signal(signal.SIGCHLD, before)
        process.join()
    with pytest.raises(ValueError, match="no worker processes"):
        signal_handling._remove_worker_pids(1)


def test_a_thread_that_pins():
    given, taken, done = queue.Queue(), queue.Queue(), threading.Event()
    thread = threading.Thread(
        target=pin_memory._pin_memory_loop, args=(given, taken, None, done, None)
    )
    thread.start()

    class Refuses:
        def pin_memory(self):
            raise RuntimeError("no")

    try:
        given.put((0, {"text": "as it is"}))
        given.put((1, Refuses()))
        assert taken.get(timeout=20) == (0, {"text": "as it is"})
        place, failed = taken.get(timeout=20)
        assert place == 1
        with pytest.raises(RuntimeError, match="no"):
            failed.reraise()
    finally:
        done.set()
        thread.join()


def test_parts_of_datapipes(monkeypatch):
    from rushlight.utils.data.dataloader import _sharding_worker_init_fn
    from rushlight.utils.data.datapipes.iter import IterableWrapper

    seen, items = [], []
    for rank in range(2):
        for number in range(2):
            pipe = IterableWrapper(range(8)).sharding_filter()
            info = worker.WorkerInfo(number, 2, 0, pipe)
            monkeypatch.setattr(worker, "_worker_info", info)
            _sharding_worker_init_fn(seen.append, 2, rank, number)
            items.append(list(pipe))
    assert seen == [0, 1, 0, 1] and items == [[0, 4], [2, 6], [1, 5], [3, 7]]
