"""Small pictures in files of arrays: SVHN, STL-10, USPS."""

# ruff: noqa: RUF012  # people's subclasses replace these lists, which annotations would forbid

import bz2
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from .utils import MISSING_OR_DAMAGED, check_integrity, download_url, verify_str_arg
from .vision import ArchivedDataset, Transform, VisionDataset

__all__ = ["STL10", "SVHN", "USPS"]


class SVHN(VisionDataset):
    """House numbers, 32 x 32: root/train_32x32.mat.

    Args:
        split: "train", "test" or "extra".
    """

    _address = "http://ufldl.stanford.edu/housenumbers/"
    split_list = {
        split: [
            f"http://ufldl.stanford.edu/housenumbers/{split}_32x32.mat",
            f"{split}_32x32.mat",
            md5,
        ]
        for split, md5 in (
            ("train", "e26dedcc434d2e4c54c9b2d4a06d8373"),
            ("test", "eb5a983be6a315427106f1b164d9cef3"),
            ("extra", "a93ce644f1a588dc4d68dda5feec44a7"),
        )
    }

    def __init__(
        self,
        root: str | Path,
        split: str = "train",
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.split = verify_str_arg(split, "split", self.split_list)
        self.url, self.filename, self.file_md5 = self.split_list[self.split]
        if download:
            self.download()
        if not self._check_integrity():
            raise RuntimeError(MISSING_OR_DAMAGED)
        from scipy.io import loadmat

        try:
            content = loadmat(self._path)
            data, labels = content["X"], content["y"]
        except Exception as error:  # SciPy raises many kinds
            raise RuntimeError(f"{self._path} is damaged: {error}") from error
        self.labels = labels.astype(np.int64).squeeze(1)
        self.labels[self.labels == 10] = 0  # the file counts zeros as tens
        self.data = np.transpose(data, (3, 2, 0, 1))

    @property
    def _path(self) -> Path:
        return Path(self.root or "") / self.filename

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image = Image.fromarray(np.transpose(self.data[index], (1, 2, 0)))
        return self._apply(image, int(self.labels[index]))

    def __len__(self) -> int:
        return len(self.data)

    def _check_integrity(self) -> bool:
        return check_integrity(self._path, self.file_md5)

    def download(self) -> None:
        """Downloads the split's file, unless it is there."""
        download_url(self.url, self.root or "", self.filename, self.file_md5)

    def extra_repr(self) -> str:
        """What `repr` shows beside the folder and the length."""
        return f"Split: {self.split}"


class STL10(ArchivedDataset):
    """Pictures of 96 x 96: root/stl10_binary.

    The class of an unlabelled picture is -1.

    Args:
        split: "train", "test", "unlabeled" or "train+unlabeled".
        folds: one of the ten parts of the training pictures, from 0 to 9; None: all.
    """

    base_folder = "stl10_binary"
    url = "http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz"
    filename = "stl10_binary.tar.gz"
    tgz_md5 = "91f7769df0f17e558f3565bffb0c7dfb"
    class_names_file = "class_names.txt"
    folds_list_file = "fold_indices.txt"
    train_list = [
        ["train_X.bin", "918c2871b30a85fa023e0c44e0bee87f"],
        ["train_y.bin", "5a34089d4802c674881badbb80307741"],
        ["unlabeled_X.bin", "5242ba1fed5e4be9e1e742405eb56ca4"],
    ]
    test_list = [
        ["test_X.bin", "7f263ba9f9e0b06b93213547f721ac82"],
        ["test_y.bin", "36f9794fa4beb8a2c72628de14fa638e"],
    ]
    splits = ("train", "train+unlabeled", "unlabeled", "test")

    def __init__(
        self,
        root: str | Path,
        split: str = "train",
        folds: int | None = None,
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.split = verify_str_arg(split, "split", self.splits)
        if folds is not None and not (isinstance(folds, int) and 0 <= folds < 10):
            raise ValueError(f"the argument folds should be in the range [0, 10), but got {folds}")
        self.folds = folds
        if download:
            self.download()
        elif not self._check_integrity():
            raise RuntimeError(MISSING_OR_DAMAGED)
        parts = [self._load(part) for part in self.split.split("+")]
        self.data = np.concatenate([data for data, _ in parts])
        self.labels = np.concatenate([labels for _, labels in parts])
        if folds is not None and self.split.startswith("train"):
            lines = self._path(self.folds_list_file).read_text().splitlines()
            chosen = np.fromstring(lines[folds], dtype=np.int64, sep=" ")
            self.data, self.labels = self.data[chosen], self.labels[chosen]
        names = self._path(self.class_names_file)
        self.classes = names.read_text().splitlines() if names.is_file() else None

    def _load(self, part: str) -> tuple[np.ndarray, np.ndarray]:
        path = self._path(f"{part}_X.bin")
        values = np.fromfile(path, np.uint8)
        if values.size % (3 * 96 * 96) != 0:
            raise RuntimeError(
                f"{path} is damaged: {values.size} bytes are no pictures of 3 x 96 x 96"
            )
        data = np.transpose(values.reshape(-1, 3, 96, 96), (0, 1, 3, 2))
        if part == "unlabeled":
            return data, np.full(len(data), -1, np.int64)
        labels = np.fromfile(self._path(f"{part}_y.bin"), np.uint8).astype(np.int64) - 1
        if len(labels) != len(data):
            raise RuntimeError(
                f"{path} is damaged: {len(data)} pictures have {len(labels)} classes"
            )
        return data, labels

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        target = int(self.labels[index])
        return self._apply(Image.fromarray(np.transpose(self.data[index], (1, 2, 0))), target)

    def __len__(self) -> int:
        return len(self.data)

    def extra_repr(self) -> str:
        """What `repr` shows beside the folder and the length."""
        return f"Split: {self.split}"


class USPS(VisionDataset):
    """Digits of envelopes, 16 x 16: root/usps.bz2, lines of a class and of numbered values from
    -1 to 1.

    Args:
        root: the folder that has the set, or gets it.
    """

    split_list = {
        "train": [
            "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/usps.bz2",
            "usps.bz2",
            "ec16c51db3855ca6c91edd34d0e9b197",
        ],
        "test": [
            "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/usps.t.bz2",
            "usps.t.bz2",
            "8ea070ee2aca1ac39742fdd1ef5ed118",
        ],
    }

    def __init__(
        self,
        root: str | Path,
        train: bool = True,
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        url, filename, md5 = self.split_list["train" if train else "test"]
        path = Path(self.root or "") / filename
        if download and not check_integrity(path, md5):
            download_url(url, self.root or "", filename, md5)
        if not path.is_file():
            raise RuntimeError(MISSING_OR_DAMAGED)
        try:
            with bz2.open(path, "rt") as file:
                rows = [line.split() for line in file if line.strip()]
            values = np.array(
                [[item.partition(":")[2] for item in row[1:]] for row in rows], np.float32
            )
            self.targets = [int(float(row[0])) - 1 for row in rows]
            self.data = ((values.reshape(-1, 16, 16) + 1) / 2 * 255).astype(np.uint8)
        except (OSError, EOFError, ValueError) as error:
            raise RuntimeError(f"{path} is damaged: {error}") from error

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._apply(Image.fromarray(self.data[index], mode="L"), int(self.targets[index]))

    def __len__(self) -> int:
        return len(self.data)
