"""Sets of classes in folders of which more is known: Caltech 101, iNaturalist, Places, ImageNet."""

# ruff: noqa: RUF012  # people's subclasses replace these lists, which annotations would forbid

import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import rushlight as torch

from .classes import read_mat
from .folder import ImageFolder, default_loader
from .utils import (
    MISSING_OR_DAMAGED,
    check_integrity,
    download_and_extract_archive,
    download_url,
    extract_archive,
    lines_of,
    one_or_tuple,
    parsing,
    verify_kinds,
    verify_str_arg,
)
from .vision import SamplesDataset, Transform, VisionDataset

__all__ = [
    "Caltech101",
    "INaturalist",
    "ImageNet",
    "Places365",
    "load_meta_file",
    "parse_devkit_archive",
    "parse_train_archive",
    "parse_val_archive",
]

_Loader = Callable[[Any], Any]


class Caltech101(VisionDataset):
    """Objects of 101 kinds: root/caltech101/101_ObjectCategories/CLASS, outlines in Annotations.

    Args:
        target_type: what targets are, one or several: "category" and "annotation" (points of an
            outline; wants SciPy).
    """

    # Outlines of some classes stand in folders of other names.
    _outlines = {
        "Faces": "Faces_2",
        "Faces_easy": "Faces_3",
        "Motorbikes": "Motorbikes_16",
        "airplanes": "Airplanes_Side_2",
    }

    def __init__(
        self,
        root: str | Path,
        target_type: Sequence[str] | str = "category",
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
    ) -> None:
        base = Path(root).expanduser() / "caltech101"
        super().__init__(base, transform=transform, target_transform=target_transform)
        self.target_type = verify_kinds(target_type, "target_type", ("category", "annotation"))
        pictures = base / "101_ObjectCategories"
        if download:
            self.download()
        if not pictures.is_dir():
            raise RuntimeError(MISSING_OR_DAMAGED)
        folders = sorted(p.name for p in pictures.iterdir() if p.is_dir())
        self.categories = [name for name in folders if name != "BACKGROUND_Google"]
        self.annotation_categories = [self._outlines.get(name, name) for name in self.categories]
        self.index: list[int] = []
        self.y: list[int] = []
        for i, name in enumerate(self.categories):
            count = len(list((pictures / name).glob("*.jpg")))
            self.index += range(1, count + 1)
            self.y += [i] * count

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        base, number, kind = Path(self.root or ""), self.index[index], self.y[index]
        name = self.categories[kind]
        image = default_loader(base / "101_ObjectCategories" / name / f"image_{number:04d}.jpg")
        outlines = base / "Annotations" / self.annotation_categories[kind]
        made = [
            kind
            if wanted == "category"
            else read_mat(outlines / f"annotation_{number:04d}.mat", "obj_contour")
            for wanted in self.target_type
        ]
        return self._apply(image, one_or_tuple(made))

    def __len__(self) -> int:
        return len(self.index)

    def extra_repr(self) -> str:
        """What `repr` shows beside the folder and the length."""
        return f"Target type: {self.target_type}"

    def download(self) -> None:
        """Downloads and unpacks pictures and outlines, unless they are there."""
        base = Path(self.root or "")
        if (base / "101_ObjectCategories").is_dir():
            return
        url = "https://data.caltech.edu/records/mzrjq-6wc02/files/caltech-101.zip"
        download_and_extract_archive(
            url, base, filename="caltech-101.zip", md5="3138e1922a9193bfa496528edbbc45d0"
        )
        for packed in (base / "caltech-101").glob("*.tar*"):
            extract_archive(packed, base)


_INAT = "https://ml-inat-competition-datasets.s3.amazonaws.com/"
DATASET_URLS = {
    "2017": f"{_INAT}2017/train_val_images.tar.gz",
    "2018": f"{_INAT}2018/train_val2018.tar.gz",
    "2019": f"{_INAT}2019/train_val2019.tar.gz",
    "2021_train": f"{_INAT}2021/train.tar.gz",
    "2021_train_mini": f"{_INAT}2021/train_mini.tar.gz",
    "2021_valid": f"{_INAT}2021/val.tar.gz",
}
DATASET_MD5 = {
    "2017": "7c784ea5e424efaec655bd392f87301f",
    "2018": "b1c6952ce38f31868cc50ea72d066cc3",
    "2019": "c60a6e2962c9b8ccbd458d12c8582644",
    "2021_train": "e0526d53c7f7b2e3167b2b43bb2690ed",
    "2021_train_mini": "db6ed8330e634445efc8fec83ae81442",
    "2021_valid": "f6f6e0e242e3d4c9569ba56400938afc",
}
CATEGORIES_2021 = ["kingdom", "phylum", "class", "order", "family", "genus"]


class INaturalist(VisionDataset):
    """Living things: root/VERSION/CATEGORY, before 2021 root/VERSION/SUPER/CATEGORY.

    Args:
        version: "2017", "2018", "2019", "2021_train", "2021_train_mini" or "2021_valid".
        target_type: what targets are, one or several: "full", and from 2021 on a rank from
            "kingdom" to "genus", before it "super".
    """

    def __init__(
        self,
        root: str | Path,
        version: str = "2021_train",
        target_type: Sequence[str] | str = "full",
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
        loader: _Loader | None = None,
    ) -> None:
        self.version = verify_str_arg(version, "version", DATASET_URLS)
        base = Path(root).expanduser() / version
        super().__init__(base, transform=transform, target_transform=target_transform)
        self.loader = loader or default_loader
        ranks = tuple(CATEGORIES_2021) if version.startswith("2021") else ("super",)
        self.target_type = verify_kinds(target_type, "target_type", ("full", *ranks))
        if download:
            self.download()
        if not base.is_dir() or not any(base.iterdir()):
            raise RuntimeError(MISSING_OR_DAMAGED)
        # Of each category its numbers by rank; numbers of the names of each rank.
        self.categories_map: list[dict[str, int]] = []
        self.categories_index: dict[str, dict[str, int]] = {rank: {} for rank in ranks}
        self.all_categories: list[str] = []
        with parsing(base):
            if version.startswith("2021"):
                self._by_names(base)
            else:
                self._by_folders(base)
        self.index = [
            (i, path.name)
            for i, name in enumerate(self.all_categories)
            for path in sorted((base / name).iterdir())
        ]

    def download(self) -> None:
        """Downloads and unpacks the pictures of the version, unless they are there."""
        base = Path(self.root or "")
        if base.is_dir():
            return
        url, md5 = DATASET_URLS[self.version], DATASET_MD5[self.version]
        with tempfile.TemporaryDirectory(dir=self._make_folder(base.parent)) as inside:
            download_url(url, base.parent, f"{self.version}.tgz", md5)
            extract_archive(base.parent / f"{self.version}.tgz", inside)
            (made,) = (p for p in Path(inside).iterdir() if p.is_dir())
            shutil.move(str(made), base)

    @staticmethod
    def _make_folder(folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _by_names(self, base: Path) -> None:
        """Folders as NUMBER_KINGDOM_…_GENUS_SPECIES."""
        self.all_categories = sorted(p.name for p in base.iterdir())
        for folder in self.all_categories:
            pieces = folder.split("_")
            if len(pieces) != 8:
                raise ValueError(f"wrong category name {folder!r}: it has {len(pieces)} pieces")
            numbers = {}
            for rank, name in zip(CATEGORIES_2021, pieces[1:7], strict=True):
                known = self.categories_index[rank]
                numbers[rank] = known.setdefault(name, len(known))
            self.categories_map.append(numbers)

    def _by_folders(self, base: Path) -> None:
        """Folders as SUPER/CATEGORY, which are numbers from 2018 on."""
        found: dict[int, tuple[str, int]] = {}
        for i, group in enumerate(sorted(p for p in base.iterdir() if p.is_dir())):
            self.categories_index["super"][group.name] = i
            for folder in sorted(group.iterdir()):
                if self.version != "2017" and not folder.name.isdigit():
                    raise ValueError(f"Unexpected non-numeric dir name: {folder.name}")
                number = len(found) if self.version == "2017" else int(folder.name)
                found[number] = f"{group.name}/{folder.name}", i
        for number in range(len(found)):
            if number not in found:
                raise ValueError(f"Missing category {number}")
            name, group_number = found[number]
            self.all_categories.append(name)
            self.categories_map.append({"super": group_number})

    def category_name(self, category_type: str, category_id: int) -> str:
        """The name of a number, among those of "full" or of a rank; ValueError without one."""
        if category_type == "full":
            return self.all_categories[category_id]
        if category_type not in self.categories_index:
            raise ValueError(f"Invalid category type '{category_type}'")
        for name, number in self.categories_index[category_type].items():
            if number == category_id:
                return name
        raise ValueError(f"Invalid category id {category_id} for {category_type}")

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        kind, name = self.index[index]
        image = self.loader(Path(self.root or "") / self.all_categories[kind] / name)
        ranks = self.categories_map[kind]
        made = [kind if wanted == "full" else ranks[wanted] for wanted in self.target_type]
        return self._apply(image, one_or_tuple(made))

    def __len__(self) -> int:
        return len(self.index)


class Places365(SamplesDataset):
    """Places: root/data_256_standard and the like, or data_large_standard, and lists.

    Args:
        split: "train-standard", "train-challenge", "val" or "test".
        small: whether pictures are those of 256 x 256.
    """

    _site = "http://data.csail.mit.edu/places/places365/"
    _lists = {
        "standard": ("filelist_places365-standard.tar", "35a0585fee1fa656440f3ab298f8479c"),
        "challenge": ("filelist_places365-challenge.tar", "70a8307e459c3de41690a7c76c931734"),
    }
    _categories = ("categories_places365.txt", "06c963b85866bd0649f97cb43dd16673")
    _files = {
        "train-standard": ("places365_train_standard.txt", "30f37515461640559006b8329efbed1a"),
        "train-challenge": ("places365_train_challenge.txt", "b2931dc997b8c33c27e7329c073a6b57"),
        "val": ("places365_val.txt", "e9f2fd57bfd9d07630173f4e8708e4b1"),
        "test": ("places365_test.txt", "2fce8233fe493576d724142e45d93653"),
    }
    # Archives by split and whether pictures are small.
    _images = {
        ("train-standard", False): (
            "train_large_places365standard.tar",
            "67e186b496a84c929568076ed01a8aa1",
        ),
        ("train-challenge", False): (
            "train_large_places365challenge.tar",
            "605f18e68e510c82b958664ea134545f",
        ),
        ("val", False): ("val_large.tar", "9b71c4993ad89d2d8bcbdc4aef38042f"),
        ("test", False): ("test_large.tar", "41a4b6b724b1d2cd862fb3871ed59913"),
        ("train-standard", True): (
            "train_256_places365standard.tar",
            "53ca1c756c3d1e7809517cc47c5561c5",
        ),
        ("train-challenge", True): (
            "train_256_places365challenge.tar",
            "741915038a5e3471ec7332404dfb64ef",
        ),
        ("val", True): ("val_256.tar", "e27b17d8d44f4af9a78502beb927f808"),
        ("test", True): ("test_256.tar", "f532f6ad7b582262a2ec8009075e186b"),
    }

    def __init__(
        self,
        root: str | Path,
        split: str = "train-standard",
        small: bool = False,
        download: bool = False,
        transform: Transform = None,
        target_transform: Transform = None,
        loader: _Loader = default_loader,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.split, self.small = verify_str_arg(split, "split", self._files), small
        self.loader = loader
        self.classes, self.class_to_idx = self.load_categories(download)
        self.imgs, self.targets = self.load_file_list(download)
        self._samples = self.imgs
        if download:
            self.download_images()
        if not self.images_dir.is_dir():
            raise RuntimeError(f"{MISSING_OR_DAMAGED}: {self.images_dir}")

    @property
    def variant(self) -> str:
        """What file names say of the size: "challenge" or "standard"."""
        return "challenge" if "challenge" in self.split else "standard"

    @property
    def images_dir(self) -> Path:
        """The folder of the pictures."""
        size = "256" if self.small else "large"
        train = self.split.startswith("train")
        return self._path(f"data_{size}_{self.variant}" if train else f"{self.split}_{size}")

    def _path(self, name: str) -> Path:
        return Path(self.root or "") / name

    def _read_list(self, name: str, md5: str, download: bool) -> list[list[str]]:
        path = self._path(name)
        if download and not check_integrity(path, md5):
            self.download_devkit()
        if not check_integrity(path, md5):
            raise RuntimeError(f"The file {path} is missing or corrupted: download=True fetches it")
        return [line.split() for line in lines_of(path)]

    def load_categories(self, download: bool = True) -> tuple[list[str], dict[str, int]]:
        """Names of the classes, and their numbers by name."""
        rows = self._read_list(*self._categories, download)
        with parsing(self._path(self._categories[0])):
            numbers = {name: int(number) for name, number in rows}
        return sorted(numbers), numbers

    def load_file_list(
        self, download: bool = True
    ) -> tuple[list[tuple[str, int | None]], list[int | None]]:
        """Pictures of the split with their classes, and these alone."""
        name, md5 = self._files[self.split]
        rows = self._read_list(name, md5, download)
        with parsing(self._path(name)):
            targets = [None if self.split == "test" else int(row[1]) for row in rows]
            files = [str(self.images_dir / row[0].lstrip("/")) for row in rows]
        return list(zip(files, targets, strict=True)), targets

    def download_devkit(self) -> None:
        """Downloads and unpacks the lists."""
        name, md5 = self._lists[self.variant]
        download_and_extract_archive(self._site + name, self._path(""), md5=md5)

    def download_images(self) -> None:
        """Downloads and unpacks the pictures of the split; RuntimeError if they are there."""
        if self.images_dir.exists():
            raise RuntimeError(
                f"The directory {self.images_dir} already exists. If you want to re-download or "
                "re-extract the images, delete the directory."
            )
        name, md5 = self._images[self.split, self.small]
        download_and_extract_archive(self._site + name, self._path(""), md5=md5)
        if self.split.startswith("train"):
            unpacked = self._path(name.removeprefix("train_").removesuffix(".tar"))
            if unpacked.is_dir():
                unpacked.rename(self.images_dir)

    def extra_repr(self) -> str:
        """What `repr` shows beside the folder and the length."""
        return f"Split: {self.split}\nSmall: {self.small}"


ARCHIVE_META = {
    "train": ("ILSVRC2012_img_train.tar", "1d675b47d978889d74fa0da5fadfb00e"),
    "val": ("ILSVRC2012_img_val.tar", "29b22e2961454d5413ddabcf34fc5622"),
    "devkit": ("ILSVRC2012_devkit_t12.tar.gz", "fa75699e90414af021442c21a62c3abf"),
}
META_FILE = "meta.bin"


class ImageNet(ImageFolder):
    """ImageNet of 2012: root/{train,val}/WORDNET, made of the archives in root, which are not
    offered for download: ILSVRC2012_devkit_t12.tar.gz (wants SciPy) and ILSVRC2012_img_*.tar.

    What the development kit says is kept in root/meta.bin.

    Args:
        split: "train" or "val".
    """

    def __init__(self, root: str | Path, split: str = "train", **kwargs: Any) -> None:
        self.root = base = Path(root).expanduser()
        self.split = verify_str_arg(split, "split", ("train", "val"))
        self.parse_archives()
        names, _ = load_meta_file(base)
        super().__init__(base / split, **kwargs)
        self.root = base
        self.wnids, self.wnid_to_idx = self.classes, self.class_to_idx
        with parsing(base / META_FILE):
            self.classes = [names[wnid] for wnid in self.wnids]
        self.class_to_idx = {name: i for i, every in enumerate(self.classes) for name in every}

    def parse_archives(self) -> None:
        """Makes meta.bin and the folder of the split of the archives, where they are missing."""
        base = Path(self.root or "")
        if not (base / META_FILE).is_file():
            parse_devkit_archive(base)
        if not (base / self.split).is_dir():
            parse = parse_train_archive if self.split == "train" else parse_val_archive
            parse(base)

    @property
    def split_folder(self) -> str:
        """The folder of this part's pictures."""
        return str(Path(self.root or "") / self.split)

    def extra_repr(self) -> str:
        """What `repr` shows beside the folder and the length."""
        return f"Split: {self.split}"


def load_meta_file(
    root: str | Path, file: str | None = None
) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Names by WordNet number, and the numbers of the pictures to validate on, of meta.bin.

    Args:
        root: the folder of the data set.
        file: the file's name, meta.bin if None.

    For an example see `vision.datasets.ImageNet`.
    """
    path = Path(root) / (file or META_FILE)
    if not path.is_file():
        raise RuntimeError(
            f"The meta file {path.name} is not present in the root directory {root}. "
            "ImageNet makes it of the development kit."
        )
    try:
        return torch.load(path, weights_only=True)
    except Exception as error:  # what pickles raise is many kinds
        raise RuntimeError(f"{path} is damaged: {error}") from error


def _archive(root: str | Path, part: str, file: str | None) -> Path:
    name, md5 = ARCHIVE_META[part]
    path = Path(root) / (file or name)
    if not check_integrity(path, md5):
        raise RuntimeError(
            f"The archive {path.name} is not present in {root} or is damaged. It cannot be fetched "
            "from here: download it externally"
        )
    return path


def parse_devkit_archive(root: str | Path, file: str | None = None) -> None:
    """Writes meta.bin of the development kit: what `load_meta_file` gives. Wants SciPy.

    Args:
        root: the folder of the data set.
        file: the archive's name, the official one if None.

    For an example see `vision.datasets.ImageNet`.
    """
    packed = _archive(root, "devkit", file)
    with tempfile.TemporaryDirectory() as inside:
        extract_archive(packed, inside)
        data = Path(inside) / "ILSVRC2012_devkit_t12" / "data"
        synsets = np.atleast_1d(read_mat(data / "meta.mat", "synsets"))
        truth = data / "ILSVRC2012_validation_ground_truth.txt"
        with parsing(packed):
            # ILSVRC2012_ID, WNID, words, gloss, number of children and more.
            leaves = [row for row in synsets if int(row[4]) == 0]
            wnids = {int(row[0]): str(row[1]) for row in leaves}
            names = {str(row[1]): tuple(str(row[2]).split(", ")) for row in leaves}
            of_val = [wnids[int(line)] for line in lines_of(truth)]
    torch.save((names, of_val), Path(root) / META_FILE)


def parse_train_archive(root: str | Path, file: str | None = None, folder: str = "train") -> None:
    """Unpacks the pictures to train on, an archive of archives, one for each class.

    Args:
        root: the folder of the data set.
        file: the archive's name, the official one if None.
        folder: where pictures go.

    For an example see `vision.datasets.ImageNet`.
    """
    into = Path(root) / folder
    extract_archive(_archive(root, "train", file), into)
    for path in sorted(into.glob("*.tar")):
        extract_archive(path, into / path.stem, remove_finished=True)


def parse_val_archive(
    root: str | Path, file: str | None = None, wnids: list[str] | None = None, folder: str = "val"
) -> None:
    """Unpacks the pictures to validate on into folders of their classes: wnids in the order of the
    pictures' names, those of meta.bin without.

    Args:
        root: the folder of the data set.
        file: the archive's name, the official one if None.
        wnids: the class of each picture.
        folder: where pictures go.

    For an example see `vision.datasets.ImageNet`.
    """
    wnids = load_meta_file(root)[1] if wnids is None else wnids
    into = Path(root) / folder
    extract_archive(_archive(root, "val", file), into)
    images = sorted(p for p in into.iterdir() if p.is_file())
    for path, wnid in zip(images, wnids, strict=True):
        (into / wnid).mkdir(exist_ok=True)
        path.rename(into / wnid / path.name)
