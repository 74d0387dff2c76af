"""Videos as clips of so many frames, decoded by PyAV, which is wanted when a video is opened."""

import bisect
import math
from typing import Any

import numpy as np

import rushlight as torch
from rushlight import Tensor
from rushlight._warnings import warn
from rushlight.utils.data import DataLoader, Dataset

from ..io.video import read_frames, read_timestamps

__all__ = ["VideoClips", "unfold"]


def unfold(tensor: Tensor, size: int, step: int, dilation: int = 1) -> Tensor:
    """Windows (count, size) of a sequence (N), every `step`, of items that lie `dilation` apart.

    Args:
        tensor: the sequence.
        size: items of a window.
        step: from the start of one window to that of the next.
        dilation: from one item of a window to the next.

    Example:
        >>> from rushlight.vision.datasets.video_utils import unfold
        >>> unfold(torch.arange(5), size=3, step=1)
        tensor([[0, 1, 2],
                [1, 2, 3],
                [2, 3, 4]])
    """
    if tensor.dim() != 1:
        raise ValueError(f"tensor should have 1 dimension instead of {tensor.dim()}")
    count = max((len(tensor) - dilation * (size - 1) - 1) // step + 1, 0)
    places = torch.arange(count)[:, None] * step + torch.arange(size) * dilation
    return tensor[places]


class _Timestamps(Dataset):
    def __init__(self, paths: list[str]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[list[int], float]:
        return read_timestamps(self.paths[index])[:2]


def _as_it_is(batch: Any) -> Any:
    return batch


class VideoClips:
    """Clips of a number of frames, from all of many videos.

    Videos are read once for their times, unless `metadata` of such an object is given.

    Args:
        video_paths: the files.
        clip_length_in_frames: frames of a clip.
        frames_between_clips: from the start of one clip to that of the next.
        frame_rate: frames are left out or repeated so that there are as many in a second.
        num_workers: processes that read the times.
        output_format: of frames: "THWC" or "TCHW".

    Example:
        >>> from rushlight.vision.datasets.video_utils import VideoClips
        >>> clips = VideoClips(["a.mp4", "b.mp4"], clip_length_in_frames=16)  # doctest: +SKIP
        >>> frames, sound, info, video = clips.get_clip(0)  # doctest: +SKIP
    """

    def __init__(
        self,
        video_paths: list[str],
        clip_length_in_frames: int = 16,
        frames_between_clips: int = 1,
        frame_rate: float | None = None,
        _precomputed_metadata: dict[str, Any] | None = None,
        num_workers: int = 0,
        _video_width: int = 0,
        _video_height: int = 0,
        _video_min_dimension: int = 0,
        _video_max_dimension: int = 0,
        _audio_samples: int = 0,
        _audio_channels: int = 0,
        output_format: str = "THWC",
    ) -> None:
        self.video_paths, self.num_workers = list(video_paths), num_workers
        self.output_format = output_format.upper()
        if self.output_format not in ("THWC", "TCHW"):
            raise ValueError(
                f"output_format should be either 'THWC' or 'TCHW', got {output_format}."
            )
        if _precomputed_metadata is None:
            times = self._read_times()
            self.video_pts = [torch.tensor(pts, dtype=torch.int64) for pts, _ in times]
            self.video_fps = [fps for _, fps in times]
        else:
            known = _precomputed_metadata
            if list(known["video_paths"]) != self.video_paths:
                raise ValueError("the metadata are those of other videos")
            self.video_pts, self.video_fps = list(known["video_pts"]), list(known["video_fps"])
        self.compute_clips(clip_length_in_frames, frames_between_clips, frame_rate)

    def _read_times(self) -> list[tuple[list[int], float]]:
        each = DataLoader(
            _Timestamps(self.video_paths),
            batch_size=16,
            num_workers=self.num_workers,
            collate_fn=_as_it_is,
        )
        return [times for batch in each for times in batch]

    @property
    def metadata(self) -> dict[str, Any]:
        """What was read of the videos: paths, times and rates."""
        return {
            "video_paths": self.video_paths,
            "video_pts": self.video_pts,
            "video_fps": self.video_fps,
        }

    def subset(self, indices: list[int]) -> "VideoClips":
        """Clips of some of the videos."""
        chosen = {key: [values[i] for i in indices] for key, values in self.metadata.items()}
        return type(self)(
            chosen["video_paths"],
            self.num_frames,
            self.step,
            self.frame_rate,
            _precomputed_metadata=chosen,
            num_workers=self.num_workers,
            output_format=self.output_format,
        )

    @staticmethod
    def compute_clips_for_video(
        video_pts: Tensor, num_frames: int, step: int, fps: float, frame_rate: float | None = None
    ) -> tuple[Tensor, Tensor]:
        """Times (clips, num_frames) of the frames of clips, and which frames of all read between
        the first and the last one of a clip these are.
        """
        wanted = fps if frame_rate is None else frame_rate
        total = math.floor(len(video_pts) * wanted / fps) if fps else 0
        places = VideoClips._resample_video_idx(total, fps or 1.0, wanted or 1.0)
        clips = unfold(video_pts[places], num_frames, step)
        if not len(clips):
            warn(
                "There aren't enough frames in the current video: a clip takes "
                f"{num_frames}, one every {step}. The video is left out.",
            )
        within = unfold(places, num_frames, step)
        return clips, within - within[:, :1]

    @staticmethod
    def _resample_video_idx(num_frames: int, original_fps: float, new_fps: float) -> Tensor:
        """Which frames are shown when there are new_fps in a second."""
        step = original_fps / new_fps
        return (torch.arange(num_frames, dtype=torch.float64) * step).floor().to(torch.int64)

    def compute_clips(self, num_frames: int, step: int, frame_rate: float | None = None) -> None:
        """Clips of another length, distance and rate."""
        self.num_frames, self.step, self.frame_rate = num_frames, step, frame_rate
        self.clips: list[Tensor] = []
        self.resampling_idxs: list[Tensor] = []
        for pts, fps in zip(self.video_pts, self.video_fps, strict=True):
            clips, places = self.compute_clips_for_video(pts, num_frames, step, fps, frame_rate)
            self.clips.append(clips)
            self.resampling_idxs.append(places)
        self.cumulative_sizes = np.cumsum([len(c) for c in self.clips]).tolist()

    def __len__(self) -> int:
        return self.num_clips()

    def num_videos(self) -> int:
        """How many videos there are."""
        return len(self.video_paths)

    def num_clips(self) -> int:
        """How many clips all videos have."""
        return self.cumulative_sizes[-1] if self.cumulative_sizes else 0

    def get_clip_location(self, idx: int) -> tuple[int, int]:
        """Numbers of a clip's video, and of the clip within it."""
        video = bisect.bisect_right(self.cumulative_sizes, idx)
        return video, idx - (self.cumulative_sizes[video - 1] if video else 0)

    def get_clip(self, idx: int) -> tuple[Tensor, Tensor, dict[str, Any], int]:
        """Frames, sound, rates, and the number of the video; IndexError beyond the last clip."""
        if idx >= self.num_clips():
            raise IndexError(f"Index {idx} out of range ({self.num_clips()} number of clips)")
        number, clip = self.get_clip_location(idx)
        times, path = self.clips[number][clip], self.video_paths[number]
        video, audio, info = read_frames(path, int(times[0]), int(times[-1]))
        places = self.resampling_idxs[number][clip]
        if len(video) <= int(places.max()):
            raise RuntimeError(
                f"{path} is damaged: it has {len(video)} frames where there should be "
                f"{int(places.max()) + 1}"
            )
        video = video[places]
        if self.frame_rate is not None:
            info["video_fps"] = self.frame_rate
        return (
            video.permute(0, 3, 1, 2) if self.output_format == "TCHW" else video,
            audio,
            info,
            number,
        )
