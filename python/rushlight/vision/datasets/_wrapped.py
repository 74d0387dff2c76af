"""Data sets whose items are for `transforms.v2`: boxes and masks that know what they are."""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from copy import copy
from typing import Any

import rushlight
from rushlight.vision.transforms.v2.functional import convert_bounding_box_format
from rushlight.vision.tv_tensors import BoundingBoxes, Mask, Video

from .cifar import CIFAR10
from .classes import Imagenette
from .faces import CelebA, WIDERFace
from .folder import DatasetFolder
from .listed import GTSRB, Caltech256, OxfordIIITPet
from .mnist import MNIST
from .scenes import CocoCaptions, CocoDetection, VOCDetection, VOCSegmentation
from .streets import Cityscapes, Kitti, SBDataset
from .trees import Caltech101
from .videos import HMDB51, UCF101, Kinetics
from .vision import VisionDataset

_Wrapper = Callable[[int, Any], Any]  # of an item's number and the item


def _select_keys(keys: Any, available: str, usual: str) -> set[str]:
    """The keys of a target that are asked for; ValueError for others."""
    known = set(available.split())
    if keys is None:
        return set(usual.split())
    if keys == "all":
        return known
    extra = set(keys) - known
    if extra:
        raise ValueError(f"Target keys {sorted(extra)} are not available")
    return set(keys)


def _by_key(entries: Iterable[dict[str, Any]]) -> dict[str, list[Any]]:
    """A dict of lists from a list of dicts."""
    lists: dict[str, list[Any]] = defaultdict(list)
    for entry in entries:
        for key, value in entry.items():
            lists[key].append(value)
    return dict(lists)


def _boxes(rows: Any, image: Any, format: str = "XYXY") -> BoundingBoxes:
    """Boxes of a picture by their corners."""
    boxes = BoundingBoxes(rows, format=format, canvas_size=(image.height, image.width))
    return convert_bounding_box_format(boxes, new_format="XYXY")  # type: ignore[return-value]


def _refuse(what: str) -> None:
    raise RuntimeError(f"{what} is currently not supported by this wrapper.")


def _by_type(target: Any, types: Any, wrappers: dict[str, Callable[[Any], Any]]) -> Any:
    """A target of one or several types, some of which are wrapped."""
    items = target if isinstance(target, tuple | list) else [target]
    made = tuple(
        wrappers[kind](item) if kind in wrappers else item
        for kind, item in zip(types, items, strict=False)
    )
    return made[0] if len(made) == 1 else made


# ---- by data set ----


def _identity_wrapper(dataset: Any, keys: Any) -> _Wrapper:
    return lambda number, item: item


def _caltech101(dataset: Any, keys: Any) -> _Wrapper:
    if "annotation" in dataset.target_type:
        _refuse("Caltech101 dataset with `target_type=['annotation', ...]`")
    return _identity_wrapper(dataset, keys)


def _segmentation(dataset: Any, keys: Any) -> _Wrapper:
    if getattr(dataset, "mode", None) == "boundaries":
        _refuse("SBDataset with mode='boundaries'")
    return lambda number, item: (item[0], Mask(item[1]))


def _coco_mask(segmentation: Any, size: tuple[int, int]) -> rushlight.Tensor:
    tools: Any = importlib.import_module("pycocotools.mask")
    if isinstance(segmentation, list):
        segmentation = tools.merge(tools.frPyObjects(segmentation, *size))
    elif not isinstance(segmentation, dict):
        raise ValueError(
            f"COCO segmentation expected to be a dict or a list, got {type(segmentation)}"
        )
    elif not isinstance(segmentation["counts"], str):
        segmentation = tools.frPyObjects(segmentation, *size)
    return rushlight.from_numpy(tools.decode(segmentation))


def _coco(dataset: Any, keys: Any) -> _Wrapper:
    own = "segmentation area iscrowd image_id bbox category_id"
    wanted = _select_keys(keys, f"{own} boxes masks labels", "image_id boxes labels")

    def wrap(number: int, item: Any) -> Any:
        image, entries = item
        if not entries:
            return image, {"image_id": dataset.ids[number]}
        lists = _by_key(entries)
        target: dict[str, Any] = {key: lists[key] for key in wanted & set(own.split())}
        if "image_id" in wanted:
            target["image_id"] = dataset.ids[number]
        if "boxes" in wanted:
            target["boxes"] = _boxes(lists["bbox"], image, "XYWH")
        if "masks" in wanted:
            size = (image.height, image.width)
            masks = [_coco_mask(entry, size) for entry in lists["segmentation"]]
            target["masks"] = Mask(rushlight.stack(masks))
        if "labels" in wanted:
            target["labels"] = rushlight.tensor(lists["category_id"])
        return image, target

    return wrap


_VOC_CLASSES = [
    "__background__",
    "aeroplane",
    "bicycle",
    "bird",
    "boat",
    "bottle",
    "bus",
    "car",
    "cat",
    "chair",
    "cow",
    "diningtable",
    "dog",
    "horse",
    "motorbike",
    "person",
    "pottedplant",
    "sheep",
    "sofa",
    "train",
    "tvmonitor",
]


def _voc_detection(dataset: Any, keys: Any) -> _Wrapper:
    wanted = _select_keys(keys, "annotation boxes labels", "boxes labels")

    def wrap(number: int, item: Any) -> Any:
        image, annotation = item
        lists = _by_key(annotation["annotation"]["object"])
        target = annotation if "annotation" in wanted else {}
        if "boxes" in wanted:
            sides = ("xmin", "ymin", "xmax", "ymax")
            rows = [[int(box[side]) for side in sides] for box in lists["bndbox"]]
            target["boxes"] = _boxes(rows, image)
        if "labels" in wanted:
            target["labels"] = rushlight.tensor([_VOC_CLASSES.index(n) for n in lists["name"]])
        return image, target

    return wrap


def _celeba(dataset: Any, keys: Any) -> _Wrapper:
    if {"attr", "landmarks"} & set(dataset.target_type):
        _refuse("`CelebA` dataset with `target_type=['attr', 'landmarks', ...]`")

    def wrap(number: int, item: Any) -> Any:
        image, target = item
        ways = {"bbox": lambda box: _boxes(box, image, "XYWH")}
        return image, _by_type(target, dataset.target_type, ways)

    return wrap


_KITTI_CLASSES = [
    "Car",
    "Van",
    "Truck",
    "Pedestrian",
    "Person_sitting",
    "Cyclist",
    "Tram",
    "Misc",
    "DontCare",
]


def _kitti(dataset: Any, keys: Any) -> _Wrapper:
    own = "type truncated occluded alpha bbox dimensions location rotation_y"
    wanted = _select_keys(keys, f"{own} boxes labels", "boxes labels")

    def wrap(number: int, item: Any) -> Any:
        image, entries = item
        if entries is None:
            return item
        lists = _by_key(entries)
        target: dict[str, Any] = {key: lists[key] for key in wanted & set(own.split())}
        if "boxes" in wanted:
            target["boxes"] = _boxes(lists["bbox"], image)
        if "labels" in wanted:
            target["labels"] = rushlight.tensor([_KITTI_CLASSES.index(n) for n in lists["type"]])
        return image, target

    return wrap


def _pets(dataset: Any, keys: Any) -> _Wrapper:
    def wrap(number: int, item: Any) -> Any:
        image, target = item
        if target is not None:
            target = _by_type(target, dataset._target_types, {"segmentation": Mask})
        return image, target

    return wrap


def _instances(picture: Any) -> dict[str, Any]:
    """A mask for each object of Cityscapes, whose number is 1000 times its class and more."""
    numbers = Mask(picture)
    found = numbers.unique()
    masks = rushlight.stack([numbers == number for number in found])
    labels = rushlight.where(found >= 1000, found // 1000, found)
    return {"masks": Mask(masks), "labels": labels}


def _cityscapes(dataset: Any, keys: Any) -> _Wrapper:
    if {"polygon", "color"} & set(dataset.target_type):
        _refuse("`Cityscapes` dataset with `target_type=['polygon', 'color', ...]`")
    ways = {"instance": _instances, "semantic": Mask}
    return lambda number, item: (item[0], _by_type(item[1], dataset.target_type, ways))


def _wider_face(dataset: Any, keys: Any) -> _Wrapper:
    available = "bbox blur expression illumination occlusion pose invalid"
    wanted = _select_keys(keys, available, available)

    def wrap(number: int, item: Any) -> Any:
        image, target = item
        if target is None:
            return item
        target = {key: target[key] for key in wanted}
        if "bbox" in wanted:
            target["bbox"] = _boxes(target["bbox"], image, "XYWH")
        return image, target

    return wrap


def _videos(dataset: Any, keys: Any) -> _Wrapper:
    if dataset.video_clips.output_format == "THWC":
        raise RuntimeError(
            f"{type(dataset).__name__} with `output_format='THWC'` is not supported by this "
            "wrapper: transforms want channels before rows, `output_format='TCHW'`"
        )
    return lambda number, item: (Video(item[0]), *item[1:])


_WRAPPERS: dict[type, Callable[[Any, Any], _Wrapper]] = {
    Caltech256: _identity_wrapper,
    CIFAR10: _identity_wrapper,
    MNIST: _identity_wrapper,
    GTSRB: _identity_wrapper,
    DatasetFolder: _identity_wrapper,
    Imagenette: _identity_wrapper,
    CocoCaptions: _identity_wrapper,
    Caltech101: _caltech101,
    CocoDetection: _coco,
    VOCSegmentation: _segmentation,
    VOCDetection: _voc_detection,
    SBDataset: _segmentation,
    CelebA: _celeba,
    Kitti: _kitti,
    OxfordIIITPet: _pets,
    Cityscapes: _cityscapes,
    WIDERFace: _wider_face,
    HMDB51: _videos,
    Kinetics: _videos,
    UCF101: _videos,
}
_KEYED = (CocoDetection, VOCDetection, Kitti, WIDERFace)  # those with dicts as targets


def _wrapper_of(dataset: Any, keys: Any) -> _Wrapper:
    kind = type(dataset)
    if not isinstance(dataset, VisionDataset):
        raise TypeError(
            f"This wrapper is meant for subclasses of VisionDataset, and '{kind.__name__}' is none"
        )
    for cls in kind.__mro__:
        if cls in _WRAPPERS:
            if keys is not None and cls not in _KEYED:
                raise ValueError(
                    "`target_keys` is only supported for targets with keys, of "
                    f"{', '.join(sorted(c.__name__ for c in _KEYED))}, but got {cls.__name__}"
                )
            return _WRAPPERS[cls](dataset, keys)
    raise TypeError(
        f"No wrapper exists for dataset class {kind.__name__}. Please wrap the output yourself."
    )


class _WrappingDataset:
    """A data set behind its wrapper. It takes over the transforms, which see what is wrapped."""

    def __init__(self, dataset: Any, target_keys: Any) -> None:
        self._wrapper = _wrapper_of(dataset, target_keys)
        self._dataset = dataset
        self._target_keys = target_keys
        self.transform, dataset.transform = dataset.transform, None
        self.target_transform, dataset.target_transform = dataset.target_transform, None
        self.transforms, dataset.transforms = dataset.transforms, None

    def __getattr__(self, name: str) -> Any:
        if name == "_dataset":
            raise AttributeError(name)
        return getattr(self._dataset, name)

    def __getitem__(self, index: int) -> Any:
        item = self._wrapper(index, self._dataset[index])
        return item if self.transforms is None else self.transforms(*item)

    def __len__(self) -> int:
        return len(self._dataset)

    def __reduce__(self) -> Any:
        dataset = copy(self._dataset)
        dataset.transform = self.transform
        dataset.transforms = self.transforms
        dataset.target_transform = self.target_transform
        return wrap_dataset_for_transforms_v2, (dataset, self._target_keys)


def wrap_dataset_for_transforms_v2(
    dataset: Any, target_keys: Collection[str] | str | None = None
) -> Any:
    """A data set of this package whose items are for `transforms.v2`.

    Masks and boxes become those of `tv_tensors`; targets that are lists of dicts become dicts of
    lists, with boxes as corners; pictures and classes stay. The data set's own transforms then see
    these items.

    For an example see `vision.datasets.CocoDetection`, which can be wrapped.

    Args:
        dataset: of `vision.datasets`.
        target_keys: what targets have, of CocoDetection, VOCDetection, Kitti and WIDERFace: names,
            or "all"; what training wants if None.

    Raises:
        TypeError: there is no wrapper for this class.
        ValueError: such keys are not available.
    """
    names = () if target_keys is None else target_keys
    if not isinstance(names, Collection) or any(not isinstance(name, str) for name in names):
        raise ValueError(f"`target_keys` can be None, 'all', or names of keys, not {target_keys}")
    base = type(dataset)
    return type(f"Wrapped{base.__name__}", (_WrappingDataset, base), {})(dataset, target_keys)
