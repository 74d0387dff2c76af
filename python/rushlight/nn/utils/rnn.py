"""Sequences of different lengths: padded to one tensor, or packed without padding.

A `PackedSequence` holds the rows of step after step: those of all sequences' first elements, of all
second elements and so on, longest sequence first. Recurrent layers take it as it is.
"""

from collections import namedtuple
from itertools import pairwise

import rushlight
from rushlight import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]

PackedSequence_ = namedtuple(
    "PackedSequence_", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"]
)
PackedSequence_.__annotations__ = {
    "data": Tensor,
    "batch_sizes": Tensor,
    "sorted_indices": Tensor | None,
    "unsorted_indices": Tensor | None,
}


def bind(optional, fn):
    """`fn(optional)`, or None for None."""
    return None if optional is None else fn(optional)


class PackedSequence(PackedSequence_):
    """Sequences without padding, made by the pack functions.

    Fields:
        data: (all elements, *), step after step.
        batch_sizes: how many sequences reach each step; int64 on the CPU.
        sorted_indices: which sequence stands where (None: they came sorted).
        unsorted_indices: the way back.
    """

    __slots__ = ()

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        return super().__new__(
            cls, *_packed_init_args(data, batch_sizes, sorted_indices, unsorted_indices)
        )

    def _with(self, data, move):
        return type(self)(
            data,
            self.batch_sizes,
            bind(self.sorted_indices, move),
            bind(self.unsorted_indices, move),
        )

    def pin_memory(self):
        """The same in page-locked memory."""
        return self._with(self.data.pin_memory(), lambda t: t.pin_memory())

    def to(self, *args, **kwargs):
        """`Tensor.to` of the data; the indices follow to its device."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        moved = {k: v for k, v in kwargs.items() if k in ("non_blocking", "copy")}
        return self._with(data, lambda t: t.to(data.device, **moved))

    def cuda(self, *args, **kwargs):
        """The same on a GPU."""
        example = rushlight.tensor((), dtype=self.data.dtype, device=self.data.device)
        if example.to(*args, **kwargs).is_cuda:
            return self.to(*args, **kwargs)
        return self.to(*args, device="cuda", **kwargs)

    def cpu(self, *args, **kwargs):
        """The same on the CPU."""
        return self.to(*args, device="cpu", **kwargs)

    def double(self):
        return self.to(dtype=rushlight.double)

    def float(self):
        return self.to(dtype=rushlight.float)

    def half(self):
        return self.to(dtype=rushlight.half)

    def long(self):
        return self.to(dtype=rushlight.long)

    def int(self):
        return self.to(dtype=rushlight.int)

    def short(self):
        return self.to(dtype=rushlight.short)

    def char(self):
        return self.to(dtype=rushlight.int8)

    def byte(self):
        return self.to(dtype=rushlight.uint8)

    @property
    def is_cuda(self):
        return self.data.is_cuda

    def is_pinned(self):
        return self.data.is_pinned()


def _packed_init_args(data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
    if unsorted_indices is None:
        unsorted_indices = invert_permutation(sorted_indices)
    if batch_sizes is not None:
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be "
                "created manually. They should be instantiated by functions like "
                "pack_sequence and pack_padded_sequences in nn.utils.rnn. "
            )
        return data, batch_sizes, sorted_indices, unsorted_indices
    if not isinstance(data, (list, tuple)) or len(data) != 2:
        raise AssertionError("PackedSequence expects data and batch_sizes")
    return data[0], data[1], sorted_indices, unsorted_indices


def invert_permutation(permutation):
    """The permutation that undoes another; None for None."""
    if permutation is None:
        return None
    order = rushlight.arange(permutation.numel(), device=permutation.device)
    return rushlight.empty_like(permutation).scatter_(0, permutation, order)


def _places(lengths, steps, batch, device):
    """Where the elements of a packed sequence stand in a flat (steps, batch) one."""
    step = rushlight.arange(steps).unsqueeze(1)
    return (step < lengths.unsqueeze(0)).reshape(-1).nonzero().squeeze(1).to(device)


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """A packed sequence of padded ones.

    Args:
        input: (length, batch, *), or (batch, length, *) with `batch_first`.
        lengths: how many elements of each sequence count, a list or a tensor on the CPU.
        enforce_sorted: raise RuntimeError where lengths grow instead of sorting.
    """
    if not isinstance(lengths, Tensor):
        lengths = rushlight.as_tensor(lengths, dtype=rushlight.int64, device="cpu")
    if lengths.device.type != "cpu":
        raise RuntimeError(
            "'lengths' argument should be a 1D CPU int64 tensor, but got a tensor on "
            f"{lengths.device}"
        )
    lengths = lengths.to(rushlight.int64)
    if enforce_sorted:
        sorted_indices = None
    else:
        lengths, sorted_indices = rushlight.sort(lengths, descending=True)
        sorted_indices = sorted_indices.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    if batch_first:
        input = input.transpose(0, 1)
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    steps, batch = input.shape[:2]
    if lengths.dim() != 1 or lengths.numel() != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {lengths.numel()} "
            f"(batch_size={batch})"
        )
    values = lengths.tolist()
    if min(values) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            "that is <= 0"
        )
    if any(a < b for a, b in pairwise(values)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You "
            "can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement if you do not need ONNX exportability."
        )
    if values[0] > steps:
        raise RuntimeError(
            f"Expected lengths of at most {steps}, the length of the input, but got {values[0]}"
        )
    longest = values[0]
    batch_sizes = (rushlight.arange(longest).unsqueeze(1) < lengths.unsqueeze(0)).sum(1)
    flat = input[:longest].reshape(longest * batch, *input.shape[2:])
    if values[-1] < longest:
        flat = flat.index_select(0, _places(lengths, longest, batch, input.device))
    return PackedSequence(flat, batch_sizes, sorted_indices, None)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """The padded tensor and the lengths of a packed sequence, in the order of before packing.

    Args:
        total_length: pad to this length; ValueError where it is less than the longest's.
    """
    longest = sequence.batch_sizes.size(0)
    if total_length is not None:
        if total_length < longest:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, "
                f"but got total_length={total_length} and max sequence length being {longest}"
            )
        longest = total_length
    data, batch_sizes = sequence.data, sequence.batch_sizes
    batch = int(batch_sizes[0])
    number = rushlight.arange(batch).unsqueeze(0)
    lengths = (number < batch_sizes.unsqueeze(1)).sum(0)
    if data.shape[0] == longest * batch:
        padded = data
    else:
        padded = data.new_full((longest * batch, *data.shape[1:]), padding_value)
        padded = padded.index_copy(0, _places(lengths, longest, batch, data.device), data)
    padded = padded.reshape(longest, batch, *data.shape[1:])
    if batch_first:
        padded = padded.transpose(0, 1)
    back = sequence.unsorted_indices
    if back is not None:
        return padded.index_select(0 if batch_first else 1, back), lengths[back.cpu()]
    return padded, lengths


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Tensors (length, *) of different lengths in one tensor (longest, count, *).

    Args:
        batch_first: give (count, longest, *).
        padding_side: "right" or "left".
    """
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    if not isinstance(sequences, (list, tuple)):
        if not hasattr(sequences, "__iter__"):
            raise RuntimeError(
                "pad_sequence: Expected iterable for input sequences, but got arg of type: "
                f"{type(sequences)}"
            )
        sequences = tuple(sequences)
    if len(sequences) == 0:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("right", "left"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    longest = max(t.size(0) for t in sequences)
    padded = []
    for t in sequences:
        missing = longest - t.size(0)
        if t.shape[1:] != sequences[0].shape[1:]:
            differs = next(
                d
                for d in range(1, max(t.dim(), sequences[0].dim()))
                if t.shape[d : d + 1] != sequences[0].shape[d : d + 1]
            )
            raise RuntimeError(
                f"The size of tensor a ({sequences[0].size(differs)}) must match the size of "
                f"tensor b ({t.size(differs)}) at non-singleton dimension {differs}"
            )
        if missing:
            rest = t.new_full((missing, *t.shape[1:]), padding_value)
            t = rushlight.cat([t, rest] if padding_side == "right" else [rest, t])
        padded.append(t)
    return rushlight.stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The list of the sequences that `pad_sequence` joined."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    counts = [int(n) for n in lengths]
    return [t[:n] for t, n in zip(padded_sequences, counts, strict=True)]


def pack_sequence(sequences, enforce_sorted=True):
    """A packed sequence of tensors (length, *)."""
    lengths = rushlight.as_tensor([t.size(0) for t in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """The list of sequences that `pack_sequence` packed."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
