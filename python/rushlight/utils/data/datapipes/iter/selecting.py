"""Selection of items of a stream."""

from __future__ import annotations

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe

__all__ = ["FilterIterDataPipe"]


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe):
    """Keeps the items for which a function is true.

    Args:
        datapipe: the stream.
        filter_fn: the function.
        input_col: the column or columns it looks at; the whole item if None.

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(range(5)).filter(lambda n: n > 2))
        [3, 4]
    """

    def __init__(self, datapipe, filter_fn, input_col=None) -> None:
        self.datapipe = datapipe
        self.filter_fn = filter_fn
        self.input_col = input_col

    def _accepts(self, item):
        columns = self.input_col
        if columns is None:
            return self.filter_fn(item)
        if isinstance(columns, (list, tuple)):
            return self.filter_fn(*(item[column] for column in columns))
        return self.filter_fn(item[columns])

    def __iter__(self):
        for item in self.datapipe:
            wanted = self._accepts(item)
            if not isinstance(wanted, bool):
                raise ValueError(
                    "Boolean output is required for `filter_fn` of FilterIterDataPipe, got "
                    f"{type(wanted)}"
                )
            if wanted:
                yield item
