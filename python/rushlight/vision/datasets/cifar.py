"""CIFAR-10 and CIFAR-100: pickled rows of bytes."""

# ruff: noqa: RUF012  # people's subclasses replace these lists, which annotations would forbid

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from .utils import MISSING_OR_DAMAGED, check_integrity
from .vision import ArchivedDataset, Transform

__all__ = ["CIFAR10", "CIFAR100"]


class _Dtype:
    """A dtype that a pickle names: numbers alone."""

    _numbers = {"b1", *(kind + size for kind in "iuf" for size in "1248")} - {"f1"}

    def __init__(self, name: str) -> None:
        if str(name).lstrip("<>|=") not in self._numbers:
            raise pickle.UnpicklingError(f"such a file holds no elements of {name!r}")
        self.dtype = np.dtype(name)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if state[1] in ("<", ">"):
            self.dtype = self.dtype.newbyteorder(state[1])


class _Array:
    """An array that a pickle describes. numpy's own arrays and dtypes believe whatever a damaged
    file says of them, and write outside of their memory."""

    value: np.ndarray

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, fortran, data = state
        self.value = _numbers(data, dtype).reshape(shape, order="F" if fortran else "C")


def _numbers(data: str | bytes, dtype: _Dtype) -> np.ndarray:
    # Text is what Python 2 wrote bytes as.
    return np.frombuffer(_encode(data), dtype.dtype)


def _dtype(name: str, *_flags: Any) -> _Dtype:
    return _Dtype(name)


def _encode(text: str | bytes, _codec: str = "latin1") -> bytes:
    return text.encode("latin1") if isinstance(text, str) else bytes(text)


def _reconstruct(*_arguments: Any) -> _Array:
    return _Array()


def _from_buffer(data: bytes, dtype: _Dtype, shape: tuple[int, ...], order: str) -> _Array:
    array = _Array()
    array.value = _numbers(data, dtype).reshape(shape, order="F" if order == "F" else "C")
    return array


def _scalar(dtype: _Dtype, data: str | bytes) -> Any:
    return _numbers(data, dtype)[0]


class _PlainUnpickler(pickle.Unpickler):
    """Reads what the files hold, arrays and plain values, and nothing that could run."""

    _known = {
        ("numpy", "ndarray"): _Array,
        ("numpy", "dtype"): _dtype,
        ("_codecs", "encode"): _encode,
        **{
            (f"numpy.{core}.{module}", name): stand_in
            for core in ("core", "_core")
            for module, name, stand_in in (
                ("multiarray", "_reconstruct", _reconstruct),
                ("multiarray", "scalar", _scalar),
                ("numeric", "_frombuffer", _from_buffer),
            )
        },
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._known:
            raise pickle.UnpicklingError(f"{module}.{name} is nothing that such a file holds")
        return self._known[module, name]


def _unpickle(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    try:
        entries = _PlainUnpickler(io.BytesIO(content), encoding="latin1").load()
        return {
            name: entry.value if isinstance(entry, _Array) else entry
            for name, entry in entries.items()
        }
    except Exception as error:  # a damaged pickle may hold anything
        raise RuntimeError(f"{path} is damaged: {error}") from error


class CIFAR10(ArchivedDataset):
    """60,000 pictures of 32 x 32 in ten classes: root/cifar-10-batches-py. Items are (picture,
    class).

    RuntimeError if files are not there or have other sums, and download is False.
    """

    base_folder = "cifar-10-batches-py"
    url = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
    filename = "cifar-10-python.tar.gz"
    tgz_md5 = "c58f30108f718f92721af3b95e74349a"
    train_list = [
        ["data_batch_1", "c99cafc152244af753f735de768cd75f"],
        ["data_batch_2", "d4bba439e000b95fd0a9bffe97cbabec"],
        ["data_batch_3", "54ebc095f3ab1f0389bbae665268c751"],
        ["data_batch_4", "634d18415352ddfa80567beed471001a"],
        ["data_batch_5", "482c414d41f54cd18b22e5b47cb7c3cb"],
    ]
    test_list = [["test_batch", "40351d587109b95175f43aff81a1287e"]]
    meta = {
        "filename": "batches.meta",
        "key": "label_names",
        "md5": "5ff9c542aee3614f3951f8cda6e48888",
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
        self.train = train
        if download:
            self.download()
        if not self._check_integrity():
            raise RuntimeError(MISSING_OR_DAMAGED)
        rows, self.targets = [], []
        for name, _ in self.train_list if train else self.test_list:
            entry = _unpickle(self._path(name))
            rows.append(entry["data"])
            self.targets.extend(entry["labels"] if "labels" in entry else entry["fine_labels"])
        data = np.vstack(rows).reshape(-1, 3, 32, 32)
        self.data = np.ascontiguousarray(data.transpose(0, 2, 3, 1))
        path = self._path(self.meta["filename"])
        if not check_integrity(path, self.meta["md5"]):
            raise RuntimeError(
                f"metadata file not found or corrupted: {path}. download=True fetches it anew"
            )
        self.classes = _unpickle(path)[self.meta["key"]]
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._apply(Image.fromarray(self.data[index]), self.targets[index])

    def __len__(self) -> int:
        return len(self.data)

    def extra_repr(self) -> str:
        """What `repr` shows beside the folder and the length."""
        return f"Split: {'Train' if self.train is True else 'Test'}"


class CIFAR100(CIFAR10):
    """60,000 pictures of 32 x 32 in a hundred classes: root/cifar-100-python."""

    base_folder = "cifar-100-python"
    url = "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz"
    filename = "cifar-100-python.tar.gz"
    tgz_md5 = "eb9058c3a382ffc7106e4002c42a8d85"
    train_list = [["train", "16019d7e3df5f24257cddd939b257f8d"]]
    test_list = [["test", "f0ef6b0ae62326f3e7ffdfab6717acfc"]]
    meta = {
        "filename": "meta",
        "key": "fine_label_names",
        "md5": "7973b15100ade9c7d40fb424638fde48",
    }
