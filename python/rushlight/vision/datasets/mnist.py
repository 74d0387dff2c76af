"""MNIST and the sets in its format: idx files of bytes."""

# ruff: noqa: RUF012  # people's subclasses replace these lists, which annotations would forbid

import gzip
import math
import os
import shutil
import string
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import numpy as np
from PIL import Image

import rushlight as torch
from rushlight import Tensor

from .utils import (
    MISSING,
    check_integrity,
    download_and_extract_archive,
    download_url,
    extract_archive,
    verify_str_arg,
)
from .vision import Transform, VisionDataset

__all__ = [
    "EMNIST",
    "KMNIST",
    "MNIST",
    "QMNIST",
    "SN3_PASCALVINCENT_TYPEMAP",
    "FashionMNIST",
    "download_and_extract_archive_file",
    "get_int",
    "read_image_file",
    "read_label_file",
    "read_sn3_pascalvincent_tensor",
]

_DTYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
SN3_PASCALVINCENT_TYPEMAP = {
    8: torch.uint8,
    9: torch.int8,
    11: torch.int16,
    12: torch.int32,
    13: torch.float32,
    14: torch.float64,
}


def get_int(b: bytes) -> int:
    r"""The number of bytes, the largest first.

    Args:
        b: the bytes.

    Example:
        >>> from rushlight.vision.datasets.mnist import get_int
        >>> get_int(b"\x01\x00")
        256
    """
    return int.from_bytes(b, "big")


def read_sn3_pascalvincent_tensor(path: str | Path, strict: bool = True) -> Tensor:
    """The tensor of an idx file, also compressed; ValueError with its name where it is damaged.

    Args:
        path: the file, `.gz` if it is compressed.
        strict: refuse a file that is longer than its sizes say.

    Example:
        >>> import tempfile
        >>> from rushlight.vision.datasets.mnist import read_sn3_pascalvincent_tensor
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     _ = file.write(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]))  # 3 bytes: 7, 8, 9
        ...     file.flush()
        ...     read_sn3_pascalvincent_tensor(file.name)
        tensor([7, 8, 9], dtype=torch.uint8)
    """
    opened = gzip.open if str(path).endswith(".gz") else open
    try:
        with opened(path, "rb") as file:
            content = file.read()
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _DTYPES or content[3] == 0:
        raise ValueError(f"{path} is no idx file: it begins with {content[:4]!r}")
    dims = content[3]
    dtype = np.dtype(_DTYPES[content[2]])
    start = 4 + 4 * dims
    if len(content) < start:
        raise ValueError(f"{path} is damaged: its header ends after {len(content)} bytes")
    sizes = [int(n) for n in np.frombuffer(content, ">u4", dims, 4)]
    expected = math.prod(sizes) * dtype.itemsize
    found = len(content) - start
    if found < expected or (strict and found != expected):
        raise ValueError(
            f"{path} is damaged: {found} bytes of data where sizes {sizes} want {expected}"
        )
    values = np.frombuffer(content, dtype, math.prod(sizes), start).reshape(sizes)
    return torch.from_numpy(values.astype(dtype.newbyteorder("=")))


def read_label_file(path: str | Path) -> Tensor:
    """Classes (N), int64, of an idx file of bytes.

    Args:
        path: the file.

    For an example see `vision.datasets.mnist.read_sn3_pascalvincent_tensor`.
    """
    return _bytes_of(path, 1).long()


def read_image_file(path: str | Path) -> Tensor:
    """Pictures (N, H, W), uint8, of an idx file of bytes.

    Args:
        path: the file.

    For an example see `vision.datasets.mnist.read_sn3_pascalvincent_tensor`.
    """
    return _bytes_of(path, 3)


def _bytes_of(path: str | Path, dims: int) -> Tensor:
    x = read_sn3_pascalvincent_tensor(path, strict=False)
    if x.dtype != torch.uint8 or x.dim() != dims:
        raise ValueError(f"{path}: expected bytes of {dims} dimensions, got {x.dtype} of {x.dim()}")
    return x


class MNIST(VisionDataset):
    """Handwritten digits: root/MNIST/raw/train-images-idx3-ubyte and the like. Items are
    (picture, class).

    RuntimeError if the files are not there and download is False.
    """

    mirrors = [
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "http://yann.lecun.com/exdb/mnist/",
    ]
    resources = [
        ("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        ("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
        ("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
        ("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
    ]
    training_file, test_file = "training.pt", "test.pt"
    classes = [
        f"{i} - {name}"
        for i, name in enumerate(
            ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
        )
    ]

    def __init__(
        self,
        root: str | Path,
        train: bool = True,
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        if download:
            self.download()
        if not self._check_exists():
            raise RuntimeError(MISSING)
        self.data, self.targets = self._load_data()

    def _file(self, kind: str) -> Path:
        return Path(self.raw_folder) / f"{'train' if self.train else 't10k'}-{kind}"

    def _load_data(self) -> tuple[Tensor, Tensor]:
        return read_image_file(self._file("images-idx3-ubyte")), read_label_file(
            self._file("labels-idx1-ubyte")
        )

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._apply(
            Image.fromarray(self.data[index].numpy(), mode="L"), int(self.targets[index])
        )

    def __len__(self) -> int:
        return len(self.data)

    @property
    def train_labels(self) -> Tensor:
        """Deprecated name of `targets`; warns."""
        return self.targets

    test_labels = train_labels

    @property
    def train_data(self) -> Tensor:
        """Deprecated name of `data`; warns."""
        return self.data

    test_data = train_data

    @property
    def raw_folder(self) -> str:
        """The folder of the files as they are downloaded."""
        return os.path.join(self.root or "", type(self).__name__, "raw")

    @property
    def processed_folder(self) -> str:
        """The folder of files of older versions."""
        return os.path.join(self.root or "", type(self).__name__, "processed")

    @property
    def class_to_idx(self) -> dict[str, int]:
        """Numbers of classes by name."""
        return {name: i for i, name in enumerate(self.classes)}

    def _check_exists(self) -> bool:
        names = (name.removesuffix(".gz") for name, _ in self.resources)
        return all(
            check_integrity(os.path.join(self.raw_folder, os.path.basename(name))) for name in names
        )

    def download(self) -> None:
        """Downloads and unpacks the files that are not there, from the first mirror that
        answers.
        """
        if self._check_exists():
            return
        for filename, md5 in self.resources:
            errors = []
            for mirror in self.mirrors:
                try:
                    download_and_extract_archive_file(
                        urljoin(mirror, filename), self.raw_folder, filename, md5
                    )
                    break
                except RuntimeError as error:
                    errors.append(error)
            else:
                raise RuntimeError("\n".join(str(e) for e in errors)) from errors[-1]

    def extra_repr(self) -> str:
        """What `repr` shows beside the folder and the length."""
        return f"Split: {'Train' if self.train is True else 'Test'}"


def download_and_extract_archive_file(
    url: str, folder: str, filename: str, md5: str | None
) -> None:
    """Downloads a compressed file and unpacks it beside itself.

    Args:
        url: where the file is.
        folder: where it goes.
        filename: its name there.
        md5: its sum, or None.

    For an example see `vision.datasets.MNIST`.
    """
    download_url(url, folder, filename, md5)
    extract_archive(
        os.path.join(folder, filename), os.path.join(folder, filename.removesuffix(".gz"))
    )


class FashionMNIST(MNIST):
    """Clothes in MNIST's format: root/FashionMNIST/raw."""

    mirrors = ["http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"]
    resources = [
        ("train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
        ("train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"),
        ("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
        ("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"),
    ]
    classes = [
        *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
        *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
    ]


class KMNIST(MNIST):
    """Hiragana in MNIST's format: root/KMNIST/raw."""

    mirrors = ["http://codh.rois.ac.jp/kmnist/dataset/kmnist/"]
    resources = [
        ("train-images-idx3-ubyte.gz", "bdb82020997e1d708af4cf47b453dcf7"),
        ("train-labels-idx1-ubyte.gz", "e144d726b3acfaa3e44228e80efcd344"),
        ("t10k-images-idx3-ubyte.gz", "5c965bf0a639b31b8f53240b1b52f4d7"),
        ("t10k-labels-idx1-ubyte.gz", "7320c461ea6c1c855c0b718fb2a4b134"),
    ]
    classes = ["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"]


class EMNIST(MNIST):
    """Letters and digits in MNIST's format, in six splits: root/EMNIST/raw.

    Args:
        split: "byclass", "bymerge", "balanced", "letters", "digits" or "mnist".
    """

    url = "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip"
    md5 = "58c8d27c78d21e728a6bc7b3cc06412e"
    splits = ("byclass", "bymerge", "balanced", "letters", "digits", "mnist")
    _all_classes = set(string.digits + string.ascii_letters)
    _merged_classes = set("cijklmopsuvwxyz")
    classes_split_dict = {
        "byclass": sorted(_all_classes),
        "bymerge": sorted(_all_classes - _merged_classes),
        "balanced": sorted(_all_classes - _merged_classes),
        "letters": ["N/A", *string.ascii_lowercase],
        "digits": list(string.digits),
        "mnist": list(string.digits),
    }

    def __init__(self, root: str | Path, split: str, **kwargs: Any) -> None:
        self.split = verify_str_arg(split, "split", self.splits)
        super().__init__(root, **kwargs)
        self.classes = self.classes_split_dict[self.split]

    def _file(self, kind: str) -> Path:
        return (
            Path(self.raw_folder)
            / f"emnist-{self.split}-{'train' if self.train else 'test'}-{kind}"
        )

    @property
    def images_file(self) -> str:
        """The name of the file of pictures."""
        return str(self._file("images-idx3-ubyte"))

    @property
    def labels_file(self) -> str:
        """The name of the file of classes."""
        return str(self._file("labels-idx1-ubyte"))

    def _check_exists(self) -> bool:
        return os.path.isfile(self.images_file) and os.path.isfile(self.labels_file)

    def download(self) -> None:
        """Downloads and unpacks the files, unless they are there."""
        if self._check_exists():
            return
        download_and_extract_archive(self.url, self.raw_folder, md5=self.md5)
        for packed in sorted((Path(self.raw_folder) / "gzip").glob("*.gz")):
            extract_archive(packed, Path(self.raw_folder) / packed.stem)
        shutil.rmtree(Path(self.raw_folder) / "gzip")


class QMNIST(MNIST):
    """All of MNIST's test digits and what is known of who wrote each: root/QMNIST/raw.

    Args:
        what: "train", "test", "test10k", "test50k" or "nist"; None: as `train` says.
        compat: whether targets are classes alone, or the eight numbers of the files.
    """

    subsets = {
        "train": "train",
        "test": "test",
        "test10k": "test",
        "test50k": "test",
        "nist": "nist",
    }
    _address = "https://raw.githubusercontent.com/facebookresearch/qmnist/master/"
    _files = {
        "train": [
            ("qmnist-train-images-idx3-ubyte.gz", "ed72d4157d28c017586c42bc6afe6370"),
            ("qmnist-train-labels-idx2-int.gz", "0058f8dd561b90ffdd0f734c6a30e5e4"),
        ],
        "test": [
            ("qmnist-test-images-idx3-ubyte.gz", "1394631089c404de565df7b7aeaf9412"),
            ("qmnist-test-labels-idx2-int.gz", "5b5b05890a5e13444e108efe57b788aa"),
        ],
        "nist": [
            ("xnist-images-idx3-ubyte.xz", "7f124b3b8ab81486c9d8c2749c17f834"),
            ("xnist-labels-idx2-int.xz", "5ed0e788978e45d4a8bd4b7caec3d79d"),
        ],
    }
    resources = {
        name: [
            (f"https://raw.githubusercontent.com/facebookresearch/qmnist/master/{f}", md5)
            for f, md5 in files
        ]
        for name, files in _files.items()
    }

    def __init__(
        self,
        root: str | Path,
        what: str | None = None,
        compat: bool = True,
        train: bool = True,
        **kwargs: Any,
    ) -> None:
        self.what = (
            ("train" if train else "test")
            if what is None
            else verify_str_arg(what, "what", self.subsets)
        )
        self.compat = compat
        super().__init__(root, train, **kwargs)

    def _paths(self) -> list[Path]:
        files = self._files[self.subsets[self.what]]
        return [Path(self.raw_folder) / os.path.splitext(name)[0] for name, _ in files]

    @property
    def images_file(self) -> str:
        """The name of the file of pictures."""
        return str(self._paths()[0])

    @property
    def labels_file(self) -> str:
        """The name of the file of classes."""
        return str(self._paths()[1])

    def _check_exists(self) -> bool:
        return all(path.is_file() for path in self._paths())

    def download(self) -> None:
        """Downloads and unpacks the two files of the subset, unless they are there."""
        if self._check_exists():
            return
        for (name, md5), path in zip(
            self._files[self.subsets[self.what]], self._paths(), strict=True
        ):
            download_url(self._address + name, self.raw_folder, name, md5)
            extract_archive(Path(self.raw_folder) / name, path)

    def _load_data(self) -> tuple[Tensor, Tensor]:
        images, labels = self._paths()
        data, targets = _bytes_of(images, 3), read_sn3_pascalvincent_tensor(labels)
        if targets.dim() != 2:
            raise ValueError(f"{labels}: expected two dimensions, got {targets.dim()}")
        part = {"test10k": slice(0, 10000), "test50k": slice(10000, None)}.get(
            self.what, slice(None)
        )
        return data[part].clone(), targets[part].long().clone()

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        target = self.targets[index]
        return self._apply(
            Image.fromarray(self.data[index].numpy(), mode="L"),
            int(target[0]) if self.compat else target,
        )

    def extra_repr(self) -> str:
        """What `repr` shows beside the folder and the length."""
        return f"Split: {self.what}"
