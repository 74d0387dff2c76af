"""Debugging tools for distributed tensors."""

from __future__ import annotations

from collections import Counter

from rushlight.distributed.tensor._redistribute import LISTENERS

__all__ = ["CommDebugMode", "visualize_sharding"]


class CommDebugMode:
    """Counts, inside its `with` block, the collectives of ops on distributed tensors.

    >>> with CommDebugMode() as comm:
    ...     x.redistribute(placements=[Replicate()])
    >>> comm.get_comm_counts()
    Counter({'all_gather_into_tensor': 1})
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


def visualize_sharding(dtensor, header="") -> None:
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
