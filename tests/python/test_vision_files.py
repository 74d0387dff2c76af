"""JPEG files without Pillow's decoder: the same pixels of whole pictures and of parts, the same items
on any number of threads, the same errors.
"""

import io
import random

import numpy as np
import pytest
from PIL import Image, ImageFile, ImageFilter

import rushlight as torch
from rushlight import _C
from rushlight.utils.data import DataLoader, Dataset, Subset
from rushlight.vision import datasets, transforms
from rushlight.vision.datasets import folder

needs_jpeg = pytest.mark.skipif(not _C._has_jpeg, reason="built without libjpeg-turbo")


def picture(draw, mode="RGB", most=90):
    """A picture of some size, between flat and noise."""
    size = (draw.randint(1, most), draw.randint(1, most), 3)
    noise = np.random.default_rng(draw.randrange(1 << 30)).integers(0, 256, size, dtype=np.uint8)
    blurred = Image.fromarray(noise).filter(ImageFilter.GaussianBlur(3 * draw.random()))
    return blurred if mode == "RGB" else blurred.convert(mode)


def jpeg(draw, image):
    """It as a JPEG file, of some kind."""
    settings = {
        "quality": draw.choice((5, 50, 75, 95, 100)),
        "progressive": draw.random() < 0.3,
        "optimize": draw.random() < 0.3,
        "restart_marker_blocks": draw.choice((0, 0, 1, 5)),
    }
    if image.mode == "RGB":
        settings["subsampling"] = draw.choice(("4:4:4", "4:2:2", "4:2:0"))
    if image.mode == "RGB" and draw.random() < 0.2:
        settings["keep_rgb"] = True
        del settings["subsampling"]
    file = io.BytesIO()
    image.save(file, "JPEG", **settings)
    return file.getvalue()


@pytest.fixture(autouse=True)
def room(monkeypatch):
    """What small pictures of noise need as progressive files, which Pillow does not know."""
    monkeypatch.setattr(ImageFile, "MAXBLOCK", 1 << 20)


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@needs_jpeg
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_parts_have_pillows_pixels(mode):
    draw = random.Random(mode)
    lanes = 4 if mode == "RGB" else 1
    for _ in range(300):
        data = jpeg(draw, picture(draw, mode))
        expected = np.asarray(Image.open(io.BytesIO(data)))
        height, width = expected.shape[:2]
        top, left = draw.randrange(height), draw.randrange(width)
        h, w = draw.randint(1, height - top), draw.randint(1, width - left)
        for place in ((0, 0, height, width), (top, left, h, w)):
            out = torch.empty(*place[2:], lanes, dtype=torch.uint8)
            assert _C._decode_jpegs([(data, height, width, *place[:2], out)]) == [True]
            expected_part = (
                expected[top : top + h, left : left + w] if place[2:] == (h, w) else expected
            )
            found = out.numpy()[..., :3] if lanes == 4 else out.numpy()[..., 0]
            np.testing.assert_array_equal(found, expected_part)
            assert lanes == 1 or (out[..., 3] == 255).all()


@needs_jpeg
def test_what_is_left_to_pillow():
    draw = random.Random(0)
    data = jpeg(draw, picture(draw).resize((40, 30)))
    out = torch.empty(30, 40, 4, dtype=torch.uint8)
    part = torch.empty(3, 5, 4, dtype=torch.uint8)
    whole, some = (data, 30, 40, 0, 0, out), (data, 30, 40, 2, 3, part)
    assert _C._decode_jpegs([whole, some, whole]) == [True] * 3
    assert part.equal(out[2:5, 3:8])
    cmyk = io.BytesIO()
    Image.new("CMYK", (40, 30)).save(cmyk, "JPEG")
    for file in (
        b"",
        b"\xff\xd8",
        b"no picture",
        data[: len(data) // 2],
        data[:-2],
        cmyk.getvalue(),
    ):
        assert _C._decode_jpegs([(file, *whole[1:]), (file, *some[1:])]) == [False] * 2
    assert _C._decode_jpegs([(data, 31, 40, 0, 0, out), (data, 30, 41, 0, 0, out)]) == [False] * 2
    assert _C._decode_jpegs([]) == []


@pytest.mark.parametrize(
    ("job", "error"),
    [
        ((b"", 4, 4, 0, 0, torch.empty(4, 4, 3, dtype=torch.uint8)), ValueError),
        ((b"", 4, 4, 0, 0, torch.empty(4, 4, 4)), ValueError),
        ((b"", 4, 4, 0, 0, torch.empty(4, 0, 4, dtype=torch.uint8)), ValueError),
        ((b"", 4, 4, 0, 0, torch.empty(4, 4, dtype=torch.uint8)), ValueError),
        ((b"", 4, 4, 0, 0, torch.empty(4, 8, 4, dtype=torch.uint8)[:, ::2]), ValueError),
        ((b"", 4, 4, 1, 0, torch.empty(4, 4, 4, dtype=torch.uint8)), ValueError),
        ((b"", 4, 4, -1, 0, torch.empty(4, 4, 4, dtype=torch.uint8)), ValueError),
        ((b"", 2**62, 4, 2**62, 0, torch.empty(4, 4, 4, dtype=torch.uint8)), ValueError),
        ((b"", -(2**63), 4, 2**62, 0, torch.empty(4, 4, 4, dtype=torch.uint8)), ValueError),
        ((b"", 4, 4, 0, 0, "tensor"), TypeError),
        (("text", 4, 4, 0, 0, torch.empty(4, 4, 4, dtype=torch.uint8)), TypeError),
        ((b"", 4, 4), TypeError),
        (5, TypeError),
    ],
)
def test_jobs_are_checked(job, error):
    with pytest.raises(error):
        _C._decode_jpegs([job])


@pytest.fixture
def files(tmp_path):
    """A folder of files of many kinds, and the pictures that Pillow finds in them."""
    draw = random.Random(1)
    found = {}
    for i in range(12):
        path = tmp_path / "class" / f"{i:02}.jpg"
        path.parent.mkdir(exist_ok=True)
        image = picture(draw, ("RGB", "RGB", "L")[i % 3], 60).resize((50 + i, 60 - i))
        if i % 5 == 4:
            image.save(path.with_suffix(".png"))
            path = path.with_suffix(".png")
        else:
            path.write_bytes(jpeg(draw, image) + bytes(i))
        found[str(path)] = Image.open(path).convert("RGB")
    return tmp_path, found


def test_loading(files):
    _, found = files
    for path, expected in found.items():
        image = folder.default_loader(path)
        assert type(image) is Image.Image
        assert image.mode == "RGB"
        assert image.tobytes() == expected.tobytes()
        assert image.info.keys() == expected.info.keys()


PLAIN = [
    transforms.RandomCrop(40),
    transforms.RandomHorizontalFlip(),
    transforms.RandomVerticalFlip(),
    transforms.ToTensor(),
]
WAYS = {
    "nothing": None,
    "crop": transforms.Compose([transforms.RandomResizedCrop(24), *PLAIN[1:]]),
    "flip": transforms.Compose([transforms.RandomHorizontalFlip(), *PLAIN]),
    "beyond": transforms.Compose([transforms.CenterCrop(90), transforms.ToTensor()]),
    "colours": transforms.Compose([transforms.ColorJitter(0.2, 0.2), *PLAIN]),
    "picture": transforms.Compose([transforms.CenterCrop(30)]),
    "alone": transforms.ToTensor(),
    "empty": transforms.Compose([]),
    "of the caller": lambda image: image.size,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("threads", [1, 2])
def test_items(files, way, threads, two_threads):
    """On one thread and on several, one by one and in batches: what Pillow's pictures become."""
    torch.set_num_threads(threads)
    root, found = files
    data = datasets.ImageFolder(root, WAYS[way])
    change = WAYS[way] or (lambda image: image)
    torch.manual_seed(5)
    expected = [change(image) for image in found.values()]
    torch.manual_seed(5)
    one_by_one = [data[i][0] for i in range(len(data))]
    torch.manual_seed(5)
    loader = DataLoader(data, batch_size=5, collate_fn=lambda items: [image for image, _ in items])
    generator_state = torch.get_rng_state()
    batches = iter(loader)  # draws a seed
    torch.set_rng_state(generator_state)
    batched = [image for batch in batches for image in batch]
    for images in (one_by_one, batched):
        assert len(images) == len(expected)
        for a, b in zip(images, expected, strict=True):
            if isinstance(b, torch.Tensor):
                assert a.equal(b)
            elif isinstance(b, Image.Image):
                assert (type(a), a.tobytes()) == (Image.Image, b.tobytes())
            else:
                assert a == b


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("damage", ["cut", "empty", "missing"])
def test_damaged_files_are_named(files, damage, threads, two_threads):
    torch.set_num_threads(threads)
    root, _ = files
    path = root / "class" / "05.jpg"
    data = datasets.ImageFolder(root, WAYS["crop"])
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[: 300 if damage == "cut" else 0])
    seen = []
    for subset in (data, Subset(data, [2, 5, 1])):
        with pytest.raises(OSError, match="05.jpg"):
            for _ in DataLoader(subset, batch_size=3):
                seen.append(1)
    assert len(seen) == 1  # the batch before


def test_who_overrides_items_or_wraps_them_is_asked(files, two_threads):
    root, found = files

    class Mine(datasets.ImageFolder):
        def __getitem__(self, index):
            return super().__getitem__(index)[0].size

    class Around(Dataset):
        def __init__(self, inner):
            self.inner = inner

        def __getattr__(self, name):
            if name == "inner":
                raise AttributeError(name)
            return getattr(self.inner, name)

        def __getitem__(self, index):
            return self.inner[index][0].size

        def __len__(self):
            return len(self.inner)

    sizes = [image.size for image in found.values()]
    for data in (Mine(root), Around(datasets.ImageFolder(root))):
        loader = DataLoader(data, batch_size=4, collate_fn=list)
        assert [size for batch in loader for size in batch] == sizes
        assert [
            s for b in DataLoader(Subset(data, range(3)), 2, collate_fn=list) for s in b
        ] == sizes[:3]


def test_many_pictures_are_not_decoded_at_once(files, monkeypatch, two_threads):
    """As many as fit the room for what nobody has asked for yet, at least one."""
    from rushlight.vision import _files

    _, found = files
    monkeypatch.setattr(_files, "_AHEAD", 4 * 50 * 60 * 2)
    counts = []
    decode = _C._decode_jpegs
    monkeypatch.setattr(_C, "_decode_jpegs", lambda jobs: counts.append(len(jobs)) or decode(jobs))
    images = list(_files.pictures(found))
    assert [a.tobytes() for a in images] == [b.tobytes() for b in found.values()]
    assert max(counts) <= 3
    assert len(counts) >= 4
