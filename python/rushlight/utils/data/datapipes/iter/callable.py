"""Functions over the items of a stream."""

from __future__ import annotations

from typing import Any

from ..._utils.collate import default_collate
from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe, length_of

__all__ = ["CollatorIterDataPipe", "MapperIterDataPipe"]


def apply(function, item: Any, input_col: Any, output_col: Any):
    """An item with a function applied: to all of it, or to columns of it."""
    if input_col is None:
        return function(item)
    if isinstance(input_col, (list, tuple)):
        value = function(*(item[column] for column in input_col))
    else:
        value = function(item[input_col])
    as_tuple = isinstance(item, tuple)
    item = list(item) if as_tuple else item
    if output_col is None:
        first, rest = input_col, []
        if isinstance(input_col, (list, tuple)):
            first, *rest = input_col
        item[first] = value
        for column in sorted(rest, reverse=True):
            del item[column]
    elif output_col == -1:
        item.append(value)
    else:
        item[output_col] = value
    return tuple(item) if as_tuple else item


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe):
    """Applies a function to each item.

    Args:
        datapipe: the stream.
        fn: the function.
        input_col: the column or columns it is applied to; the whole item if None.
        output_col: the column for the result: the first input column if None, a new last one for
            -1.

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(range(3)).map(lambda n: n * n))
        [0, 1, 4]
    """

    def __init__(self, datapipe, fn, input_col: Any = None, output_col: Any = None) -> None:
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = next(iter(output_col))
        self.datapipe = datapipe
        self.fn = fn
        self.input_col = input_col
        self.output_col = output_col

    def __iter__(self):
        for item in self.datapipe:
            yield apply(self.fn, item, self.input_col, self.output_col)

    def __len__(self) -> int:
        return length_of(self, self.datapipe)


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Collates each item, which is a list of samples.

    Args:
        datapipe: the stream.
        conversion: the function that collates, `default_collate` if None.
        collate_fn: the same by another name.

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(range(4)).batch(2).collate())
        [tensor([0, 1]), tensor([2, 3])]
    """

    def __init__(self, datapipe, conversion=None, collate_fn=None) -> None:
        function = conversion if collate_fn is None else collate_fn
        super().__init__(datapipe, default_collate if function is None else function)
