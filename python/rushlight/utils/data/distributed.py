"""A sampler that gives each process of a group its share of the samples."""

from __future__ import annotations

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
        count = _process_group().get_world_size() if num_replicas is None else num_replicas
        own = _process_group().get_rank() if rank is None else rank
        if not 0 <= own < count:
            raise ValueError(
                f"Invalid rank {own}, rank should be from 0 to num_replicas - 1 = {count - 1}"
            )
        whole, rest = divmod(len(dataset), count)
        self.num_samples = whole if drop_last or rest == 0 else whole + 1
        self.total_size = count * self.num_samples
        self.num_replicas, self.rank, self.dataset = count, own, dataset
        self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
        self.epoch = 0

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
