"""Pictures with what is in them: Pascal VOC and COCO."""

import json
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from PIL import Image

from .folder import default_loader
from .utils import MISSING_OR_DAMAGED, download_and_extract_archive, verify_str_arg
from .vision import Transform, VisionDataset

__all__ = ["CocoCaptions", "CocoDetection", "VOCDetection", "VOCSegmentation"]

_SITE = "https://thor.robots.ox.ac.uk/pascal/VOC/"
# Archive, sum and folder of each year.
_YEARS = {
    "2012": (
        "voc2012/VOCtrainval_11-May-2012.tar",
        "6cd6e144f989b92b3379bac3b3de84fd",
        "VOCdevkit/VOC2012",
    ),
    "2011": (
        "voc2011/VOCtrainval_25-May-2011.tar",
        "6c3384ef61512963050cb5d687e5bf1e",
        "TrainVal/VOCdevkit/VOC2011",
    ),
    "2010": (
        "voc2010/VOCtrainval_03-May-2010.tar",
        "da459979d0c395079b5c75ee67908abb",
        "VOCdevkit/VOC2010",
    ),
    "2009": (
        "voc2009/VOCtrainval_11-May-2009.tar",
        "a3e00b113cfcfebf17e343f59da3caa1",
        "VOCdevkit/VOC2009",
    ),
    "2008": (
        "voc2008/VOCtrainval_14-Jul-2008.tar",
        "2629fa636546599198acfcfbfcf1904a",
        "VOCdevkit/VOC2008",
    ),
    "2007": (
        "voc2007/VOCtrainval_06-Nov-2007.tar",
        "c52e279531787c972589f7e41ab4ae64",
        "VOCdevkit/VOC2007",
    ),
    "2007-test": (
        "voc2007/VOCtest_06-Nov-2007.tar",
        "b6e924de25625d8de591ea690078ad9f",
        "VOCdevkit/VOC2007",
    ),
}
DATASET_YEAR_DICT = {
    year: {
        "url": _SITE + address,
        "filename": address.rpartition("/")[2],
        "md5": md5,
        "base_dir": folder,
    }
    for year, (address, md5, folder) in _YEARS.items()
}


class _VOC(VisionDataset):
    _lists: str  # folder of the lists of names
    _targets: tuple[str, str]  # folder and ending of targets

    def __init__(
        self,
        root: str | Path,
        year: str = "2012",
        image_set: str = "train",
        download: bool = False,
        transform: Transform = None,
        target_transform: Transform = None,
        transforms: Transform = None,
    ) -> None:
        super().__init__(root, transforms, transform, target_transform)
        self.year = verify_str_arg(year, "year", [str(y) for y in range(2007, 2013)])
        sets = ["train", "trainval", "val", *(["test"] if year == "2007" else [])]
        self.image_set = verify_str_arg(image_set, "image_set", sets)
        own = DATASET_YEAR_DICT["2007-test" if (year, image_set) == ("2007", "test") else year]
        self.url, self.filename, self.md5 = own["url"], own["filename"], own["md5"]
        base = Path(self.root or "") / own["base_dir"]
        if download:
            download_and_extract_archive(
                self.url, self.root or "", filename=self.filename, md5=self.md5
            )
        if not base.is_dir():
            raise RuntimeError(MISSING_OR_DAMAGED)
        names = (base / "ImageSets" / self._lists / f"{image_set}.txt").read_text().split()
        self.images = [str(base / "JPEGImages" / f"{name}.jpg") for name in names]
        where, ending = self._targets
        self.targets = [str(base / where / f"{name}{ending}") for name in names]

    def __len__(self) -> int:
        return len(self.images)


class VOCSegmentation(_VOC):
    """Pictures and their segmentation, of a year's set: root/VOCdevkit/VOC2012. Items are two
    pictures.

    Args:
        year: from "2007" to "2012".
        image_set: "train", "trainval" or "val", in 2007 also "test".
    """

    _lists, _targets = "Segmentation", ("SegmentationClass", ".png")

    @property
    def masks(self) -> list[str]:
        """Paths of the masks."""
        return self.targets

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._apply(default_loader(self.images[index]), Image.open(self.targets[index]))


class VOCDetection(_VOC):
    """Pictures and what is where, of a year's set: root/VOCdevkit/VOC2012. Targets are dicts as
    the XML.

    Args:
        year: from "2007" to "2012".
        image_set: "train", "trainval" or "val", in 2007 also "test".
    """

    _lists, _targets = "Main", ("Annotations", ".xml")

    @property
    def annotations(self) -> list[str]:
        """Paths of the files that say what pictures show."""
        return self.targets

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path = self.targets[index]
        try:
            content = ElementTree.parse(path).getroot()
        except ElementTree.ParseError as error:
            raise RuntimeError(f"{path} is damaged: {error}") from error
        return self._apply(default_loader(self.images[index]), self.parse_voc_xml(content))

    @staticmethod
    def parse_voc_xml(node: ElementTree.Element) -> dict[str, Any]:
        """A dict of an element's children, by name; of those that come again, and of objects, a
        list.
        """
        children: dict[str, list[Any]] = {}
        for child in node:
            for name, value in VOCDetection.parse_voc_xml(child).items():
                children.setdefault(name, []).append(value)
        if children:
            many = {"object"} if node.tag == "annotation" else set()
            return {
                node.tag: {k: v if k in many or len(v) > 1 else v[0] for k, v in children.items()}
            }
        text = (node.text or "").strip()
        return {node.tag: text} if text else {}


class _Index:
    """What a COCO file says, by picture."""

    def __init__(self, path: str | Path) -> None:
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            self.imgs = {image["id"]: image for image in content["images"]}
            self.imgToAnns: dict[int, list[dict[str, Any]]] = {}
            for annotation in content.get("annotations", []):
                self.imgToAnns.setdefault(annotation["image_id"], []).append(annotation)
        except (ValueError, KeyError, TypeError) as error:
            raise RuntimeError(f"{path} is damaged: {error!r}") from error
        self.dataset = content
        self.cats = {category["id"]: category for category in content.get("categories", [])}
        self.anns = {a["id"]: a for a in content.get("annotations", []) if "id" in a}


class CocoDetection(VisionDataset):
    """Pictures of a folder and the annotations of a COCO file. Targets are lists of dicts.

    pycocotools is not needed; `coco` has `imgs`, `anns`, `cats` and `imgToAnns`.

    Args:
        root: the folder of the pictures.
        annFile: the file of annotations, JSON.

    Example:
        >>> import json, pathlib, tempfile
        >>> root = pathlib.Path(tempfile.mkdtemp())
        >>> torch.vision.io.write_png(torch.zeros(3, 8, 8, dtype=torch.uint8), root / "7.png")
        >>> said = {"id": 1, "image_id": 7, "category_id": 3, "bbox": [1, 1, 4, 2]}
        >>> content = {"images": [{"id": 7, "file_name": "7.png"}], "annotations": [said]}
        >>> _ = (root / "all.json").write_text(json.dumps(content))
        >>> data = torch.vision.datasets.CocoDetection(root, root / "all.json")
        >>> data[0][1]
        [{'id': 1, 'image_id': 7, 'category_id': 3, 'bbox': [1, 1, 4, 2]}]
    """

    def __init__(
        self,
        root: str | Path,
        annFile: str | Path,
        transform: Transform = None,
        target_transform: Transform = None,
        transforms: Transform = None,
    ) -> None:
        super().__init__(root, transforms, transform, target_transform)
        self.coco = _Index(annFile)
        self.ids = sorted(self.coco.imgs)

    def _load_image(self, id: int) -> Any:
        return default_loader(os.path.join(self.root or "", self.coco.imgs[id]["file_name"]))

    def _load_target(self, id: int) -> Any:
        return self.coco.imgToAnns.get(id, [])

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        if not isinstance(index, int):
            raise ValueError(f"Index must be of type integer, got {type(index)} instead.")
        return self._apply(self._load_image(self.ids[index]), self._load_target(self.ids[index]))

    def __len__(self) -> int:
        return len(self.ids)


class CocoCaptions(CocoDetection):
    """Pictures of a folder and the captions of a COCO file. Targets are lists of strings.

    Args:
        root: the folder of the pictures.
        annFile: the file of captions, JSON.
    """

    def _load_target(self, id: int) -> list[str]:
        return [annotation["caption"] for annotation in super()._load_target(id)]
