"""Samplers of clips: some clips of each video, and shares of processes."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from typing import Any

import rushlight
from rushlight.utils.data import Sampler
from rushlight.utils.data import distributed as _shares

from ..video_utils import VideoClips

__all__ = ["DistributedSampler", "RandomClipSampler", "UniformClipSampler"]


class DistributedSampler(Sampler):
    """The indices of one process, whole groups of neighbours; of a sampler, what it draws there.

    Args:
        dataset: something with a length that is a multiple of group_size, else ValueError.
        num_replicas: number of processes; that of the process group if None.
        rank: number of this process; that in the process group if None.
        shuffle: permute indices anew each epoch (see `set_epoch`).
        group_size: how many neighbours stay together.

    Example:
        >>> from rushlight.vision.datasets.samplers import DistributedSampler
        >>> list(DistributedSampler(range(8), num_replicas=2, rank=1, group_size=2))
        [2, 3, 6, 7]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = False,
        group_size: int = 1,
    ) -> None:
        count = num_replicas
        if count is None or rank is None:
            group = _shares._process_group()
            count = int(group.get_world_size()) if count is None else count
            rank = group.get_rank() if rank is None else rank
        if len(dataset) % group_size != 0:
            raise ValueError(
                f"the length of the dataset, {len(dataset)}, must be a multiplier of group size, "
                f"{group_size}"
            )
        self.dataset: Any = dataset
        self.num_replicas, self.rank = count, rank
        self.shuffle, self.group_size = shuffle, group_size
        self.epoch = 0
        self.num_group_samples = -(-(len(dataset) // group_size) // count)
        self.num_samples = self.num_group_samples * group_size
        self.total_size = self.num_samples * count

    def __iter__(self) -> Iterator[int]:
        order = rushlight.arange(len(self.dataset))
        if self.shuffle:
            order = rushlight.randperm(
                len(self.dataset), generator=rushlight.Generator().manual_seed(self.epoch)
            )
        order = rushlight.cat((order, order[: self.total_size - len(order)]))
        own = order.view(-1, self.group_size)[self.rank :: self.num_replicas].flatten().tolist()
        if isinstance(self.dataset, Sampler):
            drawn = list(self.dataset)
            own = [drawn[i] for i in own]
        return iter(own)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, which seeds the permutation."""
        self.epoch = epoch


class _ClipSampler(Sampler):
    def __init__(self, video_clips: VideoClips) -> None:
        if not isinstance(video_clips, VideoClips):
            raise TypeError(
                f"Expected video_clips to be an instance of VideoClips, got {type(video_clips)}"
            )
        self.video_clips = video_clips

    def _spans(self) -> Iterator[tuple[int, int]]:
        """The number of the first clip of each video, and how many clips it has."""
        first = 0
        for clips in self.video_clips.clips:
            yield first, len(clips)
            first += len(clips)


class UniformClipSampler(_ClipSampler):
    """As many clips of each video at equal distances, some of them again where it has fewer.

    Args:
        video_clips: the clips.
        num_clips_per_video: how many.

    For an example see `vision.datasets.video_utils.VideoClips`.
    """

    def __init__(self, video_clips: VideoClips, num_clips_per_video: int) -> None:
        super().__init__(video_clips)
        self.num_clips_per_video = num_clips_per_video

    def __iter__(self) -> Iterator[int]:
        drawn = [
            rushlight.linspace(first, first + count - 1, self.num_clips_per_video).long()
            for first, count in self._spans()
            if count
        ]
        return iter(rushlight.cat(drawn).tolist())

    def __len__(self) -> int:
        return sum(self.num_clips_per_video for _, count in self._spans() if count)


class RandomClipSampler(_ClipSampler):
    """At most so many clips of each video, drawn and mixed.

    Args:
        video_clips: the clips.
        max_clips_per_video: how many at most.

    For an example see `vision.datasets.video_utils.VideoClips`.
    """

    def __init__(self, video_clips: VideoClips, max_clips_per_video: int) -> None:
        super().__init__(video_clips)
        self.max_clips_per_video = max_clips_per_video

    def __iter__(self) -> Iterator[int]:
        drawn = rushlight.cat(
            [
                first + rushlight.randperm(count)[: self.max_clips_per_video]
                for first, count in self._spans()
            ]
        )
        return iter(drawn[rushlight.randperm(len(drawn))].tolist())

    def __len__(self) -> int:
        return sum(min(count, self.max_clips_per_video) for _, count in self._spans())
