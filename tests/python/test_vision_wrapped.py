"""Data sets whose items are for transforms of samples."""

import json
import pickle

import numpy as np
import pytest

PIL = pytest.importorskip("PIL.Image")

import rushlight as torch  # noqa: E402
from rushlight.utils.data import DataLoader  # noqa: E402
from rushlight.vision import datasets, tv_tensors  # noqa: E402
from rushlight.vision.datasets import wrap_dataset_for_transforms_v2 as wrap  # noqa: E402
from rushlight.vision.transforms import v2  # noqa: E402

SIZE = (20, 30)


def picture(mode="RGB"):
    shape = (*SIZE, 3) if mode == "RGB" else SIZE
    return PIL.fromarray(np.random.default_rng(0).integers(0, 21, shape, dtype=np.uint8))


def voc(root):
    """Pascal VOC 2007 with one picture."""
    base = root / "VOCdevkit" / "VOC2007"
    for name in (
        "JPEGImages",
        "Annotations",
        "SegmentationClass",
        "ImageSets/Main",
        "ImageSets/Segmentation",
    ):
        (base / name).mkdir(parents=True)
    picture().save(base / "JPEGImages" / "a.jpg")
    picture("L").save(base / "SegmentationClass" / "a.png")
    objects = "".join(
        f"<object><name>{name}</name><bndbox><xmin>{x}</xmin><ymin>2</ymin><xmax>{x + 9}</xmax><ymax>18</ymax></bndbox></object>"
        for name, x in (("cat", 1), ("tvmonitor", 12))
    )
    (base / "Annotations" / "a.xml").write_text(
        f"<annotation><folder>V</folder>{objects}</annotation>"
    )
    for name in ("Main", "Segmentation"):
        (base / "ImageSets" / name / "train.txt").write_text("a\n")
    return root


def coco(root):
    """COCO's layout with two pictures, one of them of nothing."""
    for name in ("a", "b"):
        picture().save(root / f"{name}.jpg")
    boxes = ([1, 2, 10, 12], [5, 6, 20, 10])
    content = {
        "images": [{"id": 4, "file_name": "a.jpg"}, {"id": 7, "file_name": "b.jpg"}],
        "annotations": [
            {"id": i, "image_id": 4, "bbox": box, "category_id": 3 + i, "iscrowd": 0, "area": 9.0}
            for i, box in enumerate(boxes)
        ],
    }
    (root / "told.json").write_text(json.dumps(content))
    return datasets.CocoDetection(root, root / "told.json")


def test_voc(tmp_path):
    root = voc(tmp_path)
    plain = datasets.VOCDetection(root, year="2007")
    wrapped = wrap(plain)
    assert isinstance(wrapped, datasets.VOCDetection) and len(wrapped) == 1
    image, target = wrapped[0]
    assert isinstance(image, PIL.Image) and list(target) == ["boxes", "labels"]
    assert target["boxes"].tolist() == [[1, 2, 10, 18], [12, 2, 21, 18]]
    assert target["boxes"].canvas_size == SIZE and target["labels"].tolist() == [8, 20]
    whole = wrap(datasets.VOCDetection(root, year="2007"), target_keys="all")[0][1]
    assert whole["annotation"]["folder"] == "V" and len(whole["boxes"]) == 2
    image, mask = wrap(datasets.VOCSegmentation(root, year="2007"))[0]
    assert type(mask) is tv_tensors.Mask and mask.shape == (1, *SIZE)


def test_coco(tmp_path):
    wrapped = wrap(coco(tmp_path))
    _, target = wrapped[0]
    assert set(target) == {"image_id", "boxes", "labels"} and target["image_id"] == 4
    assert target["boxes"].tolist() == [[1, 2, 11, 14], [5, 6, 25, 16]]
    assert target["labels"].tolist() == [3, 4]
    assert wrapped[1][1] == {"image_id": 7}
    some = wrap(coco(tmp_path), target_keys=["area", "boxes"])[0][1]
    assert some["area"] == [9.0, 9.0] and set(some) == {"area", "boxes"}
    with pytest.raises(ValueError, match="not available"):
        wrap(coco(tmp_path), target_keys=["mask"])
    with pytest.raises(ValueError, match="target_keys"):
        wrap(coco(tmp_path), target_keys=3)


def test_training_on_wrapped_items(tmp_path):
    """Transforms see the wrapped items; a wrapped data set goes through pickles and loaders."""
    steps = v2.Compose([v2.ToImage(), v2.RandomHorizontalFlip(1.0), v2.Resize((10, 15)), v2.ToDtype(torch.float32, scale=True)])  # fmt: skip
    plain = datasets.VOCDetection(voc(tmp_path), year="2007", transforms=steps)
    wrapped = wrap(plain)
    for one in (wrapped, pickle.loads(pickle.dumps(wrapped))):
        image, target = one[0]
        assert type(image) is tv_tensors.Image and image.shape == (3, 10, 15)
        assert target["boxes"].tolist() == [[10, 1, 14, 9], [4, 1, 9, 9]]
    loader = DataLoader(wrapped, num_workers=1, collate_fn=lambda items: items)
    ((image, target),) = next(iter(loader))
    assert image.shape == (3, 10, 15) and len(target["boxes"]) == 2


def test_classes_stay_and_others_are_refused(tmp_path):
    (tmp_path / "cat").mkdir()
    picture().save(tmp_path / "cat" / "a.png")
    wrapped = wrap(datasets.ImageFolder(tmp_path, transform=v2.Resize(5)))
    image, label = wrapped[0]
    assert min(image.size) == 5 and label == 0 and wrapped.classes == ["cat"]
    with pytest.raises(ValueError, match="only supported for"):
        wrap(datasets.ImageFolder(tmp_path), target_keys="all")
    for other in (datasets.FakeData(2), [1, 2]):
        with pytest.raises(TypeError, match="wrapper"):
            wrap(other)


def test_videos_are_videos():
    """Clips of frames (T, C, H, W) become Videos; those with channels last are refused."""

    class Clips(datasets.HMDB51):
        def __init__(self, output_format):
            self.transform = self.target_transform = self.transforms = None
            self.video_clips = type("", (), {"output_format": output_format})()

        def __len__(self):
            return 1

        def __getitem__(self, index):
            return torch.zeros(4, 3, 6, 8, dtype=torch.uint8), torch.zeros(1, 0), 5

    video, audio, label = wrap(Clips("TCHW"))[0]
    assert type(video) is tv_tensors.Video and type(audio) is torch.Tensor and label == 5
    assert v2.Resize(3)(video).shape == (4, 3, 3, 4)
    with pytest.raises(RuntimeError, match="TCHW"):
        wrap(Clips("THWC"))
