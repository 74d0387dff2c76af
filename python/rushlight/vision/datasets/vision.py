"""Base classes of image data sets: a folder and transforms."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from PIL.Image import Image as Picture

import rushlight
from rushlight._texts.docstrings import arguments, with_arguments
from rushlight.utils.data import Dataset
from rushlight.utils.data.dataset import one_by_one

from .. import _files
from ..transforms import Compose
from ..transforms._parts import takes
from .utils import check_integrity, download_and_extract_archive

__all__ = ["StandardTransform", "VisionDataset"]

Transform = Callable[..., Any] | None


# What arguments mean that many sets have: docstrings of sets say what is their own.
_ARGUMENTS = {
    "root": "the folder that has the set, or gets it.",
    "split": 'the part of the set: "train" or "test".',
    "train": "whether items are those to train on, or those to test on.",
    "transform": "a function of the picture, whose result is the item's; None: the picture itself.",
    "target_transform": "a function of the target.",
    "transforms": "a function of picture and target, which returns both; instead of the other two.",
    "download": "whether the set is fetched from where it is published, unless it is there.",
    "loader": "makes the picture of a path; by default Pillow's, in RGB.",
    "frames_per_clip": "how many frames a clip has.",
    "step_between_clips": "how many frames lie between the beginnings of two clips.",
    "frame_rate": "frames in a second, left out or repeated to have so many; None: the video's.",
    "num_workers": "how many processes read the videos' times.",
    "output_format": 'the order of a clip\'s dimensions: "THWC" or "TCHW".',
    "kwargs": "other arguments, of the class that this one is made from.",
}


def _describe(cls: type) -> None:
    """Complete a docstring: what it does not say of arguments the classes say that it is made from,
    or all sets; and where an example stands.
    """
    known = dict(_ARGUMENTS)
    for base in reversed(cls.__mro__[1:]):
        if issubclass(base, VisionDataset) and base is not VisionDataset:
            said = arguments(inspect.cleandoc(base.__doc__ or ""))
            known |= {name: line.partition(": ")[2] for name, line in said.items()}
    doc = inspect.cleandoc(cls.__doc__ or "")
    if "\nExample:" not in doc:
        cls.__doc__ = f"{doc}\n\nFor an example see `vision.datasets.ImageFolder`.\n"
    with_arguments(cls, known)


def pil_loader(path: str | Path) -> Picture:
    """Load an image in RGB with Pillow; OSError with the file's name if it is none.

    Args:
        path: the file.

    Example:
        >>> import tempfile
        >>> from PIL import Image
        >>> from rushlight.vision.datasets.folder import pil_loader
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Image.new("L", (4, 2)).save(f"{folder}/grey.png")
        ...     image = pil_loader(f"{folder}/grey.png")
        >>> image.mode, image.size
        ('RGB', (4, 2))
    """
    return next(_files.pictures([path]))


def default_loader(path: str | Path) -> Any:
    """`pil_loader`.

    Args:
        path: the picture's file.
    """
    return pil_loader(path)


class StandardTransform:
    """Combines a transform of the image and one of the target.

    Args:
        transform: a function of the picture, or None.
        target_transform: a function of the target, or None.

    Example:
        >>> both = torch.vision.datasets.StandardTransform(target_transform=lambda digit: digit % 2)
        >>> both("picture", 7)
        ('picture', 1)
    """

    def __init__(self, transform: Transform = None, target_transform: Transform = None) -> None:
        self.transform, self.target_transform = transform, target_transform

    def __call__(self, input: Any, target: Any) -> tuple[Any, Any]:
        if self.transform is not None:
            input = self.transform(input)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return input, target

    def __repr__(self) -> str:
        body = [type(self).__name__]
        for head, one in (
            ("Transform: ", self.transform),
            ("Target transform: ", self.target_transform),
        ):
            if one is not None:
                body += _indent(head, one)
        return "\n".join(body)


def _indent(head: str, thing: Any) -> list[str]:
    first, *rest = repr(thing).splitlines()
    return [head + first, *(" " * len(head) + line for line in rest)]


class VisionDataset(Dataset):
    """A data set in a folder. `transforms` gets image and target; or there is one transform for
    each.

    A set of one's own overrides `__getitem__` and `__len__`.

    Args:
        root: the folder of the set; ~ is the home folder.
        transforms: a function of picture and target, which returns both.
        transform: a function of the picture, instead of `transforms`.
        target_transform: a function of the target, instead of `transforms`.

    Raises:
        ValueError: there are both kinds of functions.

    Example:
        >>> class Squares(torch.vision.datasets.VisionDataset):
        ...     def __getitem__(self, index):
        ...         return self._apply(torch.full((1, 2, 2), index), index**2)
        ...
        ...     def __len__(self):
        ...         return 4
        >>> Squares(target_transform=lambda n: -n)[3][1]
        -9
    """

    _repr_indent = 4

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__.startswith(f"{__package__}.") and "__doc__" in vars(cls):
            _describe(cls)

    def __init__(
        self,
        root: str | Path | None = None,
        transforms: Transform = None,
        transform: Transform = None,
        target_transform: Transform = None,
    ) -> None:
        self.root = os.path.expanduser(root) if isinstance(root, str) else root
        separate = transform is not None or target_transform is not None
        if transforms is not None and separate:
            raise ValueError(
                "Only transforms or transform/target_transform can be passed as argument"
            )
        self.transform, self.target_transform = transform, target_transform
        self.transforms = StandardTransform(transform, target_transform) if separate else transforms

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def __repr__(self) -> str:
        root = [] if self.root is None else [f"Root location: {self.root}"]
        transforms = [] if self.transforms is None else [repr(self.transforms)]
        head = [f"Dataset {type(self).__name__}", f"Number of datapoints: {len(self)}"]
        indent = "\n" + " " * self._repr_indent
        return indent.join([*head, *root, *self.extra_repr().splitlines(), *transforms])

    def extra_repr(self) -> str:
        """What `repr` shows beside the folder and the length."""
        return ""

    def _apply(self, image: Any, target: Any) -> tuple[Any, Any]:
        """Picture and target after the transforms."""
        return (image, target) if self.transforms is None else self.transforms(image, target)


class SamplesDataset(VisionDataset):
    """Pictures and targets of one list."""

    _samples: Sequence[tuple[Any, Any]]  # where the picture is, and the target
    loader: Any

    def _open(self, where: Any) -> Any:
        if self.loader is default_loader and _begins_with_a_part(self.transforms):
            return _files.part(where)
        return self.loader(where)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        where, target = self._samples[index]
        return self._apply(self._open(where), target)

    def _getitems(self, indices: Sequence[int]) -> list[tuple[Any, Any]]:
        """The items at several indices: `self[i]`, the files decoded on all threads."""
        cls = type(self)
        plain = cls.__getitem__ is SamplesDataset.__getitem__ and cls._open is SamplesDataset._open
        if not plain or self.loader is not default_loader or rushlight.get_num_threads() == 1:
            return one_by_one(self, indices)
        samples = [self._samples[i] for i in indices]
        as_parts = _begins_with_a_part(self.transforms)
        pictures = _files.pictures((where for where, _ in samples), as_parts)
        targets = (target for _, target in samples)
        return [self._apply(*item) for item in zip(pictures, targets, strict=True)]

    def __len__(self) -> int:
        return len(self._samples)


def _begins_with_a_part(transforms: Any) -> bool:
    """Whether these ask first for a part of a picture, so that the rest need not be decoded."""
    if type(transforms) is not StandardTransform or type(transforms.transform) is not Compose:
        return False
    return takes(next(iter(transforms.transform.transforms), None))


class ArchivedDataset(VisionDataset):
    """A set in the files of one archive, all of whose sums are known: root/base_folder."""

    base_folder: str
    url: str
    filename: str
    tgz_md5: str
    train_list: list[list[str]]  # names and sums
    test_list: list[list[str]]

    def _path(self, name: str) -> Path:
        return Path(self.root or "") / self.base_folder / name

    def _check_integrity(self) -> bool:
        files = [*self.train_list, *self.test_list]
        return all(check_integrity(self._path(name), md5) for name, md5 in files)

    def download(self) -> None:
        """Downloads and unpacks the archive, unless the files are there."""
        if not self._check_integrity():
            download_and_extract_archive(
                self.url, self.root or "", filename=self.filename, md5=self.tgz_md5
            )
