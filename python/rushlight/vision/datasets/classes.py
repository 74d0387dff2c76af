"""More sets of pictures with one class each, in layouts of their own."""

# ruff: noqa: RUF012  # people's subclasses replace these lists, which annotations would forbid

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from .folder import default_loader, find_classes, make_dataset
from .listed import ListedDataset
from .utils import (
    MISSING,
    MISSING_OR_DAMAGED,
    check_integrity,
    download_and_extract_archive,
    download_file_from_google_drive,
    download_url,
    extract_archive,
    lines_of,
    parsing,
    verify_str_arg,
)
from .vision import SamplesDataset, Transform, VisionDataset

__all__ = [
    "FER2013",
    "PCAM",
    "SEMEION",
    "SUN397",
    "CLEVRClassification",
    "FGVCAircraft",
    "Imagenette",
    "Omniglot",
    "RenderedSST2",
    "StanfordCars",
]

_Loader = Callable[[Any], Any]


class CLEVRClassification(ListedDataset):
    """Drawn things, classified by how many there are: root/clevr/CLEVR_v1.0, with images and
    scenes. The test pictures have no class (None).

    Args:
        split: "train", "val" or "test".
    """

    _splits = ("train", "val", "test")
    _archives = (
        (
            "https://dl.fbaipublicfiles.com/clevr/CLEVR_v1.0.zip",
            "b11922020e72d0cd9154779b2d3d07d2",
        ),
    )

    @property
    def _folder(self) -> Path:
        return Path(self.root or "") / "clevr"

    def _required_paths(self) -> list[Path]:
        return [self._folder / "CLEVR_v1.0"]

    def _find(self) -> list[tuple[Path, Any]]:
        base = self._folder / "CLEVR_v1.0"
        images = sorted((base / "images" / self._split).glob("*"))
        if self._split == "test":
            return [(path, None) for path in images]
        path = base / "scenes" / f"CLEVR_{self._split}_scenes.json"
        with parsing(path):
            scenes = json.loads(path.read_text(encoding="utf-8"))["scenes"]
            counts = {scene["image_filename"]: len(scene["objects"]) for scene in scenes}
            return [(image, counts[image.name]) for image in images]


class RenderedSST2(ListedDataset):
    """Written opinions, bad or good: root/rendered-sst2/{train,valid,test}.

    Args:
        split: "train", "val" or "test".
    """

    _splits = ("train", "val", "test")
    _archives = (
        (
            "https://openaipublic.azureedge.net/clip/data/rendered-sst2.tgz",
            "2384d08e9dcfa4bd55b324e610496ee5",
        ),
    )
    classes = ["negative", "positive"]
    class_to_idx = {"negative": 0, "positive": 1}

    def _required_paths(self) -> list[Path]:
        base = self._folder / "rendered-sst2"
        return [base / name for name in ("train", "valid", "test")]

    def _find(self) -> list[tuple[Path, Any]]:
        part = "valid" if self._split == "val" else self._split
        base = self._folder / "rendered-sst2" / part
        found = make_dataset(base, self.class_to_idx, extensions=(".png",))
        return [(Path(path), target) for path, target in found]


class StanfordCars(ListedDataset):
    """Cars: root/stanford_cars, with devkit, cars_train, cars_test and
    cars_test_annos_withlabels.mat; wants SciPy. It is not offered for download any more.
    """

    @property
    def _folder(self) -> Path:
        return Path(self.root or "") / "stanford_cars"

    def _required_paths(self) -> list[Path]:
        return [self._folder / "devkit", self._list, self._folder / f"cars_{self._split}"]

    @property
    def _list(self) -> Path:
        if self._split == "train":
            return self._folder / "devkit" / "cars_train_annos.mat"
        return self._folder / "cars_test_annos_withlabels.mat"

    def _find(self) -> list[tuple[Path, Any]]:
        base = self._folder / f"cars_{self._split}"
        rows = np.atleast_1d(read_mat(self._list, "annotations"))
        names = read_mat(self._folder / "devkit" / "cars_meta.mat", "class_names")
        self._number(np.atleast_1d(names).tolist())
        with parsing(self._list):
            # The file counts classes from 1.
            return [(base / str(row["fname"]), int(row["class"]) - 1) for row in rows]

    def download(self) -> None:
        """ValueError: nobody offers the files."""
        raise ValueError(
            "The original URL is broken so the StanfordCars dataset is not available for automatic "
            f"download anymore. Put its files at {self._folder} by hand"
        )


def read_mat(path: Path, name: str) -> Any:
    """One array of a file of MATLAB; RuntimeError with the file's name where it is damaged."""
    from scipy.io import loadmat

    try:
        return loadmat(path, squeeze_me=True)[name]
    except FileNotFoundError:
        raise
    except Exception as error:  # SciPy raises many kinds
        raise RuntimeError(f"{path} is damaged: {error!r}") from error


class FGVCAircraft(ListedDataset):
    """Aircraft: root/fgvc-aircraft-2013b/data.

    Args:
        split: "train", "val", "trainval" or "test".
        annotation_level: what a class is: "variant", "family" or "manufacturer".
    """

    _splits = ("train", "val", "trainval", "test")
    _archives = (
        (
            "https://www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft/archives/"
            "fgvc-aircraft-2013b.tar.gz",
            None,
        ),
    )
    _lists = {
        "variant": "variants.txt",
        "family": "families.txt",
        "manufacturer": "manufacturers.txt",
    }

    def __init__(
        self,
        root: str | Path,
        split: str = "trainval",
        annotation_level: str = "variant",
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
        loader: _Loader = default_loader,
    ) -> None:
        self._level = verify_str_arg(annotation_level, "annotation_level", self._lists)
        super().__init__(root, split, transform, target_transform, download, loader)

    def _required_paths(self) -> list[Path]:
        return [self._folder / "fgvc-aircraft-2013b"]

    def _find(self) -> list[tuple[Path, Any]]:
        base = self._folder / "fgvc-aircraft-2013b" / "data"
        self._number([line.strip() for line in lines_of(base / self._lists[self._level])])
        path = base / f"images_{self._level}_{self._split}.txt"
        with parsing(path):
            rows = [line.strip().split(" ", 1) for line in lines_of(path)]
            return [
                (base / "images" / f"{name}.jpg", self.class_to_idx[label]) for name, label in rows
            ]


class SUN397(SamplesDataset):
    """Places: root/SUN397, with ClassName.txt and LETTER/CLASS/sun_NAME.jpg. Items are (picture,
    class).
    """

    def __init__(
        self,
        root: str | Path,
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
        loader: _Loader = default_loader,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.loader = loader
        base = Path(self.root or "") / "SUN397"
        if download and not base.is_dir():
            url = "http://vision.princeton.edu/projects/2010/SUN/SUN397.tar.gz"
            download_and_extract_archive(url, base.parent, md5="8ca2778205c41d23104230ba66911c7a")
        if not base.is_dir():
            raise RuntimeError(MISSING)
        # Lines are /LETTER/CLASS, some with a kind of the class behind.
        self.classes = [line.strip()[3:] for line in lines_of(base / "ClassName.txt")]
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}
        self._image_files = sorted(base.rglob("sun_*.jpg"))
        with parsing(base / "ClassName.txt"):
            folders = ("/".join(p.relative_to(base).parts[1:-1]) for p in self._image_files)
            self._labels = [self.class_to_idx[folder] for folder in folders]
        self._samples = list(zip(self._image_files, self._labels, strict=True))


class FER2013(SamplesDataset):
    """Moods, 48 x 48: root/fer2013, with fer2013.csv, or icml_face_data.csv, or train.csv and
    test.csv, the last of which has no classes (None).

    Args:
        split: "train" or "test".
    """

    _sums = {
        "fer2013.csv": "f8428a1edbd21e88f42c73edd2a14f95",
        "icml_face_data.csv": "b114b9e04e6949e5fe8b6a98b3892b1d",
        "train.csv": "3f0dfb3d3fd99c811a1299cb947e3131",
        "test.csv": "b02c2298636a634e8c2faabbf3ea9a23",
    }
    _site = (
        "https://www.kaggle.com/c/"
        "challenges-in-representation-learning-facial-expression-recognition-challenge"
    )

    def __init__(
        self,
        root: str | Path,
        split: str = "train",
        transform: Transform = None,
        target_transform: Transform = None,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self._split = verify_str_arg(split, "split", ("train", "test"))
        base = Path(self.root or "") / "fer2013"
        whole = [name for name in ("fer2013.csv", "icml_face_data.csv") if (base / name).is_file()]
        path = base / (whole[0] if whole else f"{split}.csv")
        if not check_integrity(path, self._sums[path.name]):
            raise RuntimeError(
                f"{path.name} not found in {base} or corrupted. You can download it from "
                f"{self._site}"
            )
        with parsing(path), open(path, newline="", encoding="utf-8") as file:
            self._samples = list(self._rows(file))

    def _rows(self, file: Any) -> Iterator[tuple[np.ndarray, int | None]]:
        """Pictures and classes of the split."""
        for row in csv.DictReader(file, skipinitialspace=True):
            if row.get("Usage", "Training" if self._split == "train" else "Test") == "Training":
                wanted = self._split == "train"
            else:
                wanted = self._split == "test"
            if wanted:
                values = np.array(row["pixels"].split(), np.uint8).reshape(48, 48)
                yield values, int(row["emotion"]) if "emotion" in row else None

    def _open(self, where: np.ndarray) -> Any:
        return Image.fromarray(where)

    def extra_repr(self) -> str:
        """What `repr` shows beside the folder and the length."""
        return f"split={self._split}"


class Imagenette(SamplesDataset):
    """Ten classes of ImageNet: root/imagenette2, imagenette2-320 or -160.

    Args:
        split: "train" or "val".
        size: "full", "320px" or "160px".
    """

    _site = "https://s3.amazonaws.com/fast-ai-imageclas/"
    _sums = {
        "full": "fe2fc210e6bb7c5664d602c3cd71e612",
        "320px": "3df6f0d01a2c9592104656642f5e78a3",
        "160px": "e793b78cc4c9e9a4ccc0c1155377a412",
    }
    _names = {
        "n01440764": ("tench", "Tinca tinca"),
        "n02102040": ("English springer", "English springer spaniel"),
        "n02979186": ("cassette player",),
        "n03000684": ("chain saw", "chainsaw"),
        "n03028079": ("church", "church building"),
        "n03394916": ("French horn", "horn"),
        "n03417042": ("garbage truck", "dustcart"),
        "n03425413": ("gas pump", "gasoline pump", "petrol pump", "island dispenser"),
        "n03445777": ("golf ball",),
        "n03888257": ("parachute", "chute"),
    }

    def __init__(
        self,
        root: str | Path,
        split: str = "train",
        size: str = "full",
        download: bool = False,
        transform: Transform = None,
        target_transform: Transform = None,
        loader: _Loader = default_loader,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self._split = verify_str_arg(split, "split", ("train", "val"))
        self._size = verify_str_arg(size, "size", self._sums)
        self.loader = loader
        name = "imagenette2" + ("" if size == "full" else f"-{size[:-2]}")
        base = Path(self.root or "") / name
        if download and not base.is_dir():
            url = f"{self._site}{name}.tgz"
            download_and_extract_archive(url, base.parent, md5=self._sums[size])
        if not base.is_dir():
            raise RuntimeError(f"{MISSING}.")
        self.wnids, self.wnid_to_idx = find_classes(base / split)
        with parsing(base / split):
            self.classes = [self._names[wnid] for wnid in self.wnids]
        self.class_to_idx = {name: i for i, names in enumerate(self.classes) for name in names}
        self._samples = make_dataset(base / split, self.wnid_to_idx, extensions=".jpeg")


class PCAM(VisionDataset):
    """Tissue, 96 x 96, without or with a tumour: root/pcam, HDF5 files; wants h5py.

    Args:
        split: "train", "test" or "val".
    """

    # Numbers of Google Drive and sums of pictures and classes.
    _files = {
        "train": (
            ("1Ka0XfEMiwgCYPdTI-vv6eUElOBnKFKQ2", "1571f514728f59376b705fc836ff4b63"),
            ("1269yhu3pZDP8UYFQs-NYs3FPwuK-nGSG", "35c2d7259d906cfc8143347bb8e05be7"),
        ),
        "test": (
            ("1qV65ZqZvWzuIVthK8eVDhIwrbnsJdbg_", "d8c2d60d490dbd479f8199bdfa0cf6ec"),
            ("17BHrSrwWKjYsOgTMmoqrIjDy6Fa2o_gP", "60a7035772fbdb7f34eb86d4420cf66a"),
        ),
        "val": (
            ("1hgshYGWK8V-eGRy8LToWJJgDU_rXWVJ3", "d5b63470df7cfa627aeec8b9dc0c066e"),
            ("1bH8ZRbhSVAhScTS0p9-ZzGnX91cHT3uO", "2b85f58b927af9964a4c15b8f7e8f179"),
        ),
    }

    def __init__(
        self,
        root: str | Path,
        split: str = "train",
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
    ) -> None:
        try:
            import h5py  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise RuntimeError(
                "h5py is not found, and this data set is read with it: pip install h5py"
            ) from None
        self._h5py = h5py
        super().__init__(root, transform=transform, target_transform=target_transform)
        self._split = verify_str_arg(split, "split", ("train", "test", "val"))
        if download:
            for path, (number, md5) in zip(self._paths, self._files[split], strict=True):
                packed = f"{path.name}.gz"
                if not path.exists():
                    download_file_from_google_drive(number, path.parent, packed, md5)
                    extract_archive(path.parent / packed)
        if not all(path.exists() for path in self._paths):
            raise RuntimeError(MISSING)

    @property
    def _paths(self) -> list[Path]:
        part = "valid" if self._split == "val" else self._split
        base = Path(self.root or "") / "pcam"
        return [base / f"camelyonpatch_level_2_split_{part}_{what}.h5" for what in "xy"]

    def _read(self, what: int, get: Callable[[Any], Any]) -> Any:
        path = self._paths[what]
        try:
            with self._h5py.File(path) as file:
                return get(file["xy"[what]])
        except (OSError, KeyError) as error:
            raise RuntimeError(f"{path} is damaged: {error!r}") from error

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image = Image.fromarray(self._read(0, lambda x: x[index])).convert("RGB")
        return self._apply(image, int(self._read(1, lambda y: y[index, 0, 0, 0])))

    def __len__(self) -> int:
        return self._read(0, lambda x: x.shape[0])


class Omniglot(SamplesDataset):
    """Letters of 50 alphabets: root/omniglot-py/{images_background,images_evaluation}/ALPHABET/
    CHARACTER. Items are (picture, character).

    Args:
        background: the alphabets to learn from, or those to be tried on.
    """

    folder = "omniglot-py"
    download_url_prefix = "https://raw.githubusercontent.com/brendenlake/omniglot/master/python"
    zips_md5 = {
        "images_background": "68d2efa1b9178cc56df9314c21c6e718",
        "images_evaluation": "6b91aef0f799c5bb55b94e3f2daec811",
    }

    def __init__(
        self,
        root: str | Path,
        background: bool = True,
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
        loader: _Loader | None = None,
    ) -> None:
        super().__init__(
            Path(root).expanduser() / self.folder,
            transform=transform,
            target_transform=target_transform,
        )
        self.background, self.loader = background, loader
        base = Path(self.root or "") / self._get_target_folder()
        if download:
            self.download()
        if not base.is_dir():
            raise RuntimeError(MISSING_OR_DAMAGED)
        self._alphabets = sorted(p.name for p in base.iterdir() if p.is_dir())
        self._characters = [
            f"{alphabet}/{character.name}"
            for alphabet in self._alphabets
            for character in sorted((base / alphabet).iterdir())
        ]
        self._samples = [
            (path, i)
            for i, character in enumerate(self._characters)
            for path in sorted((base / character).glob("*.png"))
        ]

    def _get_target_folder(self) -> str:
        return "images_background" if self.background else "images_evaluation"

    def download(self) -> None:
        """Downloads and unpacks the letters of the half, unless they are there."""
        name = self._get_target_folder()
        if not (Path(self.root or "") / name).is_dir():
            url = f"{self.download_url_prefix}/{name}.zip"
            download_and_extract_archive(url, self.root or "", md5=self.zips_md5[name])

    def _open(self, where: Path) -> Any:
        return default_loader(where).convert("L") if self.loader is None else self.loader(where)


class SEMEION(VisionDataset):
    """Digits, 16 x 16: root/semeion.data, lines of 256 pixels and ten bits."""

    url = "http://archive.ics.uci.edu/ml/machine-learning-databases/semeion/semeion.data"
    filename = "semeion.data"
    md5_checksum = "cb545d371d2ce14ec121470795a77432"

    def __init__(
        self,
        root: str | Path,
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = True,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        path = Path(self.root or "") / self.filename
        if download:
            self.download()
        if not check_integrity(path, self.md5_checksum):
            raise RuntimeError(MISSING_OR_DAMAGED)
        with parsing(path):
            rows = np.array([line.split() for line in lines_of(path)], float)
            self.data = (rows[:, :256] * 255).astype(np.uint8).reshape(-1, 16, 16)
            self.labels = rows[:, 256:266].argmax(1)

    def download(self) -> None:
        """Downloads the file, unless it is there."""
        download_url(self.url, self.root or "", self.filename, self.md5_checksum)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._apply(Image.fromarray(self.data[index]), int(self.labels[index]))

    def __len__(self) -> int:
        return len(self.data)
