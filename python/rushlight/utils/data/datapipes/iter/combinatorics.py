"""Orders of the items of a stream."""

from __future__ import annotations

from typing import Any

from ...sampler import SequentialSampler
from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe, ShuffledPipe, length_of

__all__ = ["SamplerIterDataPipe", "ShufflerIterDataPipe"]


class SamplerIterDataPipe(IterDataPipe):
    """Passes a stream through a sampler.

    Args:
        datapipe: the stream.
        sampler: a class of samplers, which is called with it.
        sampler_args, sampler_kwargs: further arguments of the class.

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper, Sampler
        >>> list(Sampler(IterableWrapper([1, 2])))
        [0, 1]
    """

    def __init__(
        self,
        datapipe: Any,
        sampler=SequentialSampler,
        sampler_args: tuple[Any, ...] | None = None,
        sampler_kwargs: dict[str, Any] | None = None,
    ) -> None:
        self.datapipe = datapipe
        self.sampler_args = () if sampler_args is None else sampler_args
        self.sampler_kwargs = {} if sampler_kwargs is None else sampler_kwargs
        self.sampler = sampler(datapipe, *self.sampler_args, **self.sampler_kwargs)

    def __iter__(self):
        return iter(self.sampler)

    def __len__(self) -> int:
        return length_of(self, self.sampler)


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(ShuffledPipe):
    """Shuffles the items with a buffer.

    Args:
        datapipe: the stream.
        buffer_size: from how many items the next is drawn.
        unbatch_level: how many levels of lists are taken apart before.

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> sorted(IterableWrapper(range(3)).shuffle())
        [0, 1, 2]
    """

    def __init__(self, datapipe: Any, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        if buffer_size <= 0:
            raise ValueError("buffer_size should be larger than 0")
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level)
        self.buffer_size = buffer_size
        super().__init__()

    def __iter__(self):
        if not self._enabled:
            yield from self.datapipe
            return
        buffer = []
        for item in self.datapipe:
            if len(buffer) < self.buffer_size:
                buffer.append(item)
                continue
            place = self._rng.randint(0, len(buffer) - 1)
            drawn, buffer[place] = buffer[place], item
            yield drawn
        while buffer:
            yield buffer.pop(self._rng.randint(0, len(buffer) - 1))

    def __len__(self) -> int:
        return length_of(self, self.datapipe)
