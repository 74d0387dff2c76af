"""Streets and boundaries: Cityscapes, KITTI's objects, the Semantic Boundaries Dataset."""

# ruff: noqa: RUF012  # people's subclasses replace these lists, which annotations would forbid

import csv
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from .folder import default_loader
from .utils import (
    MISSING_OR_DAMAGED,
    download_and_extract_archive,
    download_url,
    extract_archive,
    lines_of,
    one_or_tuple,
    parsing,
    verify_kinds,
    verify_str_arg,
)
from .vision import Transform, VisionDataset

__all__ = ["Cityscapes", "CityscapesClass", "Kitti", "SBDataset"]


class CityscapesClass(NamedTuple):
    """What a pixel may be of; train_id: its number in training, 255 for what is left out.

    Args:
        name: in words.
        id: its number in files.
        train_id: its number in training, 255 for what is left out.
        category: the group that it belongs to.
        category_id: the group's number.
        has_instances: whether things of this class are told apart.
        ignore_in_eval: whether it does not count.
        color: of pictures that show classes.

    Example:
        >>> from rushlight.vision.datasets import Cityscapes
        >>> Cityscapes.classes[26].name, Cityscapes.classes[26].color
        ('car', (0, 0, 142))
    """

    name: str
    id: int
    train_id: int
    category: str
    category_id: int
    has_instances: bool
    ignore_in_eval: bool
    color: tuple[int, int, int]


_CLASSES: list[tuple[str, int, int, str, int, bool, bool, tuple[int, int, int]]] = [
    ("unlabeled", 0, 255, "void", 0, False, True, (0, 0, 0)),
    ("ego vehicle", 1, 255, "void", 0, False, True, (0, 0, 0)),
    ("rectification border", 2, 255, "void", 0, False, True, (0, 0, 0)),
    ("out of roi", 3, 255, "void", 0, False, True, (0, 0, 0)),
    ("static", 4, 255, "void", 0, False, True, (0, 0, 0)),
    ("dynamic", 5, 255, "void", 0, False, True, (111, 74, 0)),
    ("ground", 6, 255, "void", 0, False, True, (81, 0, 81)),
    ("road", 7, 0, "flat", 1, False, False, (128, 64, 128)),
    ("sidewalk", 8, 1, "flat", 1, False, False, (244, 35, 232)),
    ("parking", 9, 255, "flat", 1, False, True, (250, 170, 160)),
    ("rail track", 10, 255, "flat", 1, False, True, (230, 150, 140)),
    ("building", 11, 2, "construction", 2, False, False, (70, 70, 70)),
    ("wall", 12, 3, "construction", 2, False, False, (102, 102, 156)),
    ("fence", 13, 4, "construction", 2, False, False, (190, 153, 153)),
    ("guard rail", 14, 255, "construction", 2, False, True, (180, 165, 180)),
    ("bridge", 15, 255, "construction", 2, False, True, (150, 100, 100)),
    ("tunnel", 16, 255, "construction", 2, False, True, (150, 120, 90)),
    ("pole", 17, 5, "object", 3, False, False, (153, 153, 153)),
    ("polegroup", 18, 255, "object", 3, False, True, (153, 153, 153)),
    ("traffic light", 19, 6, "object", 3, False, False, (250, 170, 30)),
    ("traffic sign", 20, 7, "object", 3, False, False, (220, 220, 0)),
    ("vegetation", 21, 8, "nature", 4, False, False, (107, 142, 35)),
    ("terrain", 22, 9, "nature", 4, False, False, (152, 251, 152)),
    ("sky", 23, 10, "sky", 5, False, False, (70, 130, 180)),
    ("person", 24, 11, "human", 6, True, False, (220, 20, 60)),
    ("rider", 25, 12, "human", 6, True, False, (255, 0, 0)),
    ("car", 26, 13, "vehicle", 7, True, False, (0, 0, 142)),
    ("truck", 27, 14, "vehicle", 7, True, False, (0, 0, 70)),
    ("bus", 28, 15, "vehicle", 7, True, False, (0, 60, 100)),
    ("caravan", 29, 255, "vehicle", 7, True, True, (0, 0, 90)),
    ("trailer", 30, 255, "vehicle", 7, True, True, (0, 0, 110)),
    ("train", 31, 16, "vehicle", 7, True, False, (0, 80, 100)),
    ("motorcycle", 32, 17, "vehicle", 7, True, False, (0, 0, 230)),
    ("bicycle", 33, 18, "vehicle", 7, True, False, (119, 11, 32)),
    ("license plate", -1, -1, "vehicle", 7, False, True, (0, 0, 142)),
]


class _Pictures(VisionDataset):
    """Pictures, each with a target that is made when it is asked for."""

    images: list[str]

    def _target(self, index: int) -> Any:
        raise NotImplementedError

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._apply(default_loader(self.images[index]), self._target(index))

    def __len__(self) -> int:
        return len(self.images)


class Cityscapes(_Pictures):
    """Streets: root/leftImg8bit/SPLIT/CITY and root/gtFine or gtCoarse.

    Archives in root are unpacked.

    Args:
        split: "train", "test" or "val", of the coarse ones also "train_extra".
        mode: how exact targets are: "fine" or "coarse".
        target_type: what targets are, one or several: "instance", "semantic", "polygon" (a dict)
            and "color".
    """

    CityscapesClass = CityscapesClass
    classes = [CityscapesClass(*row) for row in _CLASSES]
    _endings = {
        "instance": "instanceIds.png",
        "semantic": "labelIds.png",
        "color": "color.png",
        "polygon": "polygons.json",
    }

    def __init__(
        self,
        root: str | Path,
        split: str = "train",
        mode: str = "fine",
        target_type: Sequence[str] | str = "instance",
        transform: Transform = None,
        target_transform: Transform = None,
        transforms: Transform = None,
    ) -> None:
        super().__init__(root, transforms, transform, target_transform)
        verify_str_arg(mode, "mode", ("fine", "coarse"))
        self.mode = "gtFine" if mode == "fine" else "gtCoarse"
        splits = ("train", "test", "val") if mode == "fine" else ("train", "train_extra", "val")
        unknown = (
            f"Unknown value '{split}' for argument split if mode is '{mode}'. Valid values are "
            f"{{{', '.join(splits)}}}."
        )
        self.split = verify_str_arg(split, "split", splits, unknown)
        self.target_type = verify_kinds(target_type, "target_type", tuple(self._endings))
        base = Path(self.root or "")
        self.images_dir = str(base / "leftImg8bit" / split)
        self.targets_dir = str(base / self.mode / split)
        if not (Path(self.images_dir).is_dir() and Path(self.targets_dir).is_dir()):
            self._unpack(base)
        self.images: list[str] = []
        self.targets: list[list[str]] = []
        for city in sorted(Path(self.images_dir).iterdir()):
            for path in sorted(city.iterdir()):
                start = path.name.split("_leftImg8bit")[0]
                told = Path(self.targets_dir) / city.name
                names = (f"{start}_{self.mode}_{self._endings[t]}" for t in self.target_type)
                self.images.append(str(path))
                self.targets.append([str(told / name) for name in names])

    def _unpack(self, base: Path) -> None:
        part = "trainextra" if self.split == "train_extra" else "trainvaltest"
        suffix = "_trainvaltest" if self.mode == "gtFine" else ""
        archives = base / f"leftImg8bit_{part}.zip", base / f"{self.mode}{suffix}.zip"
        if not all(path.is_file() for path in archives):
            raise RuntimeError(
                f"Dataset not found or incomplete: the archives {[path.name for path in archives]} "
                f"belong into {base}"
            )
        for path in archives:
            extract_archive(path, base)

    def _target(self, index: int) -> Any:
        return one_or_tuple([self._read(path) for path in self.targets[index]])

    @staticmethod
    def _read(path: str) -> Any:
        if not path.endswith(".json"):
            return Image.open(path)
        with parsing(path):
            return json.loads(Path(path).read_text(encoding="utf-8"))

    def extra_repr(self) -> str:
        """What `repr` shows beside the folder and the length."""
        return f"Split: {self.split}\nMode: {self.mode}\nType: {self.target_type}"


def _column(place: int, kind: Callable[[str], Any]) -> Callable[[list[str]], Any]:
    return lambda row: kind(row[place])


def _columns(first: int, last: int) -> Callable[[list[str]], list[float]]:
    return lambda row: [float(number) for number in row[first:last]]


# What a line of Kitti's labels says.
_COLUMNS: dict[str, Callable[[list[str]], Any]] = {
    "type": _column(0, str),
    "truncated": _column(1, float),
    "occluded": _column(2, int),
    "alpha": _column(3, float),
    "bbox": _columns(4, 8),
    "dimensions": _columns(8, 11),
    "location": _columns(11, 14),
    "rotation_y": _column(14, float),
}


class Kitti(_Pictures):
    """Things on streets: root/Kitti/raw/{training,testing}/image_2 and training/label_2.

    Targets are lists of dicts; None to test on.
    """

    data_url = "https://s3.eu-central-1.amazonaws.com/avg-kitti/"
    resources = ["data_object_image_2.zip", "data_object_label_2.zip"]
    image_dir_name = "image_2"
    labels_dir_name = "label_2"

    def __init__(
        self,
        root: str | Path,
        train: bool = True,
        transform: Transform = None,
        target_transform: Transform = None,
        transforms: Transform = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transforms, transform, target_transform)
        self.train = train
        needed = self._required_paths()
        if download:
            self.download()
        if not self._check_exists():
            raise RuntimeError("Dataset not found. You may use download=True to download it.")
        self.images = [str(path) for path in sorted(needed[0].iterdir())]
        told = [needed[1] / f"{Path(image).stem}.txt" for image in self.images] if train else []
        self.targets = [str(path) for path in told]

    @property
    def _raw_folder(self) -> Path:
        return Path(self.root or "") / type(self).__name__ / "raw"

    def _required_paths(self) -> list[Path]:
        base = self._raw_folder / ("training" if self.train else "testing")
        names = [self.image_dir_name, *([self.labels_dir_name] if self.train else [])]
        return [base / name for name in names]

    def _check_exists(self) -> bool:
        return all(path.is_dir() for path in self._required_paths())

    def download(self) -> None:
        """Downloads and unpacks the archives, unless the folders are there."""
        if not self._check_exists():
            for name in self.resources:
                download_and_extract_archive(f"{self.data_url}{name}", self._raw_folder)

    def _target(self, index: int) -> Any:
        return self._parse_target(index) if self.train else None

    def _parse_target(self, index: int) -> list[dict[str, Any]]:
        path = self.targets[index]
        with parsing(path), open(path, newline="", encoding="utf-8") as file:
            rows = [row for row in csv.reader(file, delimiter=" ") if row]
            return [{name: read(row) for name, read in _COLUMNS.items()} for row in rows]


class SBDataset(_Pictures):
    """Boundaries of things in pictures of VOC 2011: root/{img,cls} and lists; wants SciPy.

    Args:
        image_set: "train", "val" or "train_noval".
        mode: what targets are: "boundaries", an array (20, H, W), or "segmentation", a picture.
    """

    url = (
        "https://www2.eecs.berkeley.edu/Research/Projects/CS/vision/grouping/semantic_contours/"
        "benchmark.tgz"
    )
    md5 = "82b4d87ceb2ed10f6038a1cba92111cb"
    filename = "benchmark.tgz"
    voc_train_url = "https://www.cs.cornell.edu/~bharathh/train_noval.txt"
    voc_split_filename = "train_noval.txt"
    voc_split_md5 = "79bff800c5f0b1ec6b21080a3c066722"

    def __init__(
        self,
        root: str | Path,
        image_set: str = "train",
        mode: str = "boundaries",
        download: bool = False,
        transforms: Transform = None,
    ) -> None:
        super().__init__(root, transforms)
        self.image_set = verify_str_arg(image_set, "image_set", ("train", "val", "train_noval"))
        self.mode = verify_str_arg(mode, "mode", ("segmentation", "boundaries"))
        self.num_classes = 20
        base = Path(self.root or "")
        if download:
            self._download(base)
        if not (base / "cls").is_dir():
            raise RuntimeError(MISSING_OR_DAMAGED)
        names = [line.strip() for line in lines_of(base / f"{image_set}.txt")]
        self.images = [str(base / "img" / f"{name}.jpg") for name in names]
        self.masks = [str(base / "cls" / f"{name}.mat") for name in names]

    def _download(self, base: Path) -> None:
        download_and_extract_archive(self.url, base, filename=self.filename, md5=self.md5)
        unpacked = base / "benchmark_RELEASE" / "dataset"
        for name in ("cls", "img", "inst", "train.txt", "val.txt"):
            shutil.move(str(unpacked / name), base / name)
        download_url(self.voc_train_url, base, self.voc_split_filename, self.voc_split_md5)

    def _target(self, index: int) -> Any:
        from scipy.io import loadmat

        path = self.masks[index]
        try:
            found = loadmat(path)["GTcls"][0]
            if self.mode == "segmentation":
                return Image.fromarray(found["Segmentation"][0])
            parts = found["Boundaries"][0]
            each = [parts[i][0].toarray()[None] for i in range(self.num_classes)]
            return np.concatenate(each)
        except FileNotFoundError:
            raise
        except Exception as error:  # SciPy raises many kinds
            raise RuntimeError(f"{path} is damaged: {error!r}") from error

    def extra_repr(self) -> str:
        """What `repr` shows beside the folder and the length."""
        return f"Image set: {self.image_set}\nMode: {self.mode}"
