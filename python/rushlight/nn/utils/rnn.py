"""Sequences of different lengths: padded to one tensor, or packed without padding.

A `PackedSequence` holds the rows of step after step: those of all sequences' first elements, of all
second elements and so on, longest sequence first. Recurrent layers take it as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import rushlight
from rushlight import Tensor

from .._packed import PackedSequence, PackedSequence_, bind, invert_permutation  # noqa: F401

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


def _places(lengths: Tensor, steps: int, batch: int, device: rushlight.device) -> Tensor:
    """Where the elements of a packed sequence stand in a flat (steps, batch) one."""
    step = rushlight.arange(steps).unsqueeze(1)
    return (step < lengths.unsqueeze(0)).reshape(-1).nonzero().squeeze(1).to(device)


def _checked_lengths(lengths, batch):
    """The lengths of `batch` sequences as a vector of int64 on the CPU."""
    whole = rushlight.as_tensor(
        lengths, dtype=rushlight.int64, device=None if isinstance(lengths, Tensor) else "cpu"
    )
    if whole.device.type != "cpu" or whole.dim() != 1:
        raise RuntimeError(
            f"'lengths' should be a 1D CPU int64 tensor, not a {whole.dim()}D one on "
            f"{whole.device.type}"
        )
    if len(whole) != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(whole)} "
            f"(batch_size={batch})"
        )
    given = lengths.tolist() if isinstance(lengths, Tensor) else lengths
    if whole.tolist() != [float(n) for n in given]:
        raise RuntimeError(f"Expected lengths that are whole numbers, but got {given}")
    return whole


def pack_padded_sequence(
    input: Tensor,
    lengths: Tensor | Sequence[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Pack padded sequences.

    Args:
        input: (length, batch, *), or (batch, length, *) with `batch_first`.
        lengths: how many elements of each sequence count, a list or a tensor on the CPU.
        enforce_sorted: raise RuntimeError if lengths grow instead of sorting.
        batch_first: whether the input is (batch, length, *).

    Example:
        >>> padded = torch.tensor([[1, 2], [3, 0]])
        >>> torch.nn.utils.rnn.pack_padded_sequence(padded, [2, 1], batch_first=True).data
        tensor([1, 3, 2])
    """
    batch = input.size(0 if batch_first else 1)
    lengths = _checked_lengths(lengths, batch)
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
    steps = input.size(0)
    values = lengths.tolist()
    if min(values) <= 0:
        raise RuntimeError(
            f"Length of all samples has to be greater than 0, but the least is {min(values)}"
        )
    if any(a < b for a, b in pairwise(values)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order, longest first, but it is "
            f"{values}: pack_padded_sequence(enforce_sorted=False) sorts it"
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


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Pad a packed sequence: the tensor and the lengths, in the order before packing.

    Args:
        total_length: pad to this length; ValueError if it is less than the longest's.
        sequence: the packed sequence.
        batch_first: whether the result is (batch, length, *).
        padding_value: what stands behind the end of a sequence.

    Example:
        >>> packed = torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2]), torch.tensor([3])])
        >>> torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        (tensor([[1, 2],
                [3, 0]]), tensor([2, 1]))
    """
    longest = sequence.batch_sizes.size(0)
    if total_length is not None:
        if total_length < longest:
            raise ValueError(
                f"Expected total_length to be at least {longest}, as long as the longest sequence "
                f"is, but got {total_length}"
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


def pad_sequence(
    sequences: Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Pad tensors (length, *) of different lengths to one tensor (longest, count, *).

    Args:
        batch_first: give (count, longest, *).
        padding_side: "right" or "left".
        sequences: the tensors.
        padding_value: what stands behind the end of a sequence.

    Example:
        >>> torch.nn.utils.rnn.pad_sequence(
        ...     [torch.tensor([1, 2]), torch.tensor([3])], batch_first=True
        ... )
        tensor([[1, 2],
                [3, 0]])
    """
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    if not isinstance(sequences, (list, tuple)):
        if not hasattr(sequences, "__iter__"):
            raise RuntimeError(
                f"pad_sequence: Expected iterable for input sequences, not {type(sequences)}"
            )
        sequences = tuple(sequences)
    if len(sequences) == 0:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("right", "left"):
        raise RuntimeError(
            f"Expected padding_side to be 'left' or 'right', but it is {padding_side!r}"
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
                f"pad_sequence: size {t.size(differs)} of dimension {differs} must match the size "
                f"of tensor 0 there, {sequences[0].size(differs)}; only lengths may differ"
            )
        if missing:
            rest = t.new_full((missing, *t.shape[1:]), padding_value)
            t = rushlight.cat([t, rest] if padding_side == "right" else [rest, t])
        padded.append(t)
    return rushlight.stack(padded, 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False
) -> list[Tensor]:
    """The list of sequences that `pad_sequence` padded.

    Args:
        padded_sequences: the padded tensor.
        lengths: how long each sequence is.
        batch_first: whether the tensor is (batch, length, *).

    Example:
        >>> torch.nn.utils.rnn.unpad_sequence(torch.tensor([[1, 3], [2, 0]]), torch.tensor([2, 1]))
        [tensor([1, 2]), tensor([3])]
    """
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    counts = [int(n) for n in lengths]
    return [t[:n] for t, n in zip(padded_sequences, counts, strict=True)]


def pack_sequence(
    sequences: Sequence[Tensor],
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Pack tensors (length, *).

    Args:
        sequences: the tensors, longest first unless `enforce_sorted` is False.
        enforce_sorted: whether to raise RuntimeError if lengths grow instead of sorting.

    Example:
        >>> torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2]), torch.tensor([3])]).batch_sizes
        tensor([2, 1])
    """
    lengths = rushlight.as_tensor([t.size(0) for t in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The list of sequences that `pack_sequence` packed.

    Args:
        packed_sequences: the packed sequence.

    Example:
        >>> packed = torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2]), torch.tensor([3])])
        >>> torch.nn.utils.rnn.unpack_sequence(packed)
        [tensor([1, 2]), tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
