"""A worker process as the main process sees it: its messages, what ended it, and how it is ended.

`processes.py` says what workers do for an epoch, `worker_loop.py` is the other side.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any

from .channel import Channel, pair
from .worker_loop import Answer, run

if TYPE_CHECKING:
    from rushlight.utils.data._utils.worker_loop import Resumption

# Processes of workers that have no more to do, and by when they are to have ended. Nobody waits for
# them: an epoch is over with its last batch, not when the system has taken back its memory.
ending: list[tuple[Any, float]] = []
os.register_at_fork(after_in_child=ending.clear)  # they are no children of a child


def end_processes(processes, deadline):
    """Wait for processes up to a time, then end them."""
    for process in processes:
        process.join(max(0, deadline - time.monotonic()))
    for stop in ("terminate", "kill"):
        late = [process for process in processes if process.is_alive()]
        for process in late:
            getattr(process, stop)()
        for process in late:
            process.join(2)


def collect_ended() -> None:
    """Forget the processes that have ended, and end those that were to have ended."""
    now = time.monotonic()
    end_processes([process for process, deadline in ending if deadline < now], now)
    ending[:] = [(process, deadline) for process, deadline in ending if process.is_alive()]


@contextlib.contextmanager
def no_interrupt(finalizer: bool = False) -> Iterator[None]:
    """Ctrl-C waits for the end, and what is started within gets none before it ignores it.

    Out of a finalizer nothing can be raised: there it comes again a moment later.
    """
    come: list[Any] = []
    handler: Any = signal.getsignal(signal.SIGINT)
    deferred = callable(handler) and threading.current_thread() is threading.main_thread()
    if deferred:  # other threads may get the signal, for this one to handle
        signal.signal(signal.SIGINT, lambda _, frame: come.append(frame))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if deferred:
            signal.signal(signal.SIGINT, handler)
    if come and finalizer:
        threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()
    elif come:
        handler(signal.SIGINT, come[0])


class Worker:
    """A worker process, seen from the main process.

    Attributes:
        arrived: (kind, content, state) of its answers that were not taken yet.
        tasks: how many it has not answered, or whose answers were not taken.
        batches: how many of its batches were handed out in this epoch.
        samples: how many samples of a stream these are.
        active: whether it gets tasks: not any more at the end of its stream.
        gone: whether its messages have ended.
        begun: [what it told of its state when this epoch began, or None; what it was told].
        state: what it told up to the last of its batches that was handed out.
    """

    def __init__(self, context, setup) -> None:
        own, others = pair()
        self.channel = Channel(own)
        self.file = self.channel.fileno()
        try:
            self.process = context.Process(target=run, args=(others, setup), daemon=True)
            if context.get_start_method() != "fork":
                resource_tracker.ensure_running()  # to start it would let Ctrl-C through
            with no_interrupt():
                self.process.start()
        except BaseException:
            self.channel.close()
            raise
        finally:
            others.close()
        self.arrived: deque[tuple[int, Any, Any]] = deque()
        self.tasks = 0
        self.batches = 0
        self.samples = 0
        self.active = True
        self.gone = False
        self.begun: list[Any] = [None, None]
        self.state: Any = None

    def begin(self, resumption: Resumption | None) -> None:
        """A new epoch, or the rest of one."""
        self.arrived.clear()
        self.tasks = self.batches = self.samples = 0
        self.active = True
        self.begun, self.state = [None, None], None
        if resumption is not None:
            self.batches, self.samples, self.begun[1] = resumption

    def send(self, kind, value):
        """Send without waiting; that the worker is gone is seen when its answer is missing."""
        try:
            self.channel.send(kind, value, wait=False)
        except OSError:
            self.gone = True

    def receive(self, epoch: int) -> None:
        """Take in what has come; answers to an epoch that was broken off are passed over."""
        while not self.gone:
            try:
                message = self.channel.receive(wait=False)
            except EOFError:
                self.gone = True
                return
            if message is None:
                return
            kind, (number, content, state) = message
            if number != epoch:
                continue
            if kind == Answer.STATE:
                self.begun[0] = state
            else:
                self.arrived.append((kind, content, state))

    def cause_of_death(self):
        """What ended it, as an error; None if that is not known."""
        self.process.join(1)  # its messages end a moment before itself
        code = self.process.exitcode
        if code is None:
            return None
        how = f"has exited with code {code}"
        if code < 0:
            how = f"is killed by signal: {signal.strsignal(-code)}"
        return RuntimeError(f"DataLoader worker (pid {self.process.pid}) {how}.")
