"""The base classes of datapipes: steps by name, lengths, and one iterator at a time."""

from __future__ import annotations

import functools
import importlib.util
import pickle
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import rushlight

from ..dataset import Dataset, IterableDataset, _Sample

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe"]


class _Steps:
    """Steps that can be called as methods: `pipe.batch(4)` is `Batcher(pipe, 4)`."""

    functions: ClassVar[dict[str, Callable]]

    @classmethod
    def register_function(cls, function_name, function):
        """Let `pipe.function_name(…)` call a function of the pipe."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(cls, function_name, cls_to_register):
        """Let `pipe.function_name(…)` make a pipe over the pipe."""
        if function_name in cls.functions:
            raise Exception(
                f"Unable to add DataPipe function name {function_name} as it is already taken"
            )
        cls.register_function(function_name, cls_to_register)

    def __getattr__(self, name: str) -> Any:
        function = type(self).functions.get(name)
        if function is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return functools.partial(function, self)

    def __repr__(self) -> str:
        return type(self).__name__


def length_of(pipe, items):
    """The length of what a pipe reads; TypeError with the pipe's name if there is none."""
    try:
        return len(items)
    except (TypeError, NotImplementedError):
        raise no_length(pipe) from None


def no_length(pipe):
    """The error of a pipe whose length is not known."""
    return TypeError(f"{type(pipe).__name__} instance doesn't have valid length")


class _OnlyIterator:
    """An iterator over a pipe, until the pipe gets another one."""

    def __init__(self, pipe, iterator, number) -> None:
        self._pipe = pipe
        self._iterator = iterator
        self._number = number

    def __iter__(self):
        return self

    def __next__(self):
        if self._pipe.__dict__.get("_iterators", 0) != self._number:
            raise RuntimeError(
                f"This iterator has been invalidated: {self._pipe!r} began another one. Several "
                "can be had of it by `.fork()`"
            )
        return next(self._iterator)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._iterator, name)


def _once(begin: Callable[..., Any]) -> Callable[..., Any]:
    """`__iter__` of a pipe, which starts anew and ends the iterators before."""

    @functools.wraps(begin)
    def __iter__(self):
        number = self.__dict__["_iterators"] = self.__dict__.get("_iterators", 0) + 1
        self.reset()
        return _OnlyIterator(self, begin(self), number)

    return __iter__


class IterDataPipe(_Steps, IterableDataset[_Sample]):
    """A stream that reads another; subclasses define `__iter__`, and `reset` if they keep a
    state.

    Example:
        >>> pipe = torch.utils.data.datapipes.iter.IterableWrapper([2, 5, 3])
        >>> list(pipe.map(lambda x: x * 10).filter(lambda x: x > 20))
        [50, 30]
    """

    functions: ClassVar[dict[str, Callable]] = {}

    def __init_subclass__(cls, **options) -> None:
        super().__init_subclass__(**options)
        begin = cls.__dict__.get("__iter__")
        if begin is not None:
            setattr(cls, "__iter__", _once(begin))  # noqa: B010

    def reset(self):
        """Called when an iterator begins."""

    def __getstate__(self):
        return dict(self.__dict__)


class DFIterDataPipe(IterDataPipe):
    """Marks streams of data frames.

    Example:
        >>> issubclass(torch.utils.data.DFIterDataPipe, torch.utils.data.IterDataPipe)
        True
    """


class ShuffledPipe(IterDataPipe):
    """The base of shuffled streams: whether they are shuffled, and the seed of an epoch."""

    def __init__(self) -> None:
        self._enabled = True
        self._seed = None
        self._rng = random.Random()

    def set_shuffle(self, shuffle: bool = True):
        """Turn shuffling on or off."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed):
        """Set the seed of the next epoch."""
        self._seed = seed
        return self

    def reset(self):
        if self._enabled:
            seed = self._seed
            if seed is None:
                seed = int(rushlight.empty((), dtype=rushlight.int64).random_().item())
            self._rng.seed(seed)
            self._seed = None


class MapDataPipe(_Steps, Dataset[_Sample]):
    """Samples by index, read from another; subclasses define `__getitem__` and `__len__`.

    Example:
        >>> pipe = torch.utils.data.datapipes.map.SequenceWrapper(["a", "b"])
        >>> pipe.map(str.upper)[1]
        'B'
    """

    functions: ClassVar[dict[str, Callable]] = {}

    def __getstate__(self):
        return dict(self.__dict__)


class DataChunk(list):
    """A batch of samples as a list.

    Args:
        items: the samples.

    Example:
        >>> torch.utils.data.DataChunk([4, 5])
        [4, 5]
    """

    def __init__(self, items: Sequence[Any]) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = ""):
        """The items as a string."""
        return indent + "[" + ", ".join(str(item) for item in self) + "]"

    def raw_iterator(self):
        """An iterator over the items."""
        yield from self.items


class BatchedPipe:
    """Of pipes that group samples into lists: the settings, and how many lists there are."""

    def __init__(
        self, datapipe, batch_size: int, drop_last: bool = False, wrapper_class=DataChunk
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe = datapipe
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.wrapper_class = wrapper_class

    def __len__(self) -> int:
        count = length_of(self, self.datapipe)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


class _DataPipeSerializationWrapper:
    """A pipe that goes to worker processes, with dill where pickle cannot and dill is there."""

    def __init__(self, datapipe) -> None:
        self._datapipe = datapipe

    def __getstate__(self) -> tuple[bytes, bool]:
        try:
            return pickle.dumps(self._datapipe), False
        except (AttributeError, TypeError, pickle.PicklingError):
            if importlib.util.find_spec("dill") is None:
                raise
            return importlib.import_module("dill").dumps(self._datapipe), True

    def __setstate__(self, state: tuple[bytes, bool]) -> None:
        value, by_dill = state
        loads = importlib.import_module("dill").loads if by_dill else pickle.loads
        self._datapipe = loads(value)

    def __len__(self) -> int:
        return length_of(self, self._datapipe)


class _IterDataPipeSerializationWrapper(_DataPipeSerializationWrapper, IterDataPipe):
    """The same for a stream."""

    def __iter__(self):
        yield from self._datapipe


class _MapDataPipeSerializationWrapper(_DataPipeSerializationWrapper, MapDataPipe):
    """The same for samples by index."""

    def __getitem__(self, idx):
        return self._datapipe[idx]
