"""The program of a worker process.

It answers the messages of the main process one by one, each task by one message, and ends with the
channel. What it is asked for (`Ask`) and what it answers (`Answer`) are the kinds of messages.
"""

from __future__ import annotations

import enum
import gc
import multiprocessing
import pickle
import signal
from collections import deque
from typing import Any, NamedTuple

import rushlight
from rushlight._raised import ExceptionWrapper

from ..datapipes.datapipe import IterDataPipe
from ..graph_settings import apply_sharding
from . import seeds, worker
from .channel import Channel
from .fetch import _SeededFetcher, create_fetcher, seed_pipes

__all__ = ["Answer", "Ask", "Resumption", "Setup", "run"]

# How often a worker that waits looks whether its parent is there.
_CHECK_SECONDS = 5


class Ask(enum.IntEnum):
    """What the main process sends."""

    EPOCH = 0  # (number, seed of the samples, seed of the pipes, Resumption), each may be None
    TASK = 1  # (place of the first sample in the epoch, index or indices)


class Answer(enum.IntEnum):
    """What a worker sends: (number of the epoch, content, `_Epoch.state`)."""

    BATCH = 0
    ERROR = 1
    END = 2  # the stream has no more
    STATE = 3  # an epoch has begun


class Resumption(NamedTuple):
    """Where a worker goes on in the middle of an epoch.

    Attributes:
        batches: how many it has made.
        samples: how many samples of a stream these are.
        state: the states of the generators after the last of them or, if there were none, when the
            epoch began, and that of the dataset; None if that was not told, or others made them.
    """

    batches: int
    samples: int
    state: Any


class Setup(NamedTuple):
    """What a worker is told when it starts."""

    worker_id: int
    num_workers: int
    base_seed: int
    dataset: Any
    iterable: bool
    auto_collation: bool
    collate_fn: Any
    drop_last: bool
    init_fn: Any


class _Epoch:
    """One epoch of a worker.

    Args:
        setup: of the worker.
        seed: what the seeds of samples are made from; None without them.
        resumption: where to begin, if not at the beginning.
        place: what errors say.
    """

    def __init__(self, setup, seed, resumption, place) -> None:
        self._place = place
        self._dataset = setup.dataset
        saved = None if resumption is None else resumption.state
        # A dataset that keeps an account of itself needs not be read up to here again.
        self._accounts = setup.iterable and hasattr(setup.dataset, "state_dict")
        self._accounts = self._accounts and hasattr(setup.dataset, "load_state_dict")
        if saved is not None and self._accounts and "dataset" in saved:
            self._dataset.load_state_dict(saved["dataset"])
        fetcher: Any = create_fetcher(
            setup.iterable, setup.dataset, setup.auto_collation, setup.collate_fn, setup.drop_last
        )
        if resumption is not None:
            if setup.iterable and not self._accounts:
                fetcher.skip(resumption.samples)
            if saved is not None and "random" in saved:
                seeds.set_random_states(saved["random"])
        self._fetcher = fetcher
        self._seeded = None if seed is None else _SeededFetcher(fetcher, seed)
        self._changes = seeds.Changes() if fetcher.may_draw else None

    def batch(self, position, index):
        """The next batch."""
        if self._seeded is not None:
            return self._seeded.fetch(index, position)
        return self._fetcher.fetch(index)

    def state(self):
        """What is not as it was when this was called last; a whole epoch goes on from the sum."""
        state: dict[str, Any] = {} if self._changes is None else self._changes.take_changes()
        if self._accounts:
            try:
                state["dataset"] = pickle.dumps(self._dataset.state_dict())
            except Exception:  # for those who ask for it
                state["dataset"] = ExceptionWrapper(where=self._place)
        return state


def _messages(channel):
    """What the main process sends; tasks of an epoch that it has broken off are left out."""
    parent = multiprocessing.parent_process()
    come: deque = deque()
    while True:
        while not come:
            if channel.wait(_CHECK_SECONDS):
                come.append(channel.receive())
            elif parent is not None and not parent.is_alive():
                raise EOFError
        while (message := channel.receive(wait=False)) is not None:
            if message[0] == Ask.EPOCH:
                come.clear()
            come.append(message)
        yield come.popleft()


def _answer(channel, setup, failure):
    """Answer messages until there are no more."""
    place = f"in DataLoader worker process {setup.worker_id}"
    epoch: Any = None
    number = -1
    for kind, value in _messages(channel):
        if kind == Ask.EPOCH:
            number, seed, shared_seed, resumption = value
            try:
                if failure is None:
                    if shared_seed is not None:
                        seed_pipes(setup.dataset, shared_seed)
                    epoch = _Epoch(setup, seed, resumption, place)
            except Exception:
                epoch = ExceptionWrapper(where=place)
            channel.send(Answer.STATE, (number, None, _state(epoch)))
            continue
        try:
            error = failure or epoch
            if isinstance(error, ExceptionWrapper):
                answer, data = Answer.ERROR, error
            else:
                answer, data = Answer.BATCH, epoch.batch(*value)
        except StopIteration as error:
            if setup.iterable:
                answer, data = Answer.END, None
            else:
                answer, data = Answer.ERROR, _wrap_error(error, place)
        except Exception as error:
            answer, data = Answer.ERROR, _wrap_error(error, place)
        state = {} if answer == Answer.END else _state(epoch)
        try:
            channel.send(answer, (number, data, state))
        except OSError:
            raise
        except Exception as error:  # it cannot be pickled
            channel.send(Answer.ERROR, (number, _wrap_error(error, place), state))
        del answer, data  # what is not used any more may be written again


def _state(epoch):
    return epoch.state() if isinstance(epoch, _Epoch) else {}


def _wrap_error(error, place):
    return ExceptionWrapper((type(error), error, error.__traceback__), place)


def run(end, setup):
    """What a worker process does.

    Args:
        end: its socket.
        setup: a `Setup`.
    """
    # Ctrl-C goes to all processes of a terminal; what is to become of workers the main one decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    # What a forked process inherits is shared with its parent until it is written to, and a search
    # for garbage writes to all of it.
    gc.freeze()
    channel = Channel(end)
    rushlight.set_num_threads(1)
    seeds.seed_worker(setup.base_seed, setup.worker_id)
    seed = setup.base_seed + setup.worker_id
    worker.start_worker(
        worker.WorkerInfo(setup.worker_id, setup.num_workers, seed, setup.dataset), channel.lender
    )
    failure = None
    try:
        try:
            if isinstance(setup.dataset, IterDataPipe):
                apply_sharding(setup.dataset, setup.num_workers, setup.worker_id)
            if setup.init_fn is not None:
                setup.init_fn(setup.worker_id)
        except Exception:
            failure = ExceptionWrapper(where=f"in DataLoader worker process {setup.worker_id}")
        _answer(channel, setup, failure)
    except (EOFError, BrokenPipeError, ConnectionError):
        pass  # the main process wants no more, or is gone
    finally:
        channel.close()
