"""One epoch of a loader in the process that asks for it: the order, and batches from this process.

`_BaseDataLoaderIter` keeps what all iterators have: the order of the samples, the count of batches,
and the place from which an epoch goes on (`state_dict`).
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NoReturn

import rushlight
from rushlight._warnings import warn

from ..datapipes.datapipe import IterDataPipe
from ..sampler import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    _InfiniteConstantSampler,
)
from . import seeds
from .fetch import _SeededFetcher, create_fetcher, seed_pipes
from .pin_memory import pin_memory

if TYPE_CHECKING:
    from rushlight.utils.data.dataloader import DataLoader
    from rushlight.utils.data.distributed import DistributedSampler

__all__ = [
    "_BaseDataLoaderIter",
    "_SingleProcessDataLoaderIter",
    "generators_of",
    "numbered_samplers_of",
]


def _samplers_of(loader):
    """The samplers, one around the other, by the place where they were given."""
    sampler, place = loader._index_sampler, "sampler"
    for _ in range(8):
        if sampler is None:
            return
        yield place, sampler
        sampler, place = getattr(sampler, "sampler", None), place + ".sampler"


def generators_of(loader):
    """The generators that the order depends on, by the place where they were given."""
    found = {} if loader.generator is None else {"loader": loader.generator}
    for place, sampler in _samplers_of(loader):
        generator = getattr(sampler, "generator", None)
        if isinstance(generator, rushlight.Generator):
            found[place] = generator
    return found


def numbered_samplers_of(loader: DataLoader) -> dict[str, DistributedSampler]:
    """Samplers whose order depends on the number of the epoch (`set_epoch`), by their place."""
    return {
        place: sampler
        for place, sampler in _samplers_of(loader)
        if callable(getattr(sampler, "set_epoch", None))
        and type(getattr(sampler, "epoch", None)) is int
    }


def _torch_states() -> dict[str, Any]:
    return {"torch": rushlight.get_rng_state()}


def _states_function(sampler):
    """A function for the states that a sampler may draw from; None if it draws nothing."""
    while type(sampler) is BatchSampler:
        sampler = sampler.sampler
    if isinstance(sampler, (list, tuple, range)) or type(sampler) in _ORDERLY:
        return None
    # Ours draw from one generator, those of others from any.
    return _torch_states if type(sampler) in _OURS else seeds.random_states


_ORDERLY = (SequentialSampler, _InfiniteConstantSampler)
_OURS = (RandomSampler, SubsetRandomSampler, WeightedRandomSampler)


class _Order:
    """The indices of an epoch, and what it takes to draw them again.

    Args:
        loader: whose order it is.
        saved: what `state` gave before, and how many to pass over; None for a new epoch.
    """

    def __init__(self, loader, saved=None, passed: int = 0) -> None:
        sampler = loader._index_sampler
        self._generators = generators_of(loader)
        self._draws = _states_function(sampler)
        # The states of the generators when the order was begun, and when its first was drawn.
        self.account: dict[str, Any] = {"begun": None, "first": None}
        self.position = 0  # of the next sample
        if saved is None:
            self.account["begun"] = self._states()
            self._indices = iter(sampler)
            return
        # The generators given by name go on as they did then; the others are only lent.
        with seeds.kept_random_states():
            self._set(saved["begun"])
            self.account["begun"] = saved["begun"]
            self._indices = iter(sampler)
            self.account["first"] = saved["first"]
            if saved["first"] is not None:
                self._set(saved["first"])
                for index in itertools.islice(self._indices, passed):
                    self.position += _count(index)
                # One more, because the sampler may draw at the first.
                self._indices = itertools.chain(
                    list(itertools.islice(self._indices, 1)), self._indices
                )

    def __next__(self):
        if self.account["first"] is None:
            # A sampler that is a generator function draws now, not before.
            self.account["first"] = self._states()
        index = next(self._indices)
        self.position += _count(index)
        return index

    def _states(self) -> dict[str, Any]:
        if self._draws is None:
            return {"generators": {}}
        states = self._draws()
        states["generators"] = {k: g.get_state() for k, g in self._generators.items()}
        return states

    def _set(self, states: dict[str, Any]) -> None:
        seeds.set_random_states(states)
        for name, generator in self._generators.items():
            if name in states["generators"]:
                generator.set_state(states["generators"][name])


def _count(index):
    return len(index) if hasattr(index, "__len__") else 1


def _draw_seed(generator: rushlight.Generator | None) -> int:
    """A seed."""
    return int(rushlight.empty((), dtype=rushlight.int64).random_(generator=generator).item())


# What iterators of other packages find in themselves: PyTorch's names of what the loader says.
_OF_THE_LOADER = {
    "_IterableDataset_len_called": "_IterableDataset_len_called",
    "_auto_collation": "_auto_collation",
    "_collate_fn": "collate_fn",
    "_dataset_kind": "_dataset_kind",
    "_drop_last": "drop_last",
    "_in_order": "in_order",
    "_num_workers": "num_workers",
    "_persistent_workers": "persistent_workers",
    "_pin_memory_device": "pin_memory_device",
    "_prefetch_factor": "prefetch_factor",
    "_timeout": "timeout",
    "_worker_init_fn": "worker_init_fn",
}


class _Place:
    """Where an epoch is, which the loader knows also once the iterator is gone.

    Attributes:
        given: the iterator's `_reached` when it handed out a batch. It is replaced as a whole, so
            that an interrupt finds it as it was before a batch or as it is after one.
    """

    def __init__(self, iterator, account) -> None:
        self.given: Any = iterator._reached
        self._account = account
        self._dataset = iterator._dataset if iterator._accounts else None
        self._fixed = {
            "base_seed": iterator._base_seed,
            "epoch_seed": iterator._epoch_seed,
            "shared_seed": iterator._shared_seed,
        }

    def state(self) -> dict[str, Any]:
        """As data that `save` takes."""
        state = {**self._state_entries(), **self._fixed, "order": dict(self._account)}
        if self._dataset is not None:
            state["dataset"] = self._dataset.state_dict()
        return state

    def _state_entries(self) -> dict[str, Any]:
        return {"batches": self.given}


class _BaseDataLoaderIter:
    """What all iterators over a loader have.

    Args:
        loader: whose batches they are.
        saved: a state from which to go on; None for a new epoch.
    """

    # Whether indices come from an `_Order`; iterators of other packages keep theirs themselves.
    _has_order = False
    _accounts = False  # whether the dataset in this process tells its place by itself
    _torn = False  # whether handing out was interrupted in its middle
    # Iterators of other packages may begin by themselves; nobody asks them for their place.
    _place: Any = _Place.__new__(_Place)
    _reached: Any = 0

    def __init__(self, loader, saved=None) -> None:
        self._loader = loader
        self._dataset = loader.dataset
        self._index_sampler = loader._index_sampler
        # Loaders of others have PyTorch's attributes alone.
        self._is_stream = bool(loader._dataset_kind)
        self._seeds_samples = getattr(loader, "seed_samples", False)
        self._shared_seed = None
        if isinstance(loader.dataset, IterDataPipe):
            self._shared_seed = (
                _draw_seed(loader.generator) if saved is None else saved["shared_seed"]
            )
            seed_pipes(loader.dataset, self._shared_seed)
        if saved is None:
            self._base_seed = _draw_seed(loader.generator)
        else:
            self._base_seed = saved["base_seed"]
        self._epoch_seed = self._base_seed
        self._pins = loader.pin_memory and rushlight.cuda.is_available()
        self._begin(loader, saved)

    def _begin(self, loader, saved):
        """A new epoch."""
        # How far the epoch is: the batches of its order that were handed out or have failed.
        self._reached = 0 if saved is None else saved["batches"]
        self._num_yielded = 0 if saved is None else saved["batches"]
        # A stream's length, where it was asked for.
        self._expected = loader._IterableDataset_len_called
        if not self._has_order:
            self._sampler_iter = iter(self._index_sampler)
        elif saved is None:
            self._sampler_iter = _Order(loader)
        else:
            self._epoch_seed = saved["epoch_seed"]
            self._sampler_iter = _Order(loader, saved["order"], saved["batches"])
        self._place = _Place(self, getattr(self._sampler_iter, "account", {}))

    def _reset(self, loader, first_iter=False):
        """A new epoch of an iterator of another package, which goes by the loader's sampler."""
        if not first_iter or self._num_yielded:
            self._begin(loader, None)
        self._sampler_iter = iter(self._index_sampler)

    def __getattr__(self, name: str):
        if name in _OF_THE_LOADER:
            return getattr(self._loader, _OF_THE_LOADER[name])
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def _pin_memory(self):
        return self._pins

    def __iter__(self):
        return self

    def __len__(self) -> int:
        return len(self._index_sampler)

    def _next_index(self):
        return next(self._sampler_iter)

    def _next_data(self):
        raise NotImplementedError

    def __next__(self):
        try:
            batch = self._next_data()
        except StopIteration:
            if getattr(self._loader, "_place", None) is self._place:
                self._loader._place = None
            raise
        self._num_yielded += 1
        expected = self._expected
        if expected is not None and self._num_yielded > expected:
            warn(
                f"{self._dataset} said that its length is {expected}, but has given "
                f"{self._num_yielded} samples." + self._on_length,
            )
        self._place.given = self._reached
        self._torn = False
        return batch

    def __getstate__(self) -> NoReturn:
        raise NotImplementedError(
            f"{type(self).__name__} cannot be pickled or copied: its place is in "
            "DataLoader.state_dict()"
        )

    _on_length = ""


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Batches that are made when they are asked for."""

    _has_order = True

    def __init__(self, loader, saved=None) -> None:
        dataset = loader.dataset
        self._accounts = bool(loader._dataset_kind) and hasattr(dataset, "state_dict")
        self._accounts = self._accounts and hasattr(dataset, "load_state_dict")
        super().__init__(loader, saved)
        if loader.timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        if saved is not None and self._accounts:
            self._dataset.load_state_dict(saved["dataset"])
        self._dataset_fetcher: Any = create_fetcher(
            self._is_stream,
            self._dataset,
            loader._auto_collation,
            loader.collate_fn,
            loader.drop_last,
        )
        if saved is not None and self._is_stream and not self._accounts:
            self._dataset_fetcher.skip(self._sampler_iter.position)
        self._seeded = None
        if self._seeds_samples:
            self._seeded = _SeededFetcher(self._dataset_fetcher, self._epoch_seed)

    def _next_data(self):
        position = self._sampler_iter.position
        index = self._next_index()
        self._reached += 1
        if self._seeded is not None:
            batch = self._seeded.fetch(index, position)
        else:
            batch = self._dataset_fetcher.fetch(index)
        return pin_memory(batch) if self._pins else batch
