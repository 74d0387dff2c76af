"""`DataLoader`: makes batches from a dataset, in the order of a sampler.

The batches are made by an iterator: `_utils/epoch.py` (in this process), `_utils/processes.py` (by
worker processes), `_utils/threads.py` (by threads).
"""

from __future__ import annotations

import math
import multiprocessing
import multiprocessing.context
import operator
import os
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeAlias, TypeVar

import rushlight
from rushlight import _C
from rushlight._warnings import warn

from ._utils.collate import default_collate, default_convert
from ._utils.epoch import (
    _BaseDataLoaderIter,
    _SingleProcessDataLoaderIter,
    generators_of,
    numbered_samplers_of,
)
from ._utils.fetch import create_fetcher
from ._utils.processes import _MultiProcessingDataLoaderIter
from ._utils.threads import _ThreadsDataLoaderIter
from ._utils.worker import get_worker_info
from .datapipes.datapipe import IterDataPipe
from .dataset import IterableDataset, _Sample
from .graph_settings import apply_sharding, apply_shuffle_settings
from .sampler import BatchSampler, RandomSampler, SequentialSampler, _InfiniteConstantSampler

# What others write beside their own loaders' arguments.
_T = TypeVar("_T")
_collate_fn_t: TypeAlias = Callable[[list[_T]], Any]
_worker_init_fn_t: TypeAlias = Callable[[int], None]

__all__ = [
    "DataLoader",
    "_BaseDataLoaderIter",
    "_DatasetKind",
    "_MultiProcessingDataLoaderIter",
    "_SingleProcessDataLoaderIter",
    "default_collate",
    "default_convert",
    "get_worker_info",
]


class _DatasetKind:
    """How a dataset gives its samples."""

    Map = 0
    Iterable = 1
    create_fetcher = staticmethod(create_fetcher)


class DataLoader(Generic[_Sample]):
    """An iterable of batches.

    Args:
        dataset: a `Dataset`, an `IterableDataset`, or anything with `__getitem__` and `__len__`.
        batch_size: samples in a batch; None hands samples out one by one.
        shuffle: draw a new order each epoch.
        sampler: an iterable of indices, instead of `shuffle`.
        batch_sampler: an iterable of lists of indices, instead of all of these.
        num_workers: how many processes make the batches; 0: this one does. Each has a copy of the
            dataset: a stream gives its share of the samples there (see `get_worker_info`).
        collate_fn: makes a batch of a list of samples; `default_collate` if None.
        pin_memory: put batches into memory that a GPU reads by itself; without a GPU nothing.
        drop_last: leave out a last batch that is smaller.
        timeout: seconds to wait for a batch of a worker; 0: for ever.
        worker_init_fn: called in each worker with its number, when everything is seeded.
        multiprocessing_context: how workers are started: a name ("fork", "spawn", "forkserver") or
            a context; Python's default if None.
        generator: source of randomness of `shuffle` and of the workers' seeds.
        prefetch_factor: batches that each worker makes in advance; 2 if None.
        persistent_workers: keep the workers for the next epoch.
        pin_memory_device: accepted; the memory suits any GPU.
        in_order: hand out batches in the order of the sampler; else as they come.
        num_threads: how many threads make the batches, instead of processes: for datasets with
            indices whose work releases the interpreter's lock. Not in PyTorch.
        seed_samples: seed all generators for each sample, by its place in the epoch: batches do not
            depend on the number of workers. Samples are then fetched one by one. Not in PyTorch.

    Example:
        >>> numbers = torch.utils.data.TensorDataset(torch.arange(5))
        >>> for (batch,) in torch.utils.data.DataLoader(numbers, batch_size=2):
        ...     print(batch)
        tensor([0, 1])
        tensor([2, 3])
        tensor([4])
    """

    __initialized = False

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[..., Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[..., Any] | None = None,
        multiprocessing_context: Any = None,
        generator: _C.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        num_threads: int = 0,
        seed_samples: bool = False,
    ) -> None:
        _check_worker_options(num_workers, timeout, prefetch_factor, persistent_workers)
        self.num_workers, self.persistent_workers = num_workers, persistent_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.multiprocessing_context = multiprocessing_context
        self.worker_init_fn, self.timeout, self.in_order = worker_init_fn, timeout, in_order
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        if isinstance(dataset, IterDataPipe):
            dataset = apply_shuffle_settings(dataset, shuffle)
            shuffle = False  # it does it itself
        self.dataset: Any = dataset
        self._dataset_kind = _DatasetKind.Map
        if isinstance(dataset, IterableDataset):
            self._dataset_kind = _DatasetKind.Iterable
            _check_stream_options(shuffle, sampler, batch_sampler)
        _check_own_options(num_threads, num_workers, seed_samples, self._is_stream)
        self.num_threads, self.seed_samples = num_threads, seed_samples
        _check_order_options(batch_size, shuffle, sampler, batch_sampler, drop_last)
        self.generator = generator
        self.sampler = self._default_sampler(shuffle) if sampler is None else sampler
        self.batch_size, self.drop_last, self.batch_sampler = batch_size, drop_last, batch_sampler
        if batch_sampler is not None:
            self.batch_size, self.drop_last = None, False
        elif batch_size is not None:
            self.batch_sampler = BatchSampler(self.sampler, batch_size, drop_last)
        plain = default_collate if self._auto_collation else default_convert
        self.collate_fn = plain if collate_fn is None else collate_fn
        self._iterator: Any = None  # kept for its workers
        self._place: Any = None  # of the latest iterator, until its epoch has ended
        self._saved: dict[str, Any] | None = None  # where the next iterator begins
        self._before: dict[str, Any] | None = None  # generators, while an iterator is being made
        self._spares: list[Any] = []  # shared memory for the next workers
        self._IterableDataset_len_called = None
        self.__initialized = True
        self.check_worker_number_rationality()

    def _default_sampler(self, shuffle: bool | None) -> Any:
        if self._is_stream:
            return _InfiniteConstantSampler()
        if shuffle:
            return RandomSampler(self.dataset, generator=self.generator)
        return SequentialSampler(self.dataset)

    def __setattr__(self, name, value):
        fixed = (
            "batch_size",
            "batch_sampler",
            "sampler",
            "drop_last",
            "dataset",
            "persistent_workers",
        )
        if self.__initialized and name in fixed:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self):
        """The context in which workers are started; None for Python's default."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context):
        if context is not None and not self.num_workers:
            raise ValueError(
                "multiprocessing_context can only be used with workers, but num_workers is 0"
            )
        self.__multiprocessing_context = _context(context)

    @property
    def _is_stream(self) -> bool:
        return self._dataset_kind == _DatasetKind.Iterable

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self) -> Iterator[Any]:
        if self.pin_memory and not rushlight.cuda.is_available():
            warn("pin_memory=True has no effect here: no accelerator is found")
        # An interrupt in here leaves the loader where it was.
        self._before = self._generator_states()
        saved, self._place = self._saved, None
        if self._iterator is not None and self._iterator._usable():
            self._iterator._reset(self, saved)
            iterator = self._iterator
        else:
            iterator = self._get_iterator(saved)
            if self.persistent_workers:
                self._iterator = iterator
        self._place, self._saved, self._before = getattr(iterator, "_place", None), None, None
        return iterator

    def _get_iterator(self, saved: dict[str, Any] | None = None) -> _BaseDataLoaderIter:
        if self.num_workers > 0:
            self.check_worker_number_rationality()
            return _MultiProcessingDataLoaderIter(self, saved)
        if self.num_threads > 0:
            return _ThreadsDataLoaderIter(self, saved)
        return _SingleProcessDataLoaderIter(self, saved)

    def __getstate__(self):
        return {**self.__dict__, "_iterator": None, "_place": None, "_spares": []}

    def check_worker_number_rationality(self):
        """Warn if there are more workers than processors."""
        if self.num_workers == 0:
            return
        available = len(os.sched_getaffinity(0))
        if self.num_workers > available:
            warn(
                f"This DataLoader will create {self.num_workers} worker processes in total, but "
                f"this process may use {available} processors: fewer workers may be faster.",
            )

    # ---- going on in the middle of an epoch ----

    def state_dict(self) -> dict[str, Any]:
        """The position of the latest iterator, from which a loader can continue with the same
        batches.

        That is behind the last batch that was handed out, also where the loop was left by `break`,
        an exception or an interrupt: the loader that is given this finishes the epoch first.
        What the dataset draws in this process (without workers) depends on the program's own random
        state, which is not in it. Nor is the order of arrival without `in_order`.
        """
        epoch = self._saved if self._place is None else self._place.state()
        return {
            "generators": self._before or self._generator_states(),
            "numbers": {place: s.epoch for place, s in numbered_samplers_of(self).items()},
            "sizes": self._sizes(),
            "epoch": epoch,
        }

    def _sizes(self) -> dict[str, Any]:
        """What the number of a batch means nothing without."""
        samples = None if self._is_stream else operator.length_hint(self.dataset, -1)
        return {"samples": samples, "batch_size": self.batch_size, "drop_last": self.drop_last}

    def _generator_states(self) -> dict[str, rushlight.Tensor]:
        return {k: g.get_state() for k, g in generators_of(self).items()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Let the next iterator continue from a state of `state_dict`.

        Raises:
            TypeError: it is no such state, but something of another type.
            ValueError: parts of it are missing; it is within an epoch of another number of samples
                or size of batches; the dataset is a stream, and the state is that of another number
                of workers.
        """
        _check_state(state_dict)
        epoch = state_dict["epoch"]
        if epoch is not None and self._is_stream:
            workers = len(epoch.get("workers") or ())
            if workers != self.num_workers:
                raise ValueError(
                    f"the state is that of a stream in {workers} workers, and this DataLoader has "
                    f"{self.num_workers}"
                )
        sizes = state_dict.get("sizes", self._sizes())  # states of earlier versions have none
        if epoch is not None and sizes != self._sizes():
            raise ValueError(
                "DataLoader.load_state_dict(): the state is within an epoch of a loader with "
                f"{_words(sizes)}, but this one has {_words(self._sizes())}: its batches are others"
            )
        for name, generator in generators_of(self).items():
            if name in state_dict["generators"]:
                generator.set_state(state_dict["generators"][name])
        for place, sampler in numbered_samplers_of(self).items():
            if place in state_dict.get("numbers", {}):
                sampler.set_epoch(state_dict["numbers"][place])
        self._saved, self._place, self._before = epoch, None, None

    def __len__(self) -> int:
        if self._dataset_kind != _DatasetKind.Iterable:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return length
        if self.drop_last:
            return length // self.batch_size
        return math.ceil(length / self.batch_size)


def _words(sizes: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sizes.items())


def _context(given: Any) -> Any:
    """The context in which workers start, by itself or by the name of its method."""
    if isinstance(given, str):
        try:
            return multiprocessing.get_context(given)
        except ValueError:
            raise ValueError(
                "multiprocessing_context should specify a valid start method, one of "
                f"{multiprocessing.get_all_start_methods()}, but got {given!r}"
            ) from None
    if isinstance(given, (multiprocessing.context.BaseContext, type(None))):
        return given
    raise TypeError(
        "multiprocessing_context should be a valid context object or the name of a start method, "
        f"but got {given!r}"
    )


def _check_worker_options(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool
) -> None:
    """What is said of workers, and that only where there are some."""
    counts = {"num_workers": num_workers, "timeout": timeout, "prefetch_factor": prefetch_factor}
    for name, value in counts.items():
        if value is not None and value < 0:
            raise ValueError(f"{name} option should be non-negative, but got {value}")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing: without workers "
            "(num_workers=0) leave it None"
        )
    if persistent_workers and num_workers == 0:
        raise ValueError(
            f"persistent_workers option needs num_workers > 0, and there are {num_workers}: "
            "without workers leave it False"
        )


def _check_order_options(batch_size, shuffle, sampler, batch_sampler, drop_last):
    """One option says in which order the samples come, and one what makes a batch."""
    if sampler is not None and shuffle:
        raise ValueError(
            "sampler option is mutually exclusive with shuffle: "
            f"{type(sampler).__name__} gives the order of samples; leave shuffle out"
        )
    if batch_sampler is not None and (
        batch_size != 1 or shuffle or sampler is not None or drop_last
    ):
        raise ValueError(
            "batch_sampler option is mutually exclusive with batch_size, shuffle, "
            "drop_last and sampler"
        )
    if batch_sampler is None and batch_size is None and drop_last:
        raise ValueError(
            "batch_size=None disables auto-batching, and drop_last is about batches: one of the two"
        )


def _check_state(state):
    """Refuses what `state_dict` does not give."""
    what = "DataLoader.load_state_dict(): expected what state_dict() of a DataLoader gave"
    if not isinstance(state, dict):
        raise TypeError(f"{what}, a dict, but got {type(state).__name__}")
    missing = [name for name in ("epoch", "generators") if name not in state]
    epoch = state.get("epoch")
    parts = [("epoch", epoch)] if epoch is not None else []
    for name, part in [*parts, ("generators", state.get("generators", {}))]:
        if not isinstance(part, dict):
            raise TypeError(f"{what}, whose {name!r} is a dict, but got {type(part).__name__}")
    if epoch is not None:
        wanted = ("batches", "base_seed", "epoch_seed", "order")
        missing += [f"epoch.{name}" for name in wanted if name not in epoch]
    if missing:
        raise ValueError(f"{what}, but this has no {', '.join(missing)}; it has {list(state)}")


def _check_stream_options(shuffle, sampler, batch_sampler):
    """A stream has an order of its own."""
    if shuffle not in (False, None):
        raise ValueError(
            "DataLoader with IterableDataset: expected unspecified shuffle option, "
            f"but got shuffle={shuffle}: samples of a stream come in its own order, so "
            "leave it out and shuffle in the dataset"
        )
    if sampler is not None:
        raise ValueError(
            "DataLoader with IterableDataset: expected unspecified sampler option, "
            f"but got sampler={sampler}"
        )
    if batch_sampler is not None:
        raise ValueError(
            "DataLoader with IterableDataset: expected unspecified batch_sampler option, "
            f"but got batch_sampler={batch_sampler}"
        )


def _check_own_options(
    num_threads: int, num_workers: int, seed_samples: bool, is_stream: bool
) -> None:
    """What PyTorch's loader does not have."""
    if num_threads < 0:
        raise ValueError(f"num_threads must not be negative, but got {num_threads}")
    if num_threads and num_workers:
        raise ValueError("num_threads and num_workers are mutually exclusive")
    for name, value in {"num_threads": num_threads, "seed_samples": seed_samples}.items():
        if value and is_stream:
            raise ValueError(f"{name} needs a dataset with indices, not an IterableDataset")
    if num_threads and seed_samples:
        raise ValueError("seed_samples is for processes: threads share their generators")


def _sharding_worker_init_fn(
    worker_init_fn: Any, world_size: int, rank_id: int, worker_id: int
) -> None:
    """What a worker of another package's loader does at first: its part of a datapipe's items is
    one of those of all workers of all processes."""
    info: Any = get_worker_info()
    parts = info.num_workers * world_size
    apply_sharding(info.dataset, parts, worker_id * world_size + rank_id)
    if worker_init_fn is not None:
        worker_init_fn(worker_id)
