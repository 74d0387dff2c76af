"""A sampler that gives each process of a group its share of the samples."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import rushlight

from .dataset import _Sample
from .sampler import Sampler

if TYPE_CHECKING:
    from typing import Any

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[_Sample]):
    """The indices of one process: every `num_replicas`-th of a common permutation.

    Args:
        dataset: something with a length.
        num_replicas: number of processes; that of the process group if None.
        rank: number of this process; that in the process group if None.
        shuffle: permute anew each epoch (see `set_epoch`).
        seed: the same in all processes.
        drop_last: leave out samples so that all shares are equal, instead of repeating some.

    Example:
        >>> sampler = torch.utils.data.DistributedSampler(
        ...     range(6), num_replicas=2, rank=1, shuffle=False
        ... )
        >>> list(sampler)
        [1, 3, 5]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None:
            num_replicas = int(_process_group().get_world_size())
        if rank is None:
            rank = int(_process_group().get_rank())
        if rank >= num_replicas or rank < 0:
            raise ValueError(
                f"Invalid rank {rank}, rank should be from 0 to num_replicas - 1 = "
                f"{num_replicas - 1}"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        if drop_last and len(dataset) % num_replicas != 0:
            self.num_samples = math.ceil((len(dataset) - num_replicas) / num_replicas)
        else:
            self.num_samples = math.ceil(len(dataset) / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self):
        order = range(len(self.dataset))
        if self.shuffle:
            generator = rushlight.Generator().manual_seed(self.seed + self.epoch)
            order = rushlight.randperm(len(order), generator=generator).tolist()
        # Beyond the end the order begins again, so that all shares are equal.
        places = range(self.rank, self.total_size, self.num_replicas)
        return iter([order[place % len(order)] for place in places])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch):
        """Set the epoch, which seeds the permutation: call it before each epoch."""
        self.epoch = epoch


def _process_group():
    distributed = getattr(rushlight, "distributed", None)
    if distributed is None or not distributed.is_available():
        raise RuntimeError("Requires distributed package to be available")
    return distributed
