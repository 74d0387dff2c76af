"""Fetchers: what a dataset gives for an index, or for the indices of a batch, collated."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight._raised import add_note

from ..dataset import Subset, TensorDataset, sample_at, samples_at
from ..graph_settings import apply_random_seed
from . import seeds, worker
from .collate import default_collate

if TYPE_CHECKING:
    from rushlight.utils.data.datapipes.datapipe import IterDataPipe

__all__ = ["create_fetcher", "seed_pipes"]


class _BaseDatasetFetcher:
    """What is common to datasets with indices and streams.

    Attributes:
        may_draw: whether batches may depend on random numbers.
    """

    may_draw = True

    def __init__(self, dataset, auto_collation, collate_fn, drop_last) -> None:
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last

    def fetch(self, possibly_batched_index):
        """The batch of these indices; raises StopIteration at the end of a stream."""
        raise NotImplementedError


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """Of a dataset with indices."""

    def fetch(self, possibly_batched_index):
        dataset = self.dataset
        if not self.auto_collation:
            return self.collate_fn(sample_at(dataset, possibly_batched_index))
        samples = samples_at(dataset, possibly_batched_index)
        try:
            return self.collate_fn(samples)
        except Exception as error:
            which = list(itertools.islice(possibly_batched_index, 16))
            add_note(error, f"while samples {which} of {type(dataset).__name__} were collated")
            raise


class _RowsFetcher(_MapDatasetFetcher):
    """Of tensors: a whole batch by one gather from each; equals the rows, stacked."""

    may_draw = False

    def __init__(self, tensors, chosen, *options) -> None:
        super().__init__(*options)
        self._tensors = tensors
        self._chosen = chosen

    def fetch(self, possibly_batched_index):
        index: Any = possibly_batched_index
        if type(index) is not list or not all(type(i) is int for i in index):
            return super().fetch(index)
        if self._chosen is not None:
            index = [self._chosen[i] for i in index]
        rows = rushlight.tensor(index, dtype=rushlight.int64)
        if worker.get_worker_info() is None:
            return [tensor[rows] for tensor in self._tensors]
        batch = []
        for tensor in self._tensors:
            memory = worker.batch_memory(tensor.dtype, (len(index), *tensor.shape[1:]))
            if memory is None or (index and min(index) < 0):
                batch.append(tensor[rows])
            else:
                batch.append(rushlight.index_select(tensor, 0, rows, out=memory))
        return batch


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """Of a stream."""

    def __init__(self, dataset, auto_collation, collate_fn, drop_last) -> None:
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter = iter(dataset)
        self.ended = False

    def fetch(self, possibly_batched_index):
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        count = len(possibly_batched_index)
        samples = list(itertools.islice(self.dataset_iter, count))
        self.ended = len(samples) < count
        if not samples or (self.drop_last and self.ended):
            raise StopIteration
        return self.collate_fn(samples)

    def skip(self, count: int) -> None:
        """Pass over samples that were handed out before."""
        for _ in itertools.islice(self.dataset_iter, count):
            pass


class _SeededFetcher:
    """Seeds all generators anew for each sample, by its place in the epoch, and for the collation.

    Args:
        fetcher: of a dataset with indices.
        epoch_seed: what the seeds of this epoch are made from.
    """

    def __init__(self, fetcher, epoch_seed) -> None:
        self._fetcher = fetcher
        self._epoch_seed = epoch_seed

    def fetch(self, possibly_batched_index, position):
        """The batch whose first sample has this place."""
        fetcher, dataset = self._fetcher, self._fetcher.dataset
        with seeds.kept_random_states():
            if not fetcher.auto_collation:
                seeds.seed_sample(self._epoch_seed, position)
                return fetcher.collate_fn(sample_at(dataset, possibly_batched_index))
            samples = []
            for place, index in enumerate(possibly_batched_index, position):
                seeds.seed_sample(self._epoch_seed, place)
                samples.append(sample_at(dataset, index))
            # From other numbers than any sample's.
            seeds.seed_sample(~self._epoch_seed, position)
            return fetcher.collate_fn(samples)


def seed_pipes(datapipe: IterDataPipe, seed: int) -> None:
    """Let all pipes of a graph that shuffle do it in the same way in each worker."""
    apply_random_seed(datapipe, rushlight.Generator().manual_seed(seed))


def create_fetcher(iterable, dataset, auto_collation, collate_fn, drop_last):
    """The fetcher for a loader's options."""
    options = (dataset, auto_collation, collate_fn, drop_last)
    if iterable:
        return _IterableDatasetFetcher(*options)
    tensors, chosen = _table(dataset) if auto_collation and collate_fn is default_collate else _NONE
    if tensors is not None:
        return _RowsFetcher(tensors, chosen, *options)
    return _MapDatasetFetcher(*options)


_NONE = (None, None)


def _table(dataset):
    """The tensors that a batch can be gathered from row by row, and a subset's indices or None.

    (None, None) for other datasets than plain tensors.
    """
    chosen = None
    if type(dataset) is Subset and isinstance(dataset.indices, (list, range)):
        dataset, chosen = dataset.dataset, dataset.indices
    if type(dataset) is TensorDataset and not any(
        type(t) is not rushlight.Tensor or t.requires_grad for t in dataset.tensors
    ):
        return dataset.tensors, chosen
    return _NONE
