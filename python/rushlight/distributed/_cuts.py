"""How the dimensions of a mesh cut a tensor one after the other."""

from __future__ import annotations

__all__ = ["cut_order"]


def cut_order(placements) -> list[int]:
    """The mesh dimensions in the order in which they cut a tensor.

    That is their own, but a strided cut comes after those later ones that cut the same dimension.
    """
    order = list(range(len(placements)))
    for i in reversed(order.copy()):
        placement = placements[i]
        if hasattr(placement, "split_factor"):
            same = [j for j in order if j > i and placements[j].is_shard(placement.dim)]
            if same:
                order.remove(i)
                order.insert(max(map(order.index, same)) + 1, i)
    return order
