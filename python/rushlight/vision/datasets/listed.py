"""Sets of pictures whose archives list which picture is of which class, and part of which split."""

# ruff: noqa: RUF012  # people's subclasses replace these lists, which annotations would forbid

import csv
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from .folder import ImageFolder, default_loader, find_classes, make_dataset
from .utils import (
    MISSING,
    MISSING_OR_DAMAGED,
    download_and_extract_archive,
    download_url,
    verify_str_arg,
)
from .vision import SamplesDataset, Transform

__all__ = [
    "DTD",
    "GTSRB",
    "Caltech256",
    "Country211",
    "EuroSAT",
    "Flowers102",
    "Food101",
    "OxfordIIITPet",
]

_Loader = Callable[[Any], Any]


class ListedDataset(SamplesDataset):
    """Pictures and classes that `_find` lists: items are (picture, class)."""

    _splits: tuple[str, ...] = ("train", "test")
    _archives: tuple[tuple[str, str | None], ...] = ()  # addresses and sums
    classes: list[str]
    _repr_split = True

    def __init__(
        self,
        root: str | Path,
        split: str = "train",
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
        loader: _Loader = default_loader,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self._split = verify_str_arg(split, "split", self._splits)
        self.loader = loader
        self._prepare(download)

    def _prepare(self, download: bool) -> None:
        if download:
            self.download()
        if not self._exists():
            raise RuntimeError(MISSING)
        self._samples = self._find()

    @property
    def _folder(self) -> Path:
        """Where the archives are unpacked."""
        return Path(self.root or "")

    def _required_paths(self) -> list[Path]:
        """Files or folders without which the set is not there."""
        raise NotImplementedError

    def _find(self) -> list[tuple[Path, Any]]:
        raise NotImplementedError

    def _exists(self) -> bool:
        return all(path.exists() for path in self._required_paths())

    def download(self) -> None:
        """Downloads and unpacks the archives, unless the set is there."""
        if not self._exists():
            for url, md5 in self._archives:
                download_and_extract_archive(url, self._folder, md5=md5)

    def _number(self, classes: Sequence[str]) -> None:
        self.classes = list(classes)
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}

    def extra_repr(self) -> str:
        return f"split={self._split}"


class Food101(ListedDataset):
    """Dishes: root/food-101, with images/CLASS/NUMBER.jpg and lists in meta."""

    _archives = (
        ("http://data.vision.ee.ethz.ch/cvl/food-101.tar.gz", "85eeb15f3717b99a5da872d97d918f87"),
    )

    def _required_paths(self) -> list[Path]:
        return [self._folder / "food-101" / name for name in ("meta", "images")]

    def _find(self) -> list[tuple[Path, Any]]:
        base = self._folder / "food-101"
        content = json.loads((base / "meta" / f"{self._split}.json").read_text())
        self._number(sorted(content))
        return [
            (base / "images" / f"{name}.jpg", self.class_to_idx[label])
            for label, names in content.items()
            for name in names
        ]


class DTD(ListedDataset):
    """Textures: root/dtd/dtd, with images and ten partitions' lists in labels.

    Args:
        split: "train", "val" or "test".
        partition: one of the ten ways to split the pictures, from 1 to 10.
    """

    _splits = ("train", "val", "test")
    _archives = (
        (
            "https://www.robots.ox.ac.uk/~vgg/data/dtd/download/dtd-r1.0.1.tar.gz",
            "fff73e5086ae6bdbea199a49dfb8a4c1",
        ),
    )

    def __init__(
        self,
        root: str | Path,
        split: str = "train",
        partition: int = 1,
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
        loader: _Loader = default_loader,
    ) -> None:
        if not isinstance(partition, int) or not 1 <= partition <= 10:
            raise ValueError(
                f"'partition' should be an integer from 1 to 10, but got {partition} instead"
            )
        self._partition = partition
        super().__init__(root, split, transform, target_transform, download, loader)

    @property
    def _folder(self) -> Path:
        return Path(self.root or "") / "dtd"

    def _required_paths(self) -> list[Path]:
        return [self._folder / "dtd" / "images", self._folder / "dtd" / "labels"]

    def _find(self) -> list[tuple[Path, Any]]:
        base = self._folder / "dtd"
        lines = (base / "labels" / f"{self._split}{self._partition}.txt").read_text().split()
        self._number(sorted({line.split("/")[0] for line in lines}))
        return [(base / "images" / line, self.class_to_idx[line.split("/")[0]]) for line in lines]

    def extra_repr(self) -> str:
        """What `repr` shows beside the folder and the length."""
        return f"split={self._split}, partition={self._partition}"


class GTSRB(ListedDataset):
    """German traffic signs: root/gtsrb/GTSRB, training pictures in folders, test pictures in a
    list.
    """

    _site = "https://sid.erda.dk/public/archives/daaeac0d7ce1152aea9b61d9f1e19370/"
    _parts = {
        "train": [("GTSRB-Training_fixed.zip", "513f3c79a4c5141765e10e952eaa2478")],
        "test": [
            ("GTSRB_Final_Test_Images.zip", "c7e4e6327067d32654124b0fe9e82185"),
            ("GTSRB_Final_Test_GT.zip", "fe31e9c9270bbcd7b84b7f21a9d9d9e5"),
        ],
    }

    def __init__(
        self,
        root: str | Path,
        split: str = "train",
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, split, transform, target_transform, download)

    @property
    def _folder(self) -> Path:
        return Path(self.root or "") / "gtsrb"

    def _required_paths(self) -> list[Path]:
        if self._split == "train":
            return [self._folder / "GTSRB" / "Training"]
        return [
            self._folder / "GTSRB" / "Final_Test" / "Images",
            self._folder / "GT-final_test.csv",
        ]

    def _find(self) -> list[tuple[Path, Any]]:
        base = self._folder / "GTSRB"
        if self._split == "train":
            return [(Path(p), t) for p, t in make_dataset(base / "Training", extensions=(".ppm",))]
        with open(self._folder / "GT-final_test.csv", newline="") as file:
            rows = csv.DictReader(file, delimiter=";", skipinitialspace=True)
            return [
                (base / "Final_Test" / "Images" / row["Filename"], int(row["ClassId"]))
                for row in rows
            ]

    def download(self) -> None:
        if not self._exists():
            for name, md5 in self._parts[self._split]:
                download_and_extract_archive(self._site + name, self._folder, md5=md5)


class OxfordIIITPet(ListedDataset):
    """Cats and dogs: root/oxford-iiit-pet, with images, lists in annotations, and trimaps.

    Args:
        split: "trainval" or "test".
        target_types: what targets are, one or several: "category", "binary-category" (cat or dog)
            and "segmentation".
    """

    _splits = ("trainval", "test")
    _kinds = ("category", "binary-category", "segmentation")
    _archives = (
        (
            "https://www.robots.ox.ac.uk/~vgg/data/pets/data/images.tar.gz",
            "5c4f3ee8e5d25df40f4fd59a7f44e54c",
        ),
        (
            "https://www.robots.ox.ac.uk/~vgg/data/pets/data/annotations.tar.gz",
            "95a8c909bbe2e81eed6a22bccdf3f68f",
        ),
    )

    def __init__(
        self,
        root: str | Path,
        split: str = "trainval",
        target_types: Sequence[str] | str = "category",
        transforms: Transform = None,
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
    ) -> None:
        self._split = verify_str_arg(split, "split", self._splits)
        kinds = [target_types] if isinstance(target_types, str) else target_types
        self._target_types = [verify_str_arg(kind, "target_types", self._kinds) for kind in kinds]
        SamplesDataset.__init__(self, root, transforms, transform, target_transform)
        self.loader = default_loader
        self._prepare(download)

    @property
    def _folder(self) -> Path:
        return Path(self.root or "") / "oxford-iiit-pet"

    def _required_paths(self) -> list[Path]:
        return [self._folder / "images", self._folder / "annotations"]

    def _find(self) -> list[tuple[Path, Any]]:
        lines = (self._folder / "annotations" / f"{self._split}.txt").read_text().splitlines()
        rows = [line.split() for line in lines if line.strip()]
        names = {int(label): re.sub(r"_\d+$", "", image) for image, label, *_ in rows}
        self._number(
            [" ".join(part.title() for part in names[i].split("_")) for i in sorted(names)]
        )
        self.bin_classes = ["Cat", "Dog"]
        self.bin_class_to_idx = {"Cat": 0, "Dog": 1}
        return [
            (self._folder / "images" / f"{image}.jpg", (int(a) - 1, int(b) - 1))
            for image, a, b, *_ in rows
        ]

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, (breed, kind) = self._samples[index]
        trimap = self._folder / "annotations" / "trimaps" / f"{path.stem}.png"
        makers = {
            "category": lambda: breed,
            "binary-category": lambda: kind,
            "segmentation": lambda: Image.open(trimap),
        }
        made = [makers[wanted]() for wanted in self._target_types]
        target = None if not made else made[0] if len(made) == 1 else tuple(made)
        return self._apply(self.loader(path), target)


_FLOWERS = (
    "pink primrose; hard-leaved pocket orchid; canterbury bells; sweet pea; english marigold; "
    "tiger lily; moon orchid; bird of paradise; monkshood; globe thistle; snapdragon; colt's "
    "foot; king protea; spear thistle; yellow iris; globe-flower; purple coneflower; peruvian "
    "lily; balloon flower; giant white arum lily; fire lily; pincushion flower; fritillary; "
    "red ginger; grape hyacinth; corn poppy; prince of wales feathers; stemless gentian; "
    "artichoke; sweet william; carnation; garden phlox; love in the mist; mexican aster; "
    "alpine sea holly; ruby-lipped cattleya; cape flower; great masterwort; siam tulip; "
    "lenten rose; barbeton daisy; daffodil; sword lily; poinsettia; bolero deep blue; "
    "wallflower; marigold; buttercup; oxeye daisy; common dandelion; petunia; wild pansy; "
    "primula; sunflower; pelargonium; bishop of llandaff; gaura; geranium; orange dahlia; "
    "pink-yellow dahlia?; cautleya spicata; japanese anemone; black-eyed susan; silverbush; "
    "californian poppy; osteospermum; spring crocus; bearded iris; windflower; tree poppy; "
    "gazania; azalea; water lily; rose; thorn apple; morning glory; passion flower; lotus; "
    "toad lily; anthurium; frangipani; clematis; hibiscus; columbine; desert-rose; tree "
    "mallow; magnolia; cyclamen; watercress; canna lily; hippeastrum; bee balm; ball moss; "
    "foxglove; bougainvillea; camellia; mallow; mexican petunia; bromelia; blanket flower; "
    "trumpet creeper; blackberry lily"
)


class Flowers102(ListedDataset):
    """Flowers: root/flowers-102, with jpg, imagelabels.mat and setid.mat; wants SciPy.

    Args:
        split: "train", "val" or "test".
    """

    _splits = ("train", "val", "test")
    _site = "https://www.robots.ox.ac.uk/~vgg/data/flowers/102/"
    _files = (
        ("102flowers.tgz", "52808999861908f626f3c1f4e79d11fa"),
        ("imagelabels.mat", "e0620be6f572b9609742df49c70aed4d"),
        ("setid.mat", "a5357ecc9cb78c4bef273ce3793fc85c"),
    )
    _lists = {"train": "trnid", "val": "valid", "test": "tstid"}
    classes = [str(name) for name in _FLOWERS.split("; ")]

    @property
    def _folder(self) -> Path:
        return Path(self.root or "") / "flowers-102"

    def _required_paths(self) -> list[Path]:
        return [self._folder / name for name in ("jpg", "imagelabels.mat", "setid.mat")]

    def _find(self) -> list[tuple[Path, Any]]:
        from scipy.io import loadmat

        labels = loadmat(self._folder / "imagelabels.mat", squeeze_me=True)["labels"]
        chosen = loadmat(self._folder / "setid.mat", squeeze_me=True)[self._lists[self._split]]
        return [
            (self._folder / "jpg" / f"image_{i:05d}.jpg", int(labels[i - 1]) - 1)
            for i in chosen.tolist()
        ]

    def download(self) -> None:
        if self._exists():
            return
        (name, md5), *others = self._files
        download_and_extract_archive(self._site + name, self._folder, md5=md5)
        for name, md5 in others:
            download_url(self._site + name, self._folder, md5=md5)


class _ClassFolders(ImageFolder):
    """Pictures in folders of their classes, all of them in one archive."""

    _archive: tuple[str, str]  # address and sum

    def _open(
        self,
        root: str | Path,
        folder: str,
        part: str,
        download: bool,
        transform: Transform,
        target_transform: Transform,
        loader: _Loader,
    ) -> None:
        """Takes root/folder/part; the archive is unpacked where root/folder is missing."""
        base = self._base = Path(root).expanduser() / folder
        if download:
            self._fetch()
        if not base.is_dir():
            raise RuntimeError(MISSING)
        ImageFolder.__init__(self, base / part, transform, target_transform, loader)

    def _fetch(self) -> None:
        if not self._base.is_dir():
            url, md5 = self._archive
            download_and_extract_archive(url, self._base.parent, md5=md5)


class Country211(_ClassFolders):
    """Pictures from 211 countries: root/country211/SPLIT/COUNTRY.

    Args:
        split: "train", "valid" or "test".
    """

    _archive = (
        "https://openaipublic.azureedge.net/clip/data/country211.tgz",
        "84988d7644798601126c29e9877aab6a",
    )

    def __init__(
        self,
        root: str | Path,
        split: str = "train",
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
        loader: _Loader = default_loader,
    ) -> None:
        self._split = verify_str_arg(split, "split", ("train", "valid", "test"))
        how = transform, target_transform, loader
        self._open(root, "country211", self._split, download, *how)


class EuroSAT(_ClassFolders):
    """Pictures of satellites: root/eurosat/2750/CLASS."""

    _archive = (
        "https://huggingface.co/datasets/torchgeo/eurosat/resolve/c877bcd43f099cd0196738f714544e355477f3fd/EuroSAT.zip",
        "c8fa014336c82ac7804f0398fcb19387",
    )

    def __init__(
        self,
        root: str | Path,
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
        loader: _Loader = default_loader,
    ) -> None:
        self._open(root, "eurosat/2750", "", download, transform, target_transform, loader)

    def download(self) -> None:
        """Downloads and unpacks the archive, unless the pictures are there."""
        self._fetch()


class Caltech256(SamplesDataset):
    """Objects of 257 kinds: root/caltech256/256_ObjectCategories/NUMBER.NAME. Items are
    (picture, class).
    """

    def __init__(
        self,
        root: str | Path,
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
    ) -> None:
        base = Path(root).expanduser() / "caltech256"
        super().__init__(base, transform=transform, target_transform=target_transform)
        folder = base / "256_ObjectCategories"
        if download:
            self.download()
        if not folder.is_dir():
            raise RuntimeError(MISSING_OR_DAMAGED)
        self.categories, numbers = find_classes(folder)
        self._samples = make_dataset(folder, numbers, (".jpg",), allow_empty=True)
        self.y = [target for _, target in self._samples]
        self.loader = default_loader

    def download(self) -> None:
        """Downloads and unpacks the archive, unless the pictures are there."""
        base = Path(self.root or "")
        if not (base / "256_ObjectCategories").is_dir():
            download_and_extract_archive(
                "https://data.caltech.edu/records/nyy15-4j048/files/256_ObjectCategories.tar",
                base,
                md5="67b4f42ca05d46448c6bb8ecd2220f6d",
            )
