"""`DataLoader`: batches from a dataset, in the order of a sampler."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator
from typing import Any

import rushlight
from rushlight import _C

from ._utils.collate import default_collate, default_convert
from .dataset import IterableDataset, Subset, TensorDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]


class _DatasetKind:
    """How a dataset gives its samples."""

    Map = 0
    Iterable = 1


class _InfiniteConstantSampler(Sampler):
    """Stands for the order of a stream, which has none to choose."""

    def __iter__(self):
        return itertools.repeat(None)


def get_worker_info():
    """What a worker process knows about itself; None in the main process."""
    return


class DataLoader:
    """An iterable of batches.

    Args:
        dataset: a `Dataset`, an `IterableDataset`, or anything with `__getitem__` and `__len__`.
        batch_size: samples in a batch; None hands samples out one by one.
        shuffle: draw a new order each epoch.
        sampler: an iterable of indices, instead of `shuffle`.
        batch_sampler: an iterable of lists of indices, instead of all of these.
        num_workers: 0, samples are fetched in this process; worker processes are not supported.
        collate_fn: makes a batch of a list of samples; `default_collate` if None.
        pin_memory: without an accelerator this does nothing.
        drop_last: leave out a last batch that is smaller.
        timeout, worker_init_fn, multiprocessing_context, prefetch_factor, persistent_workers,
            pin_memory_device, in_order: concern workers only.
        generator: source of randomness of `shuffle`.
    """

    __initialized = False

    def __init__(
        self,
        dataset,
        batch_size: int | None = 1,
        shuffle=None,
        sampler=None,
        batch_sampler=None,
        num_workers: int = 0,
        collate_fn=None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout=0,
        worker_init_fn=None,
        multiprocessing_context=None,
        generator: _C.Generator | None = None,
        *,
        prefetch_factor=None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        if num_workers < 0:
            raise ValueError(
                "num_workers option should be non-negative; "
                "use num_workers=0 to disable multiprocessing."
            )
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing. Let "
                "num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
            )
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        if num_workers > 0:
            raise NotImplementedError(
                f"DataLoader with worker processes (num_workers={num_workers}) is not supported "
                "yet; use num_workers=0"
            )
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        if isinstance(dataset, IterableDataset):
            self._dataset_kind = _DatasetKind.Iterable
            _check_stream_options(shuffle, sampler, batch_sampler)
        else:
            self._dataset_kind = _DatasetKind.Map
            shuffle = bool(shuffle)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, "
                    "sampler, and drop_last"
                )
            batch_size = None
            drop_last = False
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with "
                "drop_last"
            )
        if sampler is None:
            if self._dataset_kind == _DatasetKind.Iterable:
                sampler = _InfiniteConstantSampler()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self.__initialized = True
        self._IterableDataset_len_called = None

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
    def _auto_collation(self):
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self) -> Iterator[Any]:
        if self.pin_memory and not _has_accelerator():
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device "
                "pinned memory won't be used.",
                stacklevel=2,
            )
        return _SingleProcessDataLoaderIter(self)

    def __len__(self) -> int:
        if self._dataset_kind != _DatasetKind.Iterable:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return length
        if self.drop_last:
            return length // self.batch_size
        return math.ceil(length / self.batch_size)


def _check_stream_options(shuffle, sampler, batch_sampler):
    """A stream has an order of its own."""
    if shuffle not in (False, None):
        raise ValueError(
            "DataLoader with IterableDataset: expected unspecified shuffle option, "
            f"but got shuffle={shuffle}"
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


def _has_accelerator():
    cuda = getattr(rushlight, "cuda", None)
    return cuda is not None and cuda.is_available()


class _SingleProcessDataLoaderIter:
    """One epoch of a loader."""

    def __init__(self, loader) -> None:
        self._loader = loader
        self._index_sampler = loader._index_sampler
        self._num_yielded = 0
        self._expected = None  # a stream's length, where it was asked for
        # Drawn for the workers in PyTorch, and here so that later random numbers are the same.
        rushlight.empty((), dtype=rushlight.int64).random_(generator=loader.generator)
        self._sampler_iter = iter(self._index_sampler)
        if loader._dataset_kind == _DatasetKind.Iterable:
            self._stream = iter(loader.dataset)
            self._expected = loader._IterableDataset_len_called
            self._fetch = self._fetch_from_stream
        else:
            self._tensors: Any
            self._tensors, self._chosen = _table(loader)
            self._fetch = self._fetch_by_index if self._tensors is None else self._fetch_rows

    def __iter__(self):
        return self

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __next__(self):
        batch = self._fetch(next(self._sampler_iter))
        self._num_yielded += 1
        expected = self._expected
        if expected is not None and self._num_yielded > expected:
            warnings.warn(
                f"Length of IterableDataset {self._loader.dataset} was reported to be {expected} "
                f"(when accessing len(dataloader)), but {self._num_yielded} samples have been "
                "fetched.",
                stacklevel=2,
            )
        return batch

    def _fetch_by_index(self, index):
        loader = self._loader
        dataset = loader.dataset
        if not loader._auto_collation:
            return loader.collate_fn(dataset[index])
        if getattr(dataset, "__getitems__", None):
            return loader.collate_fn(dataset.__getitems__(index))
        return loader.collate_fn([dataset[i] for i in index])

    def _fetch_rows(self, index):
        """A whole batch by one gather from each tensor; equals the rows, stacked."""
        if type(index) is not list or not all(type(i) is int for i in index):
            return self._fetch_by_index(index)
        if self._chosen is not None:
            index = [self._chosen[i] for i in index]
        rows = rushlight.tensor(index, dtype=rushlight.int64)
        return [tensor[rows] for tensor in self._tensors]

    def _fetch_from_stream(self, index):
        loader = self._loader
        if not loader._auto_collation:
            return loader.collate_fn(next(self._stream))
        samples = list(itertools.islice(self._stream, len(index)))
        if not samples or (loader.drop_last and len(samples) < len(index)):
            raise StopIteration
        return loader.collate_fn(samples)


def _table(loader):
    """The tensors that a batch can be gathered from row by row, and a subset's indices or None.

    (None, None) where the loader is of another kind than tensors with the default collation.
    """
    dataset, chosen = loader.dataset, None
    if type(dataset) is Subset and isinstance(dataset.indices, (list, range)):
        dataset, chosen = dataset.dataset, dataset.indices
    if (
        type(dataset) is TensorDataset
        and loader._auto_collation
        and loader.collate_fn is default_collate
        and not any(type(t) is not rushlight.Tensor or t.requires_grad for t in dataset.tensors)
    ):
        return dataset.tensors, chosen
    return None, None
