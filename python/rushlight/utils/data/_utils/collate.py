"""Samples into batches: `default_collate`, and `default_convert` for samples without batching.

Types that become tensors are in a map from type to function; containers are taken apart and put
together again, whatever they hold.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from copy import copy
from typing import TYPE_CHECKING

import rushlight
from rushlight import Tensor

from .worker import stack

if TYPE_CHECKING:
    from typing import Any

# The dtypes of arrays of strings and objects, which become no tensors.
np_str_obj_array_pattern = re.compile(r"[SaUO]")

__all__ = ["collate", "default_collate", "default_convert"]

_MESSAGE = (
    "default_collate: batch must contain tensors, numbers, strings or numpy's arrays, alone or in "
    "dicts and lists; found {}"
)


def collate_tensor_fn(batch, *, collate_fn_map=None):
    """Tensors of one shape, stacked along a new first dimension."""
    return stack(batch)


def collate_float_fn(batch, *, collate_fn_map=None):
    """Python floats, as float64."""
    return rushlight.tensor(batch, dtype=rushlight.float64)


def collate_int_fn(batch, *, collate_fn_map=None):
    """Python integers as int64, truth values as bool."""
    return rushlight.tensor(batch)


def collate_str_fn(batch, *, collate_fn_map=None):
    """Strings and bytes stay a list."""
    return batch


def collate_numpy_array_fn(batch, *, collate_fn_map=None):
    """Arrays, stacked as tensors."""
    if np_str_obj_array_pattern.search(batch[0].dtype.str):
        raise TypeError(_MESSAGE.format(batch[0].dtype))
    return collate([rushlight.as_tensor(item) for item in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch, *, collate_fn_map=None):
    """numpy's scalars, as a tensor of their dtype."""
    numpy = sys.modules["numpy"]
    return rushlight.as_tensor(numpy.asarray(batch))


default_collate_fn_map = {
    Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def _numpy_function(kind):
    """The function for a numpy type; numpy is not imported unless the program did."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not issubclass(kind, (numpy.ndarray, numpy.generic)):
        return None
    if issubclass(kind, numpy.ndarray):
        return collate_numpy_array_fn
    return collate_numpy_scalar_fn if issubclass(kind, (numpy.bool_, numpy.number)) else None


def collate(batch, *, collate_fn_map=None):
    """A list of samples as one batch.

    Args:
        batch: samples of one type and structure.
        collate_fn_map: functions `f(batch, *, collate_fn_map)` by type of the sample; a function
            for a base class counts too. Containers of any depth are handled without one.
    """
    sample = batch[0]
    kind = type(sample)
    if collate_fn_map is not None:
        function = collate_fn_map.get(kind)
        if function is None and collate_fn_map is default_collate_fn_map:
            function = _numpy_function(kind)
        if function is None:
            matches = (f for base, f in collate_fn_map.items() if isinstance(sample, base))
            function = next(matches, None)
        if function is not None:
            return function(batch, collate_fn_map=collate_fn_map)

    def join(parts):
        return collate(parts, collate_fn_map=collate_fn_map)

    if isinstance(sample, Mapping):
        items = {key: join([other[key] for other in batch]) for key in sample}
        return mapping_like(sample, items)
    if isinstance(sample, tuple) and hasattr(sample, "_fields"):
        return kind(*(join(parts) for parts in zip(*batch, strict=False)))
    if isinstance(sample, Sequence):
        size = len(sample)
        if not all(len(other) == size for other in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        parts = [join(column) for column in zip(*batch, strict=True)]
        return parts if isinstance(sample, tuple) else sequence_like(sample, parts)
    raise TypeError(_MESSAGE.format(kind))


def mapping_like(sample, items):
    """A mapping of the sample's type with these items; a dict where the type cannot be made."""
    try:
        if isinstance(sample, MutableMapping):
            result = copy(sample)
            result.update(items)
            return result
        return type(sample)(items)
    except TypeError:
        return items


def sequence_like(sample, items):
    """A sequence of the sample's type with these items; a list where the type cannot be made."""
    try:
        if isinstance(sample, MutableSequence):
            result = copy(sample)
            for i, item in enumerate(items):
                result[i] = item
            return result
        return type(sample)(items)
    except TypeError:
        return items


def default_collate(batch: Any) -> Any:
    """A list of samples as one batch, with a new first dimension.

    Tensors are stacked; arrays, numpy scalars and Python numbers become tensors (floats float64,
    integers int64); strings stay a list; mappings, named tuples and sequences keep their structure
    (tuples become lists).

    Args:
        batch: the samples, of one structure.

    Raises:
        RuntimeError: tensors differ in their sizes.
        TypeError: a sample has something else.
        RuntimeError: tensors differ in their sizes.
        TypeError: a sample has something else.

    Example:
        >>> torch.utils.data.default_collate(
        ...     [{"x": torch.zeros(2), "y": 5}, {"x": torch.ones(2), "y": 7}]
        ... )
        {'x': tensor([[0., 0.],
                [1., 1.]]), 'y': tensor([5, 7])}
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def default_convert(data: Any) -> Any:
    """A sample with its numpy arrays as tensors, everything else as it is.

    Args:
        data: the sample.

    Example:
        >>> import numpy
        >>> torch.utils.data.default_convert([numpy.array([4, 5]), "a"])
        [tensor([4, 5]), 'a']
    """
    kind = type(data)
    if isinstance(data, Tensor):
        return data
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(data, (numpy.ndarray, numpy.generic)):
        text = isinstance(data, (numpy.str_, numpy.bytes_))
        if text or (
            isinstance(data, numpy.ndarray) and np_str_obj_array_pattern.search(data.dtype.str)
        ):
            return data
        return rushlight.as_tensor(data)
    if isinstance(data, Mapping):
        return mapping_like(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return kind(*(default_convert(item) for item in data))
    if isinstance(data, tuple):
        return [default_convert(item) for item in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return sequence_like(data, [default_convert(item) for item in data])
    return data
