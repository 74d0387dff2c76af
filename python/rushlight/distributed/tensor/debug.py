"""Debugging tools for distributed tensors."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rushlight.distributed.tensor._redistribute import LISTENERS

if TYPE_CHECKING:
    from rushlight import Tensor


__all__ = ["CommDebugMode", "visualize_sharding"]


class CommDebugMode:
    """Counts, inside its `with` block, the collectives of ops on distributed tensors.

    Example:
        >>> from rushlight.distributed import tensor
        >>> from rushlight.distributed.tensor.debug import CommDebugMode
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> mesh = torch.distributed.init_device_mesh("cpu", (1,))
        >>> x = tensor.ones(4, device_mesh=mesh, placements=[tensor.Shard(0)])
        >>> with CommDebugMode() as comm:
        ...     y = x.redistribute(placements=[tensor.Replicate()])
        >>> comm.get_total_counts()  # a single process gathers nothing
        0
        >>> torch.distributed.destroy_process_group()
    """

    def __init__(self):
        self._counts: Counter = Counter()

    def __enter__(self):
        self._counts = Counter()
        LISTENERS.append(self._count)
        return self

    def __exit__(self, *_):
        LISTENERS.remove(self._count)

    def _count(self, name):
        self._counts[name] += 1

    def get_comm_counts(self):
        """The number of calls of each collective, by name."""
        return self._counts

    def get_total_counts(self) -> int:
        """The number of calls of all collectives."""
        return sum(self._counts.values())


def visualize_sharding(dtensor: Tensor, header: str = "") -> None:
    """Print which rows of a tensor of one or two dimensions are in which process.

    Args:
        dtensor: the tensor.
        header: a line above.

    For an example see `distributed.tensor.zeros`.
    """
    from rushlight.distributed.tensor._spec import local_shape_and_offset

    if dtensor.ndim not in (1, 2):
        raise RuntimeError("visualize sharding is only implemented for 1D or 2D dtensor")
    mesh = dtensor.device_mesh
    if mesh.get_coordinate() is None or any(mesh.get_coordinate()):
        return
    if header:
        print(header)
    for place in (mesh.mesh >= 0).nonzero().tolist():
        shape, begin = local_shape_and_offset(dtensor.shape, mesh, dtensor.placements, place)
        spans = ", ".join(f"{b}:{b + n}" for b, n in zip(begin, shape, strict=True))
        print(f"{mesh.device_type}:{int(mesh.mesh[tuple(place)])} [{spans}]")
