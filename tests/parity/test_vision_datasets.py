"""Data sets in small files of their official layouts: the same items as torchvision's classes read."""

import importlib

import numpy as np
import pytest

import rushlight
from rushlight import vision
from rushlight.vision import datasets
from rushlight.vision.datasets import utils
from tests.parity import torchvision as oracle
from tests.python.vision_layouts import LAYOUTS, Tree

torchvision = oracle.load()
torch = pytest.importorskip("torch")


# Where torchvision takes names as the file system lists them, ours are sorted.
LISTED_BY_FILE_SYSTEM = (
    "Sintel",
    "Middlebury2014Stereo",
    "SUN397",
    "Cityscapes",
    "Kitti",
    "Omniglot",
)


def content(item):
    """What items are sorted by: the bytes of their pictures."""
    return b"".join(part.tobytes() for part in item if isinstance(part, np.ndarray))


def plain(thing):
    """Pictures, tensors and arrays as arrays, within dicts, lists and tuples."""
    if isinstance(thing, dict):
        return {key: plain(value) for key, value in thing.items()}
    if isinstance(thing, list | tuple):
        return tuple(plain(part) for part in thing)
    if isinstance(thing, torch.Tensor | rushlight.Tensor):
        return thing.numpy()
    return np.asarray(thing) if hasattr(thing, "getbbox") else thing


def same(found, expected):
    if isinstance(expected, tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        for key in expected:
            same(found[key], expected[key])
    elif isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype and found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)
    else:
        assert type(found) is type(expected) and found == expected


@pytest.fixture
def any_sums(monkeypatch):
    """Files count as what they should be whatever their sums are."""
    monkeypatch.setattr(utils, "check_md5", lambda *a, **k: True)
    module = importlib.import_module("torchvision.datasets.utils")
    monkeypatch.setattr(module, "check_md5", lambda *a, **k: True)


@pytest.mark.parametrize("name", LAYOUTS)
def test_items(name, tmp_path, any_sums, monkeypatch):
    write, settings = LAYOUTS[name]
    write(Tree(tmp_path))
    if name in ("KittiFlow", "HD1K"):  # whose decoder is not there
        module = importlib.import_module("torchvision.datasets._optical_flow")
        maps = importlib.import_module("rushlight.vision.datasets._maps")

        def decoded(path, **mode):
            return torch.from_numpy(maps.read_png16(path).astype(np.int32)).permute(2, 0, 1)

        monkeypatch.setattr(module, "decode_png", decoded)
        monkeypatch.setattr(module, "read_file", lambda path: path)
    for setting in settings:
        how = {k: v(tmp_path) if callable(v) else v for k, v in setting.items()}
        theirs = getattr(torchvision.datasets, name)(tmp_path, **how)
        ours = getattr(datasets, name)(tmp_path, **how)
        assert len(ours) == len(theirs) > 0
        expected, found = ([plain(every[i]) for i in range(len(every))] for every in (theirs, ours))
        if name in LISTED_BY_FILE_SYSTEM:
            expected, found = (sorted(items, key=content) for items in (expected, found))
        if name == "Omniglot":  # which numbers characters in that order, too
            expected, found = ([item[0] for item in items] for items in (expected, found))
        for one, other in zip(found, expected, strict=True):
            same(one, other)
        for attribute in ("classes", "class_to_idx", "targets"):
            if hasattr(theirs, attribute) and name not in LISTED_BY_FILE_SYSTEM:
                same(plain(getattr(ours, attribute)), plain(getattr(theirs, attribute)))


WRAPPED = ("CelebA", "Cityscapes", "Kitti", "SBDataset", "WIDERFace", "Caltech101", "Imagenette", "CLEVRClassification")  # fmt: skip


def unwrapped(thing):
    """Items as `plain` gives them, boxes with their format and the size of their picture."""
    if isinstance(thing, dict):
        return {key: unwrapped(thing[key]) for key in sorted(thing)}
    if isinstance(thing, list | tuple):
        return tuple(unwrapped(part) for part in thing)
    made = plain(thing)
    if hasattr(thing, "canvas_size"):
        return made, thing.format.value, thing.canvas_size
    return made


@pytest.mark.parametrize("name", WRAPPED)
def test_wrapped_items(name, tmp_path, any_sums):
    write, settings = LAYOUTS[name]
    write(Tree(tmp_path))
    for setting in settings:
        how = {k: v(tmp_path) if callable(v) else v for k, v in setting.items()}
        items = []
        for package in (torchvision, rushlight.vision):
            try:
                made = package.datasets.wrap_dataset_for_transforms_v2(
                    getattr(package.datasets, name)(tmp_path, **how)
                )
                every = [made[i] for i in range(len(made))]
                order = sorted(every, key=lambda item: content([np.asarray(item[0])]))
                items.append([unwrapped(item) for item in order])
            except (RuntimeError, TypeError) as error:
                items.append(type(error))
        if isinstance(items[0], type):
            assert items[0] is items[1]
        else:
            same(tuple(items[1]), tuple(items[0]))


def clips_of(package, counts):
    """Videos with so many clips each."""
    utils = importlib.import_module(f"{package.__name__}.datasets.video_utils")
    made = object.__new__(utils.VideoClips)
    made.clips = [range(count) for count in counts]
    return made


@pytest.mark.parametrize("counts", [(5, 0, 2, 9), (1,), (3, 3)])
def test_samplers_of_clips(counts):
    drawn = []
    for package, module in ((torchvision, torch), (vision, rushlight)):
        samplers = importlib.import_module(f"{package.__name__}.datasets.samplers")
        clips = clips_of(package, counts)
        module.manual_seed(0)
        uniform, some = samplers.UniformClipSampler(clips, 4), samplers.RandomClipSampler(clips, 2)
        each = [list(uniform), list(some), len(uniform), len(some)]
        for size, shuffle in ((1, False), (2, True)):
            for rank in range(3):
                for what in (range(8), uniform):
                    share = samplers.DistributedSampler(what, 3, rank, shuffle, size)
                    share.set_epoch(4)
                    each.append((list(share), len(share)))
        drawn.append(each)
        with pytest.raises(TypeError, match="Expected video_clips"):
            samplers.RandomClipSampler([1], 2)
        with pytest.raises(ValueError, match="multiplier of group size"):
            samplers.DistributedSampler(range(7), 3, 0, group_size=2)
    assert drawn[0] == drawn[1]
