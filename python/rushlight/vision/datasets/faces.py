"""Faces: CelebA, Labeled Faces in the Wild, WIDER FACE."""

# ruff: noqa: RUF012  # people's subclasses replace these lists, which annotations would forbid

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import rushlight as torch
from rushlight import Tensor

from .folder import default_loader
from .utils import (
    MISSING_OR_DAMAGED,
    check_integrity,
    download_and_extract_archive,
    download_file_from_google_drive,
    extract_archive,
    lines_of,
    one_or_tuple,
    parsing,
    verify_kinds,
    verify_str_arg,
)
from .vision import SamplesDataset, Transform, VisionDataset

__all__ = ["CelebA", "LFWPairs", "LFWPeople", "WIDERFace"]


class CelebA(VisionDataset):
    """Famous people: root/celeba, with img_align_celeba and lists. Items are (picture, target).

    Args:
        split: "train", "valid", "test" or "all".
        target_type: what targets are, one or several: "attr" (40 bits), "identity", "bbox" (x, y,
            width, height) and "landmarks" (5 points).
    """

    base_folder = "celeba"
    # Numbers of Google Drive, sums and names.
    file_list = [
        (
            "0B7EVK8r0v71pZjFTYXZWM3FlRnM",
            "00d2c5bc6d35e252742224ab0c1e8fcb",
            "img_align_celeba.zip",
        ),
        (
            "0B7EVK8r0v71pblRyaVFSWGxPY0U",
            "75e246fa4810816ffd6ee81facbd244c",
            "list_attr_celeba.txt",
        ),
        (
            "1_ee_0u7vcNLOfNLegJRHmolfH5ICW-XS",
            "32bd1bd63d3c78cd57e08160ec5ed1e2",
            "identity_CelebA.txt",
        ),
        (
            "0B7EVK8r0v71pbThiMVRxWXZ4dU0",
            "00566efa6fedff7a56946cd1c10f1c16",
            "list_bbox_celeba.txt",
        ),
        (
            "0B7EVK8r0v71pd0FJY3Blby1HUTQ",
            "cc24ecafdb5b50baae59b03474781f8c",
            "list_landmarks_align_celeba.txt",
        ),
        (
            "0B7EVK8r0v71pY0NSMzRuSXJEVkk",
            "d32c9cbf5e040fd4025c592c306e6668",
            "list_eval_partition.txt",
        ),
    ]

    def __init__(
        self,
        root: str | Path,
        split: str = "train",
        target_type: Sequence[str] | str = "attr",
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.split = verify_str_arg(split.lower(), "split", ("train", "valid", "test", "all"))
        self.target_type = verify_kinds(
            target_type, "target_type", ("attr", "identity", "bbox", "landmarks")
        )
        if not self.target_type and target_transform is not None:
            raise RuntimeError("target_transform is specified but target_type is empty")
        if download:
            self.download()
        if not self._check_integrity():
            raise RuntimeError(MISSING_OR_DAMAGED)
        parts = self._table("list_eval_partition.txt", 0)
        wanted = {"train": 0, "valid": 1, "test": 2}.get(self.split)
        chosen = [i for i, (_, row) in enumerate(parts) if wanted is None or row == [wanted]]
        self.filename = [parts[i][0] for i in chosen]
        self.identity = self._rows("identity_CelebA.txt", 0, chosen)
        self.bbox = self._rows("list_bbox_celeba.txt", 2, chosen)
        self.landmarks_align = self._rows("list_landmarks_align_celeba.txt", 2, chosen)
        self.attr = (self._rows("list_attr_celeba.txt", 2, chosen) + 1) // 2  # -1 or 1 before
        self.attr_names = lines_of(self._path("list_attr_celeba.txt"))[1].split()

    def _path(self, name: str) -> Path:
        return Path(self.root or "") / self.base_folder / name

    def _table(self, name: str, heads: int) -> list[tuple[str, list[int]]]:
        """Names and numbers of the lines behind the heads."""
        path = self._path(name)
        with parsing(path):
            rows = [line.split() for line in lines_of(path)[heads:]]
            return [(row[0], [int(n) for n in row[1:]]) for row in rows]

    def _rows(self, name: str, heads: int, chosen: list[int]) -> Tensor:
        table = self._table(name, heads)
        with parsing(self._path(name)):
            return torch.tensor([table[i][1] for i in chosen])

    def _check_integrity(self) -> bool:
        lists = (f for f in self.file_list if not f[2].endswith(".zip"))
        listed = all(check_integrity(self._path(name), md5) for _, md5, name in lists)
        return listed and self._path("img_align_celeba").is_dir()

    def download(self) -> None:
        """Downloads the lists and the pictures, unless they are there."""
        if self._check_integrity():
            return
        folder = self._path("")
        for number, md5, name in self.file_list:
            download_file_from_google_drive(number, folder, name, md5)
        extract_archive(self._path("img_align_celeba.zip"))

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image = default_loader(self._path("img_align_celeba") / self.filename[index])
        targets = {
            "attr": self.attr[index],
            "identity": self.identity[index, 0],
            "bbox": self.bbox[index],
            "landmarks": self.landmarks_align[index],
        }
        return self._apply(image, one_or_tuple([targets[kind] for kind in self.target_type]))

    def __len__(self) -> int:
        return len(self.attr)

    def extra_repr(self) -> str:
        """What `repr` shows beside the folder and the length."""
        return f"Target type: {self.target_type}\nSplit: {self.split}"


class _LFW(SamplesDataset):
    """Known people: root/lfw-py, with lfw, lfw_funneled or lfw-deepfunneled, and lists.

    split: "10fold", "train" or "test". image_set: "original", "funneled" or "deepfunneled".
    """

    base_folder = "lfw-py"
    download_url_prefix = "http://vis-www.cs.umass.edu/lfw/"
    # Folders, archives and their sums.
    file_dict = {
        "original": ("lfw", "lfw.tgz", "a17d05bd522c52d84eca14327a23d494"),
        "funneled": ("lfw_funneled", "lfw-funneled.tgz", "1b42dfed7d15c9b2dd63d5e5840c86ad"),
        "deepfunneled": (
            "lfw-deepfunneled",
            "lfw-deepfunneled.tgz",
            "68331da3eb755a505a502b5aacb3c201",
        ),
    }
    annot_file = {"10fold": "", "train": "DevTrain", "test": "DevTest"}
    names = "lfw-names.txt"
    checksums = {
        "pairs.txt": "9f1ba174e4e1c508ff7cdf10ac338a7d",
        "pairsDevTest.txt": "5132f7440eb68cf58910c8a45a2ac10b",
        "pairsDevTrain.txt": "4f27cbf15b2da4a85c1907eb4181ad21",
        "people.txt": "450f0863dd89e85e73936a6d71a3474b",
        "peopleDevTest.txt": "e4bf5be0a43b5dcd9dc5ccfcb8fb19c5",
        "peopleDevTrain.txt": "54eaac34beb6d042ed3a7d883e247a21",
        "lfw-names.txt": "a6d0a479bd074669f656265a6e693f6d",
    }
    _view: str

    def __init__(
        self,
        root: str | Path,
        split: str = "10fold",
        image_set: str = "funneled",
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
        loader: Callable[[Any], Any] = default_loader,
    ) -> None:
        super().__init__(
            Path(root).expanduser() / self.base_folder,
            transform=transform,
            target_transform=target_transform,
        )
        self.image_set = verify_str_arg(image_set.lower(), "image_set", self.file_dict)
        self.split = verify_str_arg(split.lower(), "split", ("10fold", "train", "test"))
        self.labels_file = f"{self._view}{self.annot_file[self.split]}.txt"
        self.loader = loader
        if download:
            self.download()
        if not self._check_integrity():
            raise RuntimeError(MISSING_OR_DAMAGED)
        self._samples: list[tuple[Any, ...]] = []
        with parsing(self._list):
            lines = [line.split("\t") for line in lines_of(self._list)]
            self._find(lines)

    @property
    def images_dir(self) -> Path:
        """The folder of the pictures."""
        return Path(self.root or "") / self.file_dict[self.image_set][0]

    def download(self) -> None:
        """ValueError: the set is no longer offered."""
        raise ValueError(
            "LFW dataset is no longer available for download: put the pictures at "
            f"{self.images_dir} and the lists beside them"
        )

    @property
    def _list(self) -> Path:
        return Path(self.root or "") / self.labels_file

    def _check_integrity(self) -> bool:
        listed = check_integrity(self._list, self.checksums[self.labels_file])
        return listed and self.images_dir.is_dir()

    def _find(self, lines: list[list[str]]) -> None:
        raise NotImplementedError

    def _get_path(self, identity: str, number: str | int) -> Path:
        return self.images_dir / identity / f"{identity}_{int(number):04d}.jpg"

    def extra_repr(self) -> str:
        return f"Alignment: {self.image_set}\nSplit: {self.split}"


class LFWPeople(_LFW):
    """Known people: root/lfw-py, with lfw, lfw_funneled or lfw-deepfunneled, and lists. Items are
    (picture, number of the person).

    Args:
        split: "10fold", "train" or "test".
        image_set: how faces were moved into place: "original", "funneled" or "deepfunneled".
    """

    _view = "people"

    def _check_integrity(self) -> bool:
        names = Path(self.root or "") / self.names
        return super()._check_integrity() and check_integrity(names, self.checksums[names.name])

    def _find(self, lines: list[list[str]]) -> None:
        names = lines_of(Path(self.root or "") / self.names)
        self.class_to_idx = {line.split()[0]: i for i, line in enumerate(names)}
        folds, at = (int(lines[0][0]), 1) if self.split == "10fold" else (1, 0)
        for _ in range(folds):
            count = int(lines[at][0])
            for name, pictures in lines[at + 1 : at + 1 + count]:
                for i in range(1, int(pictures) + 1):
                    self._samples.append((self._get_path(name, i), self.class_to_idx[name]))
            at += count + 1
        self.data = [str(path) for path, _ in self._samples]
        self.targets = [target for _, target in self._samples]

    def extra_repr(self) -> str:
        """What `repr` shows beside the folder and the length."""
        return f"{super().extra_repr()}\nClasses (identities): {len(self.class_to_idx)}"


class LFWPairs(_LFW):
    """Pairs of faces: root/lfw-py. Items are (picture, picture, 1 where both are of one person).

    Args:
        split: "10fold", "train" or "test".
        image_set: how faces were moved into place: "original", "funneled" or "deepfunneled".
    """

    _view = "pairs"

    def _find(self, lines: list[list[str]]) -> None:
        folds, count = 1, int(lines[0][-1])
        if self.split == "10fold":
            folds = int(lines[0][0])
        for fold in range(folds):
            start = 1 + 2 * count * fold
            for name, one, other in lines[start : start + count]:
                self._samples.append((self._get_path(name, one), self._get_path(name, other), 1))
            for first, one, second, other in lines[start + count : start + 2 * count]:
                pair = self._get_path(first, one), self._get_path(second, other)
                self._samples.append((*pair, 0))
        self.pair_names = [(a.parent.name, b.parent.name) for a, b, _ in self._samples]
        self.data = [(str(a), str(b)) for a, b, _ in self._samples]
        self.targets = [target for *_, target in self._samples]

    def __getitem__(self, index: int) -> tuple[Any, Any, Any]:
        first, second, target = self._samples[index]
        images = [self.loader(path) for path in (first, second)]
        if self.transform is not None:
            images = [self.transform(image) for image in images]
        if self.target_transform is not None:
            target = self.target_transform(target)
        return images[0], images[1], target


class WIDERFace(VisionDataset):
    """Crowds: root/widerface, with WIDER_{train,val,test} and wider_face_split.

    Targets are dicts of "bbox" (N, 4) as x, y, width and height, "blur", "expression",
    "illumination", "occlusion", "pose" and "invalid" (N); None to test on.

    Args:
        split: "train", "val" or "test".
    """

    BASE_FOLDER = "widerface"
    FILE_LIST = [
        (
            "15hGDLhsx8bLgLcIRD5DhYt5iBxnjNF1M",
            "3fedf70df600953d25982bcd13d91ba2",
            "WIDER_train.zip",
        ),
        ("1GUCogbp16PMGa39thoMMeWxp7Rp5oM8Q", "dfa7d7e790efa35df3788964cf0bbaea", "WIDER_val.zip"),
        ("1HIfDbVEWKmsYKJZm4lchTBDLW5N7dY5T", "e5d8f4248ed24c334bbd12f49c29dd40", "WIDER_test.zip"),
    ]
    ANNOTATIONS_FILE = (
        "http://shuoyang1213.me/WIDERFACE/support/bbx_annotation/wider_face_split.zip",
        "0e3767bcf0e326556d407bf5bff5d27c",
        "wider_face_split.zip",
    )

    def __init__(
        self,
        root: str | Path,
        split: str = "train",
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
    ) -> None:
        folder = Path(root).expanduser() / self.BASE_FOLDER
        super().__init__(folder, transform=transform, target_transform=target_transform)
        self.img_info: list[dict[str, Any]] = []
        self.split = verify_str_arg(split, "split", ("train", "val", "test"))
        if download:
            self.download()
        if not self._check_integrity():
            raise RuntimeError(MISSING_OR_DAMAGED)
        if self.split == "test":
            self.parse_test_annotations_file()
        else:
            self.parse_train_val_annotations_file()

    def _path(self, *names: str) -> Path:
        return Path(self.root or "").joinpath(*names)

    def parse_test_annotations_file(self) -> None:
        """Reads which pictures there are to test on."""
        pictures = self._path("WIDER_test", "images")
        listed = lines_of(self._path("wider_face_split", "wider_face_test_filelist.txt"))
        self.img_info = [{"img_path": str(pictures / line.strip())} for line in listed]

    def parse_train_val_annotations_file(self) -> None:
        """Reads which pictures there are to train or validate on, and the faces on them."""
        pictures = self._path(f"WIDER_{self.split}", "images")
        path = self._path("wider_face_split", f"wider_face_{self.split}_bbx_gt.txt")
        names = "blur", "expression", "illumination", "occlusion", "pose", "invalid"
        found, lines, at = [], lines_of(path), 0
        with parsing(path):
            while at < len(lines):
                count = int(lines[at + 1])
                rows = lines[at + 2 : at + 2 + max(count, 1)]  # no faces have a line of zeros
                values = torch.tensor([[int(n) for n in row.split()[:10]] for row in rows])
                target = {"bbox": values[:, :4].clone()}
                target |= {name: values[:, 4 + i].clone() for i, name in enumerate(names)}
                image = str(pictures / lines[at].strip())
                found.append({"img_path": image, "annotations": target})
                at += 2 + len(rows)
        self.img_info = found

    def _check_integrity(self) -> bool:
        return all(self._path(name[:-4]).is_dir() for *_, name in self._required_files())

    def _required_files(self) -> list[tuple[str, str, str]]:
        own = [f for f in self.FILE_LIST if f[2] == f"WIDER_{self.split}.zip"]
        return [*own, self.ANNOTATIONS_FILE]

    def download(self) -> None:
        """Downloads and unpacks pictures and lists of the split, unless they are there."""
        if self._check_integrity():
            return
        for number, md5, name in self.FILE_LIST:
            if name == f"WIDER_{self.split}.zip":
                download_file_from_google_drive(number, self._path(), name, md5)
                extract_archive(self._path(name))
        url, md5, _ = self.ANNOTATIONS_FILE
        download_and_extract_archive(url, self._path(), md5=md5)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        found = self.img_info[index]
        return self._apply(default_loader(found["img_path"]), found.get("annotations"))

    def __len__(self) -> int:
        return len(self.img_info)

    def extra_repr(self) -> str:
        """What `repr` shows beside the folder and the length."""
        return f"Split: {self.split}"
