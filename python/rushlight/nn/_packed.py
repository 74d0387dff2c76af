"""`PackedSequence`: what recurrent layers take, and the pack functions of `nn.utils.rnn` make."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import Tensor

PackedSequence_ = namedtuple(
    "PackedSequence_", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"]
)
PackedSequence_.__annotations__ = {
    "data": Tensor,
    "batch_sizes": Tensor,
    "sorted_indices": Tensor | None,
    "unsorted_indices": Tensor | None,
}


def bind(optional, fn: Callable[..., Any]):
    """`fn(optional)`, or None for None."""
    return None if optional is None else fn(optional)


class PackedSequence(PackedSequence_):
    """Sequences without padding, made by the pack functions.

    Fields:
        data: (all elements, *), step after step.
        batch_sizes: how many sequences reach each step; int64 on the CPU.
        sorted_indices: which sequence stands where (None: they came sorted).
        unsorted_indices: the way back.

    Args:
        data: the elements, step by step.
        batch_sizes: how many sequences each step has.
        sorted_indices: the order in which they are packed.
        unsorted_indices: the inverse of it.

    Example:
        >>> pack = torch.nn.utils.rnn.pack_sequence([torch.tensor([4, 5]), torch.tensor([6])])
        >>> pack.data, pack.batch_sizes
        (tensor([4, 6, 5]), tensor([2, 1]))
    """

    __module__ = "rushlight.nn.utils.rnn"  # by which files name it
    __slots__ = ()

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        return super().__new__(
            cls, *_packed_init_args(data, batch_sizes, sorted_indices, unsorted_indices)
        )

    def _map_tensors(self, data, move):
        return type(self)(
            data,
            self.batch_sizes,
            bind(self.sorted_indices, move),
            bind(self.unsorted_indices, move),
        )

    def pin_memory(self):
        """A copy in pinned memory."""
        return self._map_tensors(self.data.pin_memory(), lambda t: t.pin_memory())

    def to(self, *args, **kwargs):
        """Apply `Tensor.to` to the data; the indices follow to its device."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        moved = {k: v for k, v in kwargs.items() if k in ("non_blocking", "copy")}
        return self._map_tensors(data, lambda t: t.to(data.device, **moved))

    def cuda(self, *args, **kwargs):
        """A copy on a GPU."""
        # An empty tensor tells whether the arguments name a device already.
        moved = self.data.new_empty(0).to(*args, **kwargs)
        return self.to(*args, **kwargs if moved.is_cuda else {**kwargs, "device": "cuda"})

    def cpu(self, *args, **kwargs):
        """A copy on the CPU."""
        return self.to(*args, device="cpu", **kwargs)

    def double(self):
        """The same sequences in float64."""
        return self.to(dtype=rushlight.double)

    def float(self):
        """The same sequences in float32."""
        return self.to(dtype=rushlight.float)

    def half(self):
        """The same sequences in float16."""
        return self.to(dtype=rushlight.half)

    def long(self):
        """The same sequences in int64."""
        return self.to(dtype=rushlight.long)

    def int(self):
        """The same sequences in int32."""
        return self.to(dtype=rushlight.int)

    def short(self):
        """The same sequences in int16."""
        return self.to(dtype=rushlight.short)

    def char(self):
        """The same sequences in int8."""
        return self.to(dtype=rushlight.int8)

    def byte(self):
        """The same sequences in uint8."""
        return self.to(dtype=rushlight.uint8)

    @property
    def is_cuda(self):
        """Whether the data are on a GPU."""
        return self.data.is_cuda

    def is_pinned(self):
        """Whether the data are in pinned memory."""
        return self.data.is_pinned()


def _packed_init_args(data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
    if unsorted_indices is None:
        unsorted_indices = invert_permutation(sorted_indices)
    if batch_sizes is not None:
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                f"PackedSequence: batch_sizes should always be on CPU, not {batch_sizes.device}; "
                "pack_sequence and pack_padded_sequence make them there"
            )
        return data, batch_sizes, sorted_indices, unsorted_indices
    if not isinstance(data, (list, tuple)) or len(data) != 2:
        raise AssertionError("PackedSequence expects data and batch_sizes")
    return data[0], data[1], sorted_indices, unsorted_indices


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes another; None for None.

    Args:
        permutation: the permutation, or None.

    Example:
        >>> torch.nn.utils.rnn.invert_permutation(torch.tensor([2, 0, 1]))
        tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    order = rushlight.arange(permutation.numel(), device=permutation.device)
    return rushlight.empty_like(permutation).scatter_(0, permutation, order)
