"""Copies of tensors to several devices and back, all differentiable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import Tensor
from rushlight.nn.parallel.scatter_gather import _device

if TYPE_CHECKING:
    from rushlight.types import Device


__all__ = [
    "broadcast",
    "broadcast_coalesced",
    "gather",
    "reduce_add",
    "reduce_add_coalesced",
    "scatter",
]


def _one_of(name: str, devices: Any, out: Any) -> None:
    if (devices is None) == (out is None):
        raise RuntimeError(f"{name}(): exactly one of 'devices' and 'out' must be given")


def broadcast(
    tensor: Tensor, devices: Any = None, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """A copy of a tensor on each device; on its own device a view of the tensor.

    Args:
        tensor: the tensor to copy.
        devices: the devices of the copies; a number is a GPU.
        out: written and returned instead.

    Example:
        >>> copies = torch.nn.parallel.comm.broadcast(torch.ones(2), ["cpu", "meta"])
        >>> [str(copy.device) for copy in copies]
        ['cpu', 'meta']
    """
    _one_of("broadcast", devices, out)
    if out is not None:
        for other in out:
            other.copy_(tensor)
        return tuple(out)
    return tuple(tensor.to(_device(d)).view_as(tensor) for d in devices)


def broadcast_coalesced(
    tensors: Sequence[Tensor], devices: Sequence[Any], buffer_size: int = 10485760
) -> tuple[tuple[Tensor, ...], ...]:
    """For each device a tuple of copies of all tensors, which are sent one by one.

    Args:
        tensors: the tensors, on one device.
        devices: the devices of the copies.
        buffer_size: means nothing here.

    For an example see `nn.parallel.comm.broadcast`.
    """
    copies = [broadcast(t, devices) for t in tensors]
    return tuple(tuple(copy[i] for copy in copies) for i in range(len(devices)))


def reduce_add(inputs: Sequence[Tensor], destination: Device = None) -> Tensor:
    """The sum of tensors on several devices, on one of them (by default the first's).

    Args:
        inputs: of equal sizes.
        destination: the device of the result; a number is a GPU.

    Raises:
        ValueError: if the sizes differ.

    Example:
        >>> torch.nn.parallel.comm.reduce_add([torch.ones(2), torch.ones(2)])
        tensor([2., 2.])
    """
    to = inputs[0].device if destination is None else _device(destination)
    for i, t in enumerate(inputs):
        if t.size() != inputs[0].size():
            raise ValueError(
                f"input {i} has invalid size: got {tuple(t.size())}, but expected "
                f"{tuple(inputs[0].size())}"
            )
    total = inputs[0].to(to)
    for t in inputs[1:]:
        total = total + t.to(to)
    return total


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Tensor]], destination: Device = None, buffer_size: int = 10485760
) -> tuple[Tensor, ...]:
    """The sums of the first, second, … tensors of each device's list.

    Args:
        inputs: for each device a list of tensors.
        destination: the device of the results.
        buffer_size: means nothing here.

    For an example see `nn.parallel.comm.reduce_add`.
    """
    return tuple(reduce_add(tensors, destination) for tensors in zip(*inputs, strict=True))


def scatter(
    tensor: Tensor,
    devices: Any = None,
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
    streams: Sequence[Any] | None = None,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """Split a tensor along a dimension, one piece for each device.

    Args:
        tensor: the tensor to split.
        devices: the devices of the pieces.
        chunk_sizes: of the pieces; by default equal ones.
        dim: the dimension.
        streams: accepted; copies are queued on the current streams.
        out: written and returned instead; their sizes say how it is cut.

    Example:
        >>> parts = torch.nn.parallel.comm.scatter(torch.arange(4), ["cpu", "cpu"])
        >>> [part.tolist() for part in parts]
        [[0, 1], [2, 3]]
    """
    _one_of("scatter", devices, out)
    if out is not None:
        pieces = tensor.split([other.size(dim) for other in out], dim)
        for other, piece in zip(out, pieces, strict=True):
            other.copy_(piece)
        return tuple(out)
    pieces = (
        tensor.chunk(len(devices), dim)
        if chunk_sizes is None
        else tensor.split(list(chunk_sizes), dim)
    )
    return tuple(p.to(_device(d)) for p, d in zip(pieces, devices, strict=False))


def gather(
    tensors: Sequence[Tensor],
    dim: int = 0,
    destination: Device = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Concatenate tensors of several devices along a dimension, on one device (by default the
    first's).

    Args:
        tensors: of equal sizes, but for `dim`.
        dim: the dimension along which they are concatenated.
        destination: the device of the result; a number is a GPU, -1 the CPU.
        out: written and returned instead.

    Example:
        >>> torch.nn.parallel.comm.gather([torch.ones(1, 2), torch.zeros(1, 2)], destination="cpu")
        tensor([[1., 1.],
                [0., 0.]])
    """
    if out is not None:
        if destination is not None:
            raise RuntimeError("gather(): 'destination' must not be given with 'out'")
        return rushlight.cat([t.to(out.device) for t in tensors], dim, out=out)
    to = tensors[0].device if destination is None else _device(destination)
    return rushlight.cat([t.to(to) for t in tensors], dim)
