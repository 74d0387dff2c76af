"""Reading and writing of video files with PyAV, which is imported when a video is opened."""

from __future__ import annotations

import contextlib
import io
import math
import os
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

import rushlight
from rushlight import Tensor

__all__ = ["VideoReader", "read_video", "read_video_timestamps", "write_video"]

StrPath = str | os.PathLike[str]


def _av() -> Any:
    try:
        import av  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise RuntimeError(
            "PyAV is not installed, and is necessary to read and write videos: please run pip "
            "install av"
        ) from None
    return av


def _open(source: StrPath | io.BytesIO) -> Any:
    av = _av()
    with _naming_file(source):
        file = source if isinstance(source, io.BytesIO) else str(source)
        return av.open(file, metadata_errors="ignore")


@contextlib.contextmanager
def _naming_file(source: Any) -> Iterator[None]:
    """What FFmpeg says of a file becomes a RuntimeError with its name."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise RuntimeError(f"{source} is damaged or no video: {error}") from error


def read_timestamps(path: StrPath) -> tuple[list[int], float, Fraction]:
    """The presentation times of a video's frames in its own units, its frame rate, and the unit."""
    with _open(path) as video, _naming_file(path):
        if not video.streams.video:
            return [], 0.0, Fraction(1)
        stream = video.streams.video[0]
        times = sorted(p.pts for p in video.demux(stream) if p.pts is not None)
        return times, float(stream.average_rate or 0), stream.time_base


def read_frames(path: StrPath, start: float, end: float) -> tuple[Tensor, Tensor, dict[str, Any]]:
    """Frames (T, H, W, 3), uint8, shown from `start` to `end` in units of the video; sound
    (channels, samples) of that time; and the rates of both.
    """
    info: dict[str, Any] = {}
    frames: list[np.ndarray] = []
    unit = Fraction(1)
    with _open(path) as video, _naming_file(path):
        if video.streams.video:
            stream = video.streams.video[0]
            unit = stream.time_base
            info["video_fps"] = float(stream.average_rate or 0)
            # A key frame before, and some more: decoders hold frames back.
            video.seek(max(math.floor(start) - 1, 0), backward=True, stream=stream)
            for frame in video.decode(stream):
                if frame.pts is None or frame.pts < start:
                    continue
                if frame.pts > end:
                    break
                frames.append(frame.to_ndarray(format="rgb24"))
    pixels = np.stack(frames) if frames else np.zeros((0, 1, 1, 3), np.uint8)
    sound, rate = _sound(path, start * unit, end * unit)
    if rate:
        info["audio_fps"] = rate
    return rushlight.from_numpy(pixels), sound, info


def _planes(frame: Any) -> np.ndarray:
    """The samples (channels, N) of a frame of sound."""
    values = frame.to_ndarray()
    return values if frame.format.is_planar else values.reshape(frame.samples, -1).T


def _sound(path: StrPath, start: Any, end: Any) -> tuple[Tensor, int]:
    """Samples between two times in seconds, and how many there are in a second."""
    parts: list[np.ndarray] = []
    with _open(path) as video, _naming_file(path):
        if not video.streams.audio:
            return rushlight.empty(1, 0), 0
        stream = video.streams.audio[0]
        rate = int(stream.rate)
        video.seek(max(int(start / stream.time_base) - 1, 0), backward=True, stream=stream)
        for frame in video.decode(stream):
            at = frame.pts * frame.time_base
            if at > end:
                break
            until = at + Fraction(frame.samples, rate)
            if until > start:
                first = max(0, round((start - at) * rate))
                last = math.ceil((min(end, until) - at) * rate) + 1
                parts.append(_planes(frame)[:, first : min(last, frame.samples)])
    found = np.ascontiguousarray(np.concatenate(parts, 1)) if parts else np.zeros((1, 0), "f4")
    return rushlight.from_numpy(found), rate


def _check_unit(pts_unit: str) -> None:
    if pts_unit not in ("pts", "sec"):
        raise ValueError(f"pts_unit should be either 'pts' or 'sec', got {pts_unit}")


def read_video(
    filename: StrPath,
    start_pts: float | Fraction = 0,
    end_pts: float | Fraction | None = None,
    pts_unit: str = "pts",
    output_format: str = "THWC",
) -> tuple[Tensor, Tensor, dict[str, Any]]:
    """Read the frames of a video, uint8, its sound (channels, samples), "video_fps" and
    "audio_fps".

    Args:
        filename: its path.
        start_pts, end_pts: the interval to read; None for the end means all of the rest.
        pts_unit: "sec", or "pts", which are the video's own units of time.
        output_format: of the frames: "THWC" or "TCHW".

    Example:
        >>> from rushlight.vision.io import read_video
        >>> frames, sound, info = read_video("a.mp4", pts_unit="sec")  # doctest: +SKIP
    """
    output_format = output_format.upper()
    if output_format not in ("THWC", "TCHW"):
        raise ValueError(f"output_format should be either 'THWC' or 'TCHW', got {output_format}.")
    _check_unit(pts_unit)
    if not os.path.exists(filename):
        raise FileNotFoundError(f"File not found: {filename}")
    start, end = start_pts, float("inf") if end_pts is None else end_pts
    if end < start:
        raise ValueError(
            "end_pts should be larger than start_pts, got "
            f"start_pts={start_pts} and end_pts={end_pts}"
        )
    if pts_unit == "sec":
        unit = read_timestamps(filename)[2]
        start = math.floor(start / unit)
        end = end if end == float("inf") else math.ceil(end / unit)
    frames, sound, info = read_frames(filename, float(start), float(end))
    return (frames.permute(0, 3, 1, 2) if output_format == "TCHW" else frames), sound, info


def read_video_timestamps(
    filename: StrPath, pts_unit: str = "pts"
) -> tuple[list[int] | list[Fraction], float | None]:
    """When the frames of a video are shown, in its own units ("pts") or as fractions of seconds
    ("sec"), and how many a second has: None if there are none.

    Args:
        filename: its path.
        pts_unit: "sec", or "pts", which are the video's own units of time.

    Example:
        >>> from rushlight.vision.io import read_video_timestamps
        >>> times, rate = read_video_timestamps("a.mp4", pts_unit="sec")  # doctest: +SKIP
    """
    _check_unit(pts_unit)
    times, rate, unit = read_timestamps(filename)
    return [t * unit for t in times] if pts_unit == "sec" else times, rate or None


def write_video(
    filename: StrPath,
    video_array: Tensor,
    fps: float,
    video_codec: str = "libx264",
    options: dict[str, Any] | None = None,
    audio_array: Tensor | None = None,
    audio_fps: float | None = None,
    audio_codec: str | None = None,
    audio_options: dict[str, Any] | None = None,
) -> None:
    """Write frames (T, H, W, C), uint8, to a video file with a frame rate of fps.

    Args:
        filename: its path, whose ending says the container.
        video_array: the frames.
        fps: their rate.
        video_codec, options: a codec of FFmpeg's and its settings.
        audio_array, audio_fps, audio_codec, audio_options: sound (channels, samples) and the same
            of it.

    For an example see `vision.io.VideoReader`.
    """
    av = _av()
    frames = video_array.to(rushlight.uint8).cpu().numpy()
    with av.open(str(filename), mode="w") as out:
        rate = Fraction(fps).limit_denominator(1001)
        stream = out.add_stream(video_codec, rate=rate, options=options or {})
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt = "yuv420p" if video_codec != "libx264rgb" else "rgb24"
        sound = None
        if audio_array is not None:
            if audio_fps is None or audio_codec is None:
                raise ValueError("sound wants audio_fps and audio_codec")
            layout = "mono" if len(audio_array) == 1 else "stereo"
            settings = audio_options or {}
            sound = out.add_stream(
                audio_codec, rate=int(audio_fps), layout=layout, options=settings
            )
        for pixels in frames:
            out.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        out.mux(stream.encode())
        if audio_array is not None and sound is not None:
            samples = np.ascontiguousarray(audio_array.cpu().numpy())
            kinds = {"float64": "dblp", "float32": "fltp", "int16": "s16p", "uint8": "u8p"}
            if samples.dtype.name not in kinds:
                raise ValueError(f"samples are one of {', '.join(kinds)}, not {samples.dtype}")
            frame = av.AudioFrame.from_ndarray(
                samples, kinds[samples.dtype.name], sound.layout.name
            )
            frame.sample_rate = int(audio_fps or 0)
            out.mux(sound.encode(frame))
            out.mux(sound.encode())


class VideoReader:
    """Iterates over the frames of one stream of a video: {"data": tensor, "pts": seconds}.

    Pictures are (C, H, W), uint8; frames of sound (samples, channels).

    Args:
        src: a path, or the file's bytes, as such or (N), uint8.
        stream: "video" or "audio", or one by its number: "video:0".
        num_threads: of the decoder; 0 leaves it the choice.

    Example:
        >>> import os, tempfile
        >>> from rushlight.vision.io import VideoReader, write_video
        >>> with tempfile.TemporaryDirectory() as folder:  # doctest: +SKIP
        ...     write_video(f"{folder}/a.mp4", torch.zeros(8, 32, 32, 3, dtype=torch.uint8), fps=8)
        ...     [frame["pts"] for frame in VideoReader(f"{folder}/a.mp4")]
    """

    def __init__(
        self, src: StrPath | bytes | Tensor, stream: str = "video", num_threads: int = 0
    ) -> None:
        file = src.cpu().numpy().tobytes() if isinstance(src, Tensor) else src
        self._video = _open(io.BytesIO(file) if isinstance(file, bytes) else file)
        self._threads = num_threads
        self._from = -math.inf
        if not self.set_current_stream(stream):
            raise ValueError(f"{stream!r} is no stream of this video")

    def set_current_stream(self, stream: str) -> bool:
        """Switch to another stream, at its beginning; False if it does not exist."""
        kind, _, number = stream.partition(":")
        found = [s for s in self._video.streams if s.type == kind]
        if kind not in ("video", "audio") or not (number or "0").isdigit():
            raise ValueError(
                f"a stream is 'video' or 'audio', or one of them by number, not {stream}"
            )
        if int(number or 0) >= len(found):
            return False
        self._stream = found[int(number or 0)]
        if self._threads:
            self._stream.thread_count = self._threads
        self.seek(0.0)
        self._from = -math.inf
        return True

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        while True:
            with _naming_file("the video"):
                frame = next(self._frames)  # StopIteration at its end
            time = 0.0 if frame.pts is None else float(frame.pts * frame.time_base)
            if time >= self._from - 1e-9:
                if self._stream.type == "video":
                    data = frame.to_ndarray(format="rgb24").transpose(2, 0, 1)
                else:
                    data = _planes(frame).T
                return {"data": rushlight.from_numpy(np.ascontiguousarray(data)), "pts": time}

    def seek(self, time_s: float, keyframes_only: bool = False) -> VideoReader:
        """Go to the first frame at time_s or later, or to the key frame before it."""
        unit = self._stream.time_base
        self._video.seek(max(int(time_s / unit), 0), backward=True, stream=self._stream)
        self._from = -math.inf if keyframes_only else time_s
        self._frames = self._video.decode(self._stream)
        return self

    def get_metadata(self) -> dict[str, dict[str, list[float]]]:
        """For each kind of stream: durations in seconds, and rates ("fps", or "framerate" for
        sound).
        """
        found: dict[str, dict[str, list[float]]] = {}
        for stream in self._video.streams:
            if stream.type in ("video", "audio"):
                name = "fps" if stream.type == "video" else "framerate"
                of_kind = found.setdefault(stream.type, {name: [], "duration": []})
                rate = stream.average_rate if stream.type == "video" else stream.rate
                of_kind[name].append(float(rate or 0))
                of_kind["duration"].append(float((stream.duration or 0) * stream.time_base))
        return found
