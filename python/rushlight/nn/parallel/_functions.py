"""What moves tensors between devices, called as PyTorch's functions of autograd are."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight.nn.parallel import comm
from rushlight.nn.parallel.scatter_gather import gather as _gather

__all__ = ["Broadcast", "Gather", "ReduceAddCoalesced", "Scatter"]


class Broadcast:
    """`Broadcast.apply(devices, *tensors)`: all tensors for the first device, the second, …"""

    @staticmethod
    def apply(target_gpus: Any, *inputs: Any) -> Any:
        return tuple(t for each in comm.broadcast_coalesced(inputs, target_gpus) for t in each)


class ReduceAddCoalesced:
    """`ReduceAddCoalesced.apply(device, n, *tensors)`: sums over devices with n tensors each."""

    @staticmethod
    def apply(destination: Any, num_inputs: int, *grads: Any) -> Any:
        lists = [grads[i : i + num_inputs] for i in range(0, len(grads), num_inputs)]
        return comm.reduce_add_coalesced(lists, destination)


class Gather:
    """`Gather.apply(device, dim, *tensors)`: joined along a dimension."""

    @staticmethod
    def apply(target_device: Any, dim: int, *inputs: Any) -> Any:
        return _gather(inputs, target_device, dim)


class Scatter:
    """`Scatter.apply(devices, sizes, dim, tensor)`: a piece on each device."""

    @staticmethod
    def apply(target_gpus: Any, chunk_sizes: Any, dim: int, input: Any) -> Any:
        return comm.scatter(input, target_gpus, chunk_sizes, dim)


def _get_stream(device: Any) -> Any:
    """A stream for copies to a device; None if it is the CPU."""
    return None if device.type == "cpu" else rushlight.cuda.Stream(device)
