"""Videos of what people do: Kinetics, HMDB51, UCF101. Items are clips: (frames, sound, class)."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rushlight import Tensor

from .folder import find_classes, make_dataset
from .utils import (
    download_and_extract_archive,
    download_url,
    lines_of,
    parsing,
    verify_str_arg,
)
from .video_utils import VideoClips
from .vision import Transform, VisionDataset

__all__ = ["HMDB51", "UCF101", "Kinetics"]


class _Clips(VisionDataset):
    """Clips of the videos of root/CLASS, of a list of samples."""

    video_clips: VideoClips
    samples: list[tuple[str, int]]
    indices: Sequence[int]

    @property
    def metadata(self) -> dict[str, Any]:
        """What was read of the videos, for `_precomputed_metadata`."""
        return self.full_video_clips.metadata

    def _open(self, chosen: list[int], *settings: Any, **more: Any) -> None:
        paths = [path for path, _ in self.samples]
        self.full_video_clips = VideoClips(paths, *settings, **more)
        self.indices = chosen
        self.video_clips = self.full_video_clips.subset(chosen)

    def __len__(self) -> int:
        return self.video_clips.num_clips()

    def __getitem__(self, idx: int) -> tuple[Tensor, Tensor, int]:
        video, audio, _, number = self.video_clips.get_clip(idx)
        if self.transform is not None:
            video = self.transform(video)
        return video, audio, self.samples[self.indices[number]][1]


class _Folds(_Clips):
    """Clips of those videos that the lists of one of three folds name."""

    def __init__(
        self,
        root: str | Path,
        annotation_path: str,
        frames_per_clip: int,
        step_between_clips: int = 1,
        frame_rate: int | None = None,
        fold: int = 1,
        train: bool = True,
        transform: Transform = None,
        _precomputed_metadata: dict[str, Any] | None = None,
        num_workers: int = 1,
        _video_width: int = 0,
        _video_height: int = 0,
        _video_min_dimension: int = 0,
        _audio_samples: int = 0,
        output_format: str = "THWC",
    ) -> None:
        super().__init__(root, transform=transform)
        if fold not in (1, 2, 3):
            raise ValueError(f"fold should be between 1 and 3, got {fold}")
        self.fold, self.train = fold, train
        self.classes, numbers = find_classes(self.root or "")
        self.samples = make_dataset(self.root or "", numbers, extensions=(".avi",))
        listed = self._read_list(Path(annotation_path))
        paths = [Path(path) for path, _ in self.samples]
        self._open(
            [i for i, path in enumerate(paths) if self._name(path) in listed],
            *(frames_per_clip, step_between_clips, frame_rate, _precomputed_metadata, num_workers),
            output_format=output_format,
        )

    def _name(self, path: Path) -> str:
        """The name of a video in the lists."""
        raise NotImplementedError

    def _read_list(self, folder: Path) -> set[str]:
        """Names of the videos of the part."""
        raise NotImplementedError


class HMDB51(_Folds):
    """51 actions: root/CLASS/VIDEO.avi, and lists CLASS_test_split{1,2,3}.txt in annotation_path.

    Frames are (T, H, W, 3), or (T, 3, H, W) with output_format="TCHW".

    Args:
        root: the folder that has a folder of videos for each class.
        annotation_path: the folder of the lists.
        fold: one of three ways to split the videos: 1, 2 or 3.
    """

    # Where people find the videos and the lists: archives of a kind that is not unpacked here.
    data_url = "https://serre-lab.clps.brown.edu/wp-content/uploads/2013/10/hmdb51_org.rar"
    splits = {  # noqa: RUF012
        "url": "https://serre-lab.clps.brown.edu/wp-content/uploads/2013/10/test_train_splits.rar",
        "md5": "15e67781e70dcfbdce2d7dbb9b3344b5",
    }
    TRAIN_TAG, TEST_TAG = 1, 2

    def _name(self, path: Path) -> str:
        return path.name

    def _read_list(self, folder: Path) -> set[str]:
        tag = str(self.TRAIN_TAG if self.train else self.TEST_TAG)
        found: set[str] = set()
        for path in sorted(folder.glob(f"*test_split{self.fold}.txt")):
            with parsing(path):
                for line in lines_of(path):
                    name, number = line.split()
                    found |= {name} if number == tag else set()
        return found


class UCF101(_Folds):
    """101 actions: root/CLASS/VIDEO.avi, and lists {train,test}list0{1,2,3}.txt in annotation_path.

    Frames are (T, H, W, 3), or (T, 3, H, W) with output_format="TCHW".

    Args:
        root: the folder that has a folder of videos for each class.
        annotation_path: the folder of the lists.
        fold: one of three ways to split the videos: 1, 2 or 3.
    """

    def _name(self, path: Path) -> str:
        return "/".join(path.parts[-2:])

    def _read_list(self, folder: Path) -> set[str]:
        name = f"{'train' if self.train else 'test'}list{self.fold:02d}.txt"
        return {line.split()[0] for line in lines_of(folder / name)}


class Kinetics(_Clips):
    """400, 600 or 700 actions: root/SPLIT/CLASS/VIDEO.mp4.

    Frames are (T, 3, H, W), or (T, H, W, 3) with output_format="THWC".

    Args:
        num_classes: which set: "400", "600" or "700".
        split: "train", "val" or "test".
        extensions: endings of the files that count.
        num_download_workers: how many processes fetch the archives.
    """

    _site = "https://s3.amazonaws.com/kinetics/"
    _folders = {"400": "400", "600": "600", "700": "700_2020"}  # noqa: RUF012

    def __init__(
        self,
        root: str | Path,
        frames_per_clip: int,
        num_classes: str = "400",
        split: str = "train",
        frame_rate: int | None = None,
        step_between_clips: int = 1,
        transform: Transform = None,
        extensions: tuple[str, ...] = ("avi", "mp4"),
        download: bool = False,
        num_download_workers: int = 1,
        num_workers: int = 1,
        _precomputed_metadata: dict[str, Any] | None = None,
        _video_width: int = 0,
        _video_height: int = 0,
        _video_min_dimension: int = 0,
        _audio_samples: int = 0,
        _audio_channels: int = 0,
        _legacy: bool = False,
        output_format: str = "TCHW",
    ) -> None:
        super().__init__(root, transform=transform)
        self.num_classes = verify_str_arg(num_classes, "num_classes", tuple(self._folders))
        self.split = verify_str_arg(split, "split", ("train", "val", "test"))
        self.extensions = extensions
        base = Path(self.root or "")
        self.split_folder = str(base if _legacy else base / split)
        if download:
            self.download_and_process_videos()
        self.classes, numbers = find_classes(self.split_folder)
        self.samples = make_dataset(self.split_folder, numbers, extensions)
        self._open(
            list(range(len(self.samples))),
            *(frames_per_clip, step_between_clips, frame_rate, _precomputed_metadata, num_workers),
            output_format="THWC" if _legacy else output_format,
        )

    def download_and_process_videos(self) -> None:
        """Downloads the archives of the split, and puts videos into the folders of their classes.

        RuntimeError if the folder of the split is there.
        """
        into, base = Path(self.split_folder), Path(self.root or "")
        if into.exists():
            raise RuntimeError(
                f"The directory {into} already exists. If you want to re-download or re-extract "
                "the videos, delete the directory."
            )
        folder = self._folders[self.num_classes]
        start = f"{self._site}{folder}"
        lists = base / "files"
        name = f"k{folder}_{self.split}_path.txt"
        download_url(f"{start}/{self.split}/{name}", lists)
        for url in lines_of(lists / name):
            address = quote(url.strip(), safe="/,:")
            download_and_extract_archive(address, base / "tars", into)
        table = base / "annotations" / f"{self.split}.csv"
        download_url(f"{start}/annotations/{self.split}.csv", table.parent)
        with parsing(table), open(table, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                begin, end = int(row["time_start"]), int(row["time_end"])
                video = into / f"{row['youtube_id']}_{begin:06}_{end:06}.mp4"
                if video.is_file():
                    label = "".join("" if c in "'()" else c for c in row.get("label", "test"))
                    (into / label.replace(" ", "_")).mkdir(exist_ok=True)
                    video.rename(into / label.replace(" ", "_") / video.name)
