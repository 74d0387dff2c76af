"""Batches from worker processes.

Tasks go to the workers in turn, `prefetch_factor` to each in advance, and each worker answers its
tasks in their order. So the next batch in order is the next message of the worker whose turn it is:
no batch has a number, and none is sorted in. `worker_loop.py` is the other side.
"""

from __future__ import annotations

import atexit
import importlib
import multiprocessing
import os
import pickle
import select
import sys
import time
import weakref
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from rushlight._raised import ExceptionWrapper

from ..datapipes.datapipe import IterDataPipe
from . import seeds
from .epoch import _BaseDataLoaderIter, _draw_seed, _Place
from .pin_memory import pin_memory
from .worker_loop import Answer, Ask, Resumption, Setup
from .worker_process import Worker, collect_ended, end_processes, ending, no_interrupt

if TYPE_CHECKING:
    from rushlight.utils.data.dataloader import DataLoader

__all__ = ["_MultiProcessingDataLoaderIter"]

# How long a worker may take over the sample it is at, when no more are wanted.
_PATIENCE_SECONDS = 5
_SHORT_PATIENCE_SECONDS = 0.5  # after a failure
# How often the main process looks whether the workers it waits for are alive.
_CHECK_SECONDS = 2

# Bytes of shared memory that a loader keeps for the workers of its next epoch.
_MOST_SPARE = 1 << 28

_running: weakref.WeakSet[_MultiProcessingDataLoaderIter] = weakref.WeakSet()


@atexit.register
def _end_all():
    for iterator in list(_running):
        iterator._shutdown_workers()
    end_processes([process for process, _ in ending], max((end for _, end in ending), default=0))


def _keep(loader, block):
    """Keep a block of shared memory for the workers of a loader's next epoch."""
    spares = getattr(loader(), "_spares", None)
    if spares is not None and sum(b.nbytes for b in spares) + block.nbytes <= _MOST_SPARE:
        spares.append(block)


def _load_for_workers() -> None:
    """Load what each worker would load: what opens pictures, and numpy's generator for its seed."""
    if "numpy" in sys.modules:
        importlib.import_module("numpy.random")
    pillow = sys.modules.get("PIL.Image")
    if pillow is not None:
        pillow.preinit()


class _WorkersPlace(_Place):
    """Where an epoch of workers is; they tell their states with their batches."""

    def __init__(self, iterator, account) -> None:
        super().__init__(iterator, account)
        self._settle = weakref.WeakMethod(iterator._settle)

    def state(self) -> dict[str, Any]:
        settle = self._settle()
        if settle is not None:
            settle()
        state = super().state()
        state["workers"] = [
            [batches, samples, _savable(told or begun[0]) or begun[1]]
            for begun, batches, samples, told in state["workers"]
        ]
        return state

    def _state_entries(self) -> dict[str, Any]:
        return {**self.given}


def _savable(told):
    """What a worker told of its state, as data that `save` takes; None if it told nothing."""
    if not told:
        return None
    state: dict[str, Any] = {"random": seeds.states_of(told)}
    if "dataset" in told:
        if isinstance(told["dataset"], ExceptionWrapper):
            told["dataset"].reraise()
        state["dataset"] = pickle.loads(told["dataset"])
    return state


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Batches that worker processes make."""

    _has_order = True

    _on_length = (
        " Each worker has a copy of the dataset, which should give its share of the samples "
        "(see `get_worker_info`)."
    )

    def __init__(self, loader, saved=None) -> None:
        self._shutdown = True  # nothing to end yet
        self._patience: float = _PATIENCE_SECONDS
        self._pid = os.getpid()
        if loader.num_workers <= 0 or loader.prefetch_factor <= 0:
            name = "num_workers" if loader.num_workers <= 0 else "prefetch_factor"
            raise AssertionError(f"{name} must be greater than 0 for MultiProcessingDataLoaderIter")
        self._in_order = loader.in_order
        self._timeout = loader.timeout
        self._prefetch_factor = loader.prefetch_factor
        self._pinning: Any = None
        self._epoch = -1
        self._workers: list[Worker] = []
        self._turn = 0  # the worker that gets the next task
        self._order: deque[int] = deque()  # workers of the tasks that are out, by task
        super().__init__(loader, saved)
        if saved is None and self._shared_seed is not None:
            _draw_seed(loader.generator)  # PyTorch's loader draws one more here

    def _start(self, loader):
        context = loader.multiprocessing_context or multiprocessing
        collect_ended()
        if context.get_start_method() == "fork":
            _load_for_workers()
        self._shutdown = False
        _running.add(self)
        if self._pins:
            self._pinning = ThreadPoolExecutor(1)
        for number in range(loader.num_workers):
            setup = Setup(
                number,
                loader.num_workers,
                self._base_seed,
                loader.dataset,
                self._is_stream,
                loader._auto_collation,
                loader.collate_fn,
                loader.drop_last,
                loader.worker_init_fn,
            )
            self._workers.append(Worker(context, setup))
        spares = list(getattr(loader, "_spares", ()))
        if spares:
            loader._spares = []
        for number, worker in enumerate(self._workers):
            worker.channel.give(spares[number :: len(self._workers)])
        self._poller = select.poll()
        self._by_file = {}
        for worker in self._workers:
            self._poller.register(worker.file, select.POLLIN)
            self._by_file[worker.file] = worker

    # ---- an epoch ----

    def _begin(self, loader, saved):
        self._torn = True
        super()._begin(loader, saved)
        if not self._workers:
            self._start(loader)
        self._epoch += 1
        self._passed = self._reached
        self._turn = 0
        self._order.clear()
        self._arrivals: deque[Worker] = deque()  # those with an answer to take, if any order does
        resumptions = self._resumptions(saved)
        for worker, resumption in zip(self._workers, resumptions, strict=True):
            worker.begin(resumption)
            seed = self._epoch_seed if self._seeds_samples else None
            worker.send(Ask.EPOCH, (self._epoch, seed, self._shared_seed, resumption))
        if saved is not None and saved.get("workers") is not None:
            self._assign_again(saved)
        for _ in range(self._prefetch_factor * len(self._workers) - len(self._order)):
            self._try_put_index()
        self._reached = self._account()
        self._place = _WorkersPlace(self, self._sampler_iter.account)
        self._torn = False

    def _account(self) -> dict[str, Any]:
        """How far the epoch is, and what each worker has done of it."""
        return {
            "batches": self._passed,
            "workers": [(w.begun, w.batches, w.samples, w.state) for w in self._workers],
            "tasks": list(self._order),
            "active": [worker.active for worker in self._workers],
            "turn": self._turn,
        }

    def _settle(self) -> None:
        """Wait until workers that are kept have told what they began with; others' seed says it."""
        if self._torn or not self._loader.persistent_workers:
            return
        for worker in self._workers:
            while worker.begun[0] is None and not (worker.gone or self._shutdown):
                self._wait(None)

    def _mend(self) -> None:
        """Go on after the last batch, with new workers: these were interrupted in the middle."""
        place = self._place
        self._shutdown_workers()
        self._workers = []
        try:
            self._begin(self._loader, place.state())
        except BaseException:
            self._place = place
            raise
        if getattr(self._loader, "_place", None) is place:
            self._loader._place = self._place

    def _resumptions(self, saved):
        count = len(self._workers)
        if saved is None:
            return [None] * count
        workers = saved.get("workers")
        if workers is None or len(workers) != count:
            # Made with another number of workers: the order is the same, which worker it is not.
            return [Resumption(0, 0, None)] * count
        return [Resumption(*worker) for worker in workers]

    def _assign_again(self, saved: dict[str, Any]) -> None:
        if len(saved["workers"]) != len(self._workers):
            return
        for worker, active in zip(self._workers, saved["active"], strict=True):
            worker.active = active
        for number in saved["tasks"]:
            self._try_put_index(number)
        self._turn = saved["turn"]

    def _reset(self, loader: DataLoader, saved: dict[str, Any] | None = None) -> None:
        """Another epoch with the same workers."""
        if saved is None and self._seeds_samples:
            self._epoch_seed = _draw_seed(loader.generator)
        if isinstance(loader.dataset, IterDataPipe):
            self._shared_seed = (
                _draw_seed(loader.generator) if saved is None else saved["shared_seed"]
            )
        self._begin(loader, saved)

    def _try_put_index(self, number: int | None = None) -> None:
        """Give the next task to a worker: the one whose turn it is, or the one with this number."""
        if number is None and not any(worker.active for worker in self._workers):
            return
        position = self._sampler_iter.position
        try:
            index = self._next_index()
        except StopIteration:
            return
        if number is None:
            number = self._next_worker()
        worker = self._workers[number]
        worker.tasks += 1
        self._order.append(number)
        worker.send(Ask.TASK, (position, index))

    def _next_worker(self) -> int:
        if not self._in_order:
            # Whoever is ahead gets more.
            waiting = (w for w in self._workers if w.active)
            return self._workers.index(min(waiting, key=lambda w: w.tasks))
        while not self._workers[self._turn].active:
            self._turn = (self._turn + 1) % len(self._workers)
        number, self._turn = self._turn, (self._turn + 1) % len(self._workers)
        return number

    # ---- batches ----

    def _next_data(self):
        if self._torn:
            self._mend()
        while self._order:
            worker = self._answering()
            self._torn = True  # until the batch is handed out
            kind, content, state = self._take_answer(worker)
            if kind == Answer.END:
                worker.active = False
                self._try_put_index()
                self._torn = False
                continue
            worker.batches += 1
            self._passed += 1
            if state:
                worker.state = {**(worker.state or worker.begun[0] or {}), **state}
            if self._is_stream:
                worker.samples += getattr(self._loader, "batch_size", None) or 1
            self._try_put_index()
            self._reached = self._account()
            if kind == Answer.ERROR:
                self._torn = False
                content.reraise()
            return content.result() if isinstance(content, Future) else content
        if not self._loader.persistent_workers:
            self._shutdown_workers(wait=False)
        raise StopIteration

    def _answering(self) -> Worker:
        """The worker that the next answer comes from, once it is there."""
        if self._shutdown:
            raise RuntimeError("the workers of this DataLoader's iterator have ended")
        deadline = time.monotonic() + self._timeout if self._timeout > 0 else None
        if self._in_order:
            number = self._order[0]
            worker = self._workers[number]
            if not worker.arrived:
                self._receive(worker)
        else:
            worker = self._any_arrived()
        while worker is None or not worker.arrived:
            if worker is not None and worker.gone:
                self._report([worker])
            self._wait(deadline)
            if not self._in_order:
                worker = self._any_arrived()
        return worker

    def _take_answer(self, worker):
        if self._in_order:
            self._order.popleft()
        else:
            self._order.remove(self._workers.index(worker))
            self._arrivals.remove(worker)
        worker.tasks -= 1
        return worker.arrived.popleft()

    def _any_arrived(self):
        return self._arrivals[0] if self._arrivals else None

    def _wait(self, deadline):
        """Take in the answers that come next, at least one of them, or report why none does."""
        patience: float = _CHECK_SECONDS
        if deadline is not None:
            patience = max(0.0, min(patience, deadline - time.monotonic()))
        ready = self._poller.poll(patience * 1000)
        for file, _ in ready:
            self._receive(self._by_file[file])
        gone = [worker for worker in self._workers if worker.gone]
        for worker in gone:
            if self._by_file.pop(worker.file, None) is not None:
                self._poller.unregister(worker.file)
        if not ready:
            gone = [worker for worker in self._workers if not worker.process.is_alive()]
        if any(worker.tasks > len(worker.arrived) for worker in gone):
            self._report(gone)
        if not ready and deadline is not None and time.monotonic() >= deadline:
            self._patience = _SHORT_PATIENCE_SECONDS
            raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
        self._torn = True
        for worker in self._workers:
            if worker.tasks:
                try:
                    worker.channel.flush()
                except OSError:
                    worker.gone = True
        self._torn = False

    def _receive(self, worker: Worker) -> None:
        self._torn = True
        before = len(worker.arrived)
        worker.receive(self._epoch)
        for place in range(before, len(worker.arrived)):
            if not self._in_order:
                self._arrivals.append(worker)
            kind, content, state = worker.arrived[place]
            if self._pinning is not None and kind == Answer.BATCH:
                worker.arrived[place] = kind, self._pinning.submit(pin_memory, content), state
        self._torn = False

    def _report(self, gone):
        """Raise that workers have died."""
        cause = gone[0].cause_of_death()
        pids = ", ".join(str(worker.process.pid) for worker in gone)
        self._patience = _SHORT_PATIENCE_SECONDS
        self._shutdown_workers()
        raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly") from cause

    # ---- the end ----

    def _usable(self) -> bool:
        """Whether all workers are there for another epoch."""
        return (
            not self._shutdown
            and not self._torn
            and all(w.process.is_alive() for w in self._workers)
        )

    def _shutdown_workers(self, wait: bool = True) -> None:
        if self._shutdown or self._pid != os.getpid():
            return
        self._shutdown = True
        _running.discard(self)
        if self._pinning is not None:
            self._pinning.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.channel.close()
        processes, end = [w.process for w in self._workers], time.monotonic() + self._patience
        if wait:
            end_processes(processes, end)
        else:
            ending.extend((process, end) for process in processes)
        loader = weakref.ref(self._loader)
        for worker in self._workers:
            for block in worker.channel.spare_blocks(lambda block: _keep(loader, block)):
                _keep(loader, block)

    def __del__(self) -> None:
        if not self._shutdown:
            with no_interrupt(finalizer=True):
                self._shutdown_workers()
