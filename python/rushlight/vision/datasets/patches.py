"""Moving digits, patches of photographs, databases of pictures: MovingMNIST, PhotoTour, LSUN."""

# ruff: noqa: RUF012  # people's subclasses replace these lists, which annotations would forbid

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import rushlight as torch
from rushlight import Tensor

from ._maps import picture
from .utils import (
    MISSING,
    MISSING_OR_DAMAGED,
    download_and_extract_archive,
    download_url,
    iterable_to_str,
    lines_of,
    parsing,
    verify_str_arg,
)
from .vision import Transform, VisionDataset

__all__ = [
    "LSUN",
    "LSUNClass",
    "MovingMNIST",
    "PhotoTour",
    "read_image_file",
    "read_info_file",
    "read_matches_files",
]


class MovingMNIST(VisionDataset):
    """Two digits that move, as uint8 tensors (T, 1, 64, 64): root/MovingMNIST/mnist_test_seq.npy.

    Args:
        split: "train" for the first frames, "test" for the rest, None for all.
        split_ratio: how many of the 20 frames are the first ones.
    """

    _URL = "http://www.cs.toronto.edu/~nitish/unsupervised_video/mnist_test_seq.npy"

    def __init__(
        self,
        root: str | Path,
        split: str | None = None,
        split_ratio: int = 10,
        download: bool = False,
        transform: Transform = None,
    ) -> None:
        super().__init__(root, transform=transform)
        base = Path(self.root or "") / type(self).__name__
        if split is not None:
            verify_str_arg(split, "split", ("train", "test"))
        if not isinstance(split_ratio, int):
            raise TypeError(f"`split_ratio` should be an integer, but got {type(split_ratio)}")
        if not 1 <= split_ratio <= 19:
            raise ValueError(
                f"`split_ratio` should be `0 < split_ratio < 20`, but got {split_ratio} instead."
            )
        self.split, self.split_ratio = split, split_ratio
        path = base / self._URL.rsplit("/", 1)[-1]
        if download:
            self.download()
        if not path.is_file():
            raise RuntimeError(MISSING)
        with parsing(path):
            frames = torch.from_numpy(np.load(path, allow_pickle=False))  # (T, N, H, W)
        parts = {"train": slice(0, split_ratio), "test": slice(split_ratio, None)}
        frames = frames[parts[split]] if split is not None else frames
        self.data = frames.transpose(0, 1).unsqueeze(2).contiguous()

    def download(self) -> None:
        """Downloads the file, unless it is there."""
        base = Path(self.root or "") / type(self).__name__
        name = self._URL.rsplit("/", 1)[-1]
        download_url(self._URL, base, name, "be083ec986bfe91a449d63653c411eb2")

    def __getitem__(self, idx: int) -> Tensor:
        frames = self.data[idx]
        return frames if self.transform is None else self.transform(frames)

    def __len__(self) -> int:
        return len(self.data)


def _by_sight(notredame: float, yosemite: float, liberty: float) -> dict[str, float]:
    numbers = {"notredame": notredame, "yosemite": yosemite, "liberty": liberty}
    return numbers | {f"{name}_harris": number for name, number in numbers.items()}


class PhotoTour(VisionDataset):
    """Patches of 64 x 64 around points of sights: root/NAME/*.bmp of 16 x 16 patches, info.txt and
    m50_100000_100000_0.txt.

    Items are patches; to test on (patch, patch, whether they show the same).

    Args:
        name: "notredame", "yosemite", "liberty", or one of these with "_harris".
    """

    urls = {
        name: [f"{site}{name}.zip", f"{name}.zip", md5]
        for site, sums in (
            (
                "http://matthewalunbrown.com/patchdata/",
                {
                    "notredame_harris": "69f8c90f78e171349abdf0307afefe4d",
                    "yosemite_harris": "a73253d1c6fbd3ba2613c45065c00d46",
                    "liberty_harris": "c731fcfb3abb4091110d0ae8c7ba182c",
                },
            ),
            (
                "http://icvl.ee.ic.ac.uk/vbalnt/",
                {
                    "notredame": "509eda8535847b8c0a90bbb210c83484",
                    "yosemite": "533b2e8eb7ede31be40abc317b2fd4f0",
                    "liberty": "fdd9152f138ea5ef2091746689176414",
                },
            ),
        )
        for name, md5 in sums.items()
    }
    means = _by_sight(0.4854, 0.4844, 0.4437)
    stds = _by_sight(0.1864, 0.1818, 0.2019)
    lens = {
        "notredame": 468159,
        "yosemite": 633587,
        "liberty": 450092,
        "liberty_harris": 379587,
        "yosemite_harris": 450912,
        "notredame_harris": 325295,
    }
    image_ext = "bmp"
    info_file = "info.txt"
    matches_files = "m50_100000_100000_0.txt"

    def __init__(
        self,
        root: str | Path,
        name: str,
        train: bool = True,
        transform: Transform = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform)
        self.name = verify_str_arg(name, "name", self.urls)
        self.data_dir = Path(self.root or "") / name
        self.train, self.mean, self.std = train, self.means[name], self.stds[name]
        if download:
            self.download()
        if not self.data_dir.is_dir():
            raise RuntimeError(MISSING_OR_DAMAGED)
        self.data = read_image_file(self.data_dir, self.image_ext, self.lens[name])
        self.labels = read_info_file(self.data_dir, self.info_file)
        self.matches = read_matches_files(self.data_dir, self.matches_files)

    def download(self) -> None:
        """Downloads and unpacks the archive, unless the folder is there."""
        if not self.data_dir.is_dir():
            url, filename, md5 = self.urls[self.name]
            download_and_extract_archive(url, self.root or "", self.data_dir, filename, md5)

    def __getitem__(self, index: int) -> Any:
        apply = self.transform if self.transform is not None else lambda patch: patch
        if self.train:
            return apply(self.data[index])
        first, second, same = self.matches[index]
        return apply(self.data[first]), apply(self.data[second]), same

    def __len__(self) -> int:
        return len(self.data if self.train else self.matches)

    def extra_repr(self) -> str:
        """What `repr` shows beside the folder and the length."""
        return f"Split: {'Train' if self.train is True else 'Test'}"


def read_image_file(data_dir: str | Path, image_ext: str, n: int) -> Tensor:
    """The first patches (n, 64, 64) of a folder, row after row of each file.

    Args:
        data_dir: the folder.
        image_ext: the ending of the files.
        n: how many patches.

    For an example see `vision.datasets.PhotoTour`.
    """
    parts = [np.zeros((0, 64, 64), np.uint8)]
    for path in sorted(Path(data_dir).glob(f"*.{image_ext}")):
        values = picture(path)
        with parsing(path):
            grid = values.reshape(values.shape[0] // 64, 64, values.shape[1] // 64, 64)
        parts.append(grid.transpose(0, 2, 1, 3).reshape(-1, 64, 64))
    return torch.from_numpy(np.concatenate(parts)[:n])


def _numbers(path: Path) -> list[list[int]]:
    with parsing(path):
        return [[int(n) for n in line.split()] for line in lines_of(path)]


def read_info_file(data_dir: str | Path, info_file: str) -> Tensor:
    """Numbers (N) of the points that patches show.

    Args:
        data_dir: the folder.
        info_file: the file's name.

    For an example see `vision.datasets.PhotoTour`.
    """
    rows = _numbers(Path(data_dir) / info_file)
    return torch.tensor([row[0] for row in rows], dtype=torch.int64)


def read_matches_files(data_dir: str | Path, matches_file: str) -> Tensor:
    """Pairs of patches (N, 3): two numbers, and 1 where both show the same point.

    Args:
        data_dir: the folder.
        matches_file: the file's name.

    For an example see `vision.datasets.PhotoTour`.
    """
    path = Path(data_dir) / matches_file
    with parsing(path):
        # Number and point of one patch, a third number, those of the other.
        rows = [(row[0], row[3], int(row[1] == row[4])) for row in _numbers(path)]
    return torch.tensor(rows, dtype=torch.int64).reshape(-1, 3)


class LSUNClass(VisionDataset):
    """Pictures of a database of LMDB, sorted by key; wants lmdb. Items are (picture, "")."""

    def __init__(
        self,
        root: str | Path,
        transform: Transform = None,
        target_transform: Transform = None,
    ) -> None:
        try:
            import lmdb  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise RuntimeError(
                "lmdb is not found. This dataset needs to have lmdb installed: please run pip "
                "install lmdb"
            ) from None
        super().__init__(root, transform=transform, target_transform=target_transform)
        how = {"max_readers": 1, "readonly": True, "lock": False}
        try:
            self.env = lmdb.open(str(root), readahead=False, meminit=False, **how)
            with self.env.begin(write=False) as reading:
                self.keys = list(reading.cursor().iternext(keys=True, values=False))
        except lmdb.Error as error:
            raise RuntimeError(f"{root} is damaged or not there: {error}") from error
        self.length = len(self.keys)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        with self.env.begin(write=False) as reading:
            content = reading.get(self.keys[index])
        try:
            image = Image.open(io.BytesIO(content)).convert("RGB")
        except (OSError, SyntaxError, ValueError) as error:
            raise RuntimeError(f"{self.root}: {self.keys[index]!r} is damaged: {error}") from error
        return self._apply(image, "")

    def __len__(self) -> int:
        return self.length


_PLACES = (
    *("bedroom", "bridge", "church_outdoor", "classroom", "conference_room"),
    *("dining_room", "kitchen", "living_room", "restaurant", "tower"),
)


class LSUN(VisionDataset):
    """Rooms and places: databases root/CATEGORY_SPLIT_lmdb; wants lmdb. Items are (picture, number
    of the category).

    Args:
        classes: "train", "val" or "test", or a list as ["bedroom_train", "church_outdoor_train"].
    """

    def __init__(
        self,
        root: str | Path,
        classes: Sequence[str] | str = "train",
        transform: Transform = None,
        target_transform: Transform = None,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.classes = self._verify_classes(classes)
        base = Path(self.root or "")
        self.dbs = [LSUNClass(base / f"{name}_lmdb", transform) for name in self.classes]
        self.indices = np.cumsum([len(db) for db in self.dbs]).tolist()
        self.length = self.indices[-1] if self.indices else 0

    @staticmethod
    def _verify_classes(classes: Sequence[str] | str) -> list[str]:
        """Names of the databases; ValueError for others."""
        if isinstance(classes, str):
            verify_str_arg(classes, "classes", ("train", "val", "test"))
            return ["test"] if classes == "test" else [f"{name}_{classes}" for name in _PLACES]
        if not isinstance(classes, list | tuple):
            raise ValueError(
                f"Expected type str or Sequence for argument classes, but got type {type(classes)}."
            )
        for name in classes:
            place, _, split = verify_str_arg(name, "classes").rpartition("_")
            unknown = (
                f"Unknown value '{place}' for LSUN class. Valid values are "
                f"{{{iterable_to_str(_PLACES)}}}."
            )
            verify_str_arg(place, "classes", _PLACES, unknown)
            verify_str_arg(split, "postfix", ("train", "val"))
        return list(classes)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        number = next(i for i, end in enumerate(self.indices) if index < end)
        before = self.indices[number - 1] if number else 0
        image, _ = self.dbs[number][index - before]  # which applies the transform
        apply = self.target_transform if self.target_transform is not None else int
        return image, apply(number)

    def __len__(self) -> int:
        return self.length

    def extra_repr(self) -> str:
        """What `repr` shows beside the folder and the length."""
        return f"Classes: {self.classes}"
