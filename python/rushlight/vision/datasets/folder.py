"""Pictures in folders named by their classes."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .vision import SamplesDataset, Transform, default_loader
from .vision import pil_loader as pil_loader

__all__ = [
    "IMG_EXTENSIONS",
    "DatasetFolder",
    "ImageFolder",
    "find_classes",
    "has_file_allowed_extension",
    "is_image_file",
    "make_dataset",
    "pil_loader",
]

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def has_file_allowed_extension(filename: str, extensions: str | tuple[str, ...]) -> bool:
    """Whether a file name has one of these extensions, in upper or lower case.

    Args:
        filename: the file's name.
        extensions: one ending, as ".png", or several.

    Example:
        >>> from rushlight.vision.datasets.folder import has_file_allowed_extension
        >>> has_file_allowed_extension("cat.JPG", (".jpg", ".png"))
        True
    """
    return filename.lower().endswith(
        extensions if isinstance(extensions, str) else tuple(extensions)
    )


def is_image_file(filename: str) -> bool:
    """Whether a file name has an extension of images.

    Args:
        filename: the file's name.

    Example:
        >>> from rushlight.vision.datasets.folder import is_image_file
        >>> is_image_file("cat.png"), is_image_file("cat.txt")
        (True, False)
    """
    return has_file_allowed_extension(filename, IMG_EXTENSIONS)


def find_classes(directory: str | Path) -> tuple[list[str], dict[str, int]]:
    """Sorted names of the folders in a folder, and their numbers; FileNotFoundError without any.

    Args:
        directory: the folder.

    Example:
        >>> import os, tempfile
        >>> from rushlight.vision.datasets.folder import find_classes
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     os.mkdir(f"{folder}/dog")
        ...     os.mkdir(f"{folder}/cat")
        ...     find_classes(folder)
        (['cat', 'dog'], {'cat': 0, 'dog': 1})
    """
    classes = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())
    if not classes:
        raise FileNotFoundError(f"Couldn't find any class folder in {directory}.")
    return classes, {name: i for i, name in enumerate(classes)}


def make_dataset(
    directory: str | Path,
    class_to_idx: dict[str, int] | None = None,
    extensions: str | tuple[str, ...] | None = None,
    is_valid_file: Callable[[str], bool] | None = None,
    allow_empty: bool = False,
) -> list[tuple[str, int]]:
    """Paths of the files below the classes' folders with their classes' numbers, sorted.

    Either extensions or is_valid_file says which (ValueError). FileNotFoundError names the classes
    that have none, unless allow_empty.

    Args:
        directory: the folder that has the classes' folders.
        class_to_idx: numbers of the classes; None: their places in the sorted names.
        extensions: endings of the files that count.
        is_valid_file: says of a path whether it counts, instead of `extensions`.
        allow_empty: whether a class may have no file.

    Example:
        >>> import os, tempfile
        >>> from rushlight.vision.datasets.folder import make_dataset
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     os.mkdir(f"{folder}/cat")
        ...     open(f"{folder}/cat/1.png", "w").close()
        ...     found = make_dataset(folder, extensions=".png")
        >>> [(os.path.basename(path), number) for path, number in found]
        [('1.png', 0)]
    """
    directory = os.path.expanduser(directory)
    if class_to_idx is None:
        _, class_to_idx = find_classes(directory)
    elif not class_to_idx:
        raise ValueError("'class_to_index' must have at least one entry to collect any samples.")
    if (extensions is None) == (is_valid_file is None):
        raise ValueError(
            "extensions, is_valid_file: they cannot be None or not None at the same time; one of "
            "them says which files count"
        )
    valid = is_valid_file
    if valid is None:
        assert extensions is not None
        allowed = extensions
        valid = lambda path: has_file_allowed_extension(path, allowed)  # noqa: E731
    samples: list[tuple[str, int]] = []
    empty = []
    for name in sorted(class_to_idx):
        before = len(samples)
        for folder, _, files in sorted(os.walk(os.path.join(directory, name), followlinks=True)):
            paths = (os.path.join(folder, file) for file in sorted(files))
            samples += [(path, class_to_idx[name]) for path in paths if valid(path)]
        if len(samples) == before:
            empty.append(name)
    if empty and not allow_empty:
        message = f"Found no valid file for the classes {', '.join(empty)}. "
        if extensions is not None:
            listed = extensions if isinstance(extensions, str) else ", ".join(extensions)
            message += f"Supported extensions are: {listed}"
        raise FileNotFoundError(message)
    return samples


class DatasetFolder(SamplesDataset):
    """Files in folders named by their classes: root/class/…/file. Items are (loader(path),
    class).

    `classes` are the names of the folders in order, `class_to_idx` their numbers, `samples` the
    paths and numbers, `targets` the numbers.

    Args:
        loader: makes the item of a path.
        extensions: endings of the files that count, in lower case.
        is_valid_file: says of a path whether it counts, instead of `extensions`.
        allow_empty: whether a class may have no file.

    Raises:
        FileNotFoundError: there is no folder, or one without a file that counts.

    Example:
        >>> import pathlib, tempfile
        >>> root = pathlib.Path(tempfile.mkdtemp())
        >>> for kind in ("cold", "warm"):
        ...     (root / kind).mkdir()
        ...     _ = (root / kind / "day.txt").write_text(f"a {kind} day")
        >>> days = torch.vision.datasets.DatasetFolder(
        ...     root, loader=lambda path: open(path).read(), extensions=(".txt",)
        ... )
        >>> days[1]
        ('a warm day', 1)
    """

    def __init__(
        self,
        root: str | Path,
        loader: Callable[[str], Any],
        extensions: tuple[str, ...] | None = None,
        transform: Transform = None,
        target_transform: Transform = None,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.classes, self.class_to_idx = self.find_classes(self.root)
        self.loader, self.extensions = loader, extensions
        self.samples = self.make_dataset(
            self.root or "", self.class_to_idx, extensions, is_valid_file, allow_empty
        )
        self.targets = [target for _, target in self.samples]

    @staticmethod
    def make_dataset(
        directory: str | Path,
        class_to_idx: dict[str, int],
        extensions: tuple[str, ...] | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> list[tuple[str, int]]:
        """`make_dataset` of this module, for classes to override."""
        if class_to_idx is None:
            raise ValueError("The class_to_idx parameter cannot be None.")
        return make_dataset(directory, class_to_idx, extensions, is_valid_file, allow_empty)

    def find_classes(self, directory: str | Path | None) -> tuple[list[str], dict[str, int]]:
        """`find_classes` of this module, for classes to override."""
        return find_classes(directory or "")

    @property
    def _samples(self) -> list[tuple[str, int]]:
        return self.samples


class ImageFolder(DatasetFolder):
    """Pictures in folders named by their classes: root/class/…/picture.png. Items are (picture,
    class).

    `classes` are the names of the folders in order, `class_to_idx` their numbers, `imgs` the paths
    and numbers, `targets` the numbers.

    Args:
        is_valid_file: says of a path whether it counts; None: those with an ending of pictures.
        allow_empty: whether a class may have no picture.

    Raises:
        FileNotFoundError: there is no folder, or one without a picture.

    Example:
        >>> import pathlib, tempfile
        >>> root = pathlib.Path(tempfile.mkdtemp())
        >>> for kind in ("cat", "dog"):
        ...     (root / kind).mkdir()
        ...     image = torch.zeros(3, 8, 8, dtype=torch.uint8)
        ...     torch.vision.io.write_png(image, root / kind / "1.png")
        >>> pets = torch.vision.datasets.ImageFolder(
        ...     root, transform=torch.vision.transforms.ToTensor()
        ... )
        >>> pets.classes
        ['cat', 'dog']
        >>> picture, target = pets[1]
        >>> picture.shape, target
        (torch.Size([3, 8, 8]), 1)
    """

    def __init__(
        self,
        root: str | Path,
        transform: Transform = None,
        target_transform: Transform = None,
        loader: Callable[[str], Any] = default_loader,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> None:
        extensions = IMG_EXTENSIONS if is_valid_file is None else None
        super().__init__(
            root, loader, extensions, transform, target_transform, is_valid_file, allow_empty
        )
        self.imgs = self.samples
